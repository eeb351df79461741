"""Files are read with a bound, and only those that are files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stacks.config import local_file


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"12345")
    assert local_file.read(file, 5) == b"12345"
    with pytest.raises(OSError, match="Has more than 0 KiB"):
        local_file.read(file, 4)


def test_pipes_devices_and_folders_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), Path("/dev/tty"), tmp_path):
        with pytest.raises(OSError, match=r"regular file|directory|No such device"):
            local_file.read(path, 10)


def test_places_start_at_home_or_at_the_root(tmp_path: Path) -> None:
    assert local_file.place("a/b", tmp_path) == tmp_path / "a/b"
    assert local_file.place("~/a") == Path.home() / "a"
    with pytest.raises(OSError, match="nobody here has this home directory"):
        local_file.place("~nobody-at-all/a")
