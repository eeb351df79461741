"""`remote.CopyToRemote` of the stand-in copies as the official plugin does."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.toolchain.plugin_client import CallError, Plugin
from tests.toolchain.sshd import Sshd
from toolchain.values import ARCHIVE, ASSET, SIGNATURE

KIND = "command:remote:CopyToRemote"


def _file(path: Path) -> dict[str, object]:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {SIGNATURE: ASSET, "path": str(path), "hash": digest}


def _text(text: str) -> dict[str, object]:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {SIGNATURE: ASSET, "text": text, "hash": digest}


def _folder(path: Path) -> dict[str, object]:
    return {SIGNATURE: ARCHIVE, "path": str(path), "hash": "of the folder"}


def test_a_file_becomes_the_target(sshd: Sshd, command: Plugin, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("content")
    target = tmp_path / "target"
    command.create(
        KIND, "copy", connection=sshd.connection(), source=_file(source), remotePath=str(target)
    )
    assert target.read_text() == "content"


def test_a_file_goes_into_a_folder_that_exists(sshd: Sshd, command: Plugin, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("content")
    (tmp_path / "folder").mkdir()
    command.create(
        KIND,
        "copy",
        connection=sshd.connection(),
        source=_file(source),
        remotePath=str(tmp_path / "folder"),
    )
    assert (tmp_path / "folder" / "source").read_text() == "content"


def test_text_becomes_the_target_and_never_goes_into_a_folder(
    sshd: Sshd, command: Plugin, tmp_path: Path
) -> None:
    inputs = {"connection": sshd.connection(), "source": _text("words")}
    command.create(KIND, "copy", **inputs, remotePath=str(tmp_path / "target"))
    assert (tmp_path / "target").read_text() == "words"
    with pytest.raises(CallError, match=r"is a directory; when using a text asset"):
        command.create(KIND, "copy", **inputs, remotePath=str(tmp_path))


def test_a_folder_goes_below_the_target(sshd: Sshd, command: Plugin, tmp_path: Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "leaf").write_text("content")
    target = tmp_path / "target"
    command.create(
        KIND,
        "copy",
        connection=sshd.connection(),
        source=_folder(tmp_path / "tree"),
        remotePath=str(target),
    )
    assert (target / "tree" / "deep" / "leaf").read_text() == "content"


def test_only_another_content_copies_again(sshd: Sshd, command: Plugin, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("one")
    inputs = {"connection": sshd.connection(), "remotePath": str(target)}
    made = command.create(KIND, "copy", **inputs, source=_file(source))
    target.write_text("altered")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("one")
    assert command.diff(made, **inputs, source=_file(elsewhere)) == {}
    command.update(made, **inputs, source=_file(elsewhere), triggers=[])
    assert target.read_text() == "altered"
    source.write_text("two")
    assert command.diff(made, **inputs, source=_file(source)) == {"source": "update"}
    command.update(made, **inputs, source=_file(source))
    assert target.read_text() == "two"


def test_a_target_that_cannot_be_written_fails(sshd: Sshd, command: Plugin) -> None:
    with pytest.raises(CallError, match=r"^failed to copy to remote path /no/such/folder/x: "):
        command.create(
            KIND,
            "copy",
            connection=sshd.connection(),
            source=_text("words"),
            remotePath="/no/such/folder/x",
        )


def test_a_source_that_is_none_is_refused(command: Plugin) -> None:
    inputs = {"connection": {"host": "a"}, "remotePath": "/x", "source": "text"}
    with pytest.raises(CallError, match=r"either asset or archive must be set"):
        command.check(KIND, "copy", inputs)
