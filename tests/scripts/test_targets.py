"""Operating systems that a machine may have: their own facts, as /etc/os-release and their files tell them."""

from __future__ import annotations

import pytest

from operations import preflight
from operations.ssh.client import Answer
from tests.scripts.shell import Shell

# What the releases themselves say, as far as it is read.
DEBIAN_12 = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\nVERSION_ID="12"\n'
DEBIAN_13 = 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\nVERSION_ID="13"\n'
UBUNTU = 'PRETTY_NAME="Ubuntu {0} LTS"\nID=ubuntu\nID_LIKE=debian\nVERSION_ID="{0}"\n'
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n'
RHEL = 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nID_LIKE="fedora"\nVERSION_ID="10.0"\n'
MINT = 'NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22"\n'
SID = 'PRETTY_NAME="Debian GNU/Linux forky/sid"\nID=debian\n'
ALPINE = 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.22.0\n'

SHOWN = 'printf "%s\\n" "${problems[@]}"'


def checked(shell: Shell, code: str, os_release: str | None = None, **values: str) -> str:
    if os_release is not None:
        (shell.folder / "os-release").write_text(os_release)
    given = {"ROLES": "worker", "ARCH": "amd64", **values}
    return shell.run(
        f"OS_RELEASE=$PWD/os-release; {code}; {SHOWN}", phase="preflight", values=given
    )


@pytest.mark.parametrize(
    "system", [DEBIAN_12, DEBIAN_13, UBUNTU.format("22.04"), UBUNTU.format("24.04")]
)
def test_systems_that_phases_are_written_for_are_taken(shell: Shell, system: str) -> None:
    assert checked(shell, "check_os", system).strip() == ""


@pytest.mark.parametrize(
    ("system", "name", "why"),
    [
        (ROCKY, "rocky 9.4", "of the Red Hat family"),
        (RHEL, "rhel 10.0", "of the Red Hat family"),
        (MINT, "linuxmint 22", "that no phase was written for"),
        (UBUNTU.format("25.10"), "ubuntu 25.10", "that no phase was written for"),
        (SID, "debian,", "that no phase was written for"),
        (ALPINE, "alpine 3.22.0", "without the packages that phases install by apt"),
        (None, "unknown,", "without the packages"),
    ],
)
def test_others_are_refused_with_the_reason_and_the_list(
    shell: Shell, system: str | None, name: str, why: str
) -> None:
    out = checked(shell, "check_os", system)
    assert out.startswith(f"operating system is {name}")
    assert why in out
    assert "do: use Debian 12 (tested), Debian 13, Ubuntu 22.04 or 24.04 (expected to work)" in out


def test_a_machine_without_dpkg_tells_all_its_problems(shell: Shell) -> None:
    """A check that ended at the missing program would say that alone."""
    values = {
        "ADDRESS": "192.0.2.9",
        "MIN_CPUS": "9999",
        "MIN_MEMORY_MIB": "1",
        "MIN_DISK_GIB": "0",
    }
    hidden = 'command() { [[ $* != "-v dpkg" ]] && builtin command "$@"; }; dpkg() { exit 3; }; check_system'
    out = checked(shell, hidden, ROCKY, **values)
    assert "of the Red Hat family" in out
    assert "CPUs, 9999 needed" in out
    assert "architecture" not in out


@pytest.mark.parametrize(
    ("enabled", "policy", "roles", "is_told"),
    [
        ("ENABLED=yes", 'DEFAULT_FORWARD_POLICY="DROP"', "worker", True),
        ("ENABLED=yes", 'DEFAULT_FORWARD_POLICY="DROP"', "etcd master", True),
        ("ENABLED=yes", 'DEFAULT_FORWARD_POLICY="ACCEPT"', "worker", False),
        ("ENABLED=no", 'DEFAULT_FORWARD_POLICY="DROP"', "worker", False),
        ("ENABLED=yes", 'DEFAULT_FORWARD_POLICY="DROP"', "etcd", False),
        ("", "", "worker", False),
    ],
)
def test_a_firewall_of_ubuntu_that_forwards_nothing_is_told(
    shell: Shell, enabled: str, policy: str, roles: str, *, is_told: bool
) -> None:
    for path, text in (("etc/ufw/ufw.conf", enabled), ("etc/default/ufw", policy)):
        if text:
            (shell.root / path).parent.mkdir(parents=True, exist_ok=True)
            (shell.root / path).write_text(f"# of the package\n{text}\n")
    shell.stub("modprobe")
    out = checked(shell, "check_kernel", ROLES=roles, VXLAN="")
    assert ("ufw drops what pods send" in out) == is_told


def test_no_installation_restarts_services_in_no_order(shell: Shell) -> None:
    """Ubuntu's needrestart runs at the end of apt-get, and asks nobody where nobody can answer."""
    shell.stub("apt-get", "echo suspended=${NEEDRESTART_SUSPEND:-no} frontend=$DEBIAN_FRONTEND")
    out = shell.run(
        "apt apt-get -y install x; cat $STATE/apt.log", phase="node", values={"ROLES": "worker"}
    )
    assert "suspended=1 frontend=noninteractive" in out


def test_what_is_accepted_and_not_tested_is_said() -> None:
    def answer(system: str, status: int = 0) -> Answer:
        return Answer(
            status=status, text=f"facts a b 1.0\nos {system}\n12:00 x: passed", asked_at_s=0
        )

    answers = {
        "master-1": answer("debian 12"),
        "worker-1": answer("ubuntu 24.04"),
        "worker-2": answer("ubuntu 24.04"),
        "worker-3": answer("rocky 9.4", status=1),
        "worker-4": Answer(status=255, text="no route", asked_at_s=0),
    }
    assert preflight.untested_systems(answers) == [
        "ubuntu 24.04 is expected to work and not tested: worker-1, worker-2"
    ]
