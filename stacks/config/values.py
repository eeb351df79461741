"""The texts a config may hold: each function returns the accepted value or says what is wrong.

A value that passed ends up in shell scripts, HAProxy, etcd, systemd and YAML files. So every
function lists what is allowed, never what is forbidden; all raise ValueError with one sentence.
"""

from __future__ import annotations

import base64
import binascii
import re
from ipaddress import AddressValueError, IPv4Address, IPv4Network, NetmaskValueError

from stacks.config import redaction

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
VERSION = re.compile(r"(0|[1-9][0-9]{0,3})(\.(0|[1-9][0-9]{0,3})){2}")
# The kernel takes 15 characters.
INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}")
USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
PATH = re.compile(r"[A-Za-z0-9_.~/@+-][A-Za-z0-9_.~/@+ -]{0,254}")
SHA256 = re.compile(r"[0-9a-f]{64}")
FOLDER = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,62}){2,8}")
ALLOW_ID = re.compile(r"[a-z-]{1,40}(/(\*|[A-Za-z0-9.+-]{1,200}))?")
FLAG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# No quote, backslash, dollar, backtick or control character: safe inside any quoting there is.
_FLAG_VALUE = re.compile(r"[A-Za-z0-9_.,:;=/@%+~*\[\](){}|<>?!&^# -]{0,1024}")
_URL = re.compile(r"https?://(?P<endpoint>[^/?#]+)(?P<path>(/[A-Za-z0-9_.~-]+)*)/?")

KEY_TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
)


def version(text: str) -> str:
    """A release as `1.36.3`."""
    if VERSION.fullmatch(text):
        return text
    if VERSION.fullmatch(text.removeprefix("v")):
        raise ValueError(f"{short(text)}: write it without the v, as {text.removeprefix('v')!r}")
    raise ValueError(f"{short(text)} is not a version; write major.minor.patch, as '1.36.3'")


def dns_label(text: str) -> str:
    """RFC 1123 label: what Kubernetes allows as the name of most objects."""
    if not LABEL.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not an RFC 1123 label; use 1 to 63 of a-z, 0-9 and '-', "
            "not '-' at an end"
        )
    return text


def cluster_name(text: str) -> str:
    """A DNS label that leaves room for the machine's name behind it."""
    if len(dns_label(text)) > 32:
        raise ValueError(f"{short(text)} has {len(text)} characters; at most 32 fit resource names")
    if text[0].isdigit():
        raise ValueError(f"{short(text)} starts with a digit; start with a letter")
    return text


def dns_name(text: str) -> str:
    """RFC 1123 subdomain: labels with dots between, at most 253 characters."""
    if len(text) > 253 or not SUBDOMAIN.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a DNS name; use a-z, 0-9, '-' and dots between labels"
        )
    return text


def ipv4(text: str) -> str:
    """An IPv4 address that a machine can have."""
    try:
        address = IPv4Address(text)
    except AddressValueError:
        raise ValueError(
            f"{short(text)} is not an IPv4 address; write four numbers, as 10.0.0.11"
        ) from None
    this_network = int(address) < 1 << 24  # 0.0.0.0/8 (RFC 1122 3.2.1.3)
    if address.is_loopback or address.is_multicast or this_network or address.is_reserved:
        raise ValueError(
            f"{short(text)} is not an address of a machine (loopback, multicast or reserved)"
        )
    return text


def cidr(text: str) -> str:
    """An IPv4 network without host bits, as `10.244.0.0/16`."""
    if not re.fullmatch(r"[0-9.]+/[0-9]{1,2}", text):
        alone = f", or {text + '/32'!r} for it alone" if _is_address(text) else ""
        raise ValueError(
            f"{short(text)} is not an IPv4 network; write address/bits, as '10.244.0.0/16'{alone}"
        )
    try:
        network = IPv4Network(text, strict=False)
    except (AddressValueError, NetmaskValueError):
        raise ValueError(
            f"{short(text)} is not an IPv4 network; write address/bits, as '10.244.0.0/16'"
        ) from None
    if str(network) != text:
        raise ValueError(f"{short(text)} has host bits set; the network is {str(network)!r}")
    if network.is_loopback or network.is_multicast or network.is_unspecified:
        raise ValueError(
            f"{short(text)} is loopback, multicast or unspecified; use a private network"
        )
    return text


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except AddressValueError:
        return False
    return True


def address_range(text: str) -> str:
    """An IPv4 address, a network, or `first-last`."""
    if "/" in text:
        return cidr(text)
    first, dash, last = text.partition("-")
    for one in (first, last) if dash else (first,):
        ipv4(one)
    if dash and IPv4Address(first) > IPv4Address(last):
        raise ValueError(
            f"{short(text)} ends before it begins; write it as '10.0.0.240-10.0.0.250'"
        )
    return text


def host(text: str) -> str:
    """An IPv4 address or a DNS name."""
    if re.fullmatch(r"[0-9.]+", text):
        return ipv4(text)
    return dns_name(text)


def endpoint(text: str) -> str:
    """`host` or `host:port`."""
    if "/" in text or "@" in text:
        raise ValueError(f"{short(text)} is not a host[:port]; leave out scheme, path and user")
    name, colon, port = text.partition(":")
    host(name)
    if colon and not (re.fullmatch(r"[1-9][0-9]{0,4}", port) and int(port) <= 65535):
        raise ValueError(f"{short(text)}: the part after ':' is not a port; use 1 to 65535")
    return text


def url(text: str) -> str:
    """`http://host[:port][/path]`, returned without a slash at the end."""
    found = _URL.fullmatch(text)
    if not found or "@" in found["endpoint"]:
        raise ValueError(
            f"{short(text)} is not a plain URL; write http(s)://host[:port][/path] "
            "without user, password or query"
        )
    endpoint(found["endpoint"])
    return text.rstrip("/")


def base_url(text: str) -> str:
    """`http://host[:port]`: a URL without a path."""
    checked = url(text)
    if checked.count("/") > 2:
        raise ValueError(f"{short(text)} has a path; write http(s)://host[:port] only")
    return checked


def no_proxy(text: str) -> str:
    """An address, a network, a name, or a domain with its leading dot."""
    if "/" in text:
        return cidr(text)
    host(text.removeprefix("."))
    return text


def subject_name(text: str) -> str:
    """What may be in a certificate: IPv4 address, DNS name, or `*.` before a DNS name."""
    host(text.removeprefix("*."))
    return text


def user(text: str) -> str:
    """A Linux login name."""
    if not USER.fullmatch(text):
        raise ValueError(f"{short(text)} is not a login name; use a-z, 0-9, '_' and '-'")
    return text


def interface(text: str) -> str:
    """Name of a network interface."""
    if not INTERFACE.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a name of an interface; use up to 15 letters, digits and - _ ., "
            "as 'eth0'"
        )
    return text


def path(text: str) -> str:
    """A file on this computer: relative to the project, absolute, or from `~`."""
    if not PATH.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a plain path; use letters, digits and _ . ~ / @ + -"
        )
    return text


def sha256(text: str) -> str:
    """The sum of a file, as sha256sum prints it."""
    if not SHA256.fullmatch(text):
        raise ValueError(f"{short(text)} is not the sum of a file; sha256sum FILE prints it")
    return text


def folder(text: str) -> str:
    """A folder of a machine, below one of the first level: never /etc itself."""
    if not FOLDER.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a folder that may be written to; use an absolute path of two "
            "names or more, as '/var/volumes'"
        )
    return text


def host_key(text: str) -> str:
    """OpenSSH public key, returned as `type base64` without its comment."""
    parts = text.split()
    if len(parts) >= 2 and parts[0] not in KEY_TYPES and parts[1] in KEY_TYPES:
        raise ValueError(f"{short(text)} is a line of known_hosts; leave out its first word")
    if len(parts) < 2 or parts[0] not in KEY_TYPES:
        raise ValueError(
            f"{short(text)} is not an OpenSSH public key; write 'ecdsa-sha2-nistp256 AAAA...', "
            "as `make hostkeys` shows it, compared with the machine's console"
        )
    try:
        blob = base64.b64decode(parts[1], validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"{short(text)}: the key is not base64; was it cut?") from None
    size = int.from_bytes(blob[:4], "big")
    if blob[4 : 4 + size] != parts[0].encode() or len(blob) < _blob_size(parts[0]):
        raise ValueError(f"{short(text)}: the key holds no {parts[0]} key; was it cut?")
    return f"{parts[0]} {parts[1]}"


def _blob_size(kind: str) -> int:
    """Least length in bytes of a public key blob (RFC 4253 6.6, RFC 5656 3.1, RFC 8709 4)."""
    return {"ssh-ed25519": 51, "ssh-rsa": 200}.get(kind, 104)


def short(text: str) -> str:
    """`text` quoted, on one line, without secrets, of at most 60 characters."""
    text = str(redaction.of_value(text))
    return repr(text if len(text) <= 60 else text[:57] + "...")


def label_key(text: str) -> str:
    """Key of a label or taint: `[domain/]name`."""
    prefix, slash, name = text.rpartition("/")
    if slash:
        try:
            dns_name(prefix)
        except ValueError:
            raise ValueError(f"{short(text)}: the part before '/' is not a DNS name") from None
    if not _QUALIFIED.fullmatch(name):
        raise ValueError(
            f"{short(text)} is not a label key; use [domain/]name, up to 63 letters, "
            "digits and - _ ."
        )
    return text


def label_value(text: str) -> str:
    """Value of a label or taint; may be empty."""
    if text and not _QUALIFIED.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a label value; use up to 63 letters, digits and - _ . "
            "between them"
        )
    return text


def zone(text: str) -> str:
    """Name of a failure domain; it becomes a label's value."""
    if not _QUALIFIED.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a name of a zone; use up to 63 letters, digits and - "
            "_ . between "
            "them, as 'eu-central-1a' or 'room-2'"
        )
    return text


def flag(text: str) -> str:
    """Name of a component's flag, without dashes before it."""
    if not FLAG.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a flag; write its name without dashes before, as 'v'"
        )
    return text


def flag_value(text: str) -> str:
    """Value of a component's flag."""
    if not _FLAG_VALUE.fullmatch(text):
        raise ValueError(
            f"{short(text)} holds a character that no flag needs (quote, $, \\, newline)"
        )
    return text


def allow_id(text: str) -> str:
    """Id of a refusal that is passed over: `kind/subject`."""
    if not ALLOW_ID.fullmatch(text):
        raise ValueError(f"{short(text)} is not an id; write it as the refusal does, kind/subject")
    return text
