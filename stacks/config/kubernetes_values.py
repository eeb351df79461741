"""Texts of a config that Kubernetes' own components read: each function returns the accepted value.

As in values.py what is allowed is listed; ValueError says in one sentence what is wrong.
"""

from __future__ import annotations

import re
import ssl

from stacks.config import values
from stacks.config.values import short

SECRET_KEY = re.compile(r"(?!\.{1,2}$)[-._a-zA-Z0-9]{1,253}")
API_VERSION = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?v[0-9]{1,3}([a-z]+[0-9]{1,3})?"
    r"(/[A-Z][A-Za-z0-9]{0,62})?"
)
FEATURE_GATE = re.compile(r"[A-Z][A-Za-z0-9]{1,62}")
POD_SECURITY_VERSION = re.compile(r"latest|v1\.(0|[1-9][0-9]?)")
QUANTITY = re.compile(r"[0-9]{1,15}(\.[0-9]{1,3})?(m|k|Ki|M|Mi|G|Gi|T|Ti)?")
ROLLOUT = re.compile(
    r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/(daemonset|deployment|statefulset)/"
    r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
)
SERVICE_ACCOUNT = re.compile(
    r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"
)
PERCENT = re.compile(r"[1-9][0-9]?(\.[0-9]{1,3})?%")
_ISSUER = re.compile(r"https://(?P<endpoint>[^/?#]+)(/[A-Za-z0-9_.~!@:+,%-]*)*")
# As FLAG_VALUE; `=` stands between a claim and its value.
_CLAIM = re.compile(r"[A-Za-z0-9_.,:;/@%+~*|!^#-]{1,256}")
_CERTIFICATES = re.compile(
    r"(-----BEGIN CERTIFICATE-----\n([A-Za-z0-9+/]{1,76}={0,2}\n)+-----END CERTIFICATE-----\n)+"
)


def feature_gate(text: str) -> str:
    """Name of a feature gate."""
    if not FEATURE_GATE.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a feature gate; they are named as in 'DynamicResourceAllocation'"
        )
    return text


def secret_key(text: str) -> str:
    """Key of a value in a Secret: the name of a file, too."""
    if not SECRET_KEY.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a key of a Secret; use up to 253 letters, digits and - _ ."
        )
    return text


def api_version(text: str) -> str:
    """Group and version of objects, with a kind behind it or without."""
    if not API_VERSION.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a version of an API; write it as 'monitoring.coreos.com/v1'"
        )
    return text


def rollout(text: str) -> str:
    """What a rollout can be waited for: namespace, kind and name."""
    if not ROLLOUT.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a rollout; write namespace/daemonset/name (or deployment, "
            "statefulset), as 'kube-system/daemonset/kube-router'"
        )
    return text


def service_account(text: str) -> str:
    """A service account, by namespace and name."""
    if not SERVICE_ACCOUNT.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a service account; write namespace/name, as "
            "'kube-system/ebs-csi-controller-sa'"
        )
    return text


def issuer_url(text: str) -> str:
    """`https://host[:port][/path]`, unchanged: tokens carry it letter by letter."""
    found = _ISSUER.fullmatch(text)
    if not found or "@" in found["endpoint"]:
        raise ValueError(
            f"{short(text)} is not an issuer; write https://host[:port][/path], as the provider's "
            "tokens say it"
        )
    values.endpoint(found["endpoint"])
    return text


def token_issuer(text: str) -> str:
    """The same of the cluster itself: a name that API servers write into tokens, and ask nobody."""
    return issuer_url(text)


def claim(text: str) -> str:
    """Name of a claim in a token."""
    if not _CLAIM.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a claim; use 1 to 256 letters, digits and signs without '='"
        )
    return text


def flag_text(text: str) -> str:
    """Value of a component's flag that may not be empty."""
    if not text:
        raise ValueError("is empty; leave the key out instead")
    return values.flag_value(text)


def quantity(text: str) -> str:
    """An amount as Kubernetes writes it: `500m`, `1.5`, `512Mi`."""
    if not QUANTITY.fullmatch(text) or not re.search(r"[1-9]", text):
        raise ValueError(
            f"{short(text)} is not an amount; write a number above 0 and its unit, as "
            "'500m' of CPU or "
            "'512Mi'"
        )
    return text


def threshold(text: str) -> str:
    """An amount, or a part of the whole as `10%`."""
    if PERCENT.fullmatch(text):
        return text
    try:
        return quantity(text)
    except ValueError:
        raise ValueError(
            f"{short(text)} is not a threshold; write an amount above 0 as '500Mi', or a "
            "part as '10%'"
        ) from None


def pod_security_version(text: str) -> str:
    """Which version of the Pod Security Standards: `latest`, or that of a minor, as `v1.36`."""
    if not POD_SECURITY_VERSION.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a version of the standards; use 'latest' or as 'v1.36'"
        )
    return text


def certificates(text: str) -> str:
    """One or more certificates in PEM, returned without blanks around lines."""
    lines = [line.strip() for line in text.splitlines()]
    pem = "\n".join(line for line in lines if line) + "\n"
    if "PRIVATE KEY" in pem:
        raise ValueError("holds a private key; it belongs to the provider alone, and is burnt now")
    if not _CERTIFICATES.fullmatch(pem):
        raise ValueError(
            "is not a PEM; write the lines from -----BEGIN CERTIFICATE----- to -----END "
            "CERTIFICATE----- below `ca: |`, and none between or around them"
        )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except ssl.SSLError:
        raise ValueError("holds something that is not a certificate; was it cut?") from None
    return pem
