"""A user's certificate by the real signer, through a real API server: what it may, what is never signed, and its end."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from operations.users import certificate, issue
from operations.users.wanted import User
from tests.scripts.real_api import Answer, RealApi
from tests.scripts.shell import Shell
from tests.unit.operations.test_users import Authority

JANE = User(name="jane", groups=("dev",), life_s=3600)
SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture(scope="module")
def ca(tmp_path_factory: pytest.TempPathFactory) -> tuple[Authority, Path]:
    made, folder = Authority.make(), tmp_path_factory.mktemp("ca")
    (folder / "ca.crt").write_bytes(made.pem)
    (folder / "ca.key").write_bytes(certificate.pem(made.key))
    return made, folder


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory, ca: tuple[Authority, Path]) -> Iterator[RealApi]:
    server = RealApi(
        tmp_path_factory.mktemp("api"), flags={"client-ca-file": str(ca[1] / "ca.crt")}
    )
    try:
        server.start()
        flags = {
            "kubeconfig": str(server.kubeconfig()),
            "controllers": "certificatesigningrequest-signing-controller",
            "leader-elect": "false",
            "secure-port": "0",
            "cluster-signing-cert-file": str(ca[1] / "ca.crt"),
            "cluster-signing-key-file": str(ca[1] / "ca.key"),
            "cluster-signing-duration": "24h",
        }
        server.run("signer", "kube-controller-manager", flags)
        role = {
            "metadata": {"name": "dev"},
            "roleRef": {
                "apiGroup": RBAC,
                "kind": "ClusterRole",
                "name": "system:aggregate-to-view",
            },
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "dev"}],
        }
        path = f"/apis/{RBAC}/v1/namespaces/default/rolebindings"
        assert server.ask("boss", "POST", path, role).taken
        yield server
    finally:
        server.stop()


@pytest.fixture
def shell(tmp_path: Path, api: RealApi) -> Shell:
    return api.master(Shell(tmp_path))


def asked(shell: Shell, user: User, *, fails: bool = False) -> tuple[str, str, ec.EllipticCurvePrivateKey]:  # fmt: skip
    """Name of the request, what the phase printed, and the key."""
    key, name = certificate.new_key(), issue.name_of_request(user)
    body = json.dumps(issue.body(name, user, certificate.request(user, key)))
    values = {"NAME": name, "REQUEST": body}
    return name, shell.run("main", phase="client-certificate", values=values, fails=fails), key


def as_user(api: RealApi, folder: Path, issued: bytes, key: bytes, path: str) -> Answer:
    (folder / "user.crt").write_bytes(issued)
    (folder / "user.key").write_bytes(key)
    files = (folder / "user.crt", folder / "user.key")
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    method, sent = ("POST", body) if path == SELF else ("GET", None)
    return api.ask("", method, path, sent, certificate=files)


def issued_of(printed: str) -> bytes:
    rows = [line.split("\t") for line in printed.splitlines()]
    (text,) = [row[1] for row in rows if row[0] == "certificate"]
    return base64.b64decode(text)


@pytest.mark.parametrize("life_s", [600, 3600, 24 * 3600])
def test_the_signer_gives_what_was_asked_and_the_api_server_knows_it(
    shell: Shell, api: RealApi, ca: tuple[Authority, Path], life_s: int
) -> None:
    jane = replace(JANE, life_s=life_s)
    name, printed, key = asked(shell, jane)
    issued = issued_of(printed)
    ends = certificate.end(issued, jane, key, ca[0].pem)
    assert abs((ends - datetime.now(UTC)).total_seconds() - life_s) < 400
    seen = as_user(api, shell.folder, issued, certificate.pem(key), SELF).body["status"]
    assert isinstance(seen, dict)
    assert seen["userInfo"]["username"] == "jane"
    assert seen["userInfo"]["groups"] == ["dev", "system:authenticated"]
    request = api.ask("boss", "GET", f"{PATH}/{name}").body
    assert "kube-ha.io/asked-by" in str(request["metadata"])


def test_it_may_what_its_group_may_and_nothing_else(shell: Shell, api: RealApi) -> None:
    _, printed, key = asked(shell, JANE)
    issued = issued_of(printed)
    pods = "/api/v1/namespaces/{}/pods"
    for path, status in ((pods.format("default"), 200), (pods.format("kube-system"), 403), ("/api/v1/namespaces/default/secrets", 403)):  # fmt: skip
        assert as_user(api, shell.folder, issued, certificate.pem(key), path).status == status, path


def test_past_its_end_it_is_nobody(shell: Shell, api: RealApi, ca: tuple[Authority, Path]) -> None:
    """The same certificate with its whole life moved back, which is what a day does to it."""
    _, printed, key = asked(shell, JANE)
    issued = x509.load_pem_x509_certificate(issued_of(printed))
    for late, status in ((timedelta(minutes=-1), 201), (timedelta(seconds=2), 401)):
        back = issued.not_valid_after_utc - datetime.now(UTC) + late
        aged = x509.CertificateBuilder(
            issued.issuer,
            issued.subject,
            issued.public_key(),
            issued.serial_number,
            issued.not_valid_before_utc - back,
            issued.not_valid_after_utc - back,
            [*issued.extensions],
        ).sign(ca[0].key, hashes.SHA256())
        pem = aged.public_bytes(serialization.Encoding.PEM)
        answer = as_user(api, shell.folder, pem, certificate.pem(key), SELF)
        assert answer.status == status, answer


def test_masters_of_kubernetes_are_refused_by_the_api_server_too(
    shell: Shell, api: RealApi
) -> None:
    name, told, _ = asked(shell, replace(JANE, groups=("system:masters",)), fails=True)
    assert f"request {name} cannot be made" in told
    assert "system:masters" in told
    assert api.ask("boss", "GET", f"{PATH}/{name}").status == 404


def test_a_request_of_that_name_that_somebody_else_made_is_not_approved(
    shell: Shell, api: RealApi
) -> None:
    body = issue.body("user-jane-stolen", JANE, certificate.request(JANE, certificate.new_key()))
    assert api.ask("boss", "POST", PATH, body).taken
    values = {"NAME": "user-jane-stolen", "REQUEST": json.dumps(body)}
    told = shell.run("main", phase="client-certificate", values=values, fails=True)
    assert "already exists" in told
    assert not api.ask("boss", "GET", f"{PATH}/user-jane-stolen").body.get("status")
