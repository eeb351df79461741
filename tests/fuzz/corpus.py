"""Texts of every kind that a config may hold, found by asking the check of each kind.

A new kind of text needs nothing here as long as its check takes any of these.
"""

from __future__ import annotations

import itertools
import random
import re
import string
from collections.abc import Callable, Iterator
from functools import cache

from stacks.checks import refusals
from stacks.releases import versions
from tests.unit.certificate import certificate
from tests.unit.configs import host_key

Check = Callable[[str], str]

_NAMES = (
    "a",
    "x9",
    "edge",
    "gpu-2",
    "rack-b",
    "no",
    "y",
    "null",
    "true",
    "1e3",
    "0x10",
    "0o17",
    "1-2",
)
_MARKS = ("A.b_c", "N", "on", "1_000", "12.5", "e-1.x", "Z" * 63)
_DOMAINS = ("example.com", "k8s.test", "a.b-c.d3.example", "cluster.local", "xn--bcher-kva.example")
_KEYS = ("example.com/x", "node.kubernetes.io/pool", "kubelet.kubernetes.io/a", "a.k8s.io/b")
_ADDRESSES = ("192.0.2.7", "10.1.2.3", "172.31.255.254", "198.51.100.1", "203.0.113.250")
_NETWORKS = (
    "10.100.0.0/14",
    "172.30.0.0/16",
    "10.0.0.0/9",
    "192.168.7.0/24",
    "10.92.0.0/20",
    "100.64.0.0/12",
)
_ENDPOINTS = ("api.example.com", "api.example.com:443", "10.1.2.3:6443", "api")
_URLS = (
    "http://mirror.example.com:8080",
    "https://mirror",
    "http://10.9.8.7:5000",
    "http://a.b/c/d-e",
    "https://id.example.com/realms/a-b",
)
_PATHS = (
    "~/.ssh/id_ed25519",
    "keys/a b+c@d",
    "/nowhere/manifest.json",
    ".local/bundle/manifest.json",
)
# What a shell, systemd, HAProxy, YAML and TOML make something of.
_FLAGS = (
    "4", "", "a=b,c=d", "*[](){}|<>?!&^#", "a;b && c > d", "%h%n%%", "~root", "- x", "? a: b", "key: value",
    "{a: b}", "[a]", "# no", " two  spaces ", "true", "1e3", "0777", "@x", "--flag=1", "x" * 200,
)  # fmt: skip
_AMOUNTS = ("500m", "1.5", "512Mi", "10Gi", "10%", "5.5%", "1", "200k")
_CLOUDS = (
    "my-project-1",
    "europe-west3",
    "eu-central-1",
    "e2-standard-4",
    "m6i.large",
    "roles/compute.viewer",
    "arn:aws:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy",
    "vpc-0123456789abcdef0",
    "subnet-0123456789abcdef0",
    "ami-0123456789abcdef0",
)
_WORDS = (
    "name-of-a-flag",
    "v",
    "feature-gates",
    "goaway-chance",
    "etcd-servers",
    "leader-elect",
    "user",
    "_ops",
)


@cache
def accepted(check: Check) -> tuple[str, ...]:
    """Every text of the corpus that a check takes. Raises LookupError when there is none."""
    candidates = dict.fromkeys((*_corpus(), *_shown(check)))
    found = tuple(text for text in candidates if _takes(check, text))
    if not found:
        raise LookupError(f"no text of the corpus is right for {check.__name__}; add one")
    return found


def _shown(check: Check) -> list[str]:
    """What a check shows as right when it refuses something."""
    try:
        check("\0")
    except ValueError as error:
        return re.findall(r"'([^']+)'", str(error))
    return []


def _takes(check: Check, text: str) -> bool:
    try:
        check(text)
    except ValueError:
        return False
    return True


@cache
def _corpus() -> tuple[str, ...]:
    keys = [host_key(number) for number in range(9000, 9004)]
    said = (_NAMES, _MARKS, _DOMAINS, _KEYS, _ADDRESSES, _NETWORKS, _ENDPOINTS, _URLS, _PATHS)
    ids = [f"{kind}/{word}" for kind in refusals.ALLOWABLE for word in ("*", "worker-1", "worker")]
    names = [f"{prefix}{name}" for prefix in ("*.", ".") for name in _DOMAINS]
    more = (
        _FLAGS,
        _CLOUDS,
        _WORDS,
        _AMOUNTS,
        versions.known(),
        keys,
        ids,
        names,
        [certificate()],
        _random(),
    )
    return tuple(dict.fromkeys(itertools.chain(*said, *more)))


def _random() -> Iterator[str]:
    """The same texts every time: a failure must be found again from its config."""
    source = random.Random(1)  # noqa: S311 (no secret)
    alphabets = (
        string.ascii_lowercase + string.digits + "-",
        string.ascii_letters + string.digits + "-_.",
        string.ascii_letters + string.digits + "_.,:;=/@%+~*[](){}|<>?!&^# -",
        string.ascii_lowercase + "./",
    )
    for alphabet, _ in itertools.product(alphabets, range(60)):
        yield "".join(source.choices(alphabet, k=source.randint(1, 40)))
