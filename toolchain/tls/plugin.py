"""The stand-in for pulumi-resource-tls."""

from __future__ import annotations

import sys

from toolchain import plugin
from toolchain.resources import Kind
from toolchain.tls.certificates import LOCALLY_SIGNED, REQUEST, SELF_SIGNED
from toolchain.tls.keys import PrivateKeyKind

VERSION = "5.6.2"


def main() -> None:
    """Serve one engine."""
    kinds: dict[str, Kind] = {
        "tls:index/privateKey:PrivateKey": PrivateKeyKind(),
        "tls:index/selfSignedCert:SelfSignedCert": SELF_SIGNED,
        "tls:index/locallySignedCert:LocallySignedCert": LOCALLY_SIGNED,
        "tls:index/certRequest:CertRequest": REQUEST,
    }
    plugin.main("tls", VERSION, kinds, sys.argv[1:])
