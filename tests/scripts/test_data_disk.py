"""The disk of etcd on a machine of a cloud: a bigger one is used whole, once the cloud has told the machine."""

from __future__ import annotations

import pytest

from tests.scripts.shell import Shell

CODE = "grow_data_disk; finish"
GIB = 2**30


@pytest.fixture
def disk(shell: Shell) -> Shell:
    """Mounted, of 20 GiB; the file system takes all of it when it is told to."""
    shell.stub("findmnt", "echo /dev/nvme1n1")
    shell.stub("blockdev", f"(( calls > ${{SLOW:-0}} )) && echo {40 * GIB} || echo {20 * GIB}")
    shell.stub("stat", 'cat "$PWD/blocks" 2>/dev/null || echo 5')
    shell.stub("resize2fs", 'echo 10 >"$PWD/blocks"')
    shell.stub("sleep")
    return shell


def grown(shell: Shell, gib: str) -> str:
    return shell.run(CODE, phase="node", values={"DISK_GIB": gib} if gib else {})


def test_the_file_system_takes_all_of_a_bigger_disk_and_once(disk: Shell) -> None:
    assert "has all of 40 GiB now" in grown(disk, "40")
    assert "resize2fs /dev/nvme1n1" in disk.calls
    assert "changes=0" in grown(disk, "40")


def test_it_waits_until_the_cloud_has_told_the_machine(disk: Shell) -> None:
    disk.stub("blockdev", f"if ((calls > 3)); then echo {40 * GIB}; else echo {20 * GIB}; fi")
    assert "has all of 40 GiB now" in grown(disk, "40")
    assert sum(call.startswith("blockdev") for call in disk.calls) == 4


def test_machines_elsewhere_are_left_alone(disk: Shell) -> None:
    assert "changes=0" in grown(disk, "")
    assert disk.calls == []


def test_a_machine_without_its_disk_is_told(disk: Shell) -> None:
    disk.stub("findmnt", "exit 1")
    said = disk.run(CODE, phase="node", values={"DISK_GIB": "40"}, fails=True)
    assert "no disk of its own is mounted at" in said
    assert not [call for call in disk.calls if call.startswith("resize2fs")]
