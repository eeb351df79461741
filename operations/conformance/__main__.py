"""`python -m operations.conformance STACK`: upstream's own tests judge a cluster.

The e2e.test of the very Kubernetes version of the stack runs on this computer, with the kubeconfig
of the stack and no other. It changes the cluster: namespaces of its own, which it removes, taints,
evictions. Specs whose image cannot be pulled by the cluster's nodes are not run, and listed so.
Exit codes: 0 what ran passed, 1 something failed, 2 it could not begin.
"""

from __future__ import annotations

import argparse
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from artifacts.lock import TESTS
from operations import question
from operations.conformance import cluster, images, report
from operations.conformance.report import Choice, Spec
from operations.conformance.suite import LOG, REPORT, Suite
from operations.engine import sealing, stack
from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl, programs_of
from operations.engine.stack import Stack
from stacks.networks import registry

FOLDER = Path(".local/conformance")
_CONFORMANCE = r"\[Conformance\]"
_POLICIES = r"\[sig-network\] Netpol"
# Of a kernel module that few machines have; name them by FOCUS.
_NOT_POLICIES = r"SCTPConnectivity"


def main(arguments: Sequence[str]) -> int:
    """Run, and print how it ended. The exit code."""
    said = _arguments(arguments)
    try:
        focus = said.focus or (_POLICIES if said.policies else _CONFORMANCE)
        skip = said.skip or (_NOT_POLICIES if said.policies else "")
        _see_expressions(FOCUS=focus, SKIP=skip)
        found = stack.read(said.stack, applied=True, whole=False, connects=False)
        folder = _fresh(FOLDER / said.stack)
        with tempfile.TemporaryDirectory(prefix="kube-ha-") as secret:
            kubeconfig = sealing.put(Path(secret) / "kubeconfig", found.kubeconfig.encode())
            suite = _suite(found, kubeconfig, folder)
            return _run(found, suite, Choice(focus=focus, skip=skip), said)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 2
    except KeyboardInterrupt:
        return 130


def _arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m operations.conformance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as dev for Pulumi.dev.yaml")
    parser.add_argument("--focus", default="", help=f"regular expression ({_CONFORMANCE})")
    parser.add_argument("--skip", default="", help="regular expression over names of specs")
    parser.add_argument("--policies", action="store_true", help="specs of NetworkPolicies instead")
    parser.add_argument("--at-once", type=int, default=4, help="processes that run specs (4)")
    parser.add_argument("--limit-minutes", type=int, default=180, help="end it then (180)")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    return parser.parse_args(arguments)


def _see_expressions(**expressions: str) -> None:
    for name, text in expressions.items():
        try:
            re.compile(text)
        except re.error as error:
            raise StackError(f"{name}: {text!r} is not a regular expression: {error}") from None


def _fresh(folder: Path) -> Path:
    """The folder, without what an earlier run left."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder.absolute()


def _suite(found: Stack, kubeconfig: Path, folder: Path) -> Suite:
    wanted = found.plan.spec.cluster.kubernetes
    there = programs_of(wanted, ("kubectl", "kubernetes-tests"), also=[TESTS])
    return Suite(
        program=there["e2e.test"],
        ginkgo=there["ginkgo"],
        kubectl=there["kubectl"],
        kubeconfig=kubeconfig,
        folder=folder,
    )


def _run(found: Stack, suite: Suite, choice: Choice, said: argparse.Namespace) -> int:
    kubectl = Kubectl(program=suite.kubectl, kubeconfig=suite.kubeconfig)
    there = cluster.see(kubectl, found.plan)
    wanted = [spec for spec in suite.specs() if choice.has(spec)]
    if not wanted:
        raise StackError(f"no spec has a name that FOCUS {choice.focus!r} finds and SKIP leaves")
    print(f"{len(wanted)} specs of Kubernetes {found.plan.spec.cluster.kubernetes}\n{there.risk}")
    if not said.yes:
        _see_terminal()
        if not question.yes(f"Run them on the cluster of stack {said.stack}?"):
            raise StackError("not run; nothing was changed")
    needs = images.read()
    refs = needs.of(suite.images(), wanted)
    missing = images.missing(kubectl, sorted(refs))
    _see_images({ref: why for ref, why in missing.items() if refs[ref] in needs.all})
    names = {refs[ref] for ref in missing}
    left_out = [needs.specs[name].pattern for name in sorted(names & needs.specs.keys())]
    before, start = cluster.namespaces(kubectl), time.monotonic()
    try:
        code = suite.run(
            focus=choice.focus,
            skip=[*([choice.skip] if choice.skip else []), *left_out],
            at_once=said.at_once,
            unready=len(there.unready),
            limit_s=said.limit_minutes * 60,
        )
    finally:
        if stayed := cluster.clear(kubectl, before):
            print(f"namespaces that are still being removed: {', '.join(stayed)}")
    file = suite.folder / REPORT
    if not file.exists():
        raise StackError(
            f"ginkgo ended with {code} without a report\n  do: read {suite.folder / LOG}"
        )
    specs = report.read(
        file,
        choice,
        lacking=lambda name: needs.lacking(name, missing),
        known=lambda name: _known(found, name),
    )
    return _told(suite, specs, code, time.monotonic() - start)


def _see_terminal() -> None:
    if not sys.stdin.isatty():
        raise StackError(
            "it asks before it changes the cluster, and there is no terminal to answer on\n"
            "  do: YES=1, where nobody uses that cluster"
        )


def _see_images(missing: dict[str, str]) -> None:
    if missing:
        lines = [f"  {ref}: {why}" for ref, why in missing.items()]
        raise StackError(
            "\n".join(["nodes cannot pull what most specs start pods of:", *lines])
            + "\n  do: let nodes reach registry.k8s.io; or, where there is a mirror,"
            ' `make bundle ALSO="tests=conformance"`, and serve that'
        )


def _known(found: Stack, name: str) -> str:
    """Why the stack's network fails that spec, by its own documentation; empty: it should not."""
    deviates = registry.of(found.plan.spec).DEVIATES
    said = name.split(" [Feature:", 1)[0]
    return next((why for text, why in deviates.items() if said.endswith(text)), "")


def _told(suite: Suite, specs: Sequence[Spec], code: int, seconds: float) -> int:
    report.junit(specs, suite.folder / "junit.xml", "kubernetes-e2e")
    print("\n".join(report.screen(specs, code, seconds=seconds)))
    print(f"{suite.folder}: junit.xml, {LOG}")
    return 0 if report.good(specs, code) else 1


if __name__ == "__main__":
    # A CI system that cancels a job: specs end in order, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
