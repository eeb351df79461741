"""Certificates that have run out: new ones are placed where nothing answers any more, and it answers again."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripts.real_etcd import Authority, Member, Members
from tests.scripts.shell import Shell

LEAFS = ("server", "peer", "client")
CA = "certificate-authority-data: Ym90aCBDQXM="


@pytest.fixture
def members(tmp_path: Path) -> Iterator[Members]:
    members = Members(tmp_path / "etcd")
    try:
        yield members
    finally:
        members.stop()


def place(member: Member, certificate: bytes) -> str:
    """The phase, with the same keys and other certificates."""
    values = {"PKI_COUNT": str(len(LEAFS))}
    for number, name in enumerate(LEAFS, start=1):
        values[f"PKI_PATH_{number}"] = f"{member.pki}/{name}.crt"
        values[f"PKI_TEXT_{number}"] = certificate.decode().rstrip()
    return member.shell.run("main", phase="pki", values={**values, **member.values})


def test_members_whose_leafs_have_run_out_take_new_ones_while_they_run(members: Members) -> None:
    """Not one of them is a quorum, so new leafs must come to all of them before anybody waits for one."""
    members.start()
    members.put(members[1], {"/registry/a": "written"})
    old = members.authority.leaf(0)  # over for a minute
    for member in members.all.values():
        member.kill()
        for name in LEAFS:
            (member.pki / f"{name}.crt").write_bytes(old)
    for member in members.all.values():
        member.systemctl("start", "etcd")
    assert members.ask(members[1], "endpoint", "health").returncode
    running = [(m.shell.folder / "pid").read_text() for m in members.all.values()]

    for number in (1, 2):
        place(members[number], members.authority.leaf(24))
    members.wait_healthy(members[1])
    place(members[3], members.authority.leaf(24))
    for member in members.all.values():
        members.wait_healthy(member)
    assert members.get(members[3], "/registry/a") == "written"
    assert [(m.shell.folder / "pid").read_text() for m in members.all.values()] == running


def conf(shell: Shell, hours: float) -> Path:
    """A master with an administrator's kubeconfig whose certificate ends in so many hours."""
    folder = shell.root / "etc/kubernetes"
    (folder / "pki").mkdir(parents=True)
    (folder / "pki/ca.key").write_text("KEY")
    config = shell.root / "etc/kube-ha/kubeadm.yaml"
    config.parent.mkdir(parents=True)
    config.write_text("kind: ClusterConfiguration")
    authority = Authority(shell.folder, [])
    old, new = (base64.b64encode(authority.leaf(n)).decode() for n in (hours, 24))
    path = folder / "admin.conf"
    path.write_text(f"    {CA}\n    client-certificate-data: {old}\n")
    # What kubeadm does: a new certificate, and the CA that signs alone.
    text = f"    certificate-authority-data: b25l\\n    client-certificate-data: {new}\\n"
    shell.stub("kubeadm", f"printf '{text}' >{path}")
    return path


@pytest.mark.parametrize("phase", ["etcd-member", "master", "node", "retire"])
def test_whatever_asks_before_phase_master_has_a_certificate_that_counts(
    shell: Shell, phase: str
) -> None:
    path = conf(shell, 0)
    # Its own main, as far as to the first question.
    code = """
for name in own await_resumed begin take_out log; do eval "$name() { :; }"; done
kubectl() { echo "asked" >>"$PWD/calls"; exit 0; }
put() { if [[ $2 == */admin.conf ]]; then cat >"$2"; else cat >/dev/null; fi; }
refuse_older_etcd() { exit 0; }
write_api_files() { exit 0; }
mkdir() { exit 0; }
main
"""
    shell.run(code, phase=phase, values={**VALUES, "INCARNATIONS": "master-3=1:lost"})
    assert shell.calls == [
        f"kubeadm certs renew admin.conf --config {shell.root}/etc/kube-ha/kubeadm.yaml"
    ]
    assert CA in path.read_text(), "it trusts all CAs that it trusted before"


VALUES = {
    **{"ADDRESS": "10.0.0.11", "MEMBERS": "", "BOOTSTRAP": "0", "ROLES": "etcd master"},
    **{"KUBEADM_CONFIG": "", "GOING_MEMBERS": "", "ETCD_ENDPOINTS": "", "APPLIED": ""},
}


def test_a_certificate_that_lasts_stays(shell: Shell) -> None:
    path = conf(shell, 2)
    before = path.read_bytes()
    shell.run("renew_admin", phase="master", values=VALUES)
    assert (shell.calls, path.read_bytes()) == ([], before)


def test_a_machine_that_is_no_master_has_nothing_to_renew(shell: Shell) -> None:
    shell.run("renew_admin", phase="etcd-member", values=VALUES)
    assert shell.calls == []


@pytest.mark.parametrize(
    ("manifest", "serves", "begins"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_an_api_server_that_a_kubelet_waits_with_begins_at_once(
    shell: Shell,
    *,
    manifest: bool,
    serves: bool,
    begins: bool,
) -> None:
    """While leafs had run out it ended again and again: its kubelet waits up to five minutes."""
    if manifest:
        path = shell.root / "etc/kubernetes/manifests/kube-apiserver.yaml"
        path.parent.mkdir(parents=True)
        path.touch()
    shell.stub("curl", "" if serves else "exit 22")
    shell.stub("systemctl")
    values = {"PKI_COUNT": "1", "PKI_PATH_1": f"{shell.folder}/leaf.crt", "PKI_TEXT_1": "PEM"}
    shell.run("main", phase="pki", values=values)
    assert ("systemctl restart kubelet" in shell.calls) == begins
    shell.forget()
    shell.run("main", phase="pki", values=values)
    assert "systemctl restart kubelet" not in shell.calls
