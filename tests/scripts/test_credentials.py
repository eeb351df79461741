"""Which certificates are those of an incarnation that follows one that was given up."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.scripts.csr_api import CLIENT, CONFIG_MAPS, REQUESTS, CsrApi
from tests.scripts.shell import Shell

JOINER = "system:bootstrap:abcdef"
NODE = "system:node:worker-2"
ID = "authentication.kubernetes.io/credential-id"
# What approve.sh is to it: the API is files, a PATCH is kept as it came.
FAKES = f"""
APPROVER_RUN=$PWD/run APPROVER_API=https://api REQUESTS=/requests SETTINGS=/maps PAGE=500 PAGES=40
mkdir -p "$APPROVER_RUN"
note() {{ echo "$*"; }}
setting() {{ cp "map" "$APPROVER_RUN/$1"; }}
joining() {{ joiner={JOINER}; }}
ask() {{
  local out="" body=""
  while (($#)); do case $1 in -o) out=$2 ;; -d) body=$(cat) ;; esac; shift; done
  if [[ -n $body ]]; then
    echo "$body" >>patches
    jq -s '.[0] * .[1]' map <(echo "$body") >"$out"
    cp "$out" map
    echo -n "${{CODE:-200}}"
  else cp requests "$out"; fi
}}
"""


def certificate(user: str = NODE, group: str = "system:nodes") -> tuple[str, str]:
    """PEM in base64 as the API gives it, and how API servers name it."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    parts = [(NameOID.ORGANIZATION_NAME, group), (NameOID.COMMON_NAME, user)]
    name = x509.Name([x509.NameAttribute(oid, text) for oid, text in parts])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = (
        builder.not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    der = made.public_bytes(serialization.Encoding.DER)
    pem = made.public_bytes(serialization.Encoding.PEM)
    return base64.b64encode(pem).decode(), f"X509SHA256={hashlib.sha256(der).hexdigest()}"


class Cluster:
    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.requests: list[object] = []
        self.says("worker-2.2")

    def says(self, incarnations: str, **data: str) -> None:
        about = {"resourceVersion": "7", "annotations": {"kube-ha.io/incarnations": incarnations}}
        (self.shell.folder / "map").write_text(json.dumps({"metadata": about, "data": data}))

    def signed(
        self, pem: str | None, *, user: str = JOINER, by: str | None = None, name: str = "csr-1"
    ) -> None:
        spec = {"username": user, **({"extra": {ID: [by]}} if by else {})}
        at = f"2026-01-01T00:00:{len(self.requests):02}Z"
        held = {"metadata": {"name": name, "creationTimestamp": at}, "spec": spec}
        self.requests.insert(0, {**held, "status": {"certificate": pem} if pem else {}})

    def run(self, code: str = "note_credentials", *, fails: bool = False) -> str:
        (self.shell.folder / "requests").write_text(json.dumps({"items": self.requests}))
        return self.shell.run(f"{FAKES}{code}", phase="credentials", fails=fails)

    @property
    def known(self) -> dict[str, list[str]]:
        held = json.loads((self.shell.folder / "map").read_text())["data"]
        return {key: text.split() for key, text in held.items()}


@pytest.fixture
def cluster(shell: Shell) -> Cluster:
    return Cluster(shell)


def test_who_joins_is_known_and_so_is_what_it_renews(cluster: Cluster) -> None:
    (first, one), (second, two), (third, three) = (certificate() for _ in range(3))
    cluster.signed(first)
    assert cluster.run() == "incarnation 2 of worker-2 is known by 1 certificate(s)\n"
    assert cluster.known == {"worker-2.2": [one]}
    cluster.signed(second, user=NODE, by=one)
    cluster.signed(third, user=NODE, by=two)
    cluster.run()
    assert cluster.known == {"worker-2.2": [one, two, three]}
    assert cluster.run() == "", "nothing new is nothing to write"
    body = json.loads((cluster.shell.folder / "patches").read_text().split("\n}\n")[0] + "}")
    assert body["metadata"] == {"resourceVersion": "7"}, "of the very list that was read"


def test_what_the_old_certificate_asked_for_is_nobodys(cluster: Cluster) -> None:
    _, old = certificate()
    renewed, _ = certificate()
    cluster.signed(renewed, user=NODE, by=old)
    cluster.signed(certificate()[0], user=NODE)
    # By a token of before: of the incarnation that was given up.
    cluster.signed(certificate()[0], user="system:bootstrap:aaaaaa")
    # By the token of now, of another name.
    cluster.signed(certificate("system:node:worker-3")[0])
    cluster.signed(certificate(group="system:masters")[0])
    # What was not signed is not a certificate.
    cluster.signed(None)
    assert cluster.run() == ""
    assert cluster.known == {}


def test_another_incarnation_has_its_own(cluster: Cluster) -> None:
    pem, one = certificate()
    cluster.says("worker-2.3", **{"worker-2.2": one})
    cluster.signed(pem, user=NODE, by=one)
    cluster.run()
    assert cluster.known == {"worker-2.2": [one]}


def test_nobody_who_follows_one_asks_for_nothing(cluster: Cluster) -> None:
    cluster.says("")
    cluster.signed(certificate()[0])
    assert cluster.run("ask() { echo asked; }; joining() { echo joined; }; note_credentials") == ""


def test_texts_of_requests_are_data(cluster: Cluster) -> None:
    pem, one = certificate()
    evil = '$(touch owned)\n"\t|x'
    for user, by in ((evil, one), (NODE, evil), (NODE, f"{one} X509SHA256={'0' * 64}")):
        cluster.signed(pem, user=user, by=by, name=evil)
    cluster.signed(evil)
    cluster.says(f"worker-2.2 {evil} ../x.2 -v.1 a.99999999")
    cluster.run()
    assert not (cluster.shell.folder / "owned").exists()
    assert cluster.known == {}


def test_the_newest_are_kept(cluster: Cluster) -> None:
    made = [certificate() for _ in range(11)]
    for pem, _ in made:
        cluster.signed(pem)
    cluster.run()
    assert cluster.known == {"worker-2.2": [one for _, one in made[-8:]]}


def test_an_api_that_refuses_is_told(cluster: Cluster) -> None:
    cluster.signed(certificate()[0])
    said = cluster.run("CODE=403; note_credentials || cat run/error", fails=False)
    assert "HTTP 403 for ConfigMap kube-ha-credentials" in said
    assert cluster.run("CODE=409; note_credentials") == ""


class Asked(CsrApi):
    """The API over real TLS: requests that were signed, and the list as it is written."""

    held: dict[str, object]
    signed: list[object]

    def _get(self, path: str, query: Mapping[str, list[str]]) -> tuple[int, object]:
        if path == REQUESTS:
            assert query["fieldSelector"] == [f"spec.signerName={CLIENT}"]
            return 200, {"metadata": {"continue": ""}, "items": self.signed}
        if path == f"{CONFIG_MAPS}kube-ha-credentials":
            return 200, self.held
        return super()._get(path, query)

    def _patch(self, path: str, body: dict[str, object]) -> tuple[int, object]:
        assert path == f"{CONFIG_MAPS}kube-ha-credentials"
        self.held = {**self.held, "data": body["data"]}
        return 200, self.held


def test_as_it_is_installed_it_asks_and_writes(cluster: Cluster) -> None:
    pem, one = certificate()
    cluster.signed(pem)
    api = Asked(cluster.shell)
    try:
        api.signed = cluster.requests
        api.held = json.loads((cluster.shell.folder / "map").read_text())
        api.maps["kube-ha-joining"] = {
            "token": "abcdef",
            "names": "worker-2",
            "until": "4000000000",
        }
        installed = api.round(
            more="approve_pending() { note_credentials || { cat $APPROVER_RUN/error; false; }; }"
        )
        assert installed == "incarnation 2 of worker-2 is known by 1 certificate(s)\nleft=\n"
        assert api.held["data"] == {"worker-2.2": one}
    finally:
        api.stop()
