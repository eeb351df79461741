"""The firewall of a machine, by nft and the kernel: who comes in, who does not, and that nobody locks themselves out."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from stacks.phases.node import of_node
from tests.scripts.shell import Shell
from tests.scripts.wire import MASTER, OPERATOR, POD, STRANGER, Wire
from tests.unit.configs import lab, planned

pytestmark = pytest.mark.lab  # it takes root

SAID = {
    "networks": ["10.92.0.8/29", "10.92.0.96/27"],
    "sshFrom": ["10.92.0.1/32"],
    "apiFrom": ["10.92.0.1/32"],
}
PORTS = (22, 2379, 2380, 6443, 10250, 10257, 30080)
# As systemd runs the unit's own lines; `up` is whether it is active.
_SYSTEMCTL = """
unit={root}/etc/systemd/system/kube-ha-firewall.service up={folder}/up
line() {{ sed -n "s|^$1=/usr/sbin/||p" $unit | bash -e; }}
case "$1" in
is-active | is-enabled) [[ -f $up ]] ;;
restart) if [[ -f $up ]]; then line ExecStop; fi; line ExecStart && touch $up ;;
reload) line ExecReload ;;
disable) if [[ -f $up ]]; then rm $up; line ExecStop; fi ;;
esac
"""


@pytest.fixture
def wire() -> Iterator[Wire]:
    found = Wire()
    try:
        yield found
    finally:
        found.close()


@pytest.fixture
def machine(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    words = {"folder": shlex.quote(str(tmp_path)), "root": shlex.quote(str(shell.root))}
    shell.stub("systemctl", _SYSTEMCTL.format(**words))
    return shell


def rules(edits: Mapping[str, object] | None = None, name: str = "master-1", **said: object) -> str:
    plan = planned(lab({"machines.firewall": {**SAID, **said}, **(edits or {})}))
    return of_node(plan, plan.node(name))["FIREWALL"]


def filtered(
    wire: Wire, machine: Shell, text: str, *, login: str = "", port: int = 22, fails: bool = False
) -> str:
    """What phase node does about the firewall, asked for by a connection from `login`; empty: on the machine itself."""
    pipe = machine.folder / "pipe"
    session = wire.logged_in(login, port, pipe) if login else ""
    said = f"exec > >(tee {pipe}) 2>&1\n" if login else ""
    code = f"{said}SESSION={session} KNOWN_S=0 HEARD_S=5\nset_up_firewall\nfinish"
    with wire.at_the_machine():
        return machine.run(
            code, phase="node", values={"FIREWALL": text, "ROLES": "master"}, fails=fails
        )


def kernel(wire: Wire) -> str:
    """All tables of the machine."""
    with wire.at_the_machine():
        return subprocess.run(
            ["nft", "-s", "list", "ruleset"], capture_output=True, text=True, check=True
        ).stdout


def state(wire: Wire, machine: Shell) -> str:
    with wire.at_the_machine():
        return machine.run("filter_state", phase="probe").strip()


def test_each_comes_to_the_ports_that_the_config_says_and_to_no_other(
    wire: Wire, machine: Shell
) -> None:
    wire.listen(PORTS)
    assert {len(wire.reached(one, PORTS)) for one in (OPERATOR, MASTER, STRANGER, POD)} == {
        len(PORTS)
    }
    filtered(wire, machine, rules())
    assert wire.reached(OPERATOR, PORTS) == {22, 6443}
    assert wire.reached(MASTER, PORTS) == {22, 2379, 2380, 6443, 10250, 30080}
    assert wire.reached(POD, PORTS) == {6443, 10250, 30080}
    assert wire.reached(STRANGER, PORTS) == set()
    filtered(
        wire,
        machine,
        rules(more=[{"protocol": "tcp", "ports": 10257, "from": ["198.51.100.0/24"]}]),
    )
    assert wire.reached(STRANGER, PORTS) == {10257}


def test_a_second_run_changes_nothing_and_what_somebody_changed_comes_back(
    wire: Wire, machine: Shell
) -> None:
    filtered(wire, machine, rules())
    assert state(wire, machine) == "kept"
    before = kernel(wire)
    assert "changes=0" in filtered(wire, machine, rules())
    for command, found in (
        ("nft add rule inet kube-ha-firewall lets-in tcp dport 9 accept", "changed"),
        ("nft flush ruleset", "missing"),
    ):
        with wire.at_the_machine():
            subprocess.run(command.split(), check=True)
        assert state(wire, machine) == found
        filtered(wire, machine, rules())
        assert kernel(wire) == before
        assert state(wire, machine) == "kept"


def test_who_runs_the_update_is_let_in_by_a_connection_that_stays(
    wire: Wire, machine: Shell
) -> None:
    told = filtered(wire, machine, rules(), login=OPERATOR)
    assert "would packets from 10.92.0.1 still be let in?" in told
    assert "kube-ha-firewall-trial" not in kernel(wire)
    assert state(wire, machine) == "kept"


@pytest.mark.parametrize(("login", "port"), [(STRANGER, 22), (OPERATOR, 2222)])
def test_rules_that_would_keep_out_who_asks_for_them_change_nothing(
    wire: Wire, machine: Shell, login: str, port: int
) -> None:
    told = filtered(wire, machine, rules(), login=login, port=port, fails=True)
    assert f"the firewall would keep out {login}" in told
    assert f"reaches port {port} here; nothing was changed" in told
    assert kernel(wire) == ""
    assert state(wire, machine) == "missing"


def test_rules_of_before_stay_where_the_new_ones_would_keep_out_who_asks(
    wire: Wire, machine: Shell
) -> None:
    filtered(wire, machine, rules())
    before = kernel(wire)
    others = rules().replace("10.92.0.1/32", "203.0.113.0/24")
    filtered(wire, machine, others, login=OPERATOR, fails=True)
    assert kernel(wire) == before
    assert "changes=0" in filtered(wire, machine, rules())


def test_rules_that_nft_refuses_load_nothing(wire: Wire, machine: Shell) -> None:
    assert "nft refuses the new rules" in filtered(wire, machine, f"{rules()}\nrubbish", fails=True)
    assert kernel(wire) == ""


def test_it_goes_and_leaves_what_is_others(wire: Wire, machine: Shell) -> None:
    with wire.at_the_machine():
        subprocess.run(["nft", "add table inet somebody-elses"], check=True)
    before = kernel(wire)
    wire.listen(PORTS)
    filtered(wire, machine, rules())
    assert wire.reached(STRANGER, PORTS) == set()
    told = filtered(wire, machine, "")
    assert "the firewall is gone" in told
    assert kernel(wire) == before
    assert wire.reached(STRANGER, PORTS) == set(PORTS)
    assert not [*machine.root.rglob("*firewall*"), *machine.state.glob("*firewall*")]
    assert "changes=0" in filtered(wire, machine, "")


@pytest.mark.parametrize("how", ["end_everything", "open_machine; remove_files"])
def test_a_machine_that_leaves_is_open(wire: Wire, machine: Shell, how: str) -> None:
    filtered(wire, machine, rules())
    machine.stub("pkill")
    with wire.at_the_machine():
        machine.run(how, phase="leave")
    assert kernel(wire) == ""
    if "remove" in how:
        assert not [*machine.root.rglob("*firewall*")]


@pytest.mark.parametrize(
    ("edits", "name"),
    [
        ({"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}, "etcd-1"),
        ({"pools.edge": {"roles": ["loadbalancer"], "count": 2}, "frontDoors.vip": {"address": "10.92.0.5"},
          "frontDoors.ingress": {"hosts": ["shop.example.com"]}}, "edge-1"),
        ({"network.plugin": "calico", "network.backend": "bgp",
          "network.bgpPeers": [{"address": "192.0.2.1", "asNumber": 65001}]}, "worker-1"),
        ({"network.plugin": "none"}, "worker-1"),
        ({"addons": {"metallb": {"addresses": ["10.92.0.250"]}}}, "worker-1"),
    ],
)  # fmt: skip
def test_nft_takes_the_rules_of_every_kind_of_machine(
    wire: Wire, machine: Shell, edits: Mapping[str, object], name: str
) -> None:
    networks = ["10.92.0.0/24", "10.92.0.0/28", "10.1.0.0/16"]  # one within another
    text = rules(edits, name, networks=networks, apiFrom=["10.0.0.0/8", "0.0.0.0/0"])
    filtered(wire, machine, text)
    assert kernel(wire).count(" accept\n") == 6 + len(text.splitlines())


def test_the_unit_loads_it_at_each_boot_before_networks_are_up(wire: Wire, machine: Shell) -> None:
    filtered(wire, machine, rules())
    unit = (machine.root / "etc/systemd/system/kube-ha-firewall.service").read_text()
    assert re.search("^Before=network-pre.target$", unit, re.MULTILINE)
    assert re.search("^WantedBy=sysinit.target$", unit, re.MULTILINE)
    checked = subprocess.run(
        ["systemd-analyze", "verify", machine.root / "etc/systemd/system/kube-ha-firewall.service"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "kube-ha-firewall" not in checked.stderr
