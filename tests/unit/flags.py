"""Flags and feature gates that there are, for configs of tests."""

from __future__ import annotations

from stacks.checks import flags
from stacks.releases import known_flags, versions

KNOWN = known_flags.of(versions.known()[0])
assert KNOWN is not None
# Of the API server, for the user to set, with any text.
TEXT_FLAGS = [
    flag
    for flag, kind in sorted(KNOWN.flags["kube-apiserver"].items())
    if kind == "strings" and flag not in KNOWN.choices and flag not in flags.OWNED["apiServerArgs"]
]
SWITCHABLE = [
    name
    for name, gate in sorted(KNOWN.gates.items())
    if gate.of_kubelet and not gate.locked and name != "RotateKubeletServerCertificate"
]
