"""`make help` lists every target once, below the task that it is for."""

from __future__ import annotations

import os
import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Makefile").read_text()
TARGETS = re.findall(r"^([a-z0-9-]+):", TEXT, re.MULTILINE)


def make(*words: str) -> str:
    env = {**os.environ, "USER": "somebody"}  # as any shell has it
    done = subprocess.run(
        ["make", *words], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_help_lists_every_target_once_with_what_it_does() -> None:
    listed = re.findall(r"^  make ([a-z0-9-]+) +\S", make("help"), re.MULTILINE)
    assert sorted(listed) == sorted(TARGETS)


def test_every_section_has_targets_and_none_stands_before_the_first() -> None:
    lines = make("help").strip().splitlines()
    assert not lines[0].startswith("  ")
    for title, below in pairwise(lines):
        if title and not title.startswith("  "):
            assert below.startswith("  make ")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["ssh", "NODE=master-1"], 'operations.session dev "master-1"'),
        (
            ["ssh", "STACK=prod", "NODE=a", "CMD=echo $HOME it's"],
            "operations.session prod \"a\" --command 'echo $HOME it'\\''s'",
        ),
        (
            ["logs", "ROLE=master", "UNIT=kubelet"],
            "operations.logs dev --role 'master' --unit 'kubelet'",
        ),
        (
            ["logs", "NODE=a", "SINCE=15m", "FOLLOW=1"],
            "operations.logs dev --node 'a' --since '15m' --follow",
        ),
        (["kubeconfig", "STACK=prod"], "operations.kubeconfig prod"),
        (["kubeconfig", "MERGE=1"], "operations.kubeconfig dev --merge"),
        (
            ["kubeconfig", "USER=jane", "GROUPS=dev ops", "HOURS=2"],
            "operations.kubeconfig dev --user 'jane' --groups 'dev ops' --hours '2'",
        ),
        (["kubeconfig", "OIDC=1"], "operations.kubeconfig dev --oidc '1'"),
        (["up", "VERBOSE=1"], "operations.up dev --verbose"),
        (
            ["conformance", "STACK=prod", r"FOCUS=\[sig-network\] it's", "PROCS=2", "YES=1"],
            r"operations.conformance prod --focus '\[sig-network\] it'\''s'" ' --at-once "2" --yes',
        ),
        (["conformance", "POLICIES=1"], "operations.conformance dev --policies"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_variables_are_handed_on_as_they_are(words: list[str], command: str) -> None:
    run = [re.sub(r" +", " ", line).strip() for line in make("-n", *words).splitlines()]
    assert any(line.endswith(command) for line in run), run
