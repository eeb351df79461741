"""Certificates that the user gives to the ingress tier: files on the computer that plans."""

from __future__ import annotations

from stacks.config import local_file
from stacks.config.front_doors import GivenCertificateSpec


def chain(given: GivenCertificateSpec) -> str:
    """The certificates, PEM; public."""
    return text(given.certificate)


def pem(given: GivenCertificateSpec) -> str:
    """Certificates and key in one text, as HAProxy takes them. Secret."""
    return f"{text(given.certificate).rstrip()}\n{text(given.key).rstrip()}\n"


def text(name: str) -> str:
    return local_file.read(local_file.place(name), local_file.KEY_MOST).decode()
