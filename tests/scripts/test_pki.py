"""Keys on a node: written, kept, and their sums for who looks whether somebody changed them."""

from __future__ import annotations

from tests.scripts.shell import Shell


def place(shell: Shell, **files: str) -> str:
    """Run the phase with these files of the folder `keys`; what it printed."""
    values = {"PKI_COUNT": str(len(files))}
    for number, (name, text) in enumerate(files.items(), start=1):
        values |= {
            f"PKI_MODE_{number}": "600",
            f"PKI_PATH_{number}": str(shell.folder / "keys" / name),
            f"PKI_TEXT_{number}": text,
        }
    return shell.run("main", phase="pki", values=values)


def named(shell: Shell) -> list[str]:
    """Names of the files whose sums are kept, as `sha256sum -c` finds them right."""
    out = shell.run('sha256sum -c "$STATE/pki.sums"')
    assert "FAILED" not in out
    return [line.partition(":")[0].rpartition("/")[2] for line in out.splitlines()]


def test_every_set_of_keys_keeps_its_sums(shell: Shell) -> None:
    place(shell, shared="a")
    place(shell, own="b", other="c")
    assert named(shell) == ["other", "own", "shared"]
    place(shell, shared="d")
    assert named(shell) == ["other", "own", "shared"]
    assert (shell.state / "pki.sums").stat().st_mode & 0o777 == 0o600


def test_a_second_run_changes_nothing(shell: Shell) -> None:
    assert "done, changes=3" in place(shell, one="a")  # the owner's mark, the file, the sums
    assert "done, changes=0" in place(shell, one="a")


def test_what_was_changed_by_hand_is_put_back(shell: Shell) -> None:
    place(shell, one="a", two="b")
    (shell.folder / "keys/one").write_text("HIDDEN")
    (shell.folder / "keys/two").unlink()
    out = place(shell, one="a", two="b")
    assert "HIDDEN" not in out
    assert (shell.folder / "keys/one").read_text() == "a\n"
    assert named(shell) == ["one", "two"]


def test_a_run_killed_between_keys_and_sums_is_finished_by_the_next(shell: Shell) -> None:
    place(shell, one="a")
    values = {"PKI_COUNT": "1", "PKI_MODE_1": "600", "PKI_PATH_1": str(shell.folder / "keys/one")}
    shell.run(
        "record_sums() { kill -9 $BASHPID; }; main",
        phase="pki",
        values=values | {"PKI_TEXT_1": "b"},
        fails=True,
    )
    assert "FAILED" in shell.run('sha256sum -c "$STATE/pki.sums" || true')
    place(shell, one="b")
    assert named(shell) == ["one"]


def test_keys_that_are_gone_for_good_are_no_longer_asked_for(shell: Shell) -> None:
    place(shell, one="a", two="b")
    shell.run(f"forget_keys {shell.folder}/keys/o")
    assert named(shell) == ["two"]
    shell.run(f"forget_keys {shell.folder}/keys/; rm $STATE/pki.sums; forget_keys {shell.folder}")
    assert not (shell.state / "pki.sums").exists()
