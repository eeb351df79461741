"""Restores of real etcd members: by a snapshot, by what one member has, resumed, and when they are refused."""

from __future__ import annotations

import dataclasses
import hashlib
import shutil
from pathlib import Path

import pytest

from operations.engine.engine import StackError
from operations.etcd_snapshots import restore_checks, snapshot_file
from operations.etcd_snapshots.restore_checks import Wish
from operations.ssh.client import Answer
from tests.scripts.real_etcd import BACKUP_KEY, CLUSTER_ID, Member
from tests.scripts.restores import Lab, there
from tests.scripts.shell import Shell

BUMP = 1_000_000_000


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
    made = three.save(members[2])
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
    # Whoever watched the old cluster hears that it has to read again.
    assert members.revision(members[1]) >= before + BUMP
    old = members.ask(members[1], "watch", "/registry/a", f"--rev={before}")
    assert "required revision has been compacted" in old.stdout + old.stderr
    assert not there(members[1]).exists()
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
    file = Path(shutil.copy(three.save(members[2]), tmp_path))
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
    file = Path(shutil.copy(three.save(members[1]), tmp_path))
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
        content[len(content) // 3] ^= 1
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
    """Also by the word that takes what bears no seal: older snapshots, and those made by hand."""
    members = three.members
    closed = Path(shutil.copy(three.save(members[1]), tmp_path))
    good = tmp_path / "good.db"
    plain = snapshot_file.opened(closed, BACKUP_KEY, tmp_path, sealed=True)
    plain.rename(good)
    wish = Wish(on="master-1", replace=True)

    def refused(file: Path, word: str, *, unauthenticated: bool = True) -> None:
        with pytest.raises(StackError, match=word):
            three.restore(wish, file, tmp_path / "opened", unauthenticated=unauthenticated)

    for how, word in {
        "truncated": "is not whole",
        "changed": "is not whole",
        "foreign": r"is of cluster dev \(fedcba987654\), not of dev \(0123456789ab\)",
        "no snapshot": "is not a snapshot of etcd",
        "empty": "is not a snapshot of etcd",
    }.items():
        refused(spoilt(good, how), word)
    refused(good, "bears no seal of this stack", unauthenticated=False)
    refused(spoilt(closed, "changed"), "is not what the key of this stack has sealed")
    refused(
        spoilt(closed, "half encrypted"), r"does not open|is not a snapshot|is not whole|damaged"
    )
    named = good.with_name("dev-20260101T000000Z-999999-master-1-manual.db")
    shutil.copy(good, named)
    refused(named, "and its name says 999999")
    assert not [call for call in three.calls if call.endswith(("stop", "restore restore"))]
    (tmp_path / "good.db.sha256").write_text(f"{'0' * 64}  good.db\n")
    refused(good, r"is not what good\.db\.sha256 says")
    three.stack = dataclasses.replace(three.stack, backup_key="00" * 32)
    refused(closed, "is not what the key of this stack has sealed", unauthenticated=False)
    assert three.calls == []
    assert members.get(members[1], "/registry/a") == "written"


def test_machines_that_may_run_on_are_told_before_anything_is_touched(
    three: Lab, tmp_path: Path
) -> None:
    members = three.members
    file = Path(shutil.copy(three.save(members[1]), tmp_path))
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
    with pytest.raises(StackError, match="worker-1 is not an etcd machine"):
        three.restore(Wish(on="worker-1"), file, tmp_path / "opened")
    with pytest.raises(StackError, match="master-2 has no data of etcd"):
        three.restore(Wish(on="master-1", source="master-2"), None, tmp_path / "opened")
    assert three.calls == []


def test_members_that_only_have_to_run_are_not_restored(three: Lab, tmp_path: Path) -> None:
    members = three.members
    file = Path(shutil.copy(three.save(members[1]), tmp_path))
    for member in members.all.values():
        member.kill()
    with pytest.raises(StackError, match="are a quorum: they only have to run"):
        three.restore(Wish(on="master-1"), file, tmp_path / "opened")
    destroy(members[1])
    destroy(members[2])
    with pytest.raises(StackError, match="master-3 has data, which is newer than any snapshot"):
        three.restore(Wish(on="master-1"), file, tmp_path / "opened")


def test_an_api_server_is_put_away_before_etcd_stops_and_comes_back_in_its_turn(
    shell: Shell,
) -> None:
    manifest = shell.root / "etc/kubernetes/manifests/kube-apiserver.yaml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("kind: Pod\n")
    (shell.folder / "runs").write_text("4194301\n")  # no process has this number
    shell.stub("pgrep", f"cat {shell.folder}/runs")
    shell.stub("systemctl")
    shell.stub("curl", f"[[ -e {manifest} ]]")
    code = f'kill() {{ echo "kill $*" >>"$PWD/calls"; : >{shell.folder}/runs; }}; main'
    values = {"ADDRESS": "10.0.0.11", "SNAPSHOT": "", "WANTED": "x", "DEAD": ""}
    for _ in range(2):  # interrupted between, it is done once more
        shell.run(code, phase="restore", values={**values, "STEP": "quiet"})
        assert not manifest.exists()
    assert [call for call in shell.calls if call.startswith("kill")] == ["kill -KILL 4194301"]
    assert "master\t1" in shell.run("look", phase="restore", values={**values, "STEP": "look"})
    shell.run(code, phase="restore", values={**values, "STEP": "restart"})
    assert manifest.read_text() == "kind: Pod\n"
    assert not (shell.folder / "home/aside.removed").exists()


def test_every_api_server_is_put_away_before_any_etcd_stops_and_the_end_says_what_is_older(
    three: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(shutil.copy(three.save(three.members[2]), tmp_path))
    for member in three.members.all.values():
        manifests = member.shell.root / "etc/kubernetes/manifests"
        manifests.mkdir(parents=True)
        (manifests / "kube-apiserver.yaml").write_text("kind: Pod\n")
    three.restore(Wish(on="master-1", replace=True), file, tmp_path / "opened")
    quiet = [n for n, call in enumerate(three.calls) if call.endswith("restore quiet")]
    stops = [n for n, call in enumerate(three.calls) if call.endswith("restore stop")]
    assert len(quiet) == 3
    assert max(quiet) < min(stops)
    for member in three.members.all.values():
        assert (member.shell.root / "etc/kubernetes/manifests/kube-apiserver.yaml").exists()
    # What the stack remembers is newer than the snapshot.
    assert "set kube-ha:converge.generation to 2 and run pulumi up" in capsys.readouterr().out


def test_an_answer_that_was_cut_off_is_none() -> None:
    cut = Answer(status=0, text="owner\tdev x master-1\nready\t1", asked_at_s=0)
    assert restore_checks.read(cut).trouble


LISTED = """\
listen kubernetes-api
  bind 127.0.0.1:3446
  server master-1 10.0.0.11:6443 check
  server master-2 10.0.0.12:6443 check
  server master-22 10.0.0.22:6443 check
  option allbackups
  server master-1-unchecked 10.0.0.11:6443 backup
  server master-2-unchecked 10.0.0.12:6443 backup
listen etcd
  server master-2 10.0.0.12:2379 check
"""


def test_haproxy_leads_to_machines_that_are_gone_no_more(shell: Shell) -> None:
    file = shell.root / "etc/haproxy/haproxy.cfg"
    file.parent.mkdir(parents=True)
    file.write_text(LISTED)
    shell.state.mkdir(parents=True)
    (shell.state / "haproxy.service.sum").write_text("of what runs")
    shell.stub("socat", "cat >>said")
    shell.stub("haproxy")
    shell.stub("systemctl")
    values = {"STEP": "divert", "ADDRESS": "", "GONE": "master-2 master-9"}
    shell.run("main", phase="restore", values=values)
    left = [line.split()[1] for line in file.read_text().splitlines() if "server " in line]
    assert left == ["master-1", "master-22", "master-1-unchecked"]
    said = (shell.folder / "said").read_text()
    for server in ("kubernetes-api/master-2", "kubernetes-api/master-2-unchecked"):
        assert f"set server {server} state maint; shutdown sessions server {server}" in said
    assert shell.calls[-1] == "systemctl reload haproxy"
    # Whatever node phase comes next reloads what it wants.
    assert not (shell.state / "haproxy.service.sum").exists()
    shell.forget()
    shell.run("main", phase="restore", values=values)
    assert shell.calls == []
    # A machine with no HAProxy of kube-ha.
    file.write_text("frontend web\n")
    shell.run("main", phase="restore", values=values)
    assert shell.calls == []
