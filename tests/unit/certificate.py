"""A certificate for tests that need one which is really one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def certificate() -> str:
    """A CA's certificate in PEM, another one at each call."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    valid = builder.not_valid_before(now).not_valid_after(now + timedelta(days=1))
    signed = valid.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return signed.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
