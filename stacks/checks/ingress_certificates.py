"""Checks of certificates that the user gives to the ingress tier: files, and what is in them."""

from __future__ import annotations

from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from stacks.config import local_file
from stacks.config.front_doors import GivenCertificateSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.render import ingress_certificates

_MOST = 7000  # bytes; a command carries no more than 8 KiB


def problems(spec: Spec) -> list[Problem]:
    """Files that are missing, no PEM, too big, or do not belong together."""
    wanted = spec.front_doors.ingress
    out = []
    for index, given in enumerate(wanted.certificates if wanted else ()):
        reason = _unusable(given)
        if reason:
            key, text = reason
            out.append(Problem(f"frontDoors.ingress.certificates[{index}].{key}", text))
    return out


def _unusable(given: GivenCertificateSpec) -> tuple[str, str] | None:
    """(key of the config, what to do)."""
    for key, name in (("certificate", given.certificate), ("key", given.key)):
        try:
            ingress_certificates.text(name)
        except OSError as error:
            return key, f"{name!r} cannot be read ({local_file.why(error)})"
        except UnicodeDecodeError:
            return key, f"{name!r} is not a PEM; convert it (openssl x509 -inform der -in FILE)"
    try:
        first, *_ = x509.load_pem_x509_certificates(
            ingress_certificates.text(given.certificate).encode()
        )
    except ValueError:
        return "certificate", f"{given.certificate!r} holds no certificate in PEM"
    if "PRIVATE KEY-----" in ingress_certificates.chain(given):
        text = f"{given.certificate!r} holds a private key, too; put that into a file of its own"
        return "certificate", text
    try:
        private = serialization.load_pem_private_key(
            ingress_certificates.text(given.key).encode(), password=None
        )
    except (ValueError, TypeError):
        return "key", f"{given.key!r} holds no private key in PEM without a passphrase"
    if private.public_key() != first.public_key():
        return "key", f"{given.key!r} is not the key of {given.certificate!r}"
    if first.not_valid_after_utc < datetime.now(UTC):
        ended = f"{first.not_valid_after_utc:%Y-%m-%d}"
        return "certificate", f"{given.certificate!r} has expired on {ended}; renew it"
    if (size := len(ingress_certificates.pem(given))) > _MOST:
        text = f"{given.certificate!r} and its key have {size} bytes, {_MOST} at most"
        return "certificate", f"{text}; leave the root out of the chain"
    return None
