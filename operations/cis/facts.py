"""What cis.sh tells of one machine, as typed values."""

from __future__ import annotations

import base64
import binascii
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import yaml

from operations.observe.answers import UnreadableAnswerError, rows_of
from stacks.render import kubeadm

KUBELET_CONFIG = "/var/lib/kubelet/config.yaml"
# As the kernel cuts names: 15 characters.
PROCESSES = {
    "kube-apiserver": "kube-apiserver",
    "kube-controller": "kube-controller-manager",
    "kube-scheduler": "kube-scheduler",
    "kubelet": "kubelet",
    "etcd": "etcd",
}
TEXTS = (KUBELET_CONFIG, kubeadm.AUDIT_POLICY, kubeadm.AUTHENTICATION, kubeadm.ADMISSION)

Flags = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    bits: int
    owner: str  # user:group


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One machine."""

    flags: Mapping[str, Flags]  # of each program that runs, without dashes
    modes: Mapping[str, Mode]  # by path
    documents: Mapping[str, Mapping[str, object]]  # YAML by path
    providers: tuple[str, ...]  # of the encryption of Secrets, in their order
    proxy_metrics: tuple[str, ...]  # addresses at which kube-proxy's are served

    def matching(self, pattern: str) -> dict[str, Mode]:
        """The files of that pattern that are there."""
        return {
            path: mode for path, mode in self.modes.items() if PurePosixPath(path).match(pattern)
        }


def read(text: str) -> Facts:
    """Raises UnreadableAnswerError."""
    rows = rows_of(text)
    try:
        return _facts(rows)
    except (ValueError, IndexError, binascii.Error, yaml.YAMLError) as error:
        raise UnreadableAnswerError(f"its answer cannot be read: {error!r}") from None


def _facts(rows: Mapping[str, Sequence[Sequence[str]]]) -> Facts:
    return Facts(
        flags={PROCESSES[name]: _flags(_text(line)) for name, line in rows.get("process", ())},
        modes={
            _text(path).rstrip("\n"): Mode(bits=int(bits, 8), owner=owner)
            for path, bits, owner in rows.get("mode", ())
        },
        documents={path: _document(_text(found)) for path, found in rows.get("text", ())},
        providers=tuple(word for row in rows.get("providers", ()) for word in row[0].split()),
        proxy_metrics=tuple(word for row in rows.get("proxy", ()) for word in row[0].split()),
    )


def _text(encoded: str) -> str:
    return base64.b64decode(encoded, validate=True).decode(errors="replace")


def _flags(line: str) -> dict[str, str]:
    """Of a command line, words parted by NUL; a flag without a value is switched on."""
    out: dict[str, str] = {}
    for word in line.split("\0"):
        if word.startswith("-"):
            name, _, value = word.lstrip("-").partition("=")
            out[name] = value if "=" in word else "true"
    return out


def _document(text: str) -> Mapping[str, object]:
    found: object = yaml.safe_load(text)
    return found if isinstance(found, dict) else {}


def shown(flags: Flags, name: str) -> str:
    """A flag as one would write it."""
    return f"--{name}={shlex.quote(flags[name])}" if name in flags else f"--{name} is not set"
