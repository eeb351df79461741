"""SSH host keys of machines that the stack makes: known before the first connection."""

from __future__ import annotations

import hashlib
import hmac

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

# Order of the group of P-256 (FIPS 186-4, D.1.2.3): private keys are 1 to this less 1.
_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def private(seed: str, name: str) -> str:
    """PEM of a P-256 key: one for each name, none of them a resource.

    Not Ed25519: its OpenSSH form holds random bytes, and the machine would differ at every update.
    """
    number = int.from_bytes(hmac.new(seed.encode(), name.encode(), hashlib.sha256).digest())
    return (
        ec.derive_private_key(number % (_P256_ORDER - 1) + 1, ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
        .decode()
    )


def public(pem: str) -> str:
    """The public half as a line of known_hosts without the host."""
    key = serialization.load_pem_private_key(pem.encode(), password=None).public_key()
    return key.public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    ).decode()
