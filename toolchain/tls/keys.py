"""`tls:index/privateKey:PrivateKey`, and reading private keys back."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from toolchain.resources import Difference, Operation, OperationError, Problem, compare
from toolchain.values import UNKNOWN, Properties, Secret, Value, plain

PrivateKey: TypeAlias = "rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey"

_CURVES: Mapping[str, type[ec.EllipticCurve]] = {
    "P224": ec.SECP224R1,
    "P256": ec.SECP256R1,
    "P384": ec.SECP384R1,
    "P521": ec.SECP521R1,
}
_DEFAULTS: Mapping[str, Value] = {"ecdsaCurve": "P224", "rsaBits": 2048.0}
_INPUTS = frozenset({"algorithm", "ecdsaCurve", "rsaBits"})
_SECRET = ("privateKeyPem", "privateKeyOpenssh", "privateKeyPemPkcs8")
_PUBLIC = (
    *("publicKeyPem", "publicKeyOpenssh", "publicKeyFingerprintMd5", "publicKeyFingerprintSha256"),
)


@dataclass(frozen=True, slots=True)
class PrivateKeyKind:
    """The kind of resource. Every change makes a new key."""

    def check(self, inputs: Properties) -> tuple[Properties, list[Problem]]:
        """Inputs as they are; the algorithm and the curve must be known ones."""
        problems = [Problem(key, "unknown property") for key in sorted(inputs.keys() - _INPUTS)]
        algorithm, curve = inputs.get("algorithm"), inputs.get("ecdsaCurve", "P224")
        if isinstance(algorithm, str | None) and algorithm not in ("RSA", "ECDSA", "ED25519"):
            problems.append(Problem("algorithm", f"want RSA, ECDSA or ED25519, not {algorithm}"))
        if isinstance(curve, str) and curve not in _CURVES:
            problems.append(Problem("ecdsaCurve", f"want one of {', '.join(_CURVES)}, not {curve}"))
        return inputs, problems

    def ignoring(self, names: Iterable[str], inputs: Properties, state: Properties) -> Properties:
        """The engine has put back what is ignored."""
        return inputs

    def diff(self, old: Properties, new: Properties, state: Properties) -> Difference:
        """Any change replaces; leaving a default unsaid or saying it is the same."""
        return compare({**_DEFAULTS, **old}, {**_DEFAULTS, **new}, replacing=_INPUTS)

    def planned(self, inputs: Properties, state: Properties | None) -> Properties:
        """A key is not known before it is made, but it is known which parts will be secret."""
        unknown: Properties = {name: Secret(UNKNOWN) for name in _SECRET}
        return {**_DEFAULTS, **inputs, **unknown, **dict.fromkeys(_PUBLIC, UNKNOWN)}

    async def create(self, operation: Operation, inputs: Properties) -> tuple[str, Properties]:
        """Generate a key, beside whatever else is asked of this plugin: RSA takes its time."""
        return await asyncio.to_thread(generated, inputs)

    async def update(
        self, operation: Operation, inputs: Properties, state: Properties
    ) -> Properties:
        """Nothing can change in place."""
        return {**state, **inputs}

    async def delete(self, operation: Operation, state: Properties) -> None:
        """Forgetting the key is all there is to do."""

    def read(self, state: Properties) -> Properties:
        """What is there is in the state."""
        return state


def generated(inputs: Properties) -> tuple[str, Properties]:
    """ID and outputs of a new key; the ID is the SHA-1 of its public half."""
    wanted: Properties = {**_DEFAULTS, **inputs}
    key = _generate(wanted)
    public = key.public_key().public_bytes(
        Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    made = hashlib.sha1(public, usedforsecurity=False).hexdigest()
    return made, {**wanted, **_private(key), **_public(key)}


def load(pem: str, what: str) -> PrivateKey:
    """The key in a PEM. Raises OperationError, without any of the text."""
    try:
        key = serialization.load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError):
        raise OperationError(
            f"Failed to parse {what}: no unencrypted private key in PEM format"
        ) from None
    if isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey):
        return key
    raise OperationError(f"Failed to parse {what}: unsupported key algorithm")


def algorithm(key: PrivateKey) -> str:
    """The algorithm's name as the provider's properties have it."""
    if isinstance(key, rsa.RSAPrivateKey):
        return "RSA"
    return "ECDSA" if isinstance(key, ec.EllipticCurvePrivateKey) else "ED25519"


def _generate(inputs: Properties) -> PrivateKey:
    bits, curve = plain(inputs["rsaBits"]), plain(inputs["ecdsaCurve"])
    match plain(inputs["algorithm"]):
        case "RSA" if isinstance(bits, float):
            return rsa.generate_private_key(65537, int(bits))
        case "ECDSA" if isinstance(curve, str):
            return ec.generate_private_key(_CURVES[curve]())
        case "ED25519":
            return ed25519.Ed25519PrivateKey.generate()
        case other:
            raise OperationError(f"Invalid Key Algorithm: Key Algorithm {other!r} is not supported")


def _private(key: PrivateKey) -> Properties:
    # Ed25519 has no traditional form: PKCS #8 in both places.
    usual = (
        PrivateFormat.PKCS8
        if isinstance(key, ed25519.Ed25519PrivateKey)
        else PrivateFormat.TraditionalOpenSSL
    )

    def pem(form: PrivateFormat) -> Secret:
        return Secret(key.private_bytes(Encoding.PEM, form, NoEncryption()).decode())

    return {
        "privateKeyPem": pem(usual),
        "privateKeyPemPkcs8": pem(PrivateFormat.PKCS8),
        "privateKeyOpenssh": Secret("") if _is_p224(key) else pem(PrivateFormat.OpenSSH),
    }


def _public(key: PrivateKey) -> Properties:
    public = key.public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    found: Properties = {"publicKeyPem": public.public_bytes(Encoding.PEM, form).decode()}
    if _is_p224(key):
        # SSH knows no P-224.
        return {**dict.fromkeys(_PUBLIC, ""), **found}
    sha256 = serialization.ssh_key_fingerprint(public, hashes.SHA256())
    md5 = serialization.ssh_key_fingerprint(public, hashes.MD5())  # noqa: S303 (what SSH prints)
    line = public.public_bytes(Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return {
        **found,
        "publicKeyOpenssh": line.decode() + "\n",
        "publicKeyFingerprintMd5": md5.hex(":"),
        "publicKeyFingerprintSha256": "SHA256:" + base64.b64encode(sha256).decode().rstrip("="),
    }


def _is_p224(key: PrivateKey) -> bool:
    return isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp224r1"
