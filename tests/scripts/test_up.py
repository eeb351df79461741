"""What `make up` shows and asks before the engine begins, and what it leaves when the answer is no."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from operations import summary
from tests.scripts.project import Project, project
from tests.unit.configs import host

FOUR_WORKERS = {"pools.worker.hosts": [host("worker", ordinal) for ordinal in (1, 2, 3, 4)]}
CHANGED = ("update", "command:remote:Command", "prod-gate")
QUESTION = "Apply this to stack prod? [y/N] "
COPY = "Seal a copy of its state first? [y/N] "
RISK = "the only copy of stack prod's"


@pytest.fixture
def prod(tmp_path: Path) -> Project:
    """A stack that is applied, and asks for two workers more."""
    found = project(tmp_path)
    found.applied()
    found.wants(FOUR_WORKERS)
    found.steps(CHANGED)
    return found


def up(
    prod: Project,
    answers: Mapping[str, str | Callable[[], str]],
    *words: str,
    code: int,
    **extra: str,
) -> str:
    """What a terminal shows; `answers`: what is typed at which question, or done before it is."""
    leader, terminal = os.openpty()
    command = [sys.executable, "-m", "operations.up", "prod", *words]
    with subprocess.Popen(
        command,
        cwd=prod.folder,
        env=prod.environment(**extra),
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as running:
        assert running.stdout is not None
        os.set_blocking(running.stdout.fileno(), False)
        shown, asked, end = "", dict(answers), time.monotonic() + 60
        while running.poll() is None and time.monotonic() < end:
            shown += (running.stdout.read() or b"").decode()
            for question in [one for one in asked if shown.endswith(one)]:
                answer = asked.pop(question)
                typed = answer if isinstance(answer, str) else answer()
                if typed == "\x03":
                    running.send_signal(signal.SIGINT)
                else:
                    os.write(leader, typed.encode())
            time.sleep(0.02)
        if running.poll() is None:
            running.kill()  # it would wait for an answer for ever
        shown += (running.stdout.read() or b"").decode()
    os.close(leader)
    os.close(terminal)
    assert not asked, shown
    assert running.returncode == code, shown
    return shown


def begun(prod: Project) -> list[str]:
    return [call for call in prod.calls if call.startswith("up ")]


def test_the_plan_comes_first_and_yes_applies_it(prod: Project) -> None:
    shown = up(prod, {QUESTION: "y\n"}, code=0)
    plan, asked, applied = shown.partition(QUESTION)
    assert asked
    assert plan.startswith("Plan for cluster prod, compared with the config last applied")
    assert "worker-4" in plan
    assert "steps: 1 update; make preview STACK=prod lists them" in plan
    assert applied.endswith("applied\n")
    (call,) = begun(prod)
    assert "--suppress-outputs" in call.split()
    assert "KUBE_HA_PLAN_SHOWN=1" in prod.read("environment").splitlines()


@pytest.mark.parametrize("answer", ["n\n", "\n", "yes please\n", "\x03", "\x04"])
def test_any_other_answer_leaves_everything_as_it_is(prod: Project, answer: str) -> None:
    (prod.folder / "stack").unlink()
    prod.says(**{".env": "export PULUMI_BACKEND_URL=s3://here\n"})
    before = {path: path.read_bytes() for path in prod.folder.rglob("*") if _is_kept(path)}
    shown = up(prod, {QUESTION: answer}, code=1, PULUMI_BACKEND_URL="")
    assert shown.endswith("ERROR not applied; nothing was changed\n")
    assert "Traceback" not in shown
    assert {path: path.read_bytes() for path in prod.folder.rglob("*") if _is_kept(path)} == before
    assert all(call.startswith("stack output") for call in prod.calls), "no stack was made"


def _is_kept(path: Path) -> bool:
    """Not what the engine of these tests writes about itself."""
    return path.is_file() and path.name not in {"calls", "pid", "environment"}


def test_without_a_terminal_it_names_both_ways(prod: Project) -> None:
    told = prod.run("operations.up", "prod", fails=True)
    assert "do: YES=1 to apply" in told
    assert "or APPROVED=.local/preview/prod to apply" in told
    assert prod.calls == []


def test_what_changed_while_it_was_asked_is_not_applied(prod: Project) -> None:
    def yes_after_a_change() -> str:
        prod.steps(CHANGED, ("delete", "command:remote:Command", "prod-worker-1-node"))
        return "y\n"

    shown = up(prod, {QUESTION: yes_after_a_change}, code=1)
    assert "this is no longer the plan that was approved" in shown
    assert "+delete  command:remote:Command  prod-worker-1-node" in shown
    assert begun(prod) == []


def test_with_nothing_to_do_nothing_is_asked(prod: Project) -> None:
    prod.wants()
    prod.steps()
    assert "nothing to do: no resource changes" in up(prod, {}, code=0)
    assert begun(prod) == []


def test_what_is_refused_is_not_asked(prod: Project) -> None:
    prod.says(code="1", problems="the engine says no\n")
    shown = up(prod, {}, code=1)
    assert "nothing is applied: the preview is refused" in shown
    assert "the engine says no" in shown


def test_who_says_yes_at_once_sees_the_plan_all_the_same(prod: Project) -> None:
    told = prod.run("operations.up", "prod", "--yes")
    assert told.startswith("Plan for cluster prod, compared with the config last applied")
    assert told.endswith("applied\n")
    assert not [call for call in prod.calls if call.startswith("preview")]
    prod.wants({"cluster.name": "other"})
    assert "cannot change from 'prod' to 'other'" in prod.run(
        "operations.up", "prod", "--yes", fails=True
    )
    assert len(begun(prod)) == 1


STATE = {"version": 3, "deployment": {"resources": [{"type": "pulumi:pulumi:Stack"}]}}


@pytest.fixture
def here(prod: Project) -> Project:
    """Its state and passphrase are in the checkout."""
    prod.says(
        stack=json.dumps(STATE),
        **{
            ".env": "export PULUMI_BACKEND_URL=file://$PWD/.local/state?metadata=skip\n"
            "export PULUMI_CONFIG_PASSPHRASE_FILE=$PWD/.local/passphrase\n"
        },
    )
    return prod


def test_the_only_copy_of_a_state_is_warned_of(here: Project) -> None:
    told = here.run("operations.up", "prod", "--yes", PULUMI_BACKEND_URL="")
    warning = told[: told.index("Plan for")]
    assert f"WARNING {RISK} state and passphrase is in this checkout" in warning
    assert str(here.folder / ".local/state") in warning
    assert "docs/operate/ci.md" in warning
    assert RISK not in here.run("operations.up", "prod", "--yes"), "a bucket outlives the checkout"
    outside = here.run("operations.up", "prod", "--yes", PULUMI_BACKEND_URL="file:///elsewhere")
    assert RISK not in outside


def test_a_copy_of_it_is_offered_where_it_can_be_sealed(here: Project) -> None:
    own = {"PULUMI_BACKEND_URL": "", "KUBE_HA_STATE_KEY": Fernet.generate_key().decode()}
    up(here, {QUESTION: "y\n", COPY: "n\n"}, code=0, **own)
    assert not (here.folder / ".local/backups").exists()
    shown = up(here, {QUESTION: "y\n", COPY: "y\n"}, code=0, **own)
    (copy,) = (here.folder / ".local/backups/prod").iterdir()
    assert f"state sealed: .local/backups/prod/{copy.name}" in shown
    assert len(begun(here)) == 2
    assert COPY not in up(
        here, {QUESTION: "y\n"}, code=0, KUBE_HA_STATE_KEY=own["KUBE_HA_STATE_KEY"]
    )


def test_a_copy_can_be_made_without_a_question(here: Project) -> None:
    key = Fernet.generate_key().decode()
    words = ("operations.up", "prod", "--yes", "--backup-state")
    assert "is not a key" in here.run(*words, fails=True)
    assert begun(here) == []
    assert "state sealed: " in here.run(*words, KUBE_HA_STATE_KEY=key)
    here.says(stack="{}")
    assert "state sealed: " not in here.run(*words, KUBE_HA_STATE_KEY=key), "there is none yet"


DENIED = (
    "Diagnostics:\n  gcp:compute:Instance (prod-bastion):\n    error: googleapi: Error 412: Constraint "
    "constraints/compute.vmExternalIpAccess violated for project my-project-123., conditionNotMet\n"
)


def test_policies_of_an_organisation_are_told_with_what_goes_with_them(prod: Project) -> None:
    prod.says(failure=DENIED)
    shown = up(prod, {QUESTION: "y\n"}, code=255)
    told = shown[shown.index("conditionNotMet\n") :].splitlines()[1:3]
    assert told == [
        "  - policy compute.vmExternalIpAccess of your organisation at Google refuses it: set machines.gcp.access: tunnel",
        "  see docs/install/cloud-permissions.md, policies of an organisation",
    ]


def test_another_failure_is_told_as_it_is(prod: Project) -> None:
    prod.says(failure="Diagnostics:\n  error: a quota is reached\n")
    shown = up(prod, {QUESTION: "y\n"}, code=255)
    assert "a quota is reached" in shown
    assert "organisation" not in shown


def test_the_summary_is_short_whatever_the_size(prod: Project) -> None:
    nodes = {f"master-{number}": {"roles": ["master", "etcd"]} for number in (1, 2, 3)}
    nodes |= {f"worker-{number}": {"roles": ["worker"]} for number in range(1, 500)}
    backends = [{"address": f"192.0.2.{number}", "port": 6443} for number in (1, 2, 3)]
    outputs = {
        "nodes": nodes,
        "endpoint": "https://192.0.2.9:6443",
        "loadBalancer": {"protocol": "tcp", "backends": backends},
        "kubeconfig": "SECRET",
    }
    prod.says(stack=json.dumps(outputs))
    assert prod.run("operations.summary", "prod").splitlines() == [
        "stack prod: 502 nodes (3 master, 3 etcd, 499 worker)",
        "  API            https://192.0.2.9:6443",
        "  load balancer  tcp to 192.0.2.1:6443 192.0.2.2:6443 192.0.2.3:6443",
        "  kubeconfig     make outputs STACK=prod writes .local/outputs/prod/kubeconfig",
    ]
    assert next(iter(summary.lines("prod", {}))) == "stack prod: 0 nodes ()"
