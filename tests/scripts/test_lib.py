"""What every phase shares: files, waiting, restarts, downloads, ownership."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import subprocess
import time

import pytest

from tests.scripts.shell import OWNER, Shell


def test_put_writes_content_and_mode_and_counts_the_change(shell: Shell) -> None:
    out = shell.run('put 600 "$PWD/a/b" <<<"text"; echo "changes=$changes"')
    file = shell.folder / "a/b"
    assert file.read_text() == "text\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "changes=1" in out


def test_put_leaves_a_file_that_is_right_alone(shell: Shell) -> None:
    shell.run('put 644 "$PWD/file" <<<"text"')
    before = (shell.folder / "file").stat()
    out = shell.run('put 644 "$PWD/file" <<<"text"; echo "changes=$changes"')
    after = (shell.folder / "file").stat()
    assert "changes=0" in out
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("wrong", ['echo other >"$PWD/file"', 'chmod 666 "$PWD/file"'])
def test_put_mends_content_and_mode(shell: Shell, wrong: str) -> None:
    shell.run('put 644 "$PWD/file" <<<"text"')
    out = shell.run(f'{wrong}; put 644 "$PWD/file" <<<"text"; echo "changes=$changes"')
    assert "changes=1" in out
    assert (shell.folder / "file").read_text() == "text\n"
    assert (shell.folder / "file").stat().st_mode & 0o777 == 0o644


def test_put_leaves_the_old_file_when_the_new_one_cannot_be_written(shell: Shell) -> None:
    shell.run('put 644 "$PWD/file" <<<"old"')
    shell.stub("chmod", "exit 1")
    out = shell.run('put 644 "$PWD/file" <<<"new"', fails=True)
    assert (shell.folder / "file").read_text() == "old\n"
    assert out.startswith("ERROR master-1: failed")


def test_put_leaves_nothing_behind_however_often_it_was_killed(shell: Shell) -> None:
    for _ in range(2):
        shell.run('sleep 0 | (cat() { kill -9 $BASHPID; }; put 600 "$PWD/etc/file")', fails=True)
    shell.run('put 600 "$PWD/etc/file" <<<"text"')
    assert [file.name for file in (shell.folder / "etc").iterdir()] == ["file"]


def test_put_never_shows_a_secret_to_others(shell: Shell) -> None:
    shell.stub("chmod", 'stat -c %a "${@: -1}"; /bin/chmod "$@"')
    assert shell.run('put 600 "$PWD/key" <<<"text"').startswith("600\n")


def test_put_says_nothing_of_the_content(shell: Shell) -> None:
    out = shell.run('put 600 "$PWD/key" <<<"PRIVATE"; put 600 "$PWD/missing/../key2" <<<"PRIVATE"')
    assert "PRIVATE" not in out


def test_wait_for_ends_when_the_command_succeeds(shell: Shell) -> None:
    shell.stub("ready", "[[ $calls -ge 3 ]]")
    shell.run('wait_for 20 "it ready" ready')
    assert len(shell.calls) == 3


def test_wait_for_gives_up_and_says_what_it_saw_last(shell: Shell) -> None:
    shell.stub("ready", 'echo "answer $calls"; exit 1')
    started = time.monotonic()
    out = shell.run('HINT="look there"; wait_for 1 "it ready" ready', fails=True)
    assert time.monotonic() - started < 10
    assert "ERROR master-1: it ready not seen in 1 s; last answer: answer" in out
    assert "  do: look there" in out


def test_wait_for_takes_functions_too(shell: Shell) -> None:
    shell.run('late() { [[ $SECONDS -ge 1 ]]; }; wait_for 20 "late" late')


def test_a_failed_command_names_itself_and_not_its_values(shell: Shell) -> None:
    out = shell.run('KEY=hidden; false "$KEY"; echo reached', fails=True)
    assert "reached" not in out
    assert 'false "$KEY"' in out
    assert "hidden" not in out
    assert "  do: " in out


SETTLE = 'settle restart x.service "$PWD/config"; echo "changes=$changes"'


def test_settle_restarts_once_for_the_same_files(shell: Shell) -> None:
    shell.stub("systemctl")
    (shell.folder / "config").write_text("a")
    assert "changes=0" not in shell.run(SETTLE)
    assert "systemctl restart x.service" in shell.calls
    shell.forget()
    assert "changes=0" in shell.run(SETTLE)
    assert shell.calls == ["systemctl is-active -q x.service", "systemctl is-enabled -q x.service"]


def test_settle_switches_a_unit_on_again_that_runs(shell: Shell) -> None:
    shell.stub("systemctl")
    (shell.folder / "config").write_text("a")
    shell.run(SETTLE)
    shell.forget()
    shell.stub("systemctl", "[[ $1 != is-enabled ]]")
    assert "changes=1" in shell.run(SETTLE)
    assert shell.calls[-1] == "systemctl enable -q x.service"
    assert "systemctl restart x.service" not in shell.calls


def test_settle_restarts_when_a_file_changed(shell: Shell) -> None:
    shell.stub("systemctl")
    (shell.folder / "config").write_text("a")
    shell.run(SETTLE)
    shell.forget()
    (shell.folder / "config").write_text("b")
    shell.run(SETTLE)
    assert "systemctl restart x.service" in shell.calls


def test_settle_restarts_again_after_a_crash_between_restart_and_mark(shell: Shell) -> None:
    (shell.folder / "config").write_text("a")
    shell.stub("systemctl", "[[ $1 != is-active ]]")
    shell.run(f"wait_for() {{ die crashed; }}; {SETTLE}", fails=True)
    shell.stub("systemctl")
    shell.forget()
    shell.run(SETTLE)
    assert "systemctl restart x.service" in shell.calls


def test_settle_restarts_a_unit_that_died(shell: Shell) -> None:
    shell.stub("systemctl")
    (shell.folder / "config").write_text("a")
    shell.run(SETTLE)
    shell.stub("systemctl", "[[ $1 != is-active || $calls -gt 6 ]]")
    shell.forget()
    shell.run(SETTLE)
    assert "systemctl restart x.service" in shell.calls


def test_settle_reloads_what_runs_and_starts_what_does_not(shell: Shell) -> None:
    (shell.folder / "config").write_text("a")
    shell.stub("systemctl")
    shell.run('settle reload x.service "$PWD/config"')
    assert "systemctl reload x.service" in shell.calls
    assert "systemctl restart x.service" not in shell.calls
    shell.forget()
    (shell.folder / "config").write_text("b")
    shell.stub("systemctl", "[[ $1 != is-active || $calls -gt 5 ]]")
    shell.run('settle reload x.service "$PWD/config"')
    assert "systemctl restart x.service" in shell.calls


def test_a_kubelet_that_kubeadm_has_just_started_is_not_started_again(shell: Shell) -> None:
    shell.stub("systemctl")
    (shell.folder / "config").write_text("a")
    code = (
        'kubelet_files() { printf "%s\n" "$PWD/config"; }; settle_kubelet; echo "changes=$changes"'
    )
    shell.run(f"{code}; rm $STATE/kubelet.service.sum; kubelet_started", phase="kubelet")
    shell.forget()
    assert "changes=0" in shell.run(code, phase="kubelet")
    assert "systemctl restart kubelet.service" not in shell.calls
    (shell.folder / "config").write_text("b")
    shell.run(code, phase="kubelet")
    assert "systemctl restart kubelet.service" in shell.calls


@pytest.mark.parametrize("step", ["settle_kubelet", "kubelet_started"])
def test_what_kubeadm_writes_for_a_kubelet_is_for_root_alone(shell: Shell, step: str) -> None:
    """kubeadm recreates its files for everybody to read; whatever step follows closes them."""
    shell.stub("systemctl")
    folder = shell.root / "var/lib/kubelet"
    folder.mkdir(parents=True)
    for name in ("config.yaml", "kubeadm-flags.env"):
        (folder / name).touch(mode=0o644)
    shell.run(
        f'kubelet_files() {{ printf "%s\n" "$PWD/config"; }}; touch config; {step}', phase="kubelet"
    )
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


CONTENT = b"artefact"
SUM = hashlib.sha256(CONTENT).hexdigest()
CURL = 'while [[ $1 != -o ]]; do shift; done; printf %s artefact >"$2"'


def test_fetch_verifies_what_it_gets(shell: Shell) -> None:
    shell.stub("curl", CURL)
    shell.run(f'fetch http://mirror/thing {SUM} "$PWD/a/thing"', phase="downloads")
    assert (shell.folder / "a/thing").read_bytes() == CONTENT


def test_fetch_refuses_another_content(shell: Shell) -> None:
    shell.stub("curl", CURL)
    out = shell.run(
        f'fetch http://mirror/thing {"0" * 64} "$PWD/thing"; echo used',
        fails=True,
        phase="downloads",
    )
    assert f"http://mirror/thing has sha256 {SUM}, wanted {'0' * 64}" in out
    assert "used" not in out
    assert not (shell.folder / "thing").exists()


def test_fetch_names_the_address_that_does_not_answer(shell: Shell) -> None:
    shell.stub("curl", 'echo "could not resolve" >&2; exit 6')
    out = shell.run(
        f'fetch http://mirror/thing {SUM} "$PWD/thing"; echo used', fails=True, phase="downloads"
    )
    assert "cannot download http://mirror/thing: could not resolve" in out
    assert "reaches that address" in out
    assert "used" not in out


def test_fetch_names_the_disk_that_is_full(shell: Shell) -> None:
    shell.stub("curl", 'echo "(23) Failure writing output" >&2; exit 23')
    out = shell.run(
        'fetch http://mirror/thing 00 "$PWD/a/thing"; echo used', fails=True, phase="downloads"
    )
    assert "cannot download http://mirror/thing: (23) Failure writing output" in out
    assert f"do: make room in {shell.folder}/a (" in out
    assert "used" not in out


@pytest.mark.parametrize(
    "published", [SUM, f"{SUM}  thing", f"{'1' * 64}  other\n{SUM}  thing", f"{SUM} *thing"]
)
def test_without_a_mirror_the_published_sum_counts(shell: Shell, published: str) -> None:
    body = f"[[ $* == */sums* ]] && {{ printf '%s\\n' '{published}'; exit; }}\n{CURL}"
    shell.stub("curl", body)
    shell.run('fetch http://up/thing published:http://up/sums "$PWD/thing"', phase="downloads")
    assert (shell.folder / "thing").read_bytes() == CONTENT


def test_an_error_within_a_substitution_is_told_once_and_in_full(shell: Shell) -> None:
    out = shell.run('path=$(die "the reason" "the fix"); echo "used $path"', fails=True)
    assert out == "ERROR master-1: the reason\n  do: the fix\n"


def test_a_failure_within_a_substitution_stops_the_phase(shell: Shell) -> None:
    out = shell.run('look() { false; echo seen; }; path=$(look); echo "used $path"', fails=True)
    assert "used" not in out
    assert out.count("ERROR") == 1


def test_a_binary_is_installed_once(shell: Shell) -> None:
    shell.stub("curl", CURL)
    code = f'install_binary thing http://mirror/thing {SUM} "$PWD/thing"; echo "changes=$changes"'
    assert "changes=0" not in shell.run(code, phase="downloads")
    assert (shell.folder / "thing").read_bytes() == CONTENT
    assert os.access(shell.folder / "thing", os.X_OK)
    shell.forget()
    assert "changes=0" in shell.run(code, phase="downloads")
    assert shell.calls == []


BINARY = f'install_binary thing http://mirror/thing {SUM} "$PWD/thing"; echo "changes=$changes"'


def test_a_binary_swapped_by_hand_is_installed_again_and_its_unit_restarts(shell: Shell) -> None:
    shell.stub("curl", CURL)
    shell.run(BINARY, phase="downloads")
    (shell.state / "thing.service.sum").write_text("of the start before")
    (shell.folder / "thing").write_text("other")
    assert "changes=0" not in shell.run(BINARY, phase="downloads")
    assert (shell.folder / "thing").read_bytes() == CONTENT
    assert not (shell.state / "thing.service.sum").exists()
    (shell.folder / "thing").unlink()
    shell.run(BINARY, phase="downloads")
    assert (shell.folder / "thing").read_bytes() == CONTENT
    assert "changes=0" in shell.run(BINARY, phase="downloads")


def test_a_binary_of_a_version_that_kept_no_times_is_left_alone(shell: Shell) -> None:
    shell.stub("curl", CURL)
    shell.run(BINARY, phase="downloads")
    (shell.state / "thing.files").unlink()
    assert "changes=0" in shell.run(BINARY, phase="downloads")


def test_of_an_archive_every_file_is_watched(shell: Shell) -> None:
    tree = shell.folder / "tree/v1/bin"
    tree.mkdir(parents=True)
    for name in ("one", "two"):
        (tree / name).write_text(name)
    archive = shell.folder / "archive.tar.gz"
    subprocess.run(["tar", "-czf", archive, "-C", shell.folder / "tree", "v1"], check=True)
    sum_ = hashlib.sha256(archive.read_bytes()).hexdigest()
    shell.stub("curl", f'while [[ $1 != -o ]]; do shift; done; cp {archive} "$2"')
    code = f'install_archive set http://mirror/a {sum_} "$PWD/to" 1; echo "changes=$changes"'
    shell.run(code, phase="downloads")
    kept = (shell.state / "set.files").read_text().split()
    assert kept[2::3] == [f"{shell.folder}/to/bin/{name}" for name in ("one", "two")]
    assert "changes=0" in shell.run(code, phase="downloads")
    (shell.folder / "to/bin/two").write_text("other")
    with (shell.folder / "to/bin/one").open() as running:
        assert "changes=0" not in shell.run(code, phase="downloads")
        assert os.fstat(running.fileno()).st_nlink == 0, "what runs was written over"
    assert (shell.folder / "to/bin/two").read_text() == "two"


def test_own_takes_a_free_machine_and_knows_it_again(shell: Shell) -> None:
    shell.run("own")
    assert (shell.state / "owner").read_text() == OWNER + "\n"
    assert "changes=0" in shell.run('own; echo "changes=$changes"')


def test_own_refuses_the_machine_of_another_cluster(shell: Shell) -> None:
    shell.run("own")
    out = shell.run("own; echo owned", values={"CLUSTER_ID": "ffffffffffff"}, fails=True)
    assert f'belongs to "{OWNER}", not to "dev ffffffffffff master-1"' in out
    assert "owned" not in out


def incarnation(shell: Shell) -> str:
    file = shell.state / "incarnation"
    return file.read_text().strip() if file.exists() else "none"


def test_own_remembers_which_incarnation_the_machine_is(shell: Shell) -> None:
    shell.run("own")
    assert incarnation(shell) == "none"
    shell.run("own", values={"INCARNATION": "1"})
    assert incarnation(shell) == "none"


def test_a_new_machine_may_begin_with_any_incarnation(shell: Shell) -> None:
    for _ in range(2):
        out = shell.run('own; echo "changes=$changes"', values={"INCARNATION": "4"})
        assert incarnation(shell) == "4"
    assert "changes=0" in out


def test_the_number_of_a_machine_that_belongs_to_nobody_does_not_count(shell: Shell) -> None:
    """Cut off between number and name, then taken back."""
    shell.state.mkdir(parents=True)
    (shell.state / "incarnation").write_text("4\n")
    shell.run("own")
    assert incarnation(shell) == "none"


def test_a_number_that_cannot_be_read_wipes_nothing(shell: Shell) -> None:
    shell.run("own", values={"INCARNATION": "2"})
    (shell.state / "incarnation").write_text("")
    code = "renew() { echo wiped; }; own renew"
    out = shell.run(code, values={"INCARNATION": "2"}, fails=True)
    assert "state/incarnation holds no number" in out
    assert "wiped" not in out


def test_a_second_run_waits_for_the_lock_and_then_says_who_holds_it(shell: Shell) -> None:
    shell.stub("flock", "exit 1")
    out = shell.run("lock; echo locked", fails=True)
    assert "another run holds" in out
    assert "locked" not in out


def test_the_lock_is_held_while_the_phase_runs(shell: Shell) -> None:
    with (shell.folder / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        out = shell.run("flock() { command flock -n 9; }; lock", fails=True)
    assert "another run holds" in out
    shell.run("lock")


def test_proxies_reach_downloads_in_both_spellings(shell: Shell) -> None:
    values = {"PROXY_ENV": "HTTPS_PROXY=http://p:3128\nNO_PROXY=10.0.0.0/8,.local"}
    out = shell.run('echo "$https_proxy $HTTPS_PROXY $no_proxy"', values=values)
    assert out.strip() == "http://p:3128 http://p:3128 10.0.0.0/8,.local"


# The machine is a node, and curl tells what it would send.
NODE = "IDENTITY=$PWD/identity CLUSTER_CA=$PWD/ca; touch identity ca; "


def sent(shell: Shell) -> list[dict[str, str | None]]:
    """Annotations of each request to this machine's own Node, in order."""
    out = []
    for call in shell.calls:
        assert call.endswith(" https://127.0.0.1:3446/api/v1/nodes/master-1")
        body = json.loads(call.partition(" -d ")[2].rpartition(" ")[0])
        out.append({key: value for key, value in body["metadata"]["annotations"].items()})
    return out


def test_a_phase_that_fails_tells_it_on_its_own_node(shell: Shell) -> None:
    shell.stub("curl")
    out = shell.run(f'{NODE} begin aaaa; die "no disk" "buy one"', fails=True)
    assert out == "ERROR master-1: no disk\n  do: buy one\n"
    begun, failed = sent(shell)
    assert begun == {"kube-ha.io/begun": "aaaa", "kube-ha.io/failed": None}
    assert failed["kube-ha.io/begun"] is None
    assert re.fullmatch(r"aaaa \S+Z no disk", failed["kube-ha.io/failed"] or "")


@pytest.mark.parametrize("way", ["false", 'x=$(die "no disk")', "f() { false; }; x=$(f)"])
def test_a_failure_is_told_once_however_it_came(shell: Shell, way: str) -> None:
    shell.stub("curl")
    shell.run(f"{NODE} begin aaaa; {way}", fails=True)
    assert len([told for told in sent(shell) if told["kube-ha.io/failed"]]) == 1


def test_success_clears_the_failure_in_the_same_request(shell: Shell) -> None:
    shell.stub("curl")
    shell.run(f"{NODE} announce aaaa")
    assert sent(shell) == [
        {"kube-ha.io/applied": "aaaa", "kube-ha.io/begun": None, "kube-ha.io/failed": None}
    ]


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("first\nsecond", "first"),
        ('say "x\\y|z"', "say 'x/y z'"),
        ("a\tb\x1b[31mc\x7f", "ab[31mc"),
        ("http://me:key@mirror/x", "http://***@mirror/x"),
        ("token abcdef.0123456789abcdef is bad", "token *** is bad"),
        ("x" * 5000, "x" * 200),
        ("", ""),
    ],
)
def test_the_reason_is_one_short_line_without_secrets(shell: Shell, reason: str, told: str) -> None:
    shell.stub("curl")
    shell.run(f'{NODE} begin aaaa; die "$REASON"', values={"REASON": reason}, fails=True)
    assert (sent(shell)[-1]["kube-ha.io/failed"] or "").split("Z ", 1)[1] == told


def test_a_failure_that_cannot_be_told_hides_nothing(shell: Shell) -> None:
    shell.stub("curl", "echo 'connection refused' >&2; exit 7")
    out = shell.run(f'{NODE} begin aaaa; die "no disk" "buy one"', fails=True)
    assert out == "ERROR master-1: no disk\n  do: buy one\n"
    assert all("--max-time 3 " in call for call in shell.calls)


def test_a_machine_that_is_no_node_asks_nobody(shell: Shell) -> None:
    shell.stub("curl")
    shell.run('begin aaaa; die "no disk"', fails=True)
    assert shell.calls == []


def test_a_phase_that_makes_no_node_tells_nothing(shell: Shell) -> None:
    shell.stub("curl")
    shell.run(f'{NODE} die "no quorum"', fails=True)
    assert shell.calls == []


def test_what_put_writes_outlives_a_power_cut(shell: Shell) -> None:
    """The content before the name, and the name before whoever relies on it continues."""
    for name in ("sync", "mv"):
        shell.stub(name, f'/bin/{name} "$@"')
    shell.run('put 600 "$PWD/etc/file" <<<"text"; put 600 "$PWD/etc/file" <<<"text"')
    etc = f"{shell.folder}/etc"
    assert shell.calls == [
        f"sync -d {etc}/.file.new",
        f"mv -f {etc}/.file.new {etc}/file",
        f"sync {etc}",
    ]


def test_what_is_installed_outlives_a_power_cut_before_its_mark_does(shell: Shell) -> None:
    shell.stub("sync", '[[ $1 != -f ]] || { ls "$2" "${STATE:-home/state}"/*.artefact; true; }')
    (shell.folder / "from").write_text("binary")
    code = 'fetch() { cp from "$3"; }; install_binary tool url aa "$PWD/tool"'
    out = shell.run(code, phase="downloads")
    assert [call for call in shell.calls if call.startswith("sync -f")] == [
        f"sync -f {shell.folder}/tool"
    ]
    assert f"{shell.folder}/tool\n" in out
    assert "cannot access" in out, "the mark was there before"


def test_an_owners_mark_that_a_power_cut_has_emptied_counts_as_none(shell: Shell) -> None:
    shell.state.mkdir(parents=True)
    (shell.state / "owner").touch()
    shell.run("own")
    assert (shell.state / "owner").read_text() == f"{OWNER}\n"


def test_the_lock_lies_where_only_root_can_take_it(shell: Shell) -> None:
    code = "source $here/lib.sh; echo at $LOCK; LOCK=$PWD/run/lock STATE=$PWD/home/state; lock; stat -c %a run"
    out = shell.run(code).splitlines()
    assert out == ["at /run/kube-ha/lock", "700"]


def test_a_run_of_an_older_version_is_waited_for(shell: Shell) -> None:
    old = shell.folder / "old"
    code = f'OLD_LOCK={old} SECONDS=0; lock; echo "after $SECONDS s"; ls {old} 2>&1 || true'
    with old.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        waiting = subprocess.Popen(["sleep", "3"], pass_fds=[file.fileno()])
    try:
        # It has the lock by the file that it has inherited, as the phase of an engine that died.
        out = shell.run(code)
    finally:
        waiting.wait()
    assert re.search(r"after [2-9] s", out), out
    assert "No such file" in out


def test_a_lock_that_somebody_else_than_root_holds_keeps_nobody_waiting(shell: Shell) -> None:
    old = shell.folder / "old"
    old.touch()
    shell.stub("stat", 'if [[ $* == *%u* ]]; then echo 1000; else /usr/bin/stat "$@"; fi')
    with old.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        code = f"OLD_LOCK={old}; sleep() {{ echo waits; }}; lock; echo has it"
        assert shell.run(code) == "has it\n"


@pytest.mark.parametrize(
    ("owner", "incarnation", "said"),
    [
        (OWNER, "", ""),
        (OWNER.replace("master-1", "master-2"), "", "not to"),
        ("other 0123456789ab master-1", "", "not to"),
        (OWNER, "3", "is incarnation 3 of master-1, the config wants 1"),
    ],
    ids=["the machine that left", "another node", "another cluster", "a later one of its name"],
)
def test_a_machine_that_comes_back_late_is_told_from_others(
    shell: Shell, owner: str, incarnation: str, said: str
) -> None:
    state = shell.folder / "home/state"
    state.mkdir(parents=True, exist_ok=True)
    (state / "owner").write_text(f"{owner}\n")
    if incarnation:
        (state / "incarnation").write_text(f"{incarnation}\n")
    out = shell.run("own; echo mine", fails=bool(said))
    assert ("mine" in out.splitlines()) is not bool(said)
    assert said in out
