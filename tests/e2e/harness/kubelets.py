"""What kubelets serve with, and who is let through to them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

PEM = "/var/lib/kubelet/pki/kubelet-server-current.pem"
# A request as a kubelet makes it, by its own identity, for whatever address it likes.
_ASK = r"""
openssl ecparam -name prime256v1 -genkey -noout -out /run/asked.key
request=$(openssl req -new -key /run/asked.key -subj "/O=system:nodes/CN=system:node:$node" -addext "subjectAltName=DNS:$node,IP:$address" | base64 -w0)
rm /run/asked.key
identity=/var/lib/kubelet/pki/kubelet-client-current.pem
curl -fsS --cacert /etc/kube-ha/ca.crt --cert $identity --key $identity -H 'Content-Type: application/json' -o /dev/null -d '{
  "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "'"$name"'"},
  "spec": {"request": "'"$request"'", "signerName": "kubernetes.io/kubelet-serving", "usages": ["digital signature", "server auth"]}
}' https://127.0.0.1:3446/apis/certificates.k8s.io/v1/certificatesigningrequests
"""


def assert_certified(stack: Stack, names: Iterable[str]) -> None:
    """Each has a certificate of the cluster's CA for its own name and address."""
    for name in sorted(names):
        address = internal_ip(stack, name)
        check = f"openssl verify -CAfile /etc/kube-ha/ca.crt -verify_ip {address} -verify_hostname {name} {PEM}"
        assert "OK" in stack.node(name).run(check), name


def assert_reached(stack: Stack, names: Collection[str]) -> None:
    """Logs and exec work on every node, through the API."""
    found = pods(stack)
    assert set(found) >= set(names)
    for name in sorted(names):
        logs = stack.kubectl("-n", "kube-system", "logs", "--tail=1", found[name])
        assert logs.strip(), name
        words = ("kube-proxy", "--version")
        told = stack.kubectl("-n", "kube-system", "exec", found[name], "--", *words)
        assert told.startswith("Kubernetes v"), name


def pods(stack: Stack) -> dict[str, str]:
    """kube-proxy's pod on each node."""
    path = '{range .items[*]}{.spec.nodeName} {.metadata.name}{"\\n"}{end}'
    words = ("-n", "kube-system", "get", "pods", "-l", "k8s-app=kube-proxy")
    rows = stack.kubectl(*words, "-o", f"jsonpath={path}").splitlines()
    return dict((node, pod) for node, pod in map(str.split, rows))


def internal_ip(stack: Stack, name: str) -> str:
    """As the node itself says."""
    path = '{.status.addresses[?(@.type=="InternalIP")].address}'
    return stack.kubectl("get", "node", name, "-o", f"jsonpath={path}")


def ask_for(node: Node, name: str, address: str) -> str:
    """A request of that node's kubelet for an address; its name."""
    request = f"asked-by-{name}"
    node.run(f"set -e; node={name} address={address} name={request}\n{_ASK}")
    return request


def conditions(stack: Stack, request: str) -> str:
    """Approved, Denied; empty: it waits."""
    return stack.kubectl("get", "csr", request, "-o", "jsonpath={.status.conditions[*].type}")


def wait_noted(stack: Stack, masters: Collection[str], text: str) -> None:
    """Every approver has told in its journal what it does not approve."""

    def missing() -> str:
        journal = "journalctl -u kube-ha-approver -o cat"
        told = {name: stack.node(name).run(journal) for name in masters}
        return ", ".join(
            f"{name}: {said[-200:]}" for name, said in told.items() if text not in said
        )

    wait_for(f"approvers that tell: {text}", missing, limit_s=60)
