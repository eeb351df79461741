"""What a real API server takes of a node that was given up, and of the one that came after it."""

from __future__ import annotations

import base64
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from stacks.cluster.certificates import APPROVER
from stacks.render.admission_policies import admission_policies
from stacks.render.approver import manifest
from stacks.render.lost_nodes import CREDENTIALS, INCARNATIONS, lost_nodes
from tests.scripts.real_api import RealApi
from tests.unit.cluster.test_fence import Stack, worker_1
from tests.unit.configs import lab, planned

NODES = "/api/v1/nodes"
MAPS = "/api/v1/namespaces/kube-system/configmaps"
MINE, OTHER = f"X509SHA256={'a' * 64}", f"X509SHA256={'b' * 64}"
ID = "Impersonate-Extra-authentication.kubernetes.io%2fcredential-id"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    server = RealApi(tmp_path_factory.mktemp("api"))
    try:
        server.start()
        for name in ("worker-1", "worker-2"):
            assert server.ask("boss", "POST", NODES, {"metadata": {"name": name}}).taken
        server.apply("boss", admission_policies(planned(lab())))
        for one in yaml.safe_load_all(manifest(planned(lab()))):
            if one["kind"] in ("Role", "RoleBinding"):
                path = f"/apis/{one['apiVersion']}/namespaces/kube-system/{one['kind'].lower()}s"
                assert server.ask("boss", "POST", path, one).taken
        yield server
    finally:
        server.stop()


def applied(api: RealApi, stack: Stack) -> None:
    """The add-on as it is; a ConfigMap keeps what others wrote into it, as server-side apply does."""
    for one in yaml.safe_load_all(lost_nodes(stack.plan)):
        if one["kind"] == "ConfigMap":
            path = f"{MAPS}/{CREDENTIALS}"
            if not api.ask("boss", "PATCH", path, one).taken:
                assert api.ask("boss", "POST", MAPS, one).taken
        else:
            api.apply("boss", yaml.safe_dump(one))


def writes(api: RealApi, method: str, path: str, body: object, by: str | None) -> tuple[int, str]:
    """Of worker-1, known by that certificate; what the API says."""
    headers = {"Impersonate-User": "system:node:worker-1", "Impersonate-Group": "system:nodes"}
    return _asked(api, method, path, body, {**headers, **({ID: by} if by else {})})


def _asked(
    api: RealApi, method: str, path: str, body: object, headers: dict[str, str]
) -> tuple[int, str]:
    request = urllib.request.Request(
        f"https://127.0.0.1:{api.port}{path}",
        method=method,
        data=json.dumps(body).encode(),
        headers={
            **headers,
            "Authorization": "Bearer boss",
            "Content-Type": f"application/{'merge-patch+' if method == 'PATCH' else ''}json",
        },
    )
    context = ssl.create_default_context(cafile=api.folder / "apiserver.crt")
    try:
        with urllib.request.urlopen(request, timeout=20, context=context) as answer:  # noqa: S310
            return answer.status, ""
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()


def until(api: RealApi, by: str | None, *, taken: bool) -> None:
    """API servers read policies and what they ask again within a second or two."""
    end = time.monotonic() + 30
    while (_own_node(api, by)[0] == 200) != taken:
        assert time.monotonic() < end, _own_node(api, by)
        time.sleep(0.2)


def _own_node(api: RealApi, by: str | None) -> tuple[int, str]:
    return writes(api, "PATCH", f"{NODES}/worker-1", {"metadata": {"labels": {"a": "b"}}}, by)


def _request() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    parts = [
        (NameOID.ORGANIZATION_NAME, "system:nodes"),
        (NameOID.COMMON_NAME, "system:node:worker-1"),
    ]
    name = x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])
    made = x509.CertificateSigningRequestBuilder(name).sign(key, hashes.SHA256())
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def notes(api: RealApi, body: object, name: str = CREDENTIALS) -> int:
    """The approver writes to that ConfigMap."""
    return _asked(api, "PATCH", f"{MAPS}/{name}", body, {"Impersonate-User": APPROVER})[0]


# What a kubelet may write by its rights, in groups that no list would have named.
REQUEST = {
    "metadata": {"name": "x"},
    "spec": {
        "request": _request(),
        "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["digital signature", "client auth"],
    },
}
WRITES = [
    ("PATCH", f"{NODES}/worker-1/status", {"status": {"phase": "Running"}}),
    ("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", REQUEST),
    ("POST", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", {"metadata": {"name": "worker-1"}}),
    ("POST", "/api/v1/namespaces/default/events", {"metadata": {"name": "e"}, "involvedObject": {}}),
    ("POST", "/apis/storage.k8s.io/v1/csinodes", {"metadata": {"name": "worker-1"}, "spec": {"drivers": []}}),
]  # fmt: skip


def test_a_fence_from_the_loss_to_the_new_incarnation(api: RealApi) -> None:
    stack = Stack()
    applied(api, stack)
    until(api, MINE, taken=True)

    stack.up(worker_1(state="lost"))
    applied(api, stack)
    until(api, MINE, taken=False)
    for method, path, body in WRITES:
        status, why = writes(api, method, path, body, MINE)
        assert (status, "this node was given up" in why) == (422, True), (path, why)
    # Nobody else feels it.
    assert api.ask("boss", "PATCH", f"{NODES}/worker-2", {"metadata": {"labels": {"a": "b"}}}).taken
    assert api.ask(
        "worker-2", "PATCH", f"{NODES}/worker-2", {"metadata": {"labels": {"a": "c"}}}
    ).taken

    stack.up(worker_1(generation=2))
    applied(api, stack)
    end = time.monotonic() + 30
    while "present incarnation" not in (why := _own_node(api, MINE)[1]):
        assert time.monotonic() < end, why
        time.sleep(0.2)
    noted = {"data": {"worker-1.2": f"{'X509SHA256=' + 'c' * 64} {MINE}", "worker-1.1": OTHER}}
    assert notes(api, noted) == 200
    # Of whom it notes something is not its own word, and no other setting is.
    other = {"metadata": {"annotations": {INCARNATIONS: ""}}}
    assert (notes(api, other), notes(api, noted, "kube-ha-addresses")) == (422, 403)
    assert api.ask("worker-2", "PATCH", f"{MAPS}/{CREDENTIALS}", noted).status == 403
    until(api, MINE, taken=True)
    for by in (OTHER, None):
        for method, path, body in WRITES:
            status, why = writes(api, method, path, body, by)
            assert (status, "not one of the node's present" in why) == (422, True), (path, why)
    # Applied again, it keeps what was noted.
    applied(api, stack)
    assert _own_node(api, MINE)[0] == 200
    assert api.ask(
        "worker-2", "PATCH", f"{NODES}/worker-2", {"metadata": {"labels": {"a": "d"}}}
    ).taken

    # Without the list nobody else is held up.
    assert api.ask("boss", "DELETE", f"{MAPS}/{CREDENTIALS}").taken
    assert api.ask("boss", "PATCH", f"{NODES}/worker-2", {"metadata": {"labels": {"a": "e"}}}).taken
