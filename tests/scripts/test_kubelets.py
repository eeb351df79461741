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

from tests.scripts.shell import Shell
from tests.scripts.test_identity import ca

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
    rows = "\n".join(f"node-{number} {LOOPBACK}.{number}" for number in (1, 2, 3, 4))
    master.stub("kubectl", f"printf '%s\\n' '{rows}' 'node-5 '")
    code = f"unknown_kubelets {master.folder}/ca-new.crt"
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


def approver(shell: Shell, issued: str) -> str:
    shell.stub("systemctl")
    values = {**NODE, "SERVING_ISSUED": issued}
    return shell.run("approver; echo changes=$changes", phase="master", values=values)


def test_the_approver_comes_and_goes_with_the_config(master: Shell) -> None:
    assert "changes=0" in approver(master, "")
    approver(master, "1")
    assert any(call == "systemctl restart kube-ha-approver.service" for call in master.calls)
    script = master.root / "etc/kube-ha/approve"
    assert script.stat().st_mode & 0o777 == 0o755
    unit = master.root / "etc/systemd/system/kube-ha-approver.service"
    assert "ExecStart=/etc/kube-ha/approve" in unit.read_text()
    assert "changes=0" in approver(master, "1")
    master.forget()
    assert "approves no certificates of kubelets any more" in approver(master, "")
    assert "systemctl disable -q --now kube-ha-approver" in master.calls
    assert not unit.exists()
