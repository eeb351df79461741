"""Certificates that the user gives: what is wrong with the files is told before anything is touched."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from stacks.checks import ingress_certificates
from stacks.load import load
from tests.unit.configs import lab


def given(folder: Path, *, days: int = 10) -> tuple[Path, Path]:
    """Files of a certificate that ends in so many days, and of its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(days=100))
    signed = builder.not_valid_after(now + timedelta(days=days)).sign(key, hashes.SHA256())
    folder.mkdir(exist_ok=True)
    (folder / "tls.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "tls.key").write_bytes(private)
    return folder / "tls.crt", folder / "tls.key"


def told(certificate: Path, key: Path) -> list[tuple[str, str]]:
    one = {"certificate": str(certificate), "key": str(key)}
    doors = {"vip": {"address": "10.92.0.5"}, "ingress": {"certificates": [one]}}
    spec = load(lab({"frontDoors": doors}), read_keys=False)
    path = "frontDoors.ingress.certificates[0]."
    return [
        (problem.path.removeprefix(path), problem.text)
        for problem in ingress_certificates.problems(spec)
    ]


def test_files_that_belong_together_are_one_text(tmp_path: Path) -> None:
    certificate, key = given(tmp_path)
    assert told(certificate, key) == []


@pytest.mark.parametrize("days", [-1, -50])
def test_one_that_has_expired_is_refused(tmp_path: Path, days: int) -> None:
    ((where, text),) = told(*given(tmp_path, days=days))
    assert where == "certificate"
    assert "has expired on" in text


def test_a_key_of_another_one_is_refused(tmp_path: Path) -> None:
    certificate, _ = given(tmp_path / "a")
    _, key = given(tmp_path / "b")
    ((where, text),) = told(certificate, key)
    assert (where, "is not the key of" in text) == ("key", True)


def test_files_that_are_swapped_or_missing_are_named(tmp_path: Path) -> None:
    certificate, key = given(tmp_path)
    assert told(key, certificate) == [("certificate", f"'{key}' holds no certificate in PEM")]
    ((where, text),) = told(certificate, certificate)
    assert (where, "holds no private key" in text) == ("key", True)
    ((where, text),) = told(certificate, tmp_path / "none")
    assert (where, "cannot be read (no such file" in text) == ("key", True)
