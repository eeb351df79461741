"""Upstream's own tests, by `make conformance`, on the cluster of a story."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

from operations.conformance.__main__ import FOLDER
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.operations import operation
from tests.e2e.harness.stack import Stack

AT_ONCE = 6  # specs mostly wait


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Names of specs by how they ended; those that did not run with the reason."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    not_run: dict[str, str]


def judge(stack: Stack, *words: str, fails: bool = False) -> Verdict:
    """Run it, and what its JUnit file says. Raises AssertionError when it ends otherwise than it should."""
    # A story that is too late kills the operation: ginkgo has to end by itself.
    bounds = ("--limit-minutes", "9", "--at-once", str(AT_ONCE))
    operation(stack, "conformance", "--yes", *bounds, *words, fails=fails)
    tree = ElementTree.parse(ROOT / FOLDER / stack.name / "junit.xml")  # noqa: S314 (made just now)
    cases = {str(case.get("name")): case for case in tree.iter("testcase")}
    skipped = {name: case.find("skipped") for name, case in cases.items()}
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    not_run = {name: str(why.get("message")) for name, why in skipped.items() if why is not None}
    return Verdict(
        passed=tuple(name for name in cases if name not in failed and name not in not_run),
        failed=tuple(sorted(failed)),
        not_run=not_run,
    )


def left(stack: Stack) -> list[str]:
    """Namespaces of tests that are still there."""
    names = stack.kubectl("get", "namespaces", "-l", "e2e-run", "-o", "name").split()
    return [
        *names,
        *stack.kubectl("get", "namespace", "kube-ha-conformance", "--ignore-not-found").split(),
    ]
