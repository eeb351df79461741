"""Who may get a kubeconfig, that what was issued is what was asked, and that the file goes every way of the administrator's."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from operations import kubeconfig
from operations.engine import stack
from operations.engine.engine import StackError
from operations.users import certificate, issue, oidc, wanted
from operations.users.wanted import User
from stacks.cluster.plan import Plan
from stacks.render.kubeconfig import admin
from tests.unit.configs import adopted, planned

JANE = User(name="jane", groups=("dev", "ops"), life_s=12 * 3600)
OIDC = {"issuerUrl": "https://id.example.com", "clientId": "kubernetes"}
PEM = serialization.Encoding.PEM


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA that signs as the controller manager does."""

    key: ec.EllipticCurvePrivateKey
    own: x509.Certificate

    @classmethod
    def make(cls) -> Authority:
        key = certificate.new_key()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
        now = datetime.now(UTC)
        built = x509.CertificateBuilder(name, name, key.public_key(), 1)
        built = built.not_valid_before(now).not_valid_after(now + timedelta(days=3650))
        is_ca = x509.BasicConstraints(ca=True, path_length=None)
        return cls(key, built.add_extension(is_ca, critical=True).sign(key, hashes.SHA256()))

    @property
    def pem(self) -> bytes:
        return self.own.public_bytes(PEM)

    def sign(self, request: bytes, life_s: int, *, usage: x509.ObjectIdentifier = ExtendedKeyUsageOID.CLIENT_AUTH) -> bytes:  # fmt: skip
        asked = x509.load_pem_x509_csr(request)
        now = datetime.now(UTC).replace(microsecond=0)
        begin = now - timedelta(minutes=5)
        ends = (now if life_s < 8 * 3600 else begin) + timedelta(seconds=life_s)
        built = x509.CertificateBuilder(self.own.subject, asked.subject, asked.public_key(), 2)
        built = built.not_valid_before(begin).not_valid_after(ends)
        built = built.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        return built.sign(self.key, hashes.SHA256()).public_bytes(PEM)


def plan(edits: Mapping[str, object] | None = None) -> Plan:
    return planned(adopted(edits))


@pytest.mark.parametrize("hours", ["12", "0.17", "8760", "720.5"])
@pytest.mark.parametrize("name", ["jane", "jane@example.com", "J", "x" * 64])
def test_a_person_gets_what_was_asked_for(name: str, hours: str) -> None:
    found = wanted.user(plan(), name, "dev, oidc:team-a dev", hours)
    assert found == User(name=name, groups=("dev", "oidc:team-a"), life_s=round(float(hours) * 3600))  # fmt: skip


def of_the_cluster() -> list[str]:
    """Identities that a certificate of the cluster's CA gives power to, however they are written."""
    named = ["system:admin", "system:node:worker-1", "system:kube-scheduler", "SYSTEM:admin"]
    named += ["kube-ha:approver", "kube-ha:load-balancer:edge-1", "kubeadm:x"]
    return [*named, "kubernetes-admin", "kubernetes-super-admin", "kube-apiserver-kubelet-client"]


@pytest.mark.parametrize("name", of_the_cluster())
def test_no_identity_of_the_cluster_is_given_away(name: str) -> None:
    with pytest.raises(StackError, match="USER: "):
        wanted.user(plan(), name, "", "1")


OF_MASTERS = ("system:masters", "System:Masters", "kubeadm:cluster-admins")
OF_PARTS = ("system:nodes", "system:", "system:serviceaccounts", "kube-ha:load-balancers")


@pytest.mark.parametrize("group", [*OF_MASTERS, *OF_PARTS])
def test_no_group_of_the_cluster_is_given_away(group: str) -> None:
    with pytest.raises(StackError, match=f"GROUPS: '{group}' is a group of"):
        wanted.user(plan(), "jane", f"dev {group}", "1")


@pytest.mark.parametrize("name", ["", "-jane", "a b", "a/b", "../x", "jané", "x" * 65, "a\nb", "oidc:jane"])  # fmt: skip
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(StackError, match="is not a name"):
        wanted.user(plan(), name, "", "1")


def test_all_problems_are_told_at_once() -> None:
    edits = {"controlPlane.controllerManagerArgs": {"cluster-signing-duration": "167h59m60s"}}
    with pytest.raises(StackError) as refused:
        wanted.user(plan(edits), "system:admin", "dev system:masters -x", "168.5")
    told = str(refused.value).splitlines()
    assert [line.split(":")[0].strip() for line in told[1:]] == ["USER", "GROUPS", "GROUPS", "HOURS"]  # fmt: skip
    assert "is above 168, the controller manager's cluster-signing-duration" in told[-1]


@pytest.mark.parametrize("hours", ["0", "0.1", "8761", "-1", "", "1h", "nan", "inf", "1e3"])
def test_hours_are_what_api_and_signer_take(hours: str) -> None:
    with pytest.raises(StackError, match="HOURS: "):
        wanted.user(plan(), "jane", "", hours)


@pytest.mark.parametrize("life_s", [600, 8 * 3600 - 1, 8 * 3600, 12 * 3600])
def test_what_was_asked_is_taken_with_its_own_end(life_s: int) -> None:
    ca, key, jane = Authority.make(), certificate.new_key(), replace(JANE, life_s=life_s)
    issued = ca.sign(certificate.request(jane, key), life_s)
    ends = certificate.end(issued, jane, key, Authority.make().pem + ca.pem)
    assert ends == x509.load_pem_x509_certificate(issued).not_valid_after_utc


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (replace(JANE, name="joan"), "its user is joan, not jane"),
        (
            replace(JANE, groups=("dev", "system:masters")),
            "its groups are dev, system:masters, not",
        ),
        (replace(JANE, groups=()), "its groups are none, not dev, ops"),
        (replace(JANE, life_s=13 * 3600), "not 12.00 h"),
        (replace(JANE, life_s=11 * 3600), "not 12.00 h"),
    ],
    ids=str,
)
def test_another_certificate_than_asked_is_not_kept(other: User, told: str) -> None:
    ca, key = Authority.make(), certificate.new_key()
    issued = ca.sign(certificate.request(other, key), other.life_s)
    with pytest.raises(StackError, match=told):
        certificate.end(issued, JANE, key, ca.pem)


def test_nor_of_another_key_ca_or_use_nor_what_is_none() -> None:
    ca, key = Authority.make(), certificate.new_key()
    server = ExtendedKeyUsageOID.SERVER_AUTH
    issued = ca.sign(certificate.request(JANE, certificate.new_key()), JANE.life_s, usage=server)
    with pytest.raises(StackError) as refused:
        certificate.end(issued, JANE, key, Authority.make().pem)
    for told in ("of another key", "of no CA that the stack knows", "not for clients alone"):
        assert told in str(refused.value)
    with pytest.raises(StackError, match="cannot be read"):
        certificate.end(b"", JANE, key, ca.pem)


@pytest.fixture
def prod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """A stack with an identity provider, whose signer is a CA of the test."""
    ca, made = Authority.make(), plan({"controlPlane.oidc": {**OIDC, "usernameClaim": "email"}})
    found = stack.Stack(
        plan=made,
        targets={},
        cluster_id="1",
        kubeconfig=admin(made, ca.pem.decode(), "SECRET CERT", "SECRET KEY"),
    )

    def signed(_found: object, _name: str, asked: Mapping[str, Mapping[str, object]]) -> bytes:
        spec = asked["spec"]
        return ca.sign(base64.b64decode(str(spec["request"])), int(str(spec["expirationSeconds"])))

    monkeypatch.setattr(stack, "read", lambda *_, **__: found)
    monkeypatch.setattr(issue, "issued", signed)
    monkeypatch.chdir(tmp_path)
    return ca


def written(name: str) -> tuple[dict[str, dict[str, object]], dict[str, object]]:
    """Servers and users' credentials by context, of a file that is its owner's alone."""
    file = Path(".local/outputs/prod") / name
    assert file.stat().st_mode & 0o777 == 0o600
    found = yaml.safe_load(file.read_text())
    for secret in (b"SECRET CERT", b"SECRET KEY"):  # of the administrator
        assert base64.b64encode(secret).decode() not in file.read_text()
    (user,) = found["users"]
    assert {one["context"]["user"] for one in found["contexts"]} == {user["name"]}
    servers = {one["name"]: one["cluster"] for one in found["clusters"]}
    ways = {one["name"]: servers[one["context"]["cluster"]] for one in found["contexts"]}
    return {"current": found["current-context"], **ways}, user["user"]


def ways_of_the_administrator() -> dict[str, dict[str, object]]:
    found = yaml.safe_load(stack.read("prod", applied=True).kubeconfig)
    servers = {one["name"]: one["cluster"] for one in found["clusters"]}
    return {"current": found["current-context"], **servers}


def test_the_file_has_every_way_of_the_administrator_and_another_user(
    prod: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["prod", "--user", "jane", "--groups", "dev,ops", "--hours", "2"]
    assert kubeconfig.main(words) == 0
    ways, user = written("users/jane.kubeconfig")
    assert ways == ways_of_the_administrator()
    assert len(ways) > 3
    issued = base64.b64decode(str(user["client-certificate-data"]))
    key = serialization.load_pem_private_key(base64.b64decode(str(user["client-key-data"])), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    ends = certificate.end(issued, replace(JANE, life_s=7200), key, prod.pem)
    told = capsys.readouterr()
    assert told.out == f"export KUBECONFIG={Path.cwd()}/.local/outputs/prod/users/jane.kubeconfig\n"
    assert (
        f"jane (groups dev, ops) until {certificate.moment(ends)}; request user-jane-" in told.err
    )
    assert "PRIVATE" not in told.out + told.err


def test_that_of_a_provider_holds_no_secret(
    prod: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubeconfig.main(["prod", "--oidc", "1", "--scopes", "groups email"]) == 0
    ways, user = written("oidc.kubeconfig")
    assert ways == ways_of_the_administrator()
    plugin = user["exec"]
    assert isinstance(plugin, dict)
    assert user == {"exec": plugin}
    assert plugin["command"] == "kubectl"
    assert plugin["args"] == [
        "oidc-login",
        "get-token",
        "--oidc-issuer-url=https://id.example.com",
        "--oidc-client-id=kubernetes",
        "--oidc-extra-scope=email",
        "--oidc-extra-scope=groups",
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--user", "jane", "--oidc", "1"], "USER and OIDC"),
        (["--user", "jane", "--merge"], "MERGE"),
        (["--oidc", "1", "--merge"], "MERGE"),
        (["--groups", "dev"], "GROUPS: of a USER alone"),
        (["--hours", "3"], "HOURS: of a USER alone"),
        (["--user", "jane", "--scopes", "groups"], "SCOPES"),
        (["--user", ""], "is not a name"),
        (["--oidc", "https://other.example.com"], "do: OIDC=https://id.example.com"),
    ],
    ids=str,
)
def test_words_that_do_not_fit_write_no_file(
    prod: Authority, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubeconfig.main(["prod", *words]) == 1
    assert told in capsys.readouterr().err
    assert not Path(".local").exists()


def test_of_several_providers_one_is_named() -> None:
    further = {"controlPlane.oidcIssuers": [{**OIDC, "issuerUrl": "https://two.example.com", "ca": None}]}  # fmt: skip
    said = plan({"controlPlane.oidc": OIDC, **further}).spec.control_plane
    with pytest.raises(StackError, match="several"):
        oidc.issuer(said, "1")
    assert oidc.issuer(said, "https://two.example.com").issuer_url == "https://two.example.com"
    with pytest.raises(StackError, match="no identity provider"):
        oidc.issuer(plan().spec.control_plane, "1")


def test_the_request_says_whose_it_is_and_cannot_be_guessed() -> None:
    names = {issue.name_of_request(JANE) for _ in range(20)}
    assert len(names) == 20
    assert all(name.startswith("user-jane-") for name in names)
