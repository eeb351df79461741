"""Keys of service accounts' tokens as others read them (JWKS, RFC 7517)."""

from __future__ import annotations

import base64
import hashlib
import json
import re

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


def jwks(pems: str) -> str:
    """Of public keys, PEM one after the other; their order makes no difference.

    Raises ValueError for a key that is not of RSA.
    """
    keys = sorted((_key(pem) for pem in _PEM.findall(pems)), key=lambda key: key["kid"])
    return json.dumps({"keys": keys})


def _key(pem: str) -> dict[str, str]:
    key = load_pem_public_key(pem.encode())
    if not isinstance(key, RSAPublicKey):
        raise ValueError("keys of service accounts are of RSA")
    # So an API server names the key in its tokens (pkg/serviceaccount/jwt.go, keyIDFromPublicKey).
    known = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    numbers = key.public_numbers()
    return {
        "use": "sig",
        "kty": "RSA",
        "alg": "RS256",
        "kid": _text(hashlib.sha256(known).digest()),
        "n": _number(numbers.n),
        "e": _number(numbers.e),
    }


def _number(number: int) -> str:
    return _text(number.to_bytes((number.bit_length() + 7) // 8, "big"))


def _text(known: bytes) -> str:
    return base64.urlsafe_b64encode(known).decode().rstrip("=")
