"""Keys on a node: written, kept, and their sums for who looks whether somebody changed them."""

from __future__ import annotations

import os

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


def test_a_key_that_etcd_serves_with_is_its_own(shell: Shell) -> None:
    """The account is there before the key, and a key that somebody gave to root goes back."""
    path = shell.folder / "keys/server.key"
    shell.stub("getent", f'[[ -f "{shell.folder}/account" ]]')
    shell.stub("groupadd")
    shell.stub("useradd", f'touch "{shell.folder}/account"')
    shell.stub("chown", f'[[ -f "{shell.folder}/account" ]] && /bin/chown --quiet 65534:65534 "$2"')
    values = {"PKI_COUNT": "1", "PKI_MODE_1": "600", "PKI_OWNER_1": "etcd:etcd"}
    values |= {"PKI_PATH_1": str(path), "PKI_TEXT_1": "a"}
    shell.run("main", phase="pki", values=values)
    assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (65534, 0o600)
    assert (shell.state / "etcd.account").exists()
    assert "done, changes=0" in shell.run("main", phase="pki", values=values)
    os.chown(path, 0, 0)
    assert f"wrote {path}" in shell.run("main", phase="pki", values=values)
    assert path.stat().st_uid == 65534


def test_an_account_of_that_name_is_taken_as_it_is(shell: Shell) -> None:
    """What the machine had before us is not ours to take away."""
    shell.stub("getent")
    shell.stub("useradd")
    shell.run("etcd_account", phase="pki")
    assert not [call for call in shell.calls if call.startswith("useradd")]
    assert not (shell.state / "etcd.account").exists()
