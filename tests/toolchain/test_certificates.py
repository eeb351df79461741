"""Keys and certificates of the tls stand-in are what OpenSSL, SSH and Go make of the same inputs."""

from __future__ import annotations

import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tests.toolchain.plugin_client import CallError, Made, Plugin
from toolchain.values import UNKNOWN, Properties, Secret, plain

KEY = "tls:index/privateKey:PrivateKey"
SELF_SIGNED = "tls:index/selfSignedCert:SelfSignedCert"
REQUEST = "tls:index/certRequest:CertRequest"
SIGNED = "tls:index/locallySignedCert:LocallySignedCert"

CA_USES = ["cert_signing", "crl_signing", "digital_signature"]


def _text(properties: Properties, name: str) -> str:
    value = plain(properties[name])
    assert isinstance(value, str)
    return value


def _ca(tls: Plugin, **changes: object) -> tuple[Made, Made]:
    key = tls.create(KEY, "ca", algorithm="ECDSA", ecdsaCurve="P256")
    inputs: dict[str, object] = {
        "privateKeyPem": key.state["privateKeyPem"],
        "allowedUses": CA_USES,
        "isCaCertificate": True,
        "validityPeriodHours": 24,
        "subject": {"commonName": "kubernetes"},
    }
    return key, tls.create(SELF_SIGNED, "ca", **{**inputs, **changes})


def _leaf(tls: Plugin, ca_key: Made, ca: Made, **changes: object) -> tuple[Made, Made]:
    key = tls.create(KEY, "leaf", algorithm="ECDSA", ecdsaCurve="P256")
    request = tls.create(
        REQUEST,
        "leaf",
        privateKeyPem=key.state["privateKeyPem"],
        subject={"commonName": "kube-apiserver", "organization": "system:masters"},
        dnsNames=["localhost", "kubernetes.default.svc"],
        ipAddresses=["127.0.0.1", "fd00::1"],
    )
    inputs: dict[str, object] = {
        "certRequestPem": request.state["certRequestPem"],
        "caCertPem": ca.state["certPem"],
        "caPrivateKeyPem": ca_key.state["privateKeyPem"],
        "allowedUses": ["digital_signature", "key_encipherment", "server_auth", "client_auth"],
        "validityPeriodHours": 24,
    }
    return key, tls.create(SIGNED, "leaf", **{**inputs, **changes})


@pytest.mark.parametrize(
    ("inputs", "header", "line"),
    [
        ({"algorithm": "RSA"}, "RSA PRIVATE KEY", "ssh-rsa "),
        ({"algorithm": "RSA", "rsaBits": 3072}, "RSA PRIVATE KEY", "ssh-rsa "),
        ({"algorithm": "ECDSA", "ecdsaCurve": "P256"}, "EC PRIVATE KEY", "ecdsa-sha2-nistp256 "),
        ({"algorithm": "ECDSA", "ecdsaCurve": "P384"}, "EC PRIVATE KEY", "ecdsa-sha2-nistp384 "),
        ({"algorithm": "ECDSA", "ecdsaCurve": "P521"}, "EC PRIVATE KEY", "ecdsa-sha2-nistp521 "),
        ({"algorithm": "ED25519"}, "PRIVATE KEY", "ssh-ed25519 "),
    ],
)
def test_keys_have_every_form(
    tls: Plugin, tmp_path: Path, inputs: dict[str, object], header: str, line: str
) -> None:
    state = tls.create(KEY, "key", **inputs).state
    assert _text(state, "privateKeyPem").startswith(f"-----BEGIN {header}-----\n")
    assert _text(state, "privateKeyPemPkcs8").startswith("-----BEGIN PRIVATE KEY-----\n")
    assert _text(state, "privateKeyOpenssh").startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert _text(state, "publicKeyPem").endswith("-----END PUBLIC KEY-----\n")
    assert _text(state, "publicKeyOpenssh").startswith(line)
    assert _text(state, "publicKeyOpenssh").endswith("\n")
    (tmp_path / "key").write_text(_text(state, "privateKeyOpenssh"))
    (tmp_path / "key").chmod(0o600)
    if shutil.which("ssh-keygen"):
        words = ["ssh-keygen", "-y", "-f", str(tmp_path / "key")]
        shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert shown.split()[:2] == _text(state, "publicKeyOpenssh").split()
        words = ["ssh-keygen", "-l", "-f", str(tmp_path / "key")]
        shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert shown.split()[1] == _text(state, "publicKeyFingerprintSha256")
        words += ["-E", "md5"]
        shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        assert shown.split()[1] == "MD5:" + _text(state, "publicKeyFingerprintMd5")


def test_exactly_the_private_halves_are_secret(tls: Plugin) -> None:
    state = tls.create(KEY, "key", algorithm="ED25519").state
    secret = {name for name, value in state.items() if isinstance(value, Secret)}
    assert secret == {"privateKeyPem", "privateKeyOpenssh", "privateKeyPemPkcs8"}
    _, ca = _ca(tls)
    assert {name for name, value in ca.state.items() if isinstance(value, Secret)} == {
        "privateKeyPem"
    }


def test_defaults_are_outputs_and_saying_them_changes_nothing(tls: Plugin) -> None:
    made = tls.create(KEY, "key", algorithm="ED25519")
    assert (made.state["ecdsaCurve"], made.state["rsaBits"]) == ("P224", 2048)
    assert tls.diff(made, algorithm="ED25519", rsaBits=2048) == {}
    assert tls.diff(made, algorithm="RSA") == {"algorithm": "update_replace"}


def test_ssh_knows_no_p224(tls: Plugin) -> None:
    state = tls.create(KEY, "key", algorithm="ECDSA").state
    assert plain(state["privateKeyOpenssh"]) == state["publicKeyOpenssh"] == ""


def test_a_chain_is_accepted_by_openssl(tls: Plugin, tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this computer")
    ca_key, ca = _ca(tls)
    _, leaf = _leaf(tls, ca_key, ca)
    (tmp_path / "ca").write_text(_text(ca.state, "certPem"))
    (tmp_path / "leaf").write_text(_text(leaf.state, "certPem"))
    for purpose in ("sslserver", "sslclient"):
        words = ["openssl", "verify", "-x509_strict", "-purpose", purpose]
        words += ["-CAfile", str(tmp_path / "ca"), str(tmp_path / "leaf")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_leaf_says_what_the_request_asked(tls: Plugin) -> None:
    ca_key, ca = _ca(tls)
    key, leaf = _leaf(tls, ca_key, ca)
    certificate = x509.load_pem_x509_certificate(_text(leaf.state, "certPem").encode())
    assert certificate.subject.rfc4514_string() == "CN=kube-apiserver,O=system:masters"
    assert certificate.issuer.rfc4514_string() == "CN=kubernetes"
    assert leaf.identity == str(certificate.serial_number)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert [str(name.value) for name in names.value] == [
        *("localhost", "kubernetes.default.svc", "127.0.0.1", "fd00::1")
    ]
    wanted = serialization.load_pem_public_key(_text(key.state, "publicKeyPem").encode())
    assert certificate.public_key() == wanted
    authority = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier)
    parent = x509.load_pem_x509_certificate(_text(ca.state, "certPem").encode())
    own = parent.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
    assert authority.value.key_identifier == own.value.digest
    assert [extension.oid.dotted_string for extension in certificate.extensions] == [
        *("2.5.29.15", "2.5.29.37", "2.5.29.19", "2.5.29.35", "2.5.29.17")
    ]
    assert leaf.state["caKeyAlgorithm"] == "ECDSA"


def test_a_certificate_that_is_due_replaces_itself(tls: Plugin) -> None:
    ca_key, ca = _ca(tls)
    _, fresh = _leaf(tls, ca_key, ca)
    assert tls.diff(fresh, **fresh.inputs) == {}
    assert tls.diff(fresh, **{**fresh.inputs, "earlyRenewalHours": 25}) == {
        "earlyRenewalHours": "update",
        "readyForRenewal": "update_replace",
    }
    _, due = _leaf(tls, ca_key, ca, earlyRenewalHours=24)
    assert tls.diff(due, **due.inputs) == {"readyForRenewal": "update_replace"}


def test_only_the_early_renewal_changes_in_place(tls: Plugin) -> None:
    ca_key, ca = _ca(tls)
    _, leaf = _leaf(tls, ca_key, ca)
    assert tls.diff(leaf, **{**leaf.inputs, "earlyRenewalHours": 1}) == {
        "earlyRenewalHours": "update"
    }
    changed = tls.update(leaf, **{**leaf.inputs, "earlyRenewalHours": 1})
    assert changed.state["certPem"] == leaf.state["certPem"]
    assert tls.diff(leaf, **{**leaf.inputs, "validityPeriodHours": 48}) == {
        "validityPeriodHours": "update_replace"
    }
    shorter = {**leaf.inputs, "allowedUses": ["server_auth"]}
    assert set(tls.diff(leaf, **shorter).values()) == {"update_replace", "delete_replace"}


def test_validity_is_told_as_times(tls: Plugin) -> None:
    _, ca = _ca(tls, validityPeriodHours=48)
    begin = datetime.fromisoformat(_text(ca.state, "validityStartTime"))
    end = datetime.fromisoformat(_text(ca.state, "validityEndTime"))
    assert end - begin == timedelta(hours=48)
    assert abs(begin - datetime.now(UTC)) < timedelta(minutes=5)


def test_preview_knows_inputs_and_nothing_issued(tls: Plugin) -> None:
    planned = tls.planned(KEY, "key", algorithm="ED25519")
    assert planned["privateKeyPem"] == Secret(UNKNOWN)
    assert planned["publicKeyOpenssh"] == UNKNOWN
    planned = tls.planned(
        SELF_SIGNED, "ca", privateKeyPem=Secret(UNKNOWN), allowedUses=[], validityPeriodHours=1
    )
    assert planned["certPem"] == UNKNOWN
    assert planned["isCaCertificate"] is False


@pytest.mark.parametrize(
    ("kind", "inputs", "text"),
    [
        pytest.param(KEY, {"algorithm": "DSA"}, "algorithm: want RSA", id="algorithm"),
        pytest.param(KEY, {"algorithm": "RSA", "bits": 1}, "bits: unknown property", id="typo"),
        pytest.param(
            SELF_SIGNED, {"allowedUses": ["any"], "validityPeriodHours": 1}, "any is not", id="use"
        ),
        pytest.param(SELF_SIGNED, {"allowedUses": []}, "validityPeriodHours: missing", id="hours"),
    ],
)
def test_wrong_inputs_are_refused(
    tls: Plugin, kind: str, inputs: dict[str, object], text: str
) -> None:
    with pytest.raises(CallError, match=text):
        tls.check(kind, "x", inputs)


def test_errors_hold_no_key(tls: Plugin) -> None:
    with pytest.raises(CallError) as caught:
        _ca(tls, privateKeyPem="-----BEGIN s3cret-----")
    assert "Failed to parse private key PEM" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_ca_needs_a_subject(tls: Plugin) -> None:
    with pytest.raises(CallError, match=r"at least one Distinguished Name"):
        _ca(tls, subject={})
