"""The virtual IP on one machine: made, checked, refused, given up."""

from __future__ import annotations

import shlex

import pytest

from tests.scripts.shell import OWNER, Shell

CONF = "# kube-ha: the virtual IP\nvrrp_instance dev {\n}"
VALUES = {
    "ADDRESS": "10.0.0.11",
    "VIP": "10.0.0.5:8443",
    "INTERFACE": "eth0",
    "KEEPALIVED_CONF": CONF,
    "KEEPALIVED_DROPIN": "[Service]\nRestart=always",
}
HERE = 'SECRET=$PWD/vrrp.conf CHECK=$PWD/vip-check; sleep() { :; }; echo "auth_pass x" >"$SECRET"; '
ON_ETH0 = 'echo "2: eth0    inet 10.0.0.11/24 scope global eth0"'
NOBODY = "exit 7"  # of curl: could not connect


@pytest.fixture
def holder(shell: Shell) -> Shell:
    """A machine that can hold it: HAProxy listens, nobody has the address."""
    shell.stub("ip", ON_ETH0)
    shell.stub("ss", "echo LISTEN")
    shell.stub("curl", NOBODY)
    shell.stub("ping", "exit 1")
    shell.stub("keepalived")
    shell.stub(
        "systemctl",
        "if [[ $1 == is-active && $* == *keepalived* ]]; then [[ -e up ]]; exit; fi; if [[ $1 == restart ]]; then touch up; fi",
    )
    return shell


def make(shell: Shell, values: dict[str, str] | None = None, *, fails: bool = False) -> str:
    (shell.root / "etc").mkdir(parents=True, exist_ok=True)
    return shell.run(f"{HERE}main", phase="vip", values={**VALUES, **(values or {})}, fails=fails)


def conf(shell: Shell) -> str:
    file = shell.root / "etc/keepalived/keepalived.conf"
    return file.read_text() if file.exists() else ""


def test_it_is_made_once(holder: Shell) -> None:
    assert make(holder).splitlines()[-1].endswith("done, changes=6")
    assert conf(holder) == f"{CONF}\n"
    assert (holder.folder / "vip-check").stat().st_mode & 0o777 == 0o755
    assert make(holder).splitlines()[-1].endswith("done, changes=0")


def test_a_change_reloads_and_restarts_nothing(holder: Shell) -> None:
    make(holder)
    holder.forget()
    make(holder, {"KEEPALIVED_CONF": f"{CONF}\n# more"})
    assert "systemctl reload keepalived.service" in holder.calls
    assert not [call for call in holder.calls if "restart" in call]


def test_what_keepalived_does_not_take_replaces_nothing(holder: Shell) -> None:
    make(holder)
    holder.forget()
    holder.stub("keepalived", "echo 'Unknown keyword vrrp_insistence'; exit 5")
    out = make(holder, {"KEEPALIVED_CONF": "rubbish"}, fails=True)
    assert "keepalived refuses its new configuration, the running one stays: Unknown keyword" in out
    assert conf(holder) == f"{CONF}\n"
    assert not [call for call in holder.calls if "reload" in call or "restart" in call]


def test_everything_wrong_with_the_machine_is_told_at_once(holder: Shell) -> None:
    holder.stub("ip", 'echo "2: ens18    inet 10.0.0.11/24 scope global ens18"')
    other = holder.root / "etc/keepalived/keepalived.conf"
    other.parent.mkdir(parents=True)
    other.write_text("vrrp_instance web {\n}\n")
    out = make(holder, fails=True)
    assert "address 10.0.0.11 is on interface ens18, not on eth0 (frontDoors.vip.interface)" in out
    assert "keepalived serves something of somebody else here" in out
    assert "nothing was changed" in out
    assert conf(holder) == "vrrp_instance web {\n}\n"


def test_an_address_that_another_machine_answers_for_is_not_taken(holder: Shell) -> None:
    there = 'echo "10.0.0.5 lladdr aa:aa:aa:aa:aa:99 REACHABLE"'
    holder.stub("ip", f'case "$*" in *addr*) {ON_ETH0} ;; *"show to 10.0.0.5 "*) {there} ;; esac')
    holder.stub("ping")
    out = make(holder, fails=True)
    assert "10.0.0.5 answers already, and not as this cluster" in out
    assert conf(holder) == ""


def test_another_holder_of_the_same_cluster_is_no_stranger(holder: Shell) -> None:
    holder.stub("ping")
    holder.stub("curl", "printf 200")
    assert "done" in make(holder)


def test_haproxy_has_to_listen_there_first(holder: Shell) -> None:
    holder.stub("ss")
    code = 'wait_for() { "${@:3}" || die "$2: not seen"; }; main'
    out = holder.run(f"{HERE}{code}", phase="vip", values=VALUES, fails=True)
    assert "HAProxy listening at 10.0.0.5:8443: not seen" in out
    assert conf(holder) == ""


# --- may this machine hold it?


def allowed(shell: Shell, answer: str, status: str, word: str = "member") -> bool:
    """What vip-check says when the API answers so."""
    body = f"printf '%s\\n%s' {shlex.quote(answer)} {shlex.quote(status)}"
    shell.stub("curl", body if status else "exit 28")
    code = (
        "source $here/vip-check.sh; sleep() { :; }; cat() { echo this; }; SECONDS=0\n"
        f"if vip_check {word} master-1; then echo yes; else echo no; fi"
    )
    return shell.run(code).splitlines()[-1] == "yes"


NODE = '{"status":{"nodeInfo":{"machineID":"%s"}}}'
GONE = '{"kind":"Status","reason":"NotFound","code":404}'


def test_the_cluster_s_own_node_may(shell: Shell) -> None:
    assert allowed(shell, NODE % "this", "200")
    assert allowed(shell, NODE % "this", "200", "start")


@pytest.mark.parametrize("word", ["member", "start"])
def test_who_was_taken_out_may_not(shell: Shell, word: str) -> None:
    assert not allowed(shell, GONE, "404", word)
    assert not allowed(shell, NODE % "another", "200", word)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("", ""),
        ("not ready", "500"),
        ("no such page", "404"),
        ('{"kind":"Status","reason":"Unauthorized"}', "401"),
        ('{"kind":"Status","reason":"Forbidden"}', "403"),
        ("<html>", "200"),
        ("{}", "200"),
    ],
)
def test_an_api_that_fails_takes_it_from_nobody(shell: Shell, answer: str, status: str) -> None:
    assert allowed(shell, answer, status)


@pytest.mark.parametrize(
    ("socat", "there"), [("echo 2.6.12", True), ("exit 1", False), ("", False)]
)
def test_haproxy_has_to_answer(shell: Shell, socat: str, there: bool) -> None:  # noqa: FBT001
    shell.stub("socat", socat)
    code = "source $here/vip-check.sh; if vip_check haproxy; then echo yes; else echo no; fi"
    assert (shell.run(code).splitlines()[-1] == "yes") == there
    assert not [call for call in shell.calls if call.startswith("curl")]


# --- taken away


def test_a_config_without_it_ends_keepalived_before_haproxy_stops_listening(shell: Shell) -> None:
    file = shell.root / "etc/keepalived/keepalived.conf"
    file.parent.mkdir(parents=True)
    file.write_text(f"{CONF}\n")
    shell.stub("systemctl")
    out = shell.run("without_vip", phase="node", values={"VIP": ""})
    assert "holds no virtual IP any more" in out
    assert "systemctl disable -q --now keepalived" in shell.calls
    assert not file.exists()
    shell.forget()
    shell.run("without_vip", phase="node", values={"VIP": ""})
    assert shell.calls == []


def test_the_gate_asks_at_every_door(shell: Shell) -> None:
    shell.stub("curl", 'if [[ $* == *10.0.0.6* ]]; then echo "no route"; exit 7; fi')
    values = {"DOORS": "10.0.0.5:8443 10.0.0.6:8443"}
    code = 'wait_for() { "${@:3}" || die "$2 not seen"; }; check_doors'
    out = shell.run(code, phase="gate", values=values, fails=True)
    assert "API ready at 10.0.0.6:8443 not seen" in out
    assert len(shell.calls) == 2


def test_owner_is_asked_for(holder: Shell) -> None:
    holder.state.mkdir(parents=True)
    (holder.state / "owner").write_text(OWNER.replace("master-1", "master-2"))
    assert "this machine belongs to" in make(holder, fails=True)
