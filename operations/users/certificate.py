"""A user's key, the request that is made with it, and whether what was issued is what was asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from operations.engine.engine import StackError
from operations.users.wanted import User

# The signer backdates by that, and only certificates of 8 hours and more end as much earlier
# (Kubernetes, pkg/controller/certificates/authority/policies.go).
_BACKDATED_S = 300


def new_key() -> ec.EllipticCurvePrivateKey:
    """P-256, as all of the cluster."""
    return ec.generate_private_key(ec.SECP256R1())


def pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as text, secret."""
    form, kind = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
    return key.private_bytes(kind, form, serialization.NoEncryption())


def request(user: User, key: ec.EllipticCurvePrivateKey) -> bytes:
    """PKCS #10 in PEM; groups are organizations, as API servers read them."""
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in user.groups]
    subject = x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user.name)])
    asked = x509.CertificateSigningRequestBuilder().subject_name(subject)
    return asked.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def end(issued: bytes, user: User, key: ec.EllipticCurvePrivateKey, authorities: bytes) -> datetime:
    """When it ends, if it is this user's, for no longer than was asked, and of one of these CAs.

    Raises StackError with all that differs.
    """
    try:
        found = x509.load_pem_x509_certificate(issued)
        wrong = [*_differences(found, user, key, x509.load_pem_x509_certificates(authorities))]
    except ValueError as error:
        wrong = [f"it cannot be read: {error}"]
    if wrong:
        raise StackError(
            "\n  ".join(["the certificate is not what was asked for, and was not kept:", *wrong])
            + "\n  do: look who answers as the signer kubernetes.io/kube-apiserver-client"
        )
    return found.not_valid_after_utc


def _differences(
    found: x509.Certificate,
    user: User,
    key: ec.EllipticCurvePrivateKey,
    authorities: list[x509.Certificate],
) -> Iterator[str]:
    names = [str(one.value) for one in found.subject if one.oid == NameOID.COMMON_NAME]
    groups = [str(one.value) for one in found.subject if one.oid == NameOID.ORGANIZATION_NAME]
    if names != [user.name]:
        yield f"its user is {', '.join(names) or 'nobody'}, not {user.name}"
    if sorted(groups) != sorted(user.groups):
        now, asked = (", ".join(sorted(some)) or "none" for some in (groups, user.groups))
        yield f"its groups are {now}, not {asked}"
    if found.public_key() != key.public_key():
        yield "it is of another key"
    if not any(_issued(found, one) for one in authorities):
        yield "it is of no CA that the stack knows"
    usages = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    if list(usages) != [ExtendedKeyUsageOID.CLIENT_AUTH]:
        yield "it is not for clients alone"
    yield from _of_life(found, user)


def _of_life(found: x509.Certificate, user: User) -> Iterator[str]:
    life_s = (found.not_valid_after_utc - found.not_valid_before_utc).total_seconds()
    if not user.life_s <= life_s <= user.life_s + _BACKDATED_S:
        text = f"it ends on {moment(found.not_valid_after_utc)}, {life_s / 3600:.2f} h after its"
        yield f"{text} begin, not {user.life_s / 3600:.2f} h"


def _issued(found: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        found.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def moment(when: datetime) -> str:
    """For a person."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
