"""A Debian repository on a lab's mirror, whose packages the lab's machines have, and newer ones later."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from tests.e2e.harness import lab
from tests.e2e.harness.stack import Stack

# The first package asks for a reboot when it gets newer, as a kernel does; the second is for holding.
_REPOSITORY = r"""
cd "$(mktemp -d)"
mkdir -p /srv/apt
make() {
  mkdir -p "$1/DEBIAN"
  printf 'Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: tests <tests@example.com>\nDescription: of a test\n' "$1" "$2" >"$1/DEBIAN/control"
  printf '#!/bin/sh\nset -e\n%s\n' "$3" >"$1/DEBIAN/postinst"
  chmod 755 "$1/DEBIAN/postinst"
  dpkg-deb --root-owner-group -b "$1" "/srv/apt/$1_$2.deb" >/dev/null
}
list() {
  for file in /srv/apt/*.deb; do
    dpkg-deb -f "$file"
    printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "${file##*/}" "$(stat -c %s "$file")" "$(sha256sum <"$file" | cut -d' ' -f1)"
  done >/srv/apt/Packages
}
"""
_OLD = r"""
make test-kernel 1.0 true; make test-held 1.0 true; list
printf '%s\n' 'worker_processes 1; pid /run/apt.pid; error_log /dev/null;' 'events { worker_connections 64; }' \
  'http { access_log off; server { listen 8081; root /srv/apt; } }' >/run/apt.conf
nginx -c /run/apt.conf -g 'user root;'
"""
_NEW = "make test-kernel 1.1 'touch /run/reboot-required'; make test-held 1.1 true; list"
# Of no other source: what a test updates must not depend on what Debian publishes meanwhile.
_INSTALL = r"""
rm -f /etc/apt/sources.list.d/*
echo 'deb [trusted=yes] http://{mirror}:8081 ./' >/etc/apt/sources.list
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qq -y install test-kernel test-held >/dev/null 2>&1
"""
# When it was started last, in one order for all machines; versions; what an update must not leave, and whether it has failed.
_FACTS = r"""
cut -d' ' -f22 /proc/1/stat
dpkg-query -W -f='${Version} ' test-held test-kernel
echo
ls -d /run/reboot-required /etc/systemd/system/kube-ha-resume.service /var/lib/kube-ha/aside 2>/dev/null | xargs
if systemctl is-failed -q kube-ha-resume; then echo "kube-ha-resume has failed"; fi
"""


def give(stack: Stack, names: Iterable[str], mirror: str) -> None:
    """Let machines have packages of the lab's own, of which there are newer ones afterwards; `mirror` is its address."""
    stack.node("mirror").run(_REPOSITORY + _OLD)
    script = _INSTALL.replace("{mirror}", mirror)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda name: stack.node(name).run(script, timeout_s=120), names))
    stack.node("mirror").run(_REPOSITORY + _NEW)


def started(stack: Stack, names: Iterable[str]) -> dict[str, int]:
    """When each machine was started last, in ticks of this computer."""
    return {name: int(facts[0]) for name, facts in _facts(stack, names).items()}


def versions(stack: Stack, names: Iterable[str]) -> dict[str, str]:
    """Of test-held and of test-kernel; then paths that an update left."""
    return {name: " ".join(facts[1:]).strip() for name, facts in _facts(stack, names).items()}


def reboots(stack: Stack, names: Iterable[str]) -> dict[str, int]:
    """How often each machine has started itself again."""
    asked = ("container", "inspect", "--format", "{{.RestartCount}}")
    return {name: int(lab.engine(*asked, stack.node(name).container)) for name in names}


def marks(stack: Stack) -> dict[str, str]:
    """By node what is said of updates there, and whether it is cordoned."""
    listed = json.loads(stack.kubectl("get", "nodes", "-o", "json"))["items"]
    return {node["metadata"]["name"]: _marks(node) for node in listed}


def _marks(node: Mapping[str, Mapping[str, Mapping[str, str]]]) -> str:
    said = node["metadata"]["annotations"]
    keys = ("updating", "cordoned", "failed", "begun", "os")
    words = [f"{key}={said[f'kube-ha.io/{key}']}" for key in keys if f"kube-ha.io/{key}" in said]
    return " ".join([*words, *(["unschedulable"] if node["spec"].get("unschedulable") else [])])


def _facts(stack: Stack, names: Iterable[str]) -> dict[str, list[str]]:
    listed = list(names)
    with ThreadPoolExecutor() as pool:
        told = pool.map(lambda name: stack.node(name).run(_FACTS).strip().split("\n"), listed)
    return dict(zip(listed, told, strict=True))
