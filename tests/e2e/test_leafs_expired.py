"""Story: a year in which nobody ran an update. Every leaf has run out, nothing answers, and one update brings all of it back."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TypeAlias

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-leafs"
MASTERS = ("master-1", "master-2", "master-3")
PKI, ETCD = "/etc/kubernetes/pki", "/etc/kube-ha/etcd"
# By the name of the leaf in the stack: where it lies, and whose CA signs it.
LEAFS = {
    "apiserver": (f"{PKI}/apiserver.crt", "kubernetes"),
    "apiserver-kubelet-client": (f"{PKI}/apiserver-kubelet-client.crt", "kubernetes"),
    "front-proxy-client": (f"{PKI}/front-proxy-client.crt", "front-proxy"),
    "apiserver-etcd-client": (f"{PKI}/apiserver-etcd-client.crt", "etcd"),
    "etcd-server": (f"{ETCD}/server.crt", "etcd"),
    "etcd-peer": (f"{ETCD}/peer.crt", "etcd"),
    "etcd-client": (f"{ETCD}/client.crt", "etcd"),
}
KUBECONFIGS = ("admin", "controller-manager", "scheduler")


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.91.0/24", masters=3, workers=1)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.up()
    return stack


def test_when_all_leafs_have_run_out_nothing_answers(stack: Stack) -> None:
    cas = _authorities(stack)
    _age_state(stack, cas)
    for name in MASTERS:
        _age_machine(stack.node(name), cas)
    for name in MASTERS:
        # As over the year: every connection ends at some time, and every process starts again.
        stack.node(name).run(
            "systemctl restart --no-block etcd; pkill -9 -x kube-apiserver || true"
        )
    for name in MASTERS:
        wait_for(f"no etcd on {name}", partial(_answering, stack.node(name)), limit_s=60)


def test_one_up_brings_it_back(stack: Stack) -> None:
    stack.forget_kubeconfig()
    update = stack.up()
    stack.took("up of 3 masters whose leafs had all run out", update.seconds)
    stack.forget_kubeconfig()
    stack.wait_healthy({*MASTERS, "worker-1"}, limit_s=60)


@pytest.mark.parametrize("name", MASTERS)
def test_every_certificate_lasts_again(stack: Stack, name: str) -> None:
    files = " ".join(path for path, _ in LEAFS.values())
    confs = " ".join(f"/etc/kubernetes/{conf}.conf" for conf in KUBECONFIGS)
    stack.node(name).run(
        f"""set -e
for file in {files}; do openssl x509 -noout -checkend 25920000 -in $file; done
for file in {confs}; do sed -n 's/.*client-certificate-data: *//p' $file | base64 -d | openssl x509 -noout -checkend 25920000; done"""
    )


def test_second_up_changes_nothing(stack: Stack) -> None:
    assert_up_changes_nothing(stack)


def _answering(node: Node) -> str:
    """Whether etcd still answers there; nothing once it does not."""
    keys = f"--cacert {ETCD}/ca.crt --cert {ETCD}/client.crt --key {ETCD}/client.key"
    ask = f"etcdctl --endpoints https://127.0.0.1:2379 {keys} get /kube-ha/cluster >/dev/null"
    return node.asked(f"{ask} 2>&1 && echo etcd answers")


Authority: TypeAlias = "tuple[x509.Certificate, ec.EllipticCurvePrivateKey]"


def _authorities(stack: Stack) -> dict[str, Authority]:
    """The stack's own CAs, with their keys."""
    found: dict[str, dict[str, str]] = {}
    for resource in stack.resources():
        name, outputs = str(resource["urn"]).rpartition("::")[2], resource.get("outputs")
        if isinstance(outputs, dict) and name.startswith(f"{NAME}-pki-"):
            found[name] = {key: _plain(value) for key, value in outputs.items()}
    out: dict[str, Authority] = {}
    for ca in ("kubernetes", "etcd", "front-proxy"):
        pem = found[f"{NAME}-pki-{ca}-ca-key"]["privateKeyPem"].encode()
        key = serialization.load_pem_private_key(pem, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        text = found[f"{NAME}-pki-{ca}-ca"]["certPem"].encode()
        out[ca] = x509.load_pem_x509_certificate(text), key
    return out


def _plain(value: object) -> str:
    if isinstance(value, dict) and "plaintext" in value:
        return str(json.loads(str(value["plaintext"])))
    return str(value)


def _aged(pem: str, authority: Authority) -> str:
    """The same certificate, as it was issued a year ago: it ended an hour ago."""
    old, (ca, key) = x509.load_pem_x509_certificate(pem.encode()), authority
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder(ca.subject, old.subject, old.public_key(), old.serial_number)
        .not_valid_before(now - timedelta(days=365))
        .not_valid_after(now - timedelta(hours=1))
    )
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    made = builder.sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


def _age_state(stack: Stack, cas: dict[str, Authority]) -> None:
    """The stack as it is there after that year."""
    text = stack.pulumi("stack", "export", "--stack", stack.name)
    exported = json.loads(text)
    signers = {
        f"{NAME}-pki-{node}-{leaf}": ca for node in MASTERS for leaf, (_, ca) in LEAFS.items()
    }
    signers[f"{NAME}-pki-admin"] = "kubernetes"
    ended = f"{datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    aged = 0
    for resource in exported["deployment"]["resources"]:
        ca = signers.get(resource["urn"].rpartition("::")[2])
        if ca is not None:
            outputs = resource["outputs"]
            outputs["certPem"] = _aged(outputs["certPem"], cas[ca])
            outputs["validityEndTime"] = ended
            aged += 1
    assert aged == len(signers)
    file = stack.folder / "aged.json"
    file.write_text(json.dumps(exported))
    stack.pulumi("stack", "import", "--stack", stack.name, "--file", str(file))


def _age_machine(node: Node, cas: dict[str, Authority]) -> None:
    for path, ca in LEAFS.values():
        node.put(path, _aged(node.run(f"cat {path}"), cas[ca]))
    for conf in KUBECONFIGS:
        path = f"/etc/kubernetes/{conf}.conf"
        text = node.run(f"cat {path}")
        data = text.partition("client-certificate-data: ")[2].split()[0]
        aged = _aged(base64.b64decode(data).decode(), cas["kubernetes"])
        node.put(path, text.replace(data, base64.b64encode(aged.encode()).decode()))
