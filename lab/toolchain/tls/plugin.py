"""The stand-in for pulumi-resource-tls."""

from __future__ import annotations

import sys

from lab.toolchain import plugin
from lab.toolchain.resources import Kind
from lab.toolchain.tls.certificates import LOCALLY_SIGNED, REQUEST, SELF_SIGNED
from lab.toolchain.tls.keys import PrivateKeyKind

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
