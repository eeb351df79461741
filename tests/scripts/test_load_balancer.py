"""A machine with role loadbalancer: what the cluster's list says of it, whose the address is, how it rests, steps aside and leaves."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.scripts.machine import Machine
from tests.scripts.shell import Shell

CONF = "# kube-ha: the virtual IP\nvrrp_instance dev {\n}"
VALUES = {
    "NODE": "edge-1",
    "ADDRESS": "10.0.0.31",
    "VIP": "10.0.0.5:8443",
    "INTERFACE": "eth0",
    "GENERATION_HERE": "2",
    "KEEPALIVED_CONF": CONF,
    "KEEPALIVED_DROPIN": "[Service]\nRestart=always",
}
RESTART = "systemctl restart keepalived.service"
HERE = (
    'SECRET=$PWD/vrrp.conf CHECK=$PWD/vip-check; sleep() { :; }; echo "auth_pass x" >"$SECRET"\n'
    'timeout() { :; }; wait_for() { "${@:3}" || die "$2: not seen"; }\n'
)


def answer(status: str, body: object) -> str:
    """Body of curl."""
    text = body if isinstance(body, str) else json.dumps(body)
    return f"printf '%s\\n%s' {shlex.quote(text)} {shlex.quote(status)}"


def listing(**entries: str) -> str:
    data = {"data": {name.replace("_", "-"): entry for name, entry in entries.items()}}
    return answer("200", {"kind": "ConfigMap", **(data if entries else {})})


def checked(shell: Shell, word: str, *, somebody_answers: bool = False) -> bool:
    answers = "true" if somebody_answers else "false"
    code = (
        f"source $here/vip-check.sh; sleep() {{ SECONDS=$((SECONDS + 5)); }}; answers() {{ {answers}; }}\n"
        f"if vip_check {word} edge-1 2 10.0.0.5:8443; then echo yes; else echo no; fi"
    )
    return shell.run(code).splitlines()[-1] == "yes"


@pytest.mark.parametrize("word", ["member", "start"])
def test_who_is_listed_may_hold_it_whoever_has_it_now(shell: Shell, word: str) -> None:
    shell.stub("curl", listing(edge_1="2", edge_2="1"))
    assert checked(shell, word, somebody_answers=True)
    [call] = shell.calls
    assert "/etc/kube-ha/load-balancer.crt" in call
    assert call.endswith("/api/v1/namespaces/kube-system/configmaps/kube-ha-vip-holders")


@pytest.mark.parametrize("word", ["member", "start"])
@pytest.mark.parametrize(
    "said",
    [listing(edge_2="1"), listing(edge_1="3"), listing()],
    ids=["taken out", "recreated on another machine", "masters have it now"],
)
def test_who_is_not_listed_may_not(shell: Shell, word: str, said: str) -> None:
    shell.stub("curl", said)
    assert not checked(shell, word)


UNCLEAR = {
    "no answer": "exit 28",
    "an API that fails": answer("500", "not ready"),
    "a certificate that has ended": answer("401", {"kind": "Status", "reason": "Unauthorized"}),
    "no right to read it": answer("403", {"kind": "Status", "reason": "Forbidden"}),
    "a list that somebody deleted": answer("404", {"kind": "Status", "reason": "NotFound"}),
    "something else": answer("200", "<html>"),
    "another object": answer("200", {}),
}


@pytest.mark.parametrize("said", UNCLEAR.values(), ids=UNCLEAR)
def test_without_a_clear_word_who_has_it_keeps_it(shell: Shell, said: str) -> None:
    shell.stub("curl", said)
    assert checked(shell, "member", somebody_answers=True)


@pytest.mark.parametrize("said", UNCLEAR.values(), ids=UNCLEAR)
def test_without_a_clear_word_who_starts_takes_it_from_nobody(shell: Shell, said: str) -> None:
    """A dead machine that comes back after its certificate has ended, say."""
    shell.stub("curl", said)
    assert not checked(shell, "start", somebody_answers=True)
    assert checked(shell, "start")


# --- phase vip


@pytest.fixture
def edge(shell: Shell) -> Shell:
    """Listed; HAProxy listens, nobody has the address."""
    neighbours(shell)
    shell.stub("ss", "echo LISTEN")
    shell.stub("curl", listing(edge_1="2"))
    shell.stub("keepalived")
    shell.stub(
        "systemctl",
        "if [[ $1 == is-active ]]; then [[ -e up ]]; exit; fi; if [[ $1 == restart ]]; then touch up; fi",
    )
    return shell


def neighbours(shell: Shell, **hardware: str) -> None:
    """What the kernel knows; a0_5 stands for 10.0.0.5."""
    known = {f"10.0.0.{name.rpartition('_')[2]}": mac for name, mac in hardware.items()}
    cases = "".join(
        f'*"show to {at} "*) echo "{at} lladdr {mac} REACHABLE" ;; ' for at, mac in known.items()
    )
    shell.stub(
        "ip",
        f'case "$*" in *addr*) echo "2: eth0    inet 10.0.0.31/24 scope global eth0" ;; {cases}esac',
    )


def make(shell: Shell, *, fails: bool = False, packets: str = "echo 0", **values: str) -> str:
    (shell.root / "etc").mkdir(parents=True, exist_ok=True)
    code = f"unknown_packets() {{ {packets}; }}; {HERE}main"
    return shell.run(code, phase="vip", values={**VALUES, **values}, fails=fails)


def test_it_stands_by_once_the_cluster_lists_it(edge: Shell) -> None:
    make(edge)
    assert RESTART in edge.calls
    edge.forget()
    assert make(edge).splitlines()[-1].endswith("done, changes=0")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (listing(edge_2="1"), "the list has no edge-1 of generation 2"),
        (answer("403", {}), "no clear answer of https://127.0.0.1:3446/api/v1/namespaces/kube-sys"),
    ],
)
def test_it_does_not_begin_before(edge: Shell, said: str, why: str) -> None:
    edge.stub("curl", said)
    out = make(edge, fails=True)
    assert why in out
    assert "edge-1 among those that may hold the virtual IP: not seen" in out
    assert not [call for call in edge.calls if "restart" in call]


def test_from_who_has_it_it_has_to_hear(edge: Shell) -> None:
    """Else both would have it."""
    neighbours(edge, a0_5="aa:aa:aa:aa:aa:99")
    out = make(edge, fails=True, packets="echo 7")
    assert "aa:aa:aa:aa:aa:99 has it, and no advert of it (VRRP, protocol 112) comes here" in out
    assert "do: let protocol 112 through" in out
    assert not [call for call in edge.calls if "restart" in call]


def test_once_it_hears_it_stands_by(edge: Shell) -> None:
    neighbours(edge, a0_5="aa:aa:aa:aa:aa:33")
    make(edge, packets="echo . >>seen; wc -l <seen")
    assert RESTART in edge.calls


@pytest.mark.parametrize("at", [1, 6, 9])
def test_packets_that_nobody_takes_are_counted_wherever_they_stand(shell: Shell, at: int) -> None:
    """Kernels have added columns before."""
    names, numbers = [f"In{n}" for n in range(9)], [str(n) for n in range(100, 109)]
    names.insert(at - 1, "InUnknownProtos")
    numbers.insert(at - 1, "7")
    rows = [
        f"Ip: {' '.join(names)}",
        f"Ip: {' '.join(numbers)}",
        "Icmp: InUnknownProtos",
        "Icmp: 9",
    ]
    (shell.folder / "snmp").write_text("\n".join(rows) + "\n")
    code = "SNMP=$PWD/snmp; unknown_packets"
    assert shell.run(code, phase="vip", values=VALUES).split() == ["7"]


def test_this_kernel_counts_them(shell: Shell) -> None:
    assert shell.run("unknown_packets", phase="vip", values=VALUES).strip().isdigit()


def test_in_maintenance_keepalived_is_off_and_comes_back_after_it(edge: Shell) -> None:
    make(edge)
    edge.forget()
    edge.stub("curl", listing())
    assert "does not run as standby for the virtual IP" in make(edge, RESTING="1")
    assert "systemctl disable -q --now keepalived" in edge.calls
    (edge.folder / "up").unlink()
    edge.stub("curl", listing(edge_1="2"))
    edge.forget()
    make(edge)
    assert RESTART in edge.calls
    assert "systemctl enable -q keepalived.service" in edge.calls


# --- phases vip-peers and vip-away, on masters

RUNNING = """\
# kube-ha: the virtual IP
vrrp_instance dev {
  unicast_peer {
    10.0.0.12
  }
  virtual_ipaddress {
    10.0.0.31/32 dev eth0
  }
}
"""


def let_hear(shell: Shell, *, fails: bool = False) -> str:
    shell.stub("keepalived", "exit 5" if fails else "")
    values = {"PEERS": "10.0.0.31 10.0.0.32"}
    code = f"{HERE}DROPIN=$PWD/drop-in; touch drop-in; main"
    return shell.run(code, phase="vip-peers", values=values, fails=fails)


@pytest.fixture
def standing_by(shell: Shell) -> Path:
    """A master's keepalived.conf, by which it runs."""
    shell.stub("systemctl")
    file = shell.root / "etc/keepalived/keepalived.conf"
    file.parent.mkdir(parents=True)
    file.write_text(RUNNING)
    return file


def test_a_master_that_stands_by_tells_load_balancers_too(shell: Shell, standing_by: Path) -> None:
    let_hear(shell)
    assert standing_by.read_text() == RUNNING.replace(
        "unicast_peer {\n", "unicast_peer {\n    10.0.0.32\n    10.0.0.31\n"
    )
    assert "systemctl reload keepalived.service" in shell.calls
    shell.forget()
    assert let_hear(shell).splitlines()[-1].endswith("changes=0")
    assert not [call for call in shell.calls if "reload" in call]


def test_what_keepalived_does_not_take_is_not_told(shell: Shell, standing_by: Path) -> None:
    assert "keepalived refuses its new configuration" in let_hear(shell, fails=True)
    assert standing_by.read_text() == RUNNING
    assert not [call for call in shell.calls if "reload" in call]


@pytest.mark.parametrize("text", ["", "vrrp_instance web {\n}\n", RUNNING])
def test_where_it_is_nobody_s_or_stopped_there_is_nobody_to_tell(shell: Shell, text: str) -> None:
    shell.stub("systemctl", "exit 3" if text == RUNNING else "")
    file = shell.root / "etc/keepalived/keepalived.conf"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    let_hear(shell)
    assert file.read_text() == text
    assert not [call for call in shell.calls if "reload" in call or "restart" in call]


def away(shell: Shell, *, fails: bool = False, **values: str) -> str:
    code = 'wait_for() { "${@:3}" || die "$2: not seen"; }; main'
    given = {"VIP": "10.0.0.5:8443", **values}
    return shell.run(code, phase="vip-away", values=given, fails=fails)


def test_a_master_gives_it_up_with_the_ingress_tier(shell: Shell) -> None:
    shell.stub("systemctl")
    shell.stub("ip", 'echo "2: eth0    inet 10.0.0.11/24 scope global eth0"')
    for path in ("keepalived/keepalived.conf", "systemd/system/kube-ha-ingress.service"):
        (shell.root / "etc" / path).parent.mkdir(parents=True)
        (shell.root / "etc" / path).write_text(f"{CONF}\n")
    assert away(shell).splitlines()[-1].endswith("changes=3")
    assert "systemctl disable -q --now keepalived" in shell.calls
    assert "systemctl disable -q --now kube-ha-ingress" in shell.calls
    assert away(shell).splitlines()[-1].endswith("changes=0")


@pytest.mark.parametrize("first", [1, 2])
def test_cut_off_it_goes_on_until_no_secret_is_left_nor_missed(shell: Shell, first: int) -> None:
    """Cut off while it forgets the password, or the ingress tier's certificates."""
    shell.stub("systemctl")
    shell.stub("ip")
    files = ("keepalived/keepalived.conf", "kube-ha/vrrp.conf", "kube-ha/ingress/shop.pem")
    paths = [shell.root / "etc" / path for path in files]
    paths.append(shell.root / "etc/systemd/system/kube-ha-ingress.service")
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{CONF}\n")
    shell.state.mkdir(parents=True)
    sums = [f"0123  {path}" for path in (*paths[1:3], "/etc/other")]
    (shell.state / "pki.sums").write_text("\n".join(sums) + "\n")
    cut = f"left={first}; forget_keys() {{ left=$((left - 1)); ((left > 0)) || exit 3; }}; main"
    shell.run(cut, phase="vip-away", values={"VIP": "10.0.0.5:8443"}, fails=True)
    if first == 2:  # the password was forgotten by then
        (shell.state / "pki.sums").write_text("\n".join(sums[1:]) + "\n")
    away(shell)
    assert not [path for path in paths if path.exists()]
    assert (shell.state / "pki.sums").read_text() == "0123  /etc/other\n"


def test_nobody_goes_on_while_a_master_still_has_the_address(shell: Shell) -> None:
    shell.stub("ip", 'echo "2: eth0    inet 10.0.0.5/32 scope global eth0"')
    assert "the virtual IP 10.0.0.5 gone from this machine: not seen" in away(shell, fails=True)
    assert "done" in away(shell, OWN_FAILOVER="1")


# --- phase node


NODE = {
    "ROLES": "loadbalancer",
    "PACKAGES": "",
    "APPLIED": "0123",
    "CA_CRT": "ca",
    "HAPROXY_CFG": "listen kubernetes-api",
    "OS_PACKAGES": "",
    "OS_REBOOT": "never",
    "OS_HOLD": "",
    "VIP": "10.0.0.5:8443",
}
MAIN = (
    "local_api() { echo haproxy; }; runtime() { echo containerd; }; kubelet() { echo kubelet; }\n"
    'kernel() { echo kernel; }; cp() { :; }; mkdir -p home; put() { cat >/dev/null; echo "put $2"; }; main'
)


def test_it_gets_haproxy_and_nothing_of_kubernetes(shell: Shell) -> None:
    shell.stub("systemctl")
    said = shell.run(MAIN, phase="node", values=NODE).splitlines()
    assert "haproxy" in said
    assert f"put {shell.state}/load-balancer" in said
    assert not {"containerd", "kubelet", "kernel"} & set(said)
    assert not [call for call in shell.calls if "keepalived" in call], "phase vip comes later"


def test_packages_are_updated_while_another_one_has_the_address(shell: Shell) -> None:
    conf = shell.root / "etc/keepalived/keepalived.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(f"{CONF}\n")
    on = shell.folder / "on"
    on.touch()
    shell.stub(
        "systemctl",
        f'case "$*" in "is-active -q keepalived") [[ -e {on} ]] ;; "stop keepalived") rm {on} ;; '
        f'"start "*keepalived) touch {on} ;; esac',
    )
    shell.stub(
        "apt-get",
        f'if [[ "$*" == *-s*upgrade ]]; then echo "Inst haproxy"; elif [[ "$*" == *upgrade ]]; then [[ ! -e {on} ]]; fi',
    )
    shell.stub("dpkg")
    fakes = "UNITS=$PWD; VALUES=x; sleep() { :; }; etcd_has_data() { false; }; os_update; stand_by_again; gone_on"
    out = shell.run(fakes, phase="node", values={**NODE, "OS_PACKAGES": "november"})
    assert "the virtual IP goes to another machine" in out
    assert on.exists(), "it runs as standby again"
    assert (shell.state / "os").read_text() == "november\n"


# --- it leaves


def test_a_runtime_of_somebody_else_stays(shell: Shell) -> None:
    machine = Machine(shell)
    machine.make(running=("haproxy", "containerd", "keepalived"))
    for path in ("containerd.artefact", "master.sum", "etcd.service.sum", "runtime-proof"):
        (shell.state / path).unlink()
    (shell.state / "load-balancer").write_text("edge-1\n")
    conf = shell.root / "etc/keepalived/keepalived.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(f"{CONF}\n")
    shell.run("main", phase="leave")
    assert machine.running == {"containerd"}
    gone = {f"root/etc/{path}" for path in ("haproxy/haproxy.cfg", "keepalived/keepalived.conf")}
    assert not gone & machine.files
    assert {"root/var/lib/containerd/meta.db", "root/usr/local/bin/kubelet"} <= machine.files
    assert not [path for path in machine.files if "kube-ha" in path and "cni" not in path]
