"""Published keys check what the cluster signs, and are named as its API servers name them."""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from stacks.render import token_keys

KEYS = [rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2)]


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def number(text: str) -> int:
    return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")


def test_each_key_checks_what_it_signs_and_no_other_does() -> None:
    listed = json.loads(token_keys.jwks("".join(map(pem, KEYS))))["keys"]
    assert len(listed) == 2
    for key in KEYS:
        signed = key.sign(b"token", padding.PKCS1v15(), SHA256())
        der = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        kid = base64.urlsafe_b64encode(hashlib.sha256(der).digest()).decode().rstrip("=")
        for one in listed:
            public = RSAPublicNumbers(number(one["e"]), number(one["n"])).public_key()
            try:
                public.verify(signed, b"token", padding.PKCS1v15(), SHA256())
                checked = True
            except InvalidSignature:
                checked = False
            assert checked == (one["kid"] == kid)
            assert (one["kty"], one["alg"], one["use"]) == ("RSA", "RS256", "sig")
            assert "=" not in "".join(one.values())


def test_which_of_two_signs_makes_no_difference() -> None:
    one, other = map(pem, KEYS)
    assert token_keys.jwks(one + other) == token_keys.jwks(other + one) != token_keys.jwks(one)


def test_other_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="RSA"):
        token_keys.jwks(pem(ec.generate_private_key(ec.SECP256R1())))
