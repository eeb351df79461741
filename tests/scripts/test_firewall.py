"""Phases firewall-open and firewall: rules are tried before they are kept, and only the second closes anything."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from stacks.render import firewall
from tests.scripts.shell import Shell
from tests.unit.configs import lab, planned

_PLAN = planned(lab({"machines.firewall": {}}))
_MORE = planned(lab({"machines.firewall": {}, "pools.worker.count": 4}))
RULES, WIDER = (firewall.rules(plan, plan.node("master-1")).rstrip("\n") for plan in (_PLAN, _MORE))
NARROW = RULES.replace(
    'tcp dport 22 accept comment "ssh"', 'ip saddr 192.0.2.0/24 tcp dport 22 accept comment "ssh"'
)
UNIT = "[Service]\nType=oneshot"
# The kernel's table is a file; loading another one replaces it. The other end acknowledges what the rules let in.
_NFT = """
kernel={folder}/kernel
case "$1 $2" in
"-c -f") ! grep -q rubbish "$3" || {{ echo "syntax error"; exit 1; }} ;;
"-f "*) cp "$2" {folder}/loaded.$calls; if grep -q chain "$2"; then cp "$2" $kernel; else rm -f $kernel; fi ;;
"-s list" | "list table") cat $kernel 2>/dev/null ;;
"delete table") rm -f $kernel ;;
esac
"""
_SS = """
case "$*" in
*-Htnp*) echo '0 0 10.92.0.11:22 10.92.0.1:40000 users:(("sshd",pid=77,fd=4))' ;;
*) if grep -q '192.0.2.0/24 tcp dport 22' {folder}/kernel 2>/dev/null; then echo bytes_acked:1000; else echo bytes_acked:$((1000 + calls)); fi ;;
esac
"""
_SYSTEMCTL = """
case "$1" in
is-active | is-enabled) [[ -f {folder}/up ]] ;;
restart | reload) touch {folder}/up; nft -f {root}/etc/kube-ha/firewall.nft ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    words = {"folder": shlex.quote(str(tmp_path)), "root": shlex.quote(str(shell.root))}
    for name, body in (("nft", _NFT), ("ss", _SS), ("systemctl", _SYSTEMCTL), ("systemd-run", "")):
        shell.stub(name, body.format(**words))
    return shell


def run(shell: Shell, phase: str, rules: str, *, fails: bool = False, session: str = "77") -> str:
    values = {"FIREWALL_NFT": rules, "FIREWALL_UNIT": UNIT}
    code = f"SESSION={session} RUN=$PWD BEFORE=$PWD/before HEARD_S=1 KNOWN_S=0; end_unheard() {{ :; }}; main"
    return shell.run(code, phase=phase, values=values, fails=fails)


def kept(shell: Shell) -> str:
    return (shell.root / "etc/kube-ha/firewall.nft").read_text()


def kernel(shell: Shell) -> str:
    file = shell.folder / "kernel"
    return file.read_text() if file.exists() else ""


def test_it_is_tried_then_kept_and_a_second_run_changes_nothing(machine: Shell) -> None:
    run(machine, "firewall", RULES)
    assert kept(machine) == kernel(machine) == f"{RULES}\n"
    machine.forget()
    assert "changes=0" in run(machine, "firewall", RULES)
    assert not [call for call in machine.calls if call.startswith(("nft -f", "systemd-run"))]


def test_packets_of_the_very_connection_are_judged_as_those_of_a_new_one(machine: Shell) -> None:
    run(machine, "firewall", RULES)
    loaded = sorted(machine.folder.glob("loaded.*"), key=lambda file: int(file.suffix[1:]))
    first, tried, last = (file.read_text() for file in loaded)
    assert "counter drop" not in first  # connections become known before anything is dropped
    rule = (
        "    ip saddr 10.92.0.1 tcp sport 40000 tcp dport 22 goto tried\n    ct state established"
    )
    assert rule in tried
    assert tried.count("counter drop") == 2
    assert last == f"{RULES}\n"


def test_rules_that_keep_the_connection_out_are_taken_back_at_once(machine: Shell) -> None:
    told = run(machine, "firewall", NARROW, fails=True)
    assert "the new rules keep out 10.92.0.1" in told
    assert kernel(machine) == ""
    assert not (machine.root / "etc/kube-ha/firewall.nft").exists()


def test_the_rules_of_before_are_back_where_there_were_some(machine: Shell) -> None:
    run(machine, "firewall", RULES)
    run(machine, "firewall", NARROW, fails=True)
    assert kept(machine) == kernel(machine) == f"{RULES}\n"
    assert "changes=0" in run(machine, "firewall", RULES)


def test_a_timer_takes_them_back_when_the_run_dies_meanwhile(machine: Shell) -> None:
    run(machine, "firewall", RULES)
    timers = [call for call in machine.calls if call.startswith("systemd-run")]
    assert [
        "--on-active 60 --timer-property AccuracySec=1s /usr/sbin/nft -f" in call for call in timers
    ] == [True]
    trial = [
        n for n, call in enumerate(machine.calls) if call.startswith("nft -f") and "tried" in call
    ]
    assert machine.calls.index(timers[0]) < trial[0]
    ends = [
        n
        for n, call in enumerate(machine.calls)
        if call == "systemctl stop kube-ha-firewall-back.timer"
    ]
    assert ends[-1] > trial[0]


def test_rules_that_nft_refuses_load_nothing(machine: Shell) -> None:
    run(machine, "firewall", RULES)
    assert "syntax error" in run(machine, "firewall", f"{RULES}\nrubbish", fails=True)
    assert kernel(machine) == f"{RULES}\n"


def test_what_somebody_changed_in_the_kernel_is_put_right(machine: Shell) -> None:
    run(machine, "firewall", RULES)
    (machine.folder / "kernel").unlink()
    run(machine, "firewall", RULES)
    assert kernel(machine) == f"{RULES}\n"


def test_asked_for_on_the_machine_itself_there_is_nobody_to_keep_out(machine: Shell) -> None:
    run(machine, "firewall", NARROW, session="")
    assert kernel(machine) == f"{NARROW}\n"


def test_opening_lets_in_both_and_closing_the_new_ones_alone(machine: Shell) -> None:
    run(machine, "firewall", RULES)
    run(machine, "firewall-open", WIDER)
    both = kernel(machine)
    for text, prefix in ((RULES, "before-"), (WIDER, "")):
        for line in text.splitlines():
            if line.startswith("  set "):
                assert line.replace("set ", f"set {prefix}", 1) in both
            if line.endswith('"') and "accept" in line:
                assert line.replace("@", f"@{prefix}") in both
    assert (
        both.count("counter drop") == both.count("chain input") == both.count("chain lets-in") == 1
    )
    assert kept(machine) == both
    run(machine, "firewall-open", RULES)  # of an update that was cut off, and taken back
    assert "before-before-node" in kernel(machine)
    run(machine, "firewall", WIDER)
    assert kernel(machine) == f"{WIDER}\n"


def test_opening_does_nothing_where_nothing_is_filtered_or_all_is_right(machine: Shell) -> None:
    run(machine, "firewall-open", RULES)
    assert kernel(machine) == ""
    assert not [call for call in machine.calls if call.startswith("nft -f")]
    run(machine, "firewall", RULES)
    assert "changes=0" in run(machine, "firewall-open", RULES)
    assert kernel(machine) == f"{RULES}\n"


def test_it_goes_with_its_unit_where_the_config_does_not_want_it(machine: Shell) -> None:
    run(machine, "firewall", RULES)
    code = "mkdir -p $ROOT/etc/systemd/system; without_firewall"
    machine.run(code, phase="node", values={"ROLES": "worker"})
    assert kernel(machine) == ""
    assert not [*machine.root.rglob("*firewall*")]
    assert not [*machine.state.glob("*firewall*")]
    machine.forget()
    machine.run("without_firewall", phase="node", values={"ROLES": "worker"})
    assert machine.calls == []


@pytest.mark.parametrize("other", ["firewalld", "ufw"])
def test_another_firewall_beside_it_is_refused(machine: Shell, other: str) -> None:
    code = "refuse_other_firewalls"
    machine.run(code, phase="node")
    if other == "ufw":
        file = machine.root / "etc/ufw/ufw.conf"
        file.parent.mkdir(parents=True)
        file.write_text("ENABLED=yes\n")
    else:
        machine.stub("systemctl", "[[ $* == *firewalld* ]]")
    told = machine.run(code, phase="node", fails=True)
    assert f"{other} filters on this machine" in told
    assert "nothing was changed" in told
