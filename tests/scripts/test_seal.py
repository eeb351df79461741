"""Snapshots as a machine packs them, and as this computer opens them: nothing else passes for one."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import shutil
from pathlib import Path

import pytest

from operations.etcd_snapshots import snapshot_file, snapshot_seal
from operations.etcd_snapshots.snapshot_file import SnapshotError
from tests.scripts.shell import Shell

KEY = "0f" * 16
NAME = "dev-20260101T000000Z-7-master-1-manual.db.gz.enc"
CONTENT = bytes(range(256)) * 700 + b"\nkube-ha-snapshot:1:other:7:"  # no multiple of any block


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    found = Shell(tmp_path / "machine")
    pki = found.root / "etc/kube-ha/etcd"
    pki.mkdir(parents=True)
    (pki / "backup.key").write_text(f"{KEY}\n")
    return found


def packed(shell: Shell, name: str = NAME, revision: str = "7") -> Path:
    """What a machine makes of CONTENT, under that name."""
    plain = shell.folder / "plain"
    plain.write_bytes(CONTENT)
    out = shell.folder / name
    code = f"encrypt {plain} {out}; seal {out} {name} {revision}"
    shell.run(code, phase="snapshot", values={"BACKUP_LOCK": f"{shell.folder}/backup.lock"})
    return out


def opened(file: Path, folder: Path, *, key: str = KEY, sealed: bool = True) -> bytes:
    folder.mkdir(exist_ok=True)
    return snapshot_file.opened(file, key, folder, sealed=sealed).read_bytes()


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 100_000])
@pytest.mark.parametrize("key", ["00" * 32, KEY, "ff" * 64, "a1"])
def test_hmac_of_the_shell_is_hmac(shell: Shell, key: str, size: int) -> None:
    (shell.folder / "text").write_bytes(CONTENT[:size])
    out = shell.run(f"hmac {key} <{shell.folder}/text", phase="snapshot")
    assert out.strip() == hmac.digest(bytes.fromhex(key), CONTENT[:size], "sha256").hex()


def test_what_a_machine_packs_is_opened_here(shell: Shell, tmp_path: Path) -> None:
    file = packed(shell)
    assert file.stat().st_mode & 0o777 == 0o600
    assert CONTENT[:100] not in file.read_bytes()
    assert opened(file, tmp_path / "here") == CONTENT
    assert [
        path.name for path in (tmp_path / "here").iterdir() if path.stat().st_mode & 0o077
    ] == []
    found = snapshot_seal.of(file)
    assert found is not None
    assert (found.name, found.revision) == (NAME, 7)


def test_the_key_is_in_no_command_line(shell: Shell) -> None:
    for program in ("openssl", "sha256sum", "od", "gzip", "head", "tr"):
        real = shutil.which(program)
        shell.stub(program, f'exec {real} "$@"')
    packed(shell)
    assert [call for call in shell.calls if call.startswith("openssl")]
    assert [call for call in shell.calls if KEY in call or KEY.encode().hex() in call] == []


def forged(file: Path, how: str) -> Path:
    """A file in place of that one, by somebody who has not the key."""
    content = file.read_bytes()
    line = content[content.rindex(b"\n", 0, len(content) - 1) :]
    own = hmac.digest(b"guessed", content[: -len(line)], "sha256").hex().encode()
    return {
        "renamed": lambda: _write(file.with_name(NAME.replace("2026", "2099")), content),
        "renamed within": lambda: _write(file, content.replace(b"-20260101", b"-20990101")),
        "another revision": lambda: _write(file, content.replace(b":7:", b":9:")),
        "another seal": lambda: _write(file, content[:-65] + own + b"\n"),
        "no seal": lambda: _write(file, content[: -len(line)]),
        "one bit": lambda: _write(file, content[:100] + bytes([content[100] ^ 1]) + content[101:]),
        "cut off": lambda: _write(file, content[: len(content) // 2]),
        "more behind": lambda: _write(file, content + b"x"),
        "plain": lambda: _write(file, CONTENT),
        "compressed": lambda: _write(file, gzip.compress(CONTENT)),
        "sealed without encryption": lambda: _write(file, CONTENT + line),
        "empty": lambda: _write(file, b""),
    }[how]()


def _write(file: Path, content: bytes) -> Path:
    file.write_bytes(content)
    file.with_name(f"{file.name}.sha256").write_text(hashlib.sha256(content).hexdigest())
    return file


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("renamed", "under another name an old snapshot passes for a new one"),
        ("renamed within", "is not what the key of this stack has sealed"),
        ("another revision", "is not what the key of this stack has sealed"),
        ("another seal", "is not what the key of this stack has sealed"),
        ("no seal", "bears no seal of this stack"),
        ("one bit", "is not what the key of this stack has sealed"),
        ("cut off", "bears no seal of this stack"),
        ("more behind", "bears no seal of this stack"),
        ("plain", "UNAUTHENTICATED=1"),
        ("compressed", "UNAUTHENTICATED=1"),
        ("sealed without encryption", "is not what the key of this stack has sealed"),
        ("empty", "bears no seal of this stack"),
    ],
)
def test_what_others_make_is_refused_before_it_is_opened(
    shell: Shell, tmp_path: Path, how: str, words: str
) -> None:
    file = forged(packed(shell), how)
    with pytest.raises(SnapshotError, match=words):
        opened(file, tmp_path / "here")
    assert not list((tmp_path / "here").iterdir())  # not a byte of it was decrypted


def test_another_stacks_is_refused_and_says_so(shell: Shell, tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="it is of another cluster, or was changed"):
        opened(packed(shell), tmp_path / "here", key="00" * 16)
    for file in (packed(shell), forged(packed(shell), "sealed without encryption")):
        with pytest.raises(SnapshotError, match="this stack gives no key"):
            opened(file, tmp_path / "here", key="")


def test_older_ones_and_plain_ones_are_taken_by_the_word(shell: Shell, tmp_path: Path) -> None:
    """As programs before this one made them: no seal, nothing compressed."""
    plain = tmp_path / "dev-20250101T000000Z-7-manual.db"
    plain.write_bytes(CONTENT)
    old = tmp_path / "dev-20250101T000000Z-7-manual.db.enc"
    code = f'openssl enc -aes-256-cbc -pbkdf2 -iter 10000 -salt -pass "file:$PKI/backup.key" -in {plain} -out {old}'
    shell.run(code, phase="snapshot")
    for file in (plain, old):
        with pytest.raises(SnapshotError, match="UNAUTHENTICATED=1"):
            opened(file, tmp_path / "here")
        assert opened(file, tmp_path / "here", sealed=False) == CONTENT
    packed_alone = _write(tmp_path / "dev-1.db.gz", gzip.compress(CONTENT))
    assert opened(packed_alone, tmp_path / "here", sealed=False) == CONTENT
    packed_alone.write_bytes(gzip.compress(CONTENT)[:-9])
    (tmp_path / "dev-1.db.gz.sha256").unlink()
    with pytest.raises(SnapshotError, match="was cut off, or is damaged"):
        opened(packed_alone, tmp_path / "here", sealed=False)


def test_one_that_unpacks_without_end_does_not_fill_this_computer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_file, "_MOST", 10_000)
    bomb = _write(tmp_path / "dev-1.db.gz", gzip.compress(bytes(10**7)))
    with pytest.raises(SnapshotError, match="holds more than any etcd does"):
        opened(bomb, tmp_path / "here", sealed=False)
