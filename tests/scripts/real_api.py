"""A real API server beside a real etcd, as processes of this computer: what admission and RBAC really say."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.e2e.harness.lab import ROOT
from tests.scripts.real_etcd import programs
from tests.scripts.shell import Shell

_BUNDLE = Path(__file__).parents[2] / ".local/bundle"
_READY_S = 90
# token, user, groups
_ACCOUNTS = (
    ("admin", "kubernetes-admin", "kubeadm:cluster-admins"),
    ("ann", "oidc:ann", "oidc:operators"),
    ("bob", "oidc:bob", "oidc:developers"),
    ("worker-1", "system:node:worker-1", "system:nodes"),
    ("worker-2", "system:node:worker-2", "system:nodes"),
    ("boss", "boss", "system:masters"),
)
_KINDS = {
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: dict[str, object]

    @property
    def why(self) -> str:
        return str(self.body.get("message", ""))

    @property
    def taken(self) -> bool:
        return 200 <= self.status < 300


@dataclass(slots=True)
class RealApi:
    """`start` waits until it is ready; `stop` ends both."""

    folder: Path
    port: int = field(default_factory=lambda: _free_port())
    flags: dict[str, str] = field(default_factory=dict)  # more of them
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        client, peer = _free_port(), _free_port()
        urls = [f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"]
        words = ["--data-dir", str(self.folder / "etcd"), "--unsafe-no-fsync"]
        words += ["--listen-client-urls", urls[0], "--advertise-client-urls", urls[0]]
        words += ["--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1]]
        self._run("etcd", [str(programs(self.folder) / "etcd"), *words, "--initial-cluster", f"default={urls[1]}"])  # fmt: skip
        key = self.folder / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        rows = "".join(f'{token},{user},{user},"{group}"\n' for token, user, group in _ACCOUNTS)
        (self.folder / "tokens.csv").write_text(rows)
        flags = {
            "etcd-servers": urls[0],
            "bind-address": "127.0.0.1",
            "secure-port": str(self.port),
            "cert-dir": str(self.folder),
            "service-cluster-ip-range": "10.96.0.0/16",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-signing-key-file": str(key),
            "service-account-key-file": str(key),
            "token-auth-file": str(self.folder / "tokens.csv"),
            "authorization-mode": "Node,RBAC",
            "enable-admission-plugins": "NodeRestriction",
            **self.flags,
        }
        self.run("api", "kube-apiserver", flags)
        end = time.monotonic() + _READY_S
        while not self._ready():
            assert time.monotonic() < end, (self.folder / "api.log").read_text()[-1500:]
            time.sleep(0.3)

    def stop(self) -> None:
        for process in reversed(self._running):
            process.kill()
            process.wait()

    def run(self, name: str, program: str, flags: dict[str, str]) -> None:
        """One of Kubernetes' own programs, until `stop`; its log is NAME.log."""
        words = [f"--{flag}={value}" for flag, value in flags.items()]
        self._run(name, [_of_image(program, self.folder), *words])

    def kubeconfig(self) -> Path:
        """Of `boss`, who may do everything."""
        authority = base64.b64encode((self.folder / "apiserver.crt").read_bytes()).decode()
        cluster = {
            "server": f"https://127.0.0.1:{self.port}",
            "certificate-authority-data": authority,
        }
        said = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "x", "cluster": cluster}],
            "users": [{"name": "x", "user": {"token": "boss"}}],
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
            "current-context": "x",
        }
        file = self.folder / "kubeconfig"
        file.write_text(yaml.safe_dump(said))
        return file

    def master(self, shell: Shell) -> Shell:
        """A master, whose kubectl is the real one; its scripts name admin.conf first of all."""
        kubectl = f"{ROOT}/.local/bin/kubectl --kubeconfig {self.kubeconfig()}"
        shell.stub("kubectl", f'shift 2; exec {kubectl} "$@"')
        return shell

    def ask(
        self,
        token: str,
        method: str,
        path: str,
        body: object = None,
        *,
        certificate: tuple[Path, Path] | None = None,
        patch: str = "merge-patch+json",
    ) -> Answer:
        """A PATCH is of kind `patch`. With a client certificate and its key no token is shown."""
        kind = f"application/{patch}" if method == "PATCH" else "application/json"
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": kind}
            | ({} if certificate else {"Authorization": f"Bearer {token}"}),
        )
        context = ssl.create_default_context(cafile=self.folder / "apiserver.crt")
        if certificate:
            context.load_cert_chain(*certificate)
        try:
            with urllib.request.urlopen(request, timeout=20, context=context) as answer:  # noqa: S310
                return Answer(answer.status, _parsed(answer.read()))
        except urllib.error.HTTPError as refusal:
            return Answer(refusal.code, _parsed(refusal.read()))

    def apply(self, token: str, manifest: str) -> None:
        """Objects of a manifest that is one of admission policies."""
        for one in yaml.safe_load_all(manifest):
            path = f"/apis/{one['apiVersion']}/{_KINDS[one['kind']]}/{one['metadata']['name']}"
            answer = self.ask(token, "PATCH", f"{path}?fieldManager=test", one)
            if answer.status == 404:
                answer = self.ask(token, "POST", path.rpartition("/")[0], one)
            assert answer.taken, answer

    def _ready(self) -> bool:
        assert all(process.poll() is None for process in self._running), "one of them has ended"
        if not (self.folder / "apiserver.crt").exists():
            return False
        try:
            return self.ask("boss", "GET", "/readyz").taken
        except OSError:
            return False

    def _run(self, name: str, words: list[str]) -> None:
        with (self.folder / f"{name}.log").open("wb") as log:
            self._running.append(subprocess.Popen(words, stdout=log, stderr=log))


def _parsed(text: bytes) -> dict[str, object]:
    try:
        found: dict[str, object] = json.loads(text)
    except ValueError:
        return {"message": text.decode()}
    return found


def _of_image(name: str, into: Path) -> str:
    """A program as it is in its image in the bundle that set-up made."""
    store = _BUNDLE / "registry/docker/registry/v2"

    def blob(digest: object) -> Path:
        kind, _, digits = str(digest).partition(":")
        return store / "blobs" / kind / digits[:2] / digits / "data"

    tags = store / "repositories" / name / "_manifests/tags"
    link = sorted(tags.glob("*/current/link"))[-1]
    manifest = json.loads(blob(link.read_text().strip()).read_text())
    if "manifests" in manifest:
        manifest = json.loads(blob(manifest["manifests"][0]["digest"]).read_text())
    for layer in reversed(manifest["layers"]):
        with tarfile.open(blob(layer["digest"])) as tar:
            for member in tar:
                if member.isfile() and Path(member.name).name == name:
                    tar.extract(member, into, filter="data")
                    return str(into / member.name)
    raise FileNotFoundError(name)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
