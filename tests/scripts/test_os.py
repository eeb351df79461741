"""Packages of the operating system on a node: once for each word, held ones stay, and a reboot that is proven."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.scripts.shell import Shell

WORKER = {
    "ROLES": "worker",
    "OS_PACKAGES": "november",
    "OS_REBOOT": "if-needed",
    "OS_HOLD": "",
    "VALUES": "NODE=worker-1\n# end",
}
# What a machine in the cluster does with pods and its control plane is told in place of being done.
FAKES = """
UNITS=$PWD/units SENTINEL=$PWD/reboot-required
joined() { [[ -e joined ]]; }
etcd_has_data() { [[ -e member ]]; }
boot_mark() { cat boot; }
begin_update() { echo "begin $*"; }
etcd_successor() { if [[ -e no-quorum ]]; then die "restarting this member would cost the quorum"; fi; echo 10.0.0.12; }
hand_over_etcd() { echo "leadership to $1"; }
others_serve() { :; }
put_aside() { echo "aside $1"; }
give_up_leases() { echo "leases given up"; }
nothing_on() { :; }
api_server_ended() { :; }
sync() { :; }
mkdir -p units
"""
UPDATE = f"{FAKES} os_update; echo continued; gone_on; finish"


@pytest.fixture
def machine(shell: Shell) -> Shell:
    """A worker in the cluster, with one package that is older than its source's."""
    (shell.folder / "boot").write_text("boot-1\n")
    (shell.folder / "joined").touch()
    (shell.folder / "newer").write_text("test-kernel\n")
    shell.stub("systemctl", "if [[ $1 == is-active ]]; then [[ $3 == ssh.service ]]; fi")
    shell.stub("systemd-run")
    shell.stub("dpkg")
    shell.stub("dpkg-query", "echo installed")
    shell.stub("uname", "echo 6.1.0-9-amd64")
    shell.stub(
        "apt-mark",
        f'if [[ $1 == showhold ]]; then cat "{shell.folder}/holds" 2>/dev/null; fi; true',
    )
    shell.stub(
        "apt-get",
        f"""
case "$*" in
  *-s*upgrade) sed 's/.*/Inst & [1.0] (1.1)/' "{shell.folder}/newer" ;;
  *upgrade) if [[ -e "{shell.folder}/breaks" ]]; then echo "E: no space left"; exit 100; fi
    : >"{shell.folder}/newer"; if [[ -e "{shell.folder}/asks" ]]; then touch "{shell.folder}/reboot-required"; fi ;;
esac""",
    )
    return shell


def run(shell: Shell, *, fails: bool = False, **values: str) -> list[str]:
    out = shell.run(UPDATE, phase="node", values={**WORKER, **values}, fails=fails)
    return [line.split(f"{'master-1'}: ")[-1] for line in out.splitlines()]


def boot(shell: Shell, name: str) -> None:
    """The machine starts again: what is in memory alone is gone."""
    (shell.folder / "boot").write_text(f"{name}\n")
    (shell.folder / "reboot-required").unlink(missing_ok=True)


def done(shell: Shell) -> str:
    file = shell.state / "os"
    return file.read_text().strip() if file.exists() else ""


def test_without_a_word_nothing_is_updated(machine: Shell) -> None:
    assert run(machine, OS_PACKAGES="") == ["continued", "done, changes=0"]
    assert machine.calls == []


def test_packages_are_updated_out_of_service_and_once_for_a_word(machine: Shell) -> None:
    said = run(machine)
    assert said.index("begin packages november intrusive") < said.index(
        "updating 1 package(s): test-kernel"
    )
    assert "continued" in said
    assert done(machine) == "november"
    assert not (machine.folder / "units/kube-ha-resume.service").exists()
    machine.forget()
    assert run(machine) == ["continued", "done, changes=0"]
    assert machine.calls == []


def test_where_nothing_is_newer_the_node_stays_in_service(machine: Shell) -> None:
    (machine.folder / "newer").write_text("")
    assert run(machine)[-2:] == ["continued", "done, changes=1"]
    assert done(machine) == "november"
    assert not [call for call in machine.calls if call.startswith("systemd-run")]


def test_a_mark_of_a_package_makes_the_machine_reboot_and_go_on_by_itself(machine: Shell) -> None:
    (machine.folder / "asks").touch()
    said = run(machine)
    assert "continued" not in said, "the rest is for after the reboot"
    assert said[-1].startswith("done, changes=")
    assert done(machine) == ""
    unit = (machine.folder / "units/kube-ha-resume.service").read_text()
    assert f"StandardInput=file:{machine.state}/resume.values" in unit
    assert (machine.state / "resume.values").read_text() == "NODE=worker-1\n# end\n"
    calls = machine.calls
    scheduled = next(n for n, call in enumerate(calls) if call.startswith("systemd-run"))
    assert "systemctl enable -q kube-ha-resume.service" in calls[:scheduled]
    # No login is taken any more, and the unit that reboots knows whose door to open should it fail.
    assert calls[scheduled + 1 :] == ["systemctl stop ssh.service"]
    assert calls[scheduled].endswith("ssh.service")

    boot(machine, "boot-2")
    machine.forget()
    assert "continued" in run(machine)
    assert done(machine) == "november"
    assert not [call for call in machine.calls if call.startswith(("apt-get", "systemd-run"))]
    assert not (machine.folder / "units/kube-ha-resume.service").exists()


def test_a_reboot_that_has_not_happened_is_begun_again(machine: Shell) -> None:
    (machine.folder / "asks").touch()
    run(machine)
    (machine.folder / "reboot-required").unlink()
    said = run(machine)
    assert "continued" not in said
    assert any("an earlier run was about to reboot" in line for line in said)


@pytest.mark.parametrize(
    ("how", "asked", "reboots"),
    [
        ("if-needed", False, False),
        ("always", False, True),
        ("never", True, False),
    ],
)
def test_the_config_decides_on_the_reboot(
    machine: Shell, how: str, *, asked: bool, reboots: bool
) -> None:
    if asked:
        (machine.folder / "asks").touch()
    run(machine, OS_REBOOT=how)
    assert any(call.startswith("systemd-run") for call in machine.calls) == reboots
    assert (done(machine) == "") == reboots


def test_a_newer_kernel_asks_for_a_reboot_by_itself(machine: Shell) -> None:
    (machine.root / "boot").mkdir(parents=True)
    for version in ("6.1.0-9-amd64", "6.1.0-10-amd64"):
        (machine.root / f"boot/vmlinuz-{version}").touch()
    said = run(machine)
    assert any("kernel 6.1.0-9-amd64 runs, 6.1.0-10-amd64 is installed" in line for line in said)


def test_a_master_steps_aside_before_and_hands_etcd_over_before_the_reboot(machine: Shell) -> None:
    (machine.folder / "asks").touch()
    said = run(machine, ROLES="etcd master", ADDRESS="10.0.0.11")
    steps = [
        line for line in said if line.startswith(("begin", "aside", "leases", "leader", "upd"))
    ]
    assert steps == [
        "begin packages november intrusive",
        "aside kube-controller-manager",
        "aside kube-scheduler",
        "leases given up",
        "aside kube-apiserver",
        "updating 1 package(s): test-kernel",
        "leadership to 10.0.0.12",
    ]


def test_a_virtual_ip_goes_to_another_machine_before_the_reboot(machine: Shell) -> None:
    (machine.folder / "asks").touch()
    config = machine.root / "etc/keepalived/keepalived.conf"
    config.parent.mkdir(parents=True)
    config.write_text("# kube-ha\n")
    machine.stub("systemctl", "if [[ $1 == is-active ]]; then [[ $3 == keepalived ]]; fi")
    run(machine, ROLES="etcd master", ADDRESS="10.0.0.11")
    calls = [call.split()[0] + " " + call.split()[-1] for call in machine.calls]
    stopped = machine.calls.index("systemctl stop keepalived")
    assert stopped < next(n for n, call in enumerate(calls) if call.startswith("systemd-run"))


def test_a_member_whose_reboot_would_cost_the_quorum_is_left_alone(machine: Shell) -> None:
    (machine.folder / "no-quorum").touch()
    said = run(machine, ROLES="etcd master", ADDRESS="10.0.0.11", fails=True)
    assert any("would cost the quorum" in line for line in said)
    assert not [line for line in said if line.startswith(("begin", "aside"))]
    assert not [
        call
        for call in machine.calls
        if call.endswith("-with-new-pkgs upgrade") and "-s" not in call
    ]


def test_a_machine_that_is_not_in_the_cluster_yet_is_updated_and_not_rebooted(
    machine: Shell,
) -> None:
    (machine.folder / "asks").touch()
    (machine.folder / "joined").unlink()
    said = run(machine)
    assert not [line for line in said if line.startswith("begin")]
    assert any("it is left to you" in line for line in said)
    assert "continued" in said
    assert done(machine) == "november"


def test_an_update_that_fails_says_why_and_goes_on_with_the_next_run(machine: Shell) -> None:
    (machine.folder / "breaks").touch()
    said = run(machine, fails=True)
    assert any("apt-get upgrade: E: no space left" in line for line in said)
    assert done(machine) == ""
    (machine.folder / "breaks").unlink()
    assert "continued" in run(machine)
    assert done(machine) == "november"


def test_held_packages_stay_and_only_ours_are_let_go(machine: Shell) -> None:
    (machine.folder / "holds").write_text("theirs\n")
    run(machine, OS_HOLD="mine theirs")
    assert [call for call in machine.calls if " hold " in call] == ["apt-mark -qq hold mine"]
    (machine.folder / "holds").write_text("mine\ntheirs\n")
    machine.forget()
    run(machine, OS_HOLD="")
    assert [call for call in machine.calls if "hold " in call] == ["apt-mark -qq unhold mine"]
    machine.forget()
    run(machine, OS_HOLD="")
    assert not [call for call in machine.calls if "hold " in call]


# apt itself, with lists of its own that are empty.
APT = """Dir::State "{folder}/apt";
Dir::Cache "{folder}/cache";
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "/dev/null";
"""
PACKAGES = {**WORKER, "PACKAGES": "jq"}


@pytest.fixture
def lists(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock of apt's lists; nothing is installed."""
    lock = shell.folder / "apt/lists/lock"
    (lock.parent / "partial").mkdir(parents=True)
    (shell.folder / "cache").mkdir()
    conf = shell.folder / "apt.conf"
    conf.write_text(APT.format(folder=shell.folder))
    monkeypatch.setenv("APT_CONFIG", str(conf))
    shell.stub("apt-get", 'if [[ $* == *update* ]]; then exec /usr/bin/apt-get "$@"; fi')
    shell.stub("dpkg-query", "exit 1")
    return lock


@contextmanager
def held(lock: Path, seconds: float) -> Iterator[int]:
    """Another process has the lock for so long, as a timer of a fresh machine has."""
    code = f"import fcntl, time; f = open({str(lock)!r}, 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(1, flush=True); time.sleep({seconds})"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def test_a_timer_that_reads_the_lists_is_waited_for(shell: Shell, lists: Path) -> None:
    with held(lists, 3) as pid:
        out = shell.run("packages", phase="node", values=PACKAGES)
    assert (
        f"another program works on packages, it is waited for: E: Could not get lock {lists}. It is held by process {pid}"
        in out
    )
    assert [call.split()[0:3] for call in shell.calls if "install" in call] == [
        ["apt-get", "-qq", "-y"]
    ]


def test_one_that_does_not_end_is_named(shell: Shell, lists: Path) -> None:
    with held(lists, 30) as pid:
        out = shell.run("APT_WAIT_S=1; packages", phase="node", values=PACKAGES, fails=True)
    assert f"It is held by process {pid}" in out.split("ERROR")[1]
    assert "since 1 s" in out
    assert "apt-daily" in out


@pytest.mark.parametrize(
    ("code", "command", "said"),
    [
        (
            "packages",
            "apt-get",
            "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (x)",
        ),
        (
            "find_packages",
            "dpkg",
            "dpkg: error: dpkg frontend lock was locked by another process with pid 7",
        ),
        ("find_packages", "apt-get", "E: Unable to lock directory /var/lib/apt/lists/"),
        (
            "mark_package hold jq",
            "apt-mark",
            "E: Could not get lock /var/lib/dpkg/lock. It is held by process 7 (x)",
        ),
    ],
)
def test_every_use_of_packages_waits(shell: Shell, code: str, command: str, said: str) -> None:
    for name in ("apt-get", "dpkg", "apt-mark"):
        shell.stub(
            name, f"if [[ {name} == {command} && $calls -le 2 ]]; then echo '{said}'; exit 100; fi"
        )
    shell.stub("dpkg-query", "exit 1")
    shell.stub("sleep")
    shell.run(code, phase="node", values=PACKAGES)
    assert len([call for call in shell.calls if call.startswith(f"{command} ")]) >= 3


def test_another_failure_of_packages_ends_the_phase_at_once(shell: Shell) -> None:
    shell.stub("apt-get", "echo 'E: Failed to fetch http://deb'; exit 100")
    shell.stub("dpkg-query", "exit 1")
    out = shell.run("packages", phase="node", values=PACKAGES, fails=True)
    assert "ERROR master-1: apt-get update: E: Failed to fetch" in out
    assert len(shell.calls) == 2
