"""CAs in kubeconfigs, and the kubelet's certificate, while a CA is replaced: real certificates, a cluster that is played."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path

import pytest

from tests.scripts.shell import Shell

KUBECONFIG = """clusters:
- cluster:
    certificate-authority-data: {ca}
    server: https://127.0.0.1:3446
  name: dev
users:
- name: x
"""
# The cluster signs a request at the second look at it, with the CA that is its own: ca-<signer>.
API = """
while (($#)); do
  case $1 in -d) request=$2; shift ;; --cert) cert=$2; shift ;; https://*) url=$1 ;; esac
  shift
done
if [[ -n ${request:-} ]]; then
  sed -n 's/.*"request":"\\([^"]*\\)".*/\\1/p' <<<"$request" | base64 -d >"$HERE/request.csr"
  exit
fi
if (($(wc -l <"$HERE/looks" 2>/dev/null || echo 0) == 0)); then echo >>"$HERE/looks"; echo '{"status":{}}'; exit; fi
openssl x509 -req -in "$HERE/request.csr" -CA "$HERE/ca-$SIGNER.crt" -CAkey "$HERE/ca-$SIGNER.key" -days 1 2>/dev/null >"$HERE/signed"
printf '{"metadata":{"managedFields":[{"f:certificate":{}}]},"status":{"certificate":"%s"}}' "$(base64 -w0 "$HERE/signed")"
"""


def ca(folder: Path, name: str) -> str:
    """A CA as the files ca-<name>.crt and .key; its certificate."""
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    words += ["-nodes", "-days", "1", "-subj", f"/CN=kubernetes-{name}"]
    words += ["-keyout", str(folder / f"ca-{name}.key"), "-out", str(folder / f"ca-{name}.crt")]
    subprocess.run(words, check=True, capture_output=True)
    return (folder / f"ca-{name}.crt").read_text()


def identity(shell: Shell, signer: str) -> None:
    """The kubelet has a certificate of that CA, by a link as it makes them itself."""
    folder = shell.identity.parent
    folder.mkdir(parents=True, exist_ok=True)
    script = (
        f"openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=old -keyout {folder}/k "
        f"| openssl x509 -req -CA {shell.folder}/ca-{signer}.crt -CAkey {shell.folder}/ca-{signer}.key "
        f"-days 1 | cat - {folder}/k >{folder}/first.pem; ln -s {folder}/first.pem {shell.identity}"
    )
    subprocess.run(["bash", "-c", script], check=True, capture_output=True)


@pytest.fixture
def machine(shell: Shell) -> Shell:
    old, new = ca(shell.folder, "old"), ca(shell.folder, "new")
    (shell.folder / "ca").write_text(new + old)
    identity(shell, "old")
    return shell


def renew(shell: Shell, signer: str, *, fails: bool = False) -> str:
    shell.stub("curl", f"HERE={shell.folder} SIGNER={signer}\n{API}")
    code = f"touch $STATE/kubelet.service.sum\nrenew_identity {shell.folder}/ca request_identity"
    return shell.run(code, phase="identity", fails=fails)


def subject(path: Path) -> str:
    words = ["openssl", "x509", "-in", str(path), "-noout", "-subject", "-issuer"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def test_a_kubelet_gets_a_certificate_of_the_ca_that_signs(machine: Shell) -> None:
    renew(machine, "new")
    text = subject(machine.identity)
    assert "system:node:master-1" in text
    assert "O = system:nodes" in text or "O=system:nodes" in text
    assert "kubernetes-new" in text
    pem = machine.identity.read_text()
    assert pem.index("BEGIN CERTIFICATE") < pem.index("PRIVATE KEY")
    assert machine.identity.is_symlink()
    assert machine.identity.stat().st_mode & 0o777 == 0o600
    assert not (machine.state / "kubelet.service.sum").exists(), "it reads them at its start"
    assert not list(machine.state.glob("identity*")), "a key was left behind"


def test_one_that_the_signing_ca_signed_stays(machine: Shell) -> None:
    renew(machine, "new")
    machine.forget()
    renew(machine, "new")
    assert machine.calls == []
    assert (machine.state / "kubelet.service.sum").exists()


def test_a_cluster_that_signs_with_the_old_ca_is_no_reason_to_go_on(machine: Shell) -> None:
    before = machine.identity.read_text()
    said = renew(machine, "old", fails=True)
    assert "the new certificate of the kubelet is not of the CA that signs" in said
    assert machine.identity.read_text() == before


def test_a_run_killed_before_the_restart_restarts_in_the_next(machine: Shell) -> None:
    machine.stub("ln", "kill -9 $PPID")
    renew(machine, "new", fails=True)
    assert not (machine.state / "kubelet.service.sum").exists()
    assert "kubernetes-old" in subject(machine.identity)
    (machine.folder / "bin/ln").unlink()
    renew(machine, "new")
    assert "kubernetes-new" in subject(machine.identity)


def embed(shell: Shell, name: str) -> str:
    path = shell.folder / name
    return shell.run(
        f"touch $STATE/kubelet.service.sum; embed_ca {shell.folder}/ca {path}", phase="identity"
    )


def embedded(shell: Shell, name: str) -> str:
    text = (shell.folder / name).read_text()
    data = text.partition("certificate-authority-data: ")[2].partition("\n")[0]
    return base64.b64decode(data).decode()


def test_a_kubeconfig_trusts_every_ca_of_the_bundle(machine: Shell) -> None:
    old = (machine.folder / "ca-old.crt").read_bytes()
    for name in ("admin.conf", "kubelet.conf"):
        path = machine.folder / name
        path.write_text(KUBECONFIG.format(ca=base64.b64encode(old).decode()))
        path.chmod(0o600)
        assert f"wrote {path}" in embed(machine, name)
        assert embedded(machine, name) == (machine.folder / "ca").read_text()
        assert "server: https://127.0.0.1:3446" in path.read_text()
        assert (machine.state / "kubelet.service.sum").exists() == (name == "admin.conf")
        assert "wrote" not in embed(machine, name)


def test_another_end_of_the_text_is_no_other_ca(machine: Shell) -> None:
    """Or every kubelet would restart because the program has learnt something."""
    text = (machine.folder / "ca").read_text().rstrip("\n")
    (machine.folder / "kubelet.conf").write_text(
        KUBECONFIG.format(ca=base64.b64encode(text.encode()).decode())
    )
    assert "wrote" not in embed(machine, "kubelet.conf")
    assert (machine.state / "kubelet.service.sum").exists()
