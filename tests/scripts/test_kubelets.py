"""What kubelets serve with: made by real OpenSSL, asked for over real TLS; the cluster is played."""

from __future__ import annotations

import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.scripts import node_list
from tests.scripts.shell import SCRIPTS, Shell
from tests.scripts.test_identity import ca
from tests.unit.render.examples import program

NODE = {"SERVING_ISSUED": "1", "ADDRESS": "10.0.0.11"}
# Of this process alone: other tests go on beside it.
LOOPBACK = f"127.{180 + os.getpid() % 70}.{os.getpid() // 70 % 250}"


@pytest.fixture
def master(shell: Shell) -> Shell:
    """A machine with the CA that signs, and the one before."""
    old, new = ca(shell.folder, "old"), ca(shell.folder, "new")
    pki = shell.root / "etc/kubernetes/pki"
    pki.mkdir(parents=True)
    (pki / "ca.crt").write_text(new + old)
    (pki / "ca.key").write_text((shell.folder / "ca-new.key").read_text())
    shell.state.mkdir(parents=True)
    return shell


def serving(shell: Shell) -> Path:
    return shell.identity.with_name("kubelet-server-current.pem")


def issue(shell: Shell, **values: str) -> str:
    code = 'touch "$STATE/kubelet.service.sum"; renew_serving "$ROOT/etc/kubernetes/pki/ca.crt" issue_serving'
    return shell.run(code, phase="master", values={**NODE, **values})


def verified(shell: Shell, authority: str, address: str = "10.0.0.11") -> bool:
    words = ["openssl", "verify", "-purpose", "sslserver", "-verify_hostname", "master-1"]
    words += ["-verify_ip", address, "-CAfile", str(shell.folder / f"ca-{authority}.crt")]
    done = subprocess.run([*words, str(serving(shell))], capture_output=True, check=False)
    return done.returncode == 0


def test_a_master_signs_what_its_kubelet_serves_with(master: Shell) -> None:
    issue(master)
    assert verified(master, "new")
    assert not verified(master, "new", "10.0.0.12")
    pem = serving(master)
    assert pem.is_symlink()
    assert pem.stat().st_mode & 0o777 == 0o600
    text = pem.read_text()
    assert text.index("BEGIN CERTIFICATE") < text.index("PRIVATE KEY")
    words = ["openssl", "x509", "-noout", "-text", "-in", str(pem)]
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert "CA:FALSE" in told
    assert "TLS Web Client" not in told
    assert not (master.state / "kubelet.service.sum").exists(), "it reads it at its start"
    assert not list(master.state.glob("identity*")), "a key was left behind"


def test_the_longest_name_fits_and_no_longer_one(master: Shell) -> None:
    names = {"NODE": "n" * 52}
    issue(master, **names)
    assert verified_name(master, "n" * 52)
    code = 'new_key "$STATE/k"; new_request "$STATE/k" "server auth"'
    longer = {**NODE, "SERVING_ADDRESS": "10.0.0.11", "NODE": "n" * 53}
    assert "string too long" in master.run(code, phase="master", values=longer, fails=True)


def verified_name(shell: Shell, name: str) -> bool:
    words = ["openssl", "x509", "-noout", "-checkhost", name, "-in", str(serving(shell))]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return "does match" in done.stdout


def test_one_that_is_right_stays(master: Shell) -> None:
    issue(master)
    before = serving(master).read_text()
    assert "to serve with" not in issue(master)
    assert serving(master).read_text() == before
    assert (master.state / "kubelet.service.sum").exists()


def test_one_of_another_ca_address_or_time_is_made_anew(master: Shell) -> None:
    issue(master)
    bundle = master.root / "etc/kubernetes/pki/ca.crt"
    first = [(master.folder / f"ca-{name}.crt").read_text() for name in ("old", "new")]
    bundle.write_text("".join(first))
    (bundle.parent / "ca.key").write_text((master.folder / "ca-old.key").read_text())
    issue(master)
    assert verified(master, "old")
    issue(master, ADDRESS="10.0.0.12")
    assert verified(master, "old", "10.0.0.12")


def test_where_kubelets_sign_their_own_nothing_is_made(master: Shell) -> None:
    assert issue(master, SERVING_ISSUED="") == ""
    assert not serving(master).exists()


def test_a_worker_knows_its_address_from_its_kubelets_flags(master: Shell) -> None:
    flags = master.root / "var/lib/kubelet/kubeadm-flags.env"
    flags.parent.mkdir(parents=True, exist_ok=True)
    flags.write_text(
        'KUBELET_KUBEADM_ARGS="--hostname-override=worker-1 --node-ip=10.0.0.101 --v=1"\n'
    )
    assert master.run("serving_address", phase="identity") == "10.0.0.101\n"
    flags.write_text("")
    said = master.run("serving_address", phase="identity", fails=True)
    assert "the kubelet's flags name no address of this node" in said


class _Kubelet(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def kubelet(shell: Shell, number: int, authority: str, *, of: int | None = None) -> Iterator[None]:
    """One that answers on port 10250 of a loopback address, with a certificate for address `of`."""
    address, name = f"{LOOPBACK}.{number}", f"node-{number}"
    issue(shell, ADDRESS=f"{LOOPBACK}.{of or number}")
    pem = shell.folder / f"{name}.pem"
    if authority == "self":
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        words += ["-nodes", "-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{address}"]
        subprocess.run([*words, "-keyout", str(pem), "-out", f"{pem}.crt"], check=True, capture_output=True)  # fmt: skip
        pem.write_text(pem.read_text() + Path(f"{pem}.crt").read_text())
    else:
        pem.write_text(serving(shell).read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = ThreadingHTTPServer((address, 10250), _Kubelet)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def test_kubelets_are_told_apart_by_what_they_show(master: Shell) -> None:
    rows = [f"node-{number}|{LOOPBACK}.{number}" for number in (1, 2, 3, 4)]
    listing = node_list.listing([*rows, "node-5|"], ["address"])
    master.stub("kubectl", f"echo '{listing}'")
    code = f"source {SCRIPTS}/cluster-reader.sh; unknown_kubelets {master.folder}/ca-new.crt"
    with (
        kubelet(master, 1, "new"),
        kubelet(master, 2, "self"),
        kubelet(master, 3, "new", of=9),
    ):
        said = master.run(code, phase="kubelets").splitlines()
    found = {line.partition(" ")[0]: line.partition(" ")[2] for line in said}
    assert set(found) == {"node-2", "node-3", "node-4", "node-5"}
    assert "self" in found["node-2"]
    assert "does not answer" not in found["node-3"]
    assert found["node-4"].startswith(f"(does not answer at {LOOPBACK}.4")
    assert found["node-5"].startswith("(does not answer")


CHECKS = "        - name: kubelet-certificate-authority\n"


def expect(shell: Shell, unknown: str, *, fails: bool = False, config: str = CHECKS) -> str:
    """The look at kubelets before an API server changes."""
    (shell.folder / "kubeadm.yaml").write_text(config)
    shell.stub("kubectl", "echo ok")
    code = (
        f"CONFIG={shell.folder}/kubeadm.yaml; kubelets_sum() {{ echo of-now; }}; "
        f"unknown_kubelets() {{ echo asked >&2; printf '%s\\n' {unknown}; }}; expect_kubelets"
    )
    return shell.run(code, phase="master", values=NODE, fails=fails)


def test_an_api_server_that_would_refuse_kubelets_is_not_changed(master: Shell) -> None:
    said = expect(
        master, "'node-1 (self-signed certificate)' 'node-2 (does not answer at 1)'", fails=True
    )
    assert (
        "API servers would refuse 1 kubelet(s), so this one was not changed: node-1 (self" in said
    )
    assert "set kubelet.servingCertificates: issued" in said


def test_a_kubelet_that_begins_anew_meanwhile_is_asked_again(master: Shell) -> None:
    master.stub("sleep", 'echo gone >"$PWD/begun"')
    told = "[[ -e begun ]] && echo 'node-1 (does not answer)' || echo 'node-1 (reset by peer)'"
    said = expect(master, f'"$({told})"')
    assert said.count("asked") == 2


def test_a_dead_kubelet_holds_up_no_api_server(master: Shell) -> None:
    assert expect(master, "'node-2 (does not answer at 1)'") == "asked\n"


def test_kubelets_are_asked_when_it_matters_alone(master: Shell) -> None:
    assert expect(master, "'node-1 (self-signed certificate)'", config="") == ""
    (master.state / "kubelets.sum").write_text("of-now\n")
    assert expect(master, "'node-1 (self-signed certificate)'") == ""


def approver(shell: Shell) -> str:
    shell.stub("systemctl")
    keys = ("etc/kube-ha/approver.crt", "etc/kube-ha/ca.crt")
    for path in (shell.root / key for key in keys):
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("of now\n")
    return shell.run("approver; echo changes=$changes", phase="master", values=NODE)


RESTART = "systemctl restart kube-ha-approver.service"


def test_the_approver_restarts_when_it_or_its_keys_change(master: Shell) -> None:
    approver(master)
    assert RESTART in master.calls
    script = master.root / "etc/kube-ha/approve"
    assert script.stat().st_mode & 0o777 == 0o755
    assert script.read_text().startswith("#!/usr/bin/env bash\n")
    master.forget()
    assert "changes=0" in approver(master)
    assert RESTART not in master.calls
    for key in ("etc/kube-ha/approver.crt", "etc/kube-ha/ca.crt"):
        master.forget()
        (master.root / key).write_text("another\n")
        approver(master)
        assert RESTART in master.calls


def test_the_approver_holds_no_credential_but_its_own(master: Shell) -> None:
    approver(master)
    text = (master.root / "etc/systemd/system/kube-ha-approver.service").read_text()
    unit = [line.partition("=") for line in text.splitlines() if "=" in line]
    assert ("DynamicUser", "=", "yes") in unit
    assert ("CapabilityBoundingSet", "=", "") in unit
    # Opened by systemd before it is nobody: it could not open it itself.
    assert ("StandardInput", "=", "file:/etc/kube-ha/approver.key") in unit
    hidden = " ".join(value for key, _, value in unit if key == "InaccessiblePaths").split()
    assert {"-/etc/kubernetes", "-/var/lib/kube-ha", "-/var/lib/kubelet"} <= set(hidden)
    for path in (SCRIPTS / f"{name}.sh" for name in ("judge", "approve")):
        assert "admin" not in path.read_text()


def test_systemd_knows_every_line_of_the_approvers_unit(master: Shell) -> None:
    approver(master)
    unit = master.root / "etc/systemd/system/kube-ha-approver.service"
    unit.write_text(
        unit.read_text().replace("ExecStart=/etc/kube-ha/approve", "ExecStart=/bin/true")
    )
    done = subprocess.run(
        [program("systemd-analyze", master.folder), "verify", unit.name],
        cwd=unit.parent,
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{unit.parent}:"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert [line for line in done.stderr.splitlines() if str(unit.parent) in line] == []
