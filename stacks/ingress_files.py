"""Certificates that the user gives to the ingress tier: files on the computer that plans."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from stacks.problems import Problem

if TYPE_CHECKING:
    from stacks.front_door_settings import GivenCertificateSpec
    from stacks.spec import Spec

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


def chain(given: GivenCertificateSpec) -> str:
    """The certificates, PEM; public."""
    return _text(given.certificate)


def pem(given: GivenCertificateSpec) -> str:
    """Certificates and key in one text, as HAProxy takes them. Secret."""
    return f"{_text(given.certificate).rstrip()}\n{_text(given.key).rstrip()}\n"


def _text(name: str) -> str:
    return Path(name).expanduser().read_text()


def _unusable(given: GivenCertificateSpec) -> tuple[str, str] | None:
    """(key of the config, what to do)."""
    for key, name in (("certificate", given.certificate), ("key", given.key)):
        try:
            _text(name)
        except OSError as error:
            return key, f"{name!r} cannot be read ({(error.strerror or str(error)).lower()})"
        except UnicodeDecodeError:
            return key, f"{name!r} is no PEM; convert it (openssl x509 -inform der -in FILE)"
    try:
        first, *_ = x509.load_pem_x509_certificates(_text(given.certificate).encode())
    except ValueError:
        return "certificate", f"{given.certificate!r} holds no certificate in PEM"
    try:
        private = serialization.load_pem_private_key(_text(given.key).encode(), password=None)
    except (ValueError, TypeError):
        return "key", f"{given.key!r} holds no private key in PEM without a passphrase"
    if private.public_key() != first.public_key():
        return "key", f"{given.key!r} is not the key of {given.certificate!r}"
    if first.not_valid_after_utc < datetime.now(UTC):
        ended = f"{first.not_valid_after_utc:%Y-%m-%d}"
        return "certificate", f"{given.certificate!r} has expired on {ended}; renew it"
    if len(pem(given)) > _MOST:
        text = f"{given.certificate!r} and its key have {len(pem(given))} bytes, {_MOST} at most"
        return "certificate", f"{text}; leave the root out of the chain"
    return None
