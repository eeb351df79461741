"""A script calls nothing that is not there: a function of its files, a part of bash, or a program that machines have.

bash says "command not found" and goes on where a call is a condition, and then the condition holds by mistake.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stacks.phases.scripts import FOLDER

# Programs of Debian's base and of the packages that the phases install, and what the artefacts hold.
_PROGRAMS = """
apt-get apt-mark awk base64 bash blockdev cat chmod chown cmp comm cp curl cut date df dirname dpkg dpkg-query du find findmnt flock
getent grep groupadd gzip head hostname install ip journalctl jq ln mkdir modinfo modprobe mountpoint mv nft nproc
od openssl paste perl pgrep ping pkill resize2fs rm rmdir sed seq sha256sum shuf sleep socat sort ss stat swapon sync sysctl
systemctl systemd-run tail tar tc timeout tr umount uname unshare useradd userdel wc xargs
ctr etcdutl haproxy keepalived kubeadm kubectl
"""
PROGRAMS = frozenset(_PROGRAMS.split())
_BASH = frozenset(
    subprocess.run(
        ["bash", "-c", "compgen -b"], capture_output=True, text=True, check=True
    ).stdout.split()
)
_SOURCED = re.compile(r'^\s*source "\$(?:here|folder)/([a-z-]+)\.sh"$', re.MULTILINE)
_NAME = re.compile(r"[\w-]+")


@dataclass(slots=True)
class Body:
    """What one function calls, and every word in it: a function may be handed to another one by its name."""

    calls: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)

    def __ior__(self, other: Body) -> Body:
        self.calls |= other.calls
        self.words |= other.words
        return self


@dataclass(frozen=True, slots=True)
class File:
    """Functions by name, and what stands outside of them."""

    functions: Mapping[str, Body]
    top: Body


def _nodes(tree: Any, *, functions: bool = True) -> Iterator[dict[str, Any]]:
    """All nodes of what shfmt tells, those inside of functions or not."""
    if isinstance(tree, dict):
        if tree.get("Type") == "FuncDecl" and not functions:
            return
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from _nodes(one, functions=functions)


def _body(tree: Any) -> Body:
    found = Body()
    for node in _nodes(tree, functions=False):
        if node.get("Type") == "CallExpr" and node.get("Args"):
            parts = node["Args"][0].get("Parts", [])
            if len(parts) == 1 and parts[0]["Type"] == "Lit":
                found.calls.add(parts[0]["Value"])
        if node.get("Type") in ("Lit", "SglQuoted"):
            found.words.update(_NAME.findall(node.get("Value", "")))
    return found


def parsed(text: str) -> File:
    shfmt = [str(Path(sys.executable).parent / "shfmt"), "--to-json", "-ln", "bash"]
    done = subprocess.run(shfmt, input=text, capture_output=True, text=True, check=True)
    tree = json.loads(done.stdout)
    functions = {
        node["Name"]["Value"]: _body(node["Body"])
        for node in _nodes(tree)
        if node.get("Type") == "FuncDecl"
    }
    return File(functions, _body(tree))


def missing(files: list[File], *, start: str = "main") -> set[str]:
    """What is called on the way from the top of the files and `start`, and is nowhere."""
    functions = {name: body for file in files for name, body in file.functions.items()}
    top = Body()
    for file in files:
        top |= file.top
    reached, waiting = Body({*top.calls}, set()), [start, *top.words]
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in functions and name not in seen:
            seen.add(name)
            reached |= functions[name]
            waiting += functions[name].words
    return {
        name
        for name in reached.calls
        if name not in functions and name not in _BASH and name not in PROGRAMS and "/" not in name
    }


@cache
def _file(name: str) -> File:
    return parsed((FOLDER / f"{name}.sh").read_text())


def _files(name: str) -> list[File]:
    """Of a script, lib.sh and what it sources; what those source in turn they only do on their own."""
    text = (FOLDER / f"{name}.sh").read_text()
    return [_file(one) for one in ("lib", name, *_SOURCED.findall(text))]


def _whole() -> list[str]:
    """Scripts that run; the others are sourced by them."""
    names = [file.stem for file in sorted(FOLDER.glob("*.sh"))]
    return [name for name in names if _file(name).top.calls - {"source", "set"} or _has_main(name)]


def _has_main(name: str) -> bool:
    return "main" in _file(name).functions


@pytest.mark.parametrize("name", _whole())
def test_every_command_that_a_script_calls_is_there(name: str) -> None:
    # run.sh sources the phase that it is asked for, and calls its main.
    allowed = {"main"} if name == "run" else set()
    # approve.sh on its own is the service of approver-unit.sh, which sources the same files as master.sh.
    files = _files("master") if name == "approve" else _files(name)
    assert missing(files) - allowed == set()


def test_a_function_that_was_renamed_is_found_in_a_condition() -> None:
    text = "main() { if ! settled a.service; then stop; fi; wait_for 3 'it there' is_there; }\n"
    rest = "stop() { :; }\nwait_for() { :; }\nis_there() { is_gone || return; }\nunused() { unknown; }\n"
    assert missing([parsed(text + rest)]) == {"settled", "is_gone"}
