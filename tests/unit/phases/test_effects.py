"""What a changed value restarts, as its scripts say it: value, file, unit."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from stacks.phases.effects import OF_VALUE, OF_VERSION
from tests.unit.phases.bash_calls import functions, reached

# put MODE PATH <<<"$VALUE", and printf of a value into a file that takes the place of another; settle VERB UNIT FILE...
_PUT = re.compile(r'put \d+ "?([^\s"]+)"? <<<"\$([A-Z_]+)"')
_PRINTED = re.compile(
    r"printf '%s\\n' \"\$([A-Z_]+)\" >\"\$new\"\n(?s:.*?)put \d+ \"?([^\s\"]+)\"? <\"\$new\""
)
_SETTLE = re.compile(r"settle (restart|reload) (\S+?)(?:\.service)? (.*)")
# What main hands to start_etcd.
_ETCD_FILES = '"$PKI/etcd.env" "$ROOT/etc/systemd/system/etcd.service" "$PKI/ca.crt"'
_WORDS = {
    "containerd": "containerd restarts",
    "haproxy": "HAProxy reloads",
    "kube-ha-ingress": "HAProxy reloads",
    "keepalived": "keepalived reloads",
    "kubelet": "kubelet restarts",
    "etcd": "etcd restarts",
    "kube-ha-firewall": "new connections that its rules do not name are dropped",
}


def of_scripts(phase: str) -> Iterator[tuple[str, str]]:
    """(value, unit): the unit is started again where the file is another one."""
    text = "\n".join(functions(phase)[name] for name in reached(phase)).replace("\\\n", " ")
    files = {path: value for path, value in _PUT.findall(text)}
    files |= {path: value for value, path in _PRINTED.findall(text)}
    for _, unit, listed in _SETTLE.findall(text):
        words = listed.replace("$@", _ETCD_FILES) if unit == "etcd" else listed
        # Of the kubelet another function tells the files.
        words = words.replace("${files[@]}", functions(phase).get("kubelet_files", ""))
        words = words.replace(
            "{kubelet.service,kubelet.service.d/10-kubeadm.conf}",
            "kubelet.service kubelet.service.d/10-kubeadm.conf",
        )
        for path, value in files.items():
            if re.search(
                rf"(^|[\s\"/]){re.escape(path.removeprefix('/etc/systemd/system/'))}([\s\"]|$)",
                words,
            ):
                yield value, unit


FOUND = {
    "node": {
        ("CONTAINERD_CONFIG", "containerd"),
        ("CONTAINERD_UNIT", "containerd"),
        ("CONTAINERD_PROXY", "containerd"),
        ("KUBELET_UNIT", "kubelet"),
        ("KUBELET_DROPIN", "kubelet"),
        ("KUBELET_OWN", "kubelet"),
        ("CREDENTIAL_PROVIDERS", "kubelet"),
        ("HAPROXY_CFG", "haproxy"),
        ("CA_CRT", "haproxy"),
        ("FIREWALL", "kube-ha-firewall"),
    },
    "etcd-member": {("ETCD_ENV", "etcd"), ("ETCD_UNIT", "etcd")},
    "vip": {("KEEPALIVED_CONF", "keepalived"), ("KEEPALIVED_DROPIN", "keepalived")},
    "ingress": {("INGRESS_CFG", "kube-ha-ingress"), ("INGRESS_UNIT", "kube-ha-ingress")},
}


@pytest.mark.parametrize("phase", FOUND)
def test_a_script_starts_again_what_reads_a_file_that_changed(phase: str) -> None:
    assert {*of_scripts(phase)} == FOUND[phase]


@pytest.mark.parametrize(
    ("phase", "value", "unit"),
    [
        (phase, *pair)
        for phase, pairs in FOUND.items()
        for pair in sorted(pairs)
        if pair[0] != "CA_CRT"
    ],
)
def test_the_words_for_a_value_name_what_starts_again(phase: str, value: str, unit: str) -> None:
    assert OF_VALUE[phase, value].then.startswith(_WORDS[unit])


def test_only_what_a_script_starts_again_is_said_to_restart_etcd() -> None:
    told = {
        name
        for (phase, name), effect in OF_VALUE.items()
        if phase == "etcd-member" and effect.restarts == "etcd"
    }
    # The binaries and the CA come as a download and by phase pki; packages may end in a reboot.
    assert told == {"ETCD_ENV", "ETCD_UNIT", "ARCH_DIR", "ETCD_CA", "OS_PACKAGES"}
    assert '"$PKI/ca.crt" "$STATE/etcd.artefact"' in functions("etcd-member")["main"]
    assert OF_VERSION["etcd"].restarts == "etcd"


def test_an_api_server_restarts_for_what_its_sum_is_made_of() -> None:
    told = {
        name
        for (phase, name), effect in OF_VALUE.items()
        if phase == "master" and effect.restarts == "kube-apiserver"
    }
    of_sum = functions("master")["control_plane_sum"]
    assert "$CONFIG" in of_sum
    assert "$KEYS" in of_sum
    assert "api_files wanted" in of_sum
    assert "/^apiVersion: kubelet\\.config/,$d" in of_sum
    api_files = {"AUDIT_POLICY", "ADMISSION_CONFIG", "OIDC_CA", "AUDIT_WEBHOOK", "AUTHENTICATION"}
    assert told == {"KUBEADM_CONFIG", "KEYS"} | api_files
    assert "change_master" in functions("master")["main"]
    assert "others_serve" in functions("master")["change_master"]


def test_an_api_server_drains_before_the_member_beside_it_restarts() -> None:
    assert "drain_api_server" in functions("etcd-member")["before_restart"]
    assert "before_restart" in reached("etcd-member")


def test_a_machine_steps_aside_for_packages_and_reboots_where_that_is_allowed() -> None:
    known = functions("node")
    assert "drain_api_server" in known["step_aside"]
    assert "hand_over_vip" in known["step_aside"]
    assert "OS_REBOOT == never" in known["reboot_reason"]
    assert "hand_over_etcd" in known["reboot_now"]
    assert "hand_over_etcd" not in known["step_aside"]
