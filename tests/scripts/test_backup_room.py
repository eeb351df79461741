"""Backups on a disk that is nearly full: etcd lives on it too, and goes before any snapshot."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripts.real_etcd import Members
from tests.scripts.shell import Shell

GIB = 1024**3
MIB = 1024**2


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Members]:
    """A cluster of one member, whose data and backups share a file system of 250 MiB."""
    folder = tmp_path_factory.mktemp("room")
    members = Members(folder, count=1)
    home = members[1].shell.folder / "home"
    owner = (home / "state/owner").read_bytes()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=250m", "none", home], check=True)
    try:
        (home / "state").mkdir()
        (home / "state/owner").write_bytes(owner)
        members.start([1])
        for number in range(40):
            # Nothing makes it smaller.
            write = f"head -c 100000 /dev/urandom | base64 -w 0 >{folder}/value"
            subprocess.run(["bash", "-c", write], check=True)
            value = (folder / "value").read_text()
            members.put(members[1], {f"/registry/{number}": value[:120_000]})
        yield members
    finally:
        members.stop()
        subprocess.run(["umount", "-l", home], check=True)


def save(members: Members, *, fails: bool = False, code: str = "main", **values: str) -> str:
    settings = {"BACKUP_KEEP": "28", "BACKUP_DIRECTORY": "", "BACKUP_ENCRYPT": "1"}
    given = {"REASON": "schedule", "MEMBERS": members.words, **settings, **values}
    return members[1].run("snapshot", code, fails=fails, **given)


def names(members: Members) -> list[str]:
    """Everything in the folder of backups."""
    folder = members[1].shell.folder / "home/backups"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_fifteen_backups_do_not_fill_the_disk_of_etcd(small: Members) -> None:
    refused = 0
    for _ in range(15):
        try:
            save(small)
        except AssertionError as error:
            assert "there is no room for a snapshot" in str(error)
            refused += 1
        time.sleep(1)  # names hold the second
    assert 0 < refused < 15
    home = small[1].shell.folder / "home"
    free = subprocess.run(
        ["df", "-B1", "--output=avail", home], capture_output=True, text=True, check=True
    )
    assert int(free.stdout.split()[-1]) >= 62 * MIB  # the reserve: a quarter of so small a disk
    small.put(small[1], {"/registry/after": "written"})
    assert not [name for name in names(small) if name.startswith(".")]


def test_short_of_room_nothing_is_written_and_the_last_one_stays(small: Members) -> None:
    before = names(small)
    out = save(small, fails=True)
    assert "MiB for the snapshot, 63 MiB that stay free" in out
    assert "lower etcd.backup.keep" in out
    assert names(small) == before
    # A lower number makes room by itself, at once.
    save(small, BACKUP_KEEP="2")
    assert len(small[1].backups) == 2
    out = save(small, fails=True, code="reserve_of() { echo 99999999999; }; main", BACKUP_KEEP="1")
    assert "there is no room" in out
    assert len(small[1].backups) == 1


@pytest.mark.parametrize("point", ["take_snapshot", "encrypt", "seal", "copy_off"])
def test_what_a_run_leaves_that_fails_or_is_killed_goes(small: Members, point: str) -> None:
    code = f'eval "real_$(declare -f {point})"; {point}() {{ real_{point} "$@"; %s; }}; main'
    out = save(small, fails=True, code=code % "die broken", REASON="manual")
    assert "broken" in out
    assert not [name for name in names(small) if name.startswith(".")]
    save(small, fails=True, code=code % "kill -9 $$", REASON="manual")
    save(small, BACKUP_KEEP="1", REASON="manual")
    assert not [name for name in names(small) if name.startswith(".")]


def test_a_directory_elsewhere_is_not_filled_either(small: Members, tmp_path: Path) -> None:
    mount = tmp_path / "elsewhere"
    mount.mkdir()
    save(small, BACKUP_KEEP="2")
    folder = small[1].shell.folder / "home/backups"
    size = (folder / small[1].backups[-1]).stat().st_size
    options = f"size={26 * size // 10 + MIB}"  # two of them, and some more
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", mount], check=True)
    try:
        for _ in range(3):
            save(small, BACKUP_KEEP="2", BACKUP_DIRECTORY=str(mount))
            time.sleep(1)
        # There is room for no more than two, so the older one goes before the next one comes.
        assert len(list(mount.glob("*.enc"))) == 2
        out = save(small, fails=True, BACKUP_KEEP="3", BACKUP_DIRECTORY=str(mount))
        assert "not in etcd.backup.directory" in out
        assert not list(mount.glob(".*"))
    finally:
        subprocess.run(["umount", "-l", mount], check=True)


@pytest.mark.parametrize(
    ("disk", "reserve"),
    [
        (160 * MIB, 40 * MIB),
        (6 * GIB, 6 * GIB // 4),
        (8 * GIB, 2 * GIB),
        (20 * GIB, 2 * GIB),
        (50 * GIB, 5 * GIB),
        (1000 * GIB, 8 * GIB),
    ],
)
def test_what_stays_free_is_a_tenth_within_bounds(shell: Shell, disk: int, reserve: int) -> None:
    assert shell.run(f"reserve_of {disk}", phase="snapshot").strip() == str(reserve)


def test_who_wants_a_snapshot_does_not_wait_for_an_upload(small: Members, tmp_path: Path) -> None:
    """A store that takes its time: the lock is free, and what is on its way there stays."""
    (small[1].pki / "store.key").write_text("x\n")
    uploading = tmp_path / "uploading"
    slow = (
        f"send_object() {{ touch {uploading}; for _ in $(seq 300); do if [[ -e {tmp_path}/end ]]; then "
        f'sha256sum <"$1" >>{tmp_path}/sent; return; fi; sleep 0.1; done; return 1; }}; prune_store() {{ :; }}; main'
    )
    store = {
        "BACKUP_STORE": "http://127.0.0.1:9/acme",
        "BACKUP_PRUNE": "0",
        "BACKUP_ACCESS_KEY": "AKIAEXAMPLE",
        "BACKUP_REGION": "auto",
        "BACKUP_KEEP": "1",
    }
    first = threading.Thread(target=lambda: save(small, code=slow, fails=False, **store))
    first.start()
    while not uploading.exists():
        assert first.is_alive()
        time.sleep(0.05)
    (sent,) = [n for n in small[1].backups if n.endswith("-schedule.db.gz.enc")]
    time.sleep(1)
    save(small, BACKUP_KEEP="1")  # takes its place
    assert sent not in small[1].backups
    (tmp_path / "end").touch()
    first.join()
    assert (
        len((tmp_path / "sent").read_text().splitlines()) == 2
    )  # sum and snapshot, though it is gone here
    assert not [name for name in names(small) if name.startswith(".")]
