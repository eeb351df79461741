"""Restores of real etcd members: by a snapshot, by what one member has, resumed, and when they are refused."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from operations import machine, restore, restore_checks, transfer, verify
from operations.engine import StackError
from operations.machine import Answer, Hop, Target
from operations.restore import Steps
from operations.restore_checks import Wish
from operations.stack import Stack
from stacks import artifacts, desired
from stacks.plan import plan
from stacks.spec import load
from tests.scripts.real_etcd import BACKUP_KEY, CLUSTER_ID, Member, Members
from tests.unit.configs import lab

BUMP = 1_000_000_000
# What the etcd-member phase does between its files and its timer; here both lie elsewhere.
JOIN = """
DATA=$HOME_DIR/etcd BOOTSTRAP_ENV=$ROOT/etc/kube-ha/etcd/bootstrap.env
etcdctl_at() {
  local address=${1/127.0.0.1/$ADDRESS} pki=$ROOT/etc/kube-ha/etcd
  shift
  timeout 12 etcdctl --endpoints "https://$address:2379" --cacert "$pki/ca.crt" --cert "$pki/client.crt" --key "$pki/client.key" --dial-timeout 2s --command-timeout 5s "$@"
}
set_aside_if_removed
if ! etcd_has_data; then
  peer=$(find_cluster)
  [[ -n $peer ]] || die "no cluster"
  add_learner "$peer"
fi
systemctl start etcd
wait_for 60 "etcd answering" etcdctl_at 127.0.0.1 endpoint status
promote
"""


@dataclasses.dataclass
class Lab:
    """A stack whose machines are members, and a way there that is no SSH."""

    members: Members
    stack: Stack
    away: set[str] = dataclasses.field(default_factory=set)  # machines that do not answer
    calls: list[str] = dataclasses.field(default_factory=list)  # "node phase[ step]"
    breaks_at: str = ""  # the call that the connection breaks in

    def run(self, target: Target, phase: str, values: Mapping[str, str], *, limit_s: int) -> Answer:
        assert limit_s
        member = self.members.all[target.hop.user]
        if member.name in self.away:
            return Answer(status=255, text="No route to host", asked_at_s=0)
        call = " ".join([member.name, phase, *([values["STEP"]] if "STEP" in values else [])])
        if "look" not in call:
            self.calls.append(call)
        if call == self.breaks_at:
            self.breaks_at = ""
            return Answer(status=255, text="Connection reset by peer", asked_at_s=0)
        given = dict(values)
        given |= {"ADDRESS": member.address, "DEAD": self._real(values.get("DEAD", ""))}
        given |= {"MEMBERS": self.members.words, "SNAPSHOT": str(_there(member))}
        code = JOIN if phase == "etcd-member" else "main"
        code = f"control_plane() {{ :; }}; curl() {{ :; }}; {code}"
        try:
            text = member.run(phase, code, fails=False, **given)
        except AssertionError as error:
            return Answer(status=1, text=str(error.args[0]), asked_at_s=0)
        return Answer(status=0, text=text.strip(), asked_at_s=0)

    def _real(self, addresses: str) -> str:
        """Addresses of the plan as those of the processes."""
        real = {n.address: self.members.all[n.name].address for n in self.stack.plan.etcd}
        return " ".join(real[address] for address in addresses.split())

    def send(self, target: Target, file: Path, path: str) -> None:
        assert path.startswith("/var/lib/kube-ha/restore/")
        there = _there(self.members.all[target.hop.user])
        there.parent.mkdir(exist_ok=True)
        shutil.copy(file, there)

    def fetch(self, target: Target, path: str, into: Path) -> None:
        shutil.copy(path, into)

    def restore(
        self, wish: Wish, file: Path | None, folder: Path, *, unmarked: bool = False
    ) -> int:
        self.calls.clear()
        folder.mkdir(exist_ok=True)
        return restore.restore(self.stack, wish, file, folder, unmarked=unmarked)

    def save(self, member: Member, *, encrypt: bool = False) -> Path:
        settings = {"BACKUP_KEEP": "3", "BACKUP_DIRECTORY": "", "BACKUP_ENCRYPT": str(int(encrypt))}
        given = {"REASON": "manual", "MEMBERS": self.members.words, **settings}
        member.run("snapshot", fails=False, **given)
        return member.shell.folder / "home/backups" / member.backups[-1]

    def voters(self, member: Member) -> list[str]:
        rows = self.members.answer(member, "member", "list", "-w", "simple").splitlines()
        return sorted(row.split(", ")[2] for row in rows if row.endswith(", false"))


def _there(member: Member) -> Path:
    return member.shell.folder / "home/restore/snapshot.db"


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Three members that hold /registry/a = written."""
    monkeypatch.chdir(tmp_path)
    members = Members(tmp_path / "machines")
    wanted = plan(load(lab({"pools.master.count": 3})))
    targets = {
        node.name: Target(
            hop=Hop(address=node.address, port=22, user=node.name, host_key="", key="")
        )
        for node in wanted.nodes
    }
    known = Stack(plan=wanted, targets=targets, cluster_id=CLUSTER_ID, backup_key=BACKUP_KEY)
    found = Lab(members, known)
    monkeypatch.setattr(machine, "run", found.run)
    monkeypatch.setattr(transfer, "send", found.send)
    monkeypatch.setattr(transfer, "fetch", found.fetch)
    monkeypatch.setattr(verify, "verify", lambda _: 0)
    monkeypatch.setattr(artifacts, "files", lambda *_, **__: {})
    monkeypatch.setattr(desired, "artefacts", lambda *_: "")
    try:
        members.start()
        members.put(members[1], {"/registry/a": "written"})
        yield found
    finally:
        members.stop()


def destroy(member: Member) -> None:
    """All that it ever knew is gone; `pulumi up` has prepared it again as far as etcd."""
    member.kill()
    shutil.rmtree(member.shell.folder / "home/etcd")
    (member.pki / "bootstrap.env").unlink(missing_ok=True)


def test_every_member_destroyed_and_restored_from_an_encrypted_snapshot(
    three: Lab, tmp_path: Path
) -> None:
    members = three.members
    kept = tmp_path / "kept"
    kept.mkdir()
    made = three.save(members[2], encrypt=True)
    for path in (made, made.with_name(f"{made.name}.sha256")):
        shutil.copy(path, kept)
    before = members.revision(members[1])
    members.put(members[1], {"/registry/a": "after the snapshot"})
    for member in members.all.values():
        destroy(member)
    assert three.restore(Wish(on="master-1"), kept / made.name, tmp_path / "opened") == 0
    for member in members.all.values():
        assert members.get(member, "/registry/a") == "written"
    assert three.voters(members[3]) == ["master-1", "master-2", "master-3"]
    # Whoever watched the old cluster hears that it has to read anew.
    assert members.revision(members[1]) >= before + BUMP
    old = members.ask(members[1], "watch", "/registry/a", f"--rev={before}")
    assert "required revision has been compacted" in old.stdout + old.stderr
    assert not _there(members[1]).exists()
    assert not (members[1].shell.state / "restore").exists()


def test_one_member_that_is_left_gives_all_it_has(three: Lab, tmp_path: Path) -> None:
    members = three.members
    members.put(members[1], {"/registry/last": "acknowledged"})
    for number in (1, 3):
        destroy(members[number])
    three.away = {"master-1", "master-3"}
    wish = Wish(on="master-2", source="master-2", dead=("master-1", "master-3"))
    assert three.restore(wish, None, tmp_path / "opened") == 0
    assert members.get(members[2], "/registry/last") == "acknowledged"
    assert three.voters(members[2]) == ["master-2"]
    assert (members[2].shell.folder / "home/etcd.before-restore/member").is_dir()
    # It was brought here too, should the machine not survive what follows.
    assert list((tmp_path / ".local/backups/dev").glob("dev-*-survivor.db*"))


def test_a_survivor_that_is_switched_off_is_started(three: Lab, tmp_path: Path) -> None:
    members = three.members
    assert members.get(members[2], "/registry/a") == "written"  # it has heard that this counts
    for number in (1, 3):
        destroy(members[number])
    members[2].kill()
    three.away = {"master-1", "master-3"}
    wish = Wish(on="master-2", source="master-2", dead=("master-1", "master-3"))
    assert three.restore(wish, None, tmp_path / "opened") == 0
    assert members.get(members[2], "/registry/a") == "written"


@pytest.mark.parametrize(
    "cut",
    [
        "master-1 restore check",
        "master-3 restore stop",
        "master-1 restore restore",
        "master-2 etcd-member",
        "master-3 restore done",
    ],
)
def test_a_restore_that_breaks_off_goes_on_with_the_same_command(
    three: Lab, tmp_path: Path, cut: str
) -> None:
    members = three.members
    file = Path(shutil.copy(three.save(members[2]), tmp_path / "kept.db"))
    for member in members.all.values():
        destroy(member)
    three.breaks_at = cut
    with pytest.raises(StackError, match="Connection reset"):
        three.restore(Wish(on="master-1"), file, tmp_path / "opened")
    assert three.restore(Wish(on="master-1"), file, tmp_path / "opened") == 0
    assert three.voters(members[1]) == ["master-1", "master-2", "master-3"]
    for member in members.all.values():
        assert members.get(member, "/registry/a") == "written"


def test_a_cluster_that_serves_is_only_taken_back_by_an_explicit_word(
    three: Lab, tmp_path: Path
) -> None:
    members = three.members
    file = Path(shutil.copy(three.save(members[1]), tmp_path / "kept.db"))
    members.put(members[1], {"/registry/a": "newer"})
    with pytest.raises(
        StackError, match=r"etcd serves, with a quorum \(master-1, master-2, master-3\)"
    ):
        three.restore(Wish(on="master-1"), file, tmp_path / "opened")
    assert three.calls == []
    assert members.get(members[3], "/registry/a") == "newer"
    assert three.restore(Wish(on="master-3", replace=True), file, tmp_path / "opened") == 0
    assert members.get(members[1], "/registry/a") == "written"
    assert (members[2].shell.folder / "home/etcd.before-restore/member").is_dir()


def spoilt(file: Path, how: str) -> Path:
    content = bytearray(file.read_bytes())
    if how == "truncated":
        content = content[:-4096]
    if how == "changed":
        content[5000] ^= 1
    if how == "foreign":
        content = content.replace(CLUSTER_ID.encode(), b"fedcba987654")
        content[-32:] = hashlib.sha256(content[:-32]).digest()
    if how == "no snapshot":
        content = bytearray(b"x" * 40000)
    if how == "empty":
        content = bytearray()
    if how == "half encrypted":
        content = content[: len(content) // 32 * 16]
    out = file.with_name(f"{how.replace(' ', '-')}.db")
    out.write_bytes(content)
    return out


def test_wrong_truncated_and_foreign_snapshots_touch_nothing(three: Lab, tmp_path: Path) -> None:
    members = three.members
    good = Path(shutil.copy(three.save(members[1]), tmp_path / "good.db"))
    closed = Path(shutil.copy(three.save(members[1], encrypt=True), tmp_path / "closed.db.enc"))
    for how, word in {
        "truncated": "is not whole",
        "changed": "is not whole",
        "foreign": r"is of cluster dev \(fedcba987654\), not of dev \(0123456789ab\)",
        "no snapshot": "is no snapshot of etcd",
        "empty": "is no snapshot of etcd",
    }.items():
        with pytest.raises(StackError, match=word):
            three.restore(Wish(on="master-1", replace=True), spoilt(good, how), tmp_path / "opened")
    for how in ("changed", "half encrypted"):
        bad = spoilt(closed, how)
        with pytest.raises(StackError, match=r"does not open|is no snapshot|is not whole"):
            three.restore(Wish(on="master-1", replace=True), bad, tmp_path / "opened")
    three.stack = dataclasses.replace(three.stack, backup_key="00" * 32)
    with pytest.raises(
        StackError, match=r"does not open with the key of this stack|is no snapshot"
    ):
        three.restore(Wish(on="master-1", replace=True), closed, tmp_path / "opened")
    (tmp_path / "good.db.sha256").write_text(f"{'0' * 64}  good.db\n")
    with pytest.raises(StackError, match=r"is not what good\.db\.sha256 says"):
        three.restore(Wish(on="master-1", replace=True), good, tmp_path / "opened")
    assert three.calls == []
    assert members.get(members[1], "/registry/a") == "written"


def test_machines_that_may_run_on_are_told_before_anything_is_touched(
    three: Lab, tmp_path: Path
) -> None:
    members = three.members
    file = Path(shutil.copy(three.save(members[1]), tmp_path / "kept.db"))
    for member in members.all.values():
        destroy(member)
    three.away = {"master-2"}
    with pytest.raises(StackError, match="master-2 cannot be reached over SSH") as told:
        three.restore(Wish(on="master-1"), file, tmp_path / "opened")
    assert "WITHOUT=master-2" in str(told.value)
    three.away = set()
    with pytest.raises(StackError, match="master-2 is named in WITHOUT, and answers over SSH"):
        three.restore(Wish(on="master-1", dead=("master-2",)), file, tmp_path / "opened")
    (members[1].pki / "server.key").unlink()
    with pytest.raises(StackError, match="master-1 is not prepared for etcd"):
        three.restore(Wish(on="master-1"), file, tmp_path / "opened")
    (members[3].shell.state / "owner").write_text("other 00 master-3\n")
    with pytest.raises(StackError, match='master-3 belongs to "other 00 master-3"'):
        three.restore(Wish(on="master-1"), file, tmp_path / "opened")
    with pytest.raises(StackError, match="worker-1 is no etcd machine"):
        three.restore(Wish(on="worker-1"), file, tmp_path / "opened")
    with pytest.raises(StackError, match="master-2 has no data of etcd"):
        three.restore(Wish(on="master-1", source="master-2"), None, tmp_path / "opened")
    assert three.calls == []


def test_members_that_only_have_to_run_are_not_restored(three: Lab, tmp_path: Path) -> None:
    members = three.members
    file = Path(shutil.copy(three.save(members[1]), tmp_path / "kept.db"))
    for member in members.all.values():
        member.kill()
    with pytest.raises(StackError, match="are a quorum: they only have to run"):
        three.restore(Wish(on="master-1"), file, tmp_path / "opened")
    destroy(members[1])
    destroy(members[2])
    with pytest.raises(StackError, match="master-3 has data, which is newer than any snapshot"):
        three.restore(Wish(on="master-1"), file, tmp_path / "opened")


def test_an_old_member_that_comes_back_is_nothing_to_the_new_cluster(
    three: Lab, tmp_path: Path
) -> None:
    """It was away during the restore and has its old data: it finds no quorum among the new ones."""
    members = three.members
    three.away = {"master-3"}
    members[3].kill()
    members[1].kill()
    wish = Wish(on="master-2", source="master-2", dead=("master-3",), replace=True)
    three.restore(wish, None, tmp_path / "opened")
    assert three.voters(members[2]) == ["master-1", "master-2"]
    members[3].systemctl("start", "etcd")
    refused = members.ask(members[3], "put", "/registry/a", "from the past")
    assert refused.returncode
    assert members.get(members[1], "/registry/a") == "written"
    # The next up brings it in as a new member.
    three.away = set()
    Steps(three.stack, wish, {}, restore.Snapshot(plain=tmp_path, total="", size=0))._join(
        three.stack.plan.node("master-3")
    )
    assert three.voters(members[2]) == ["master-1", "master-2", "master-3"]
    assert (members[3].shell.folder / "home/etcd.removed/member").is_dir()


def test_an_answer_that_was_cut_off_is_none() -> None:
    cut = Answer(status=0, text="owner\tdev x master-1\nready\t1", asked_at_s=0)
    assert restore_checks.read(cut).trouble
