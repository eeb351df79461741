"""Snapshots of real etcd members: from where, whole, of which cluster, kept how long, and when none is taken."""

from __future__ import annotations

import gzip
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.etcd_snapshots import snapshot_file, snapshot_seal
from tests.scripts.real_etcd import BACKUP_KEY, Member, Members
from tests.scripts.shell import Shell

SETTINGS = {"BACKUP_KEEP": "3", "BACKUP_DIRECTORY": "", "BACKUP_ENCRYPT": "0"}


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Members]:
    """Three members that serve; tests leave them so."""
    cluster = Members(tmp_path_factory.mktemp("snapshot"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def save(members: Members, member: Member, *, fails: bool = False, **values: str) -> str:
    given = {"REASON": "manual", "MEMBERS": members.words, **SETTINGS, **values}
    return member.run("snapshot", fails=fails, **given)


def saved(out: str) -> Path:
    """The path in the line for operations."""
    (row,) = [line.split("\t") for line in out.splitlines() if line.startswith("snapshot\t")]
    return Path(row[1])


def test_nothing_is_done_without_a_reason(members: Members) -> None:
    assert "nothing is about to change" in save(members, members[1], REASON="")
    assert members[1].backups == []


def test_a_snapshot_is_of_another_member_holds_everything_and_is_the_owners_alone(
    members: Members,
) -> None:
    members.put(members[1], {"/registry/a": "b"})
    at_least = members.revision(members[1])
    out = save(members, members[1])
    assert "snapshot taken from" in out
    assert f"snapshot taken from {members[1].address}\n" not in out
    file = saved(out)
    assert int(file.name.split("-")[2]) >= at_least
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.name.endswith("-manual.db.gz")
    assert b"kube-ha-cluster:dev:0123456789ab;" in gzip.decompress(file.read_bytes())
    checked = subprocess.run(
        ["sha256sum", "-c", f"{file.name}.sha256"],
        cwd=file.parent,
        capture_output=True,
        check=False,
    )
    assert checked.returncode == 0
    assert (members[1].shell.state / "backup").read_text().split("\t")[1] == file.name
    assert not (members[1].shell.state / "backup.begun").exists()


def test_only_the_leaders_timer_does_the_work(members: Members) -> None:
    leader = members.leader()
    for member in members.all.values():
        before = len(member.backups)
        out = save(members, member, REASON="schedule")
        assert len(member.backups) - before == (member is leader)
        assert ("its business" in out) == (member is not leader)


def test_old_ones_go_and_each_reason_has_its_own_number(members: Members) -> None:
    folder = members[2].shell.folder / "home/backups"
    folder.mkdir(exist_ok=True)
    for day in range(1, 6):
        for reason in ("manual", "change"):
            (folder / f"dev-2026010{day}T000000Z-7-{reason}.db").write_text("x")
            (folder / f"dev-2026010{day}T000000Z-7-{reason}.db.sha256").write_text("x")
    (folder / "dev-20260101T000001Z-7-master-2-manual.db").write_text("by a newer program")
    (folder / "dev-2-20260101T000000Z-7-manual.db").write_text("of a cluster called dev-2")
    save(members, members[2])
    kept = members[2].backups
    assert [name for name in kept if name.startswith("dev-2026010") and "manual" in name] == [
        "dev-20260104T000000Z-7-manual.db",
        "dev-20260105T000000Z-7-manual.db",
    ]
    # Of other reasons those beyond the number: so a lower one frees room at once.
    assert len([name for name in kept if "change" in name]) == 3
    assert "dev-2-20260101T000000Z-7-manual.db" in kept
    assert len(list(folder.glob("dev-2026010*manual.db.sha256"))) == 2


def test_an_encrypted_one_opens_with_the_key_and_shows_nothing_without(members: Members) -> None:
    file = saved(save(members, members[3], BACKUP_ENCRYPT="1"))
    assert file.name.endswith("-manual.db.gz.enc")
    assert b"kube-ha-cluster" not in file.read_bytes()
    # By hand, as docs/operate/back-up-and-restore.md says.
    by_hand = (
        f"head -n -1 {file} | head -c -1 | openssl enc -d -aes-256-cbc -pbkdf2 -iter 10000 -pass env:KEY"
        " | gzip -dc"
    )
    opened = subprocess.run(
        ["bash", "-c", by_hand],
        env={"KEY": BACKUP_KEY, "PATH": os.environ["PATH"]},
        capture_output=True,
        check=True,
    )
    assert b"kube-ha-cluster:dev:0123456789ab;" in opened.stdout
    found = snapshot_seal.of(file)
    assert found is not None
    assert found.name == file.name
    assert found.proves(file, BACKUP_KEY)
    assert str(found.revision) == snapshot_file.revision_named(file)
    assert not list(file.parent.glob(".*"))  # no plain copy stays behind


def test_a_copy_goes_to_another_file_system_and_nowhere_else(
    members: Members, tmp_path: Path
) -> None:
    mount = Path("/dev/shm") / tmp_path.name  # noqa: S108 (another file system is what is wanted)
    mount.mkdir()
    try:
        file = saved(save(members, members[1], BACKUP_DIRECTORY=str(mount)))
        assert (mount / file.name).read_bytes() == file.read_bytes()
        assert (mount / f"{file.name}.sha256").exists()
    finally:
        for path in mount.iterdir():
            path.unlink()
        mount.rmdir()
    out = save(members, members[1], BACKUP_DIRECTORY=str(tmp_path), fails=True)
    assert "is on the disk of master-1 itself" in out
    out = save(members, members[1], BACKUP_DIRECTORY=str(mount), fails=True)
    assert "is not a folder on master-1" in out
    assert (
        members[1].shell.state / "backup.begun"
    ).exists()  # status tells that it was interrupted


def test_a_machine_of_another_cluster_is_not_touched(members: Members) -> None:
    mark = members[1].shell.state / "owner"
    own = mark.read_text()
    mark.write_text("other 0123456789ab master-1\n")
    try:
        out = save(members, members[1], fails=True)
    finally:
        mark.write_text(own)
    assert 'belongs to "other 0123456789ab master-1"' in out


def test_a_member_that_is_down_is_passed_over_and_a_lost_quorum_is_told(members: Members) -> None:
    victim = next(
        m for m in members.all.values() if m is not members.leader() and m is not members[1]
    )
    victim.kill()
    out = save(members, members[1])
    assert f"snapshot taken from {victim.address}\n" not in out
    others = [m for m in members.all.values() if m not in (victim, members[1])]
    others[0].kill()
    out = save(members, members[1], fails=True)
    assert "no etcd member with a quorum answers" in out
    # What is left still gives all it has.
    out = save(members, members[1], REASON="survivor")
    assert saved(out).name.endswith("-survivor.db.gz")
    for member in (victim, others[0]):
        member.systemctl("start", "etcd")
    for member in members.all.values():
        members.wait_healthy(member)


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        ('truncate -s -4096 "$file"', "not whole"),
        ('printf x | dd of="$file" bs=1 seek=5000 conv=notrunc status=none', "not whole"),
        ('head -c 40 /dev/urandom >"$file"', "not whole"),
    ],
)
def test_what_came_damaged_is_no_snapshot(
    members: Members, tmp_path: Path, spoil: str, word: str
) -> None:
    """The real etcdctl saves, then the file is spoilt: etcdutl alone would let a cut one pass."""
    member = members[1]
    code = f"""
save_for_real() {{ timeout 60 {members.programs}/etcdctl --endpoints "https://$1:2379" --cacert "$PKI/ca.crt" --cert "$PKI/client.crt" --key "$PKI/client.key" snapshot save "$2" >/dev/null 2>&1; }}
save_from() {{ local file=$2; rm -f "$file"; save_for_real "$@"; {spoil}; }}
main"""
    before = member.backups
    values = {"REASON": "manual", "MEMBERS": members.words, **SETTINGS}
    out = member.run("snapshot", code, fails=True, **values)
    assert word in out
    assert "no etcd member gave a snapshot" in out
    assert member.backups == before


def test_a_snapshot_of_another_cluster_or_of_the_past_is_none(members: Members) -> None:
    member = members[1]
    file = saved(save(members, member))
    packed, file = file, file.with_suffix("")
    file.write_bytes(gzip.decompress(packed.read_bytes()))
    values = {"REASON": "manual", "MEMBERS": members.words, **SETTINGS}
    out = member.run("snapshot", f"verified {file} 999999 || echo refused", fails=False, **values)
    assert "that member is behind" in out
    assert "refused" in out
    foreign = f"CLUSTER_ID=ffffffffffff; verified {file} 1 || echo refused"
    out = member.run("snapshot", foreign, fails=False, **values)
    assert "does not say that it is of dev ffffffffffff" in out
    assert "refused" in out


TIMER = {
    "BACKUP_EVERY_H": "6",
    "BACKUP_KEEP": "3",
    "BACKUP_DIRECTORY": "/mnt/it's here",
    "BACKUP_ENCRYPT": "1",
    "ADDRESS": "10.0.0.1",
    "MEMBERS": "master-1=10.0.0.1",
}


def test_a_member_gets_a_timer_whose_words_are_read_back(shell: Shell) -> None:
    shell.stub("systemctl")
    code = 'backups; backups; echo "changes=$changes"'
    out = shell.run(code, phase="etcd-member", values=TIMER)
    assert "changes=4" in out  # values, two units, one start
    assert [c for c in shell.calls if "restart" in c] == ["systemctl restart kube-ha-backup.timer"]
    values = (shell.root / "etc/kube-ha/etcd/backup.values").read_text()
    assert values.endswith("# end\n")
    assert "SCRIPT_SUM=kept" in values
    said = subprocess.run(
        ["bash", "-c", f'{values}\nprintf "%s|" "$REASON" "$BACKUP_DIRECTORY" "$NODE"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "schedule|/mnt/it's here|master-1|"


def test_a_schedule_that_is_taken_back_leaves_no_timer(shell: Shell) -> None:
    shell.stub("systemctl")
    shell.run("backups", phase="etcd-member", values=TIMER)
    shell.forget()
    off = {**TIMER, "BACKUP_EVERY_H": "0"}
    shell.run("backups; backups", phase="etcd-member", values=off)
    assert "systemctl disable -q --now kube-ha-backup.timer" in shell.calls
    assert len([c for c in shell.calls if "disable" in c]) == 1
    assert not list((shell.root / "etc/systemd/system").glob("kube-ha-backup*"))


STORE = {
    "BACKUP_STORE": "https://s3.example.com/acme/it's",
    "BACKUP_REGION": "auto",
    "BACKUP_ACCESS_KEY": "AKIAEXAMPLE",
    "BACKUP_CA": "1",
    "BACKUP_PRUNE": "0",
}


def test_the_timer_knows_the_object_store_and_forgets_it_with_its_secret(shell: Shell) -> None:
    shell.stub("systemctl")
    pki = shell.root / "etc/kube-ha/etcd"
    pki.mkdir(parents=True)
    for name in ("store.key", "store-ca.crt", "backup.key"):
        (pki / name).write_text("x\n")
    shell.state.mkdir(parents=True)
    (shell.state / "pki.sums").write_text(f"0 {pki}/backup.key\n0 {pki}/store.key\n")
    for mark in ("backup.sent", "backup.unsent"):
        (shell.state / mark).write_text("1\ta.db\n")
    shell.run("backups", phase="etcd-member", values={**TIMER, **STORE})
    told = (pki / "backup.values").read_text()
    said = subprocess.run(
        ["bash", "-c", f'{told}\nprintf "%s|" "$BACKUP_STORE" "$BACKUP_CA" "$BACKUP_PROXY"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == "https://s3.example.com/acme/it's|1||"
    assert told.endswith("# end\n")
    assert (pki / "store.key").exists()
    out = shell.run('backups; backups; echo "changes=$changes"', phase="etcd-member", values=TIMER)
    assert out.count("no more backups to an object store") == 1
    assert "BACKUP_STORE" not in (pki / "backup.values").read_text()
    assert sorted(path.name for path in pki.iterdir()) == ["backup.key", "backup.values"]
    assert not list(shell.state.glob("backup.*"))
    assert (shell.state / "pki.sums").read_text() == f"0 {pki}/backup.key\n"
