"""A preview for people, and an update that applies what was approved or nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stacks.config import handed_over
from tests.scripts.project import Project, project
from tests.unit.configs import GONE, host

FOUR_WORKERS = {"pools.worker.hosts": [host("worker", ordinal) for ordinal in (1, 2, 3, 4)]}
TOO_FEW = {"pools.master": GONE}
STEPS = (
    ("same", "command:remote:Command", "prod-worker-1-node"),
    ("create", "command:remote:Command", "prod-worker-3-node"),
    ("update", "command:remote:Command", "prod-gate"),
)


@pytest.fixture
def prod(tmp_path: Path) -> Project:
    return project(tmp_path)


def preview(prod: Project, *words: str, fails: bool = False, **extra: str) -> str:
    return prod.run("operations.preview", "prod", *words, fails=fails, **extra)


def report(prod: Project, name: str) -> str:
    return prod.read(f".local/preview/prod/{name}")


def test_plan_and_diff_are_told_and_kept(prod: Project) -> None:
    prod.wants(FOUR_WORKERS)
    prod.says(diff="+ prod-worker-3-node\n", problems="a note\n")
    prod.steps(*STEPS)
    told = preview(prod, "--base", "HEAD")
    assert report(prod, "plan.md").startswith("*Against the stack file of commit ")
    assert "worker-3, worker-4" in report(prod, "plan.md")
    assert told.startswith("Against the stack file of commit ")
    assert "checked: " not in told
    assert "checked: " in preview(prod, "--base", "HEAD", "--verbose")
    assert report(prod, "preview.txt") == "+ prod-worker-3-node\n"
    assert report(prod, "problems.txt") == "a note\n"
    assert report(prod, "status") == "plan good\npreview good\nsteps 1 create, 1 update\n"
    for text in (
        "worker-3, worker-4",
        "+ prod-worker-3-node",
        "a note",
        "steps: 1 create, 1 update",
    ):
        assert text in told


def test_the_plan_is_compared_with_the_commit_and_not_with_the_work_tree(prod: Project) -> None:
    assert "nothing to do" in preview(prod, "--base", "HEAD", "--words")
    prod.wants(FOUR_WORKERS)
    assert "worker-4" in preview(prod, "--base", "HEAD", "--words")
    prod.commit()
    assert "nothing to do" in preview(prod, "--base", "HEAD", "--words")
    assert "worker-4" in preview(prod, "--base", "HEAD^", "--words")


def test_a_manifest_that_changed_since_the_commit_is_told(prod: Project) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {}}}\n"
    file = prod.folder / "addons/ccm.yaml"
    file.parent.mkdir()
    file.write_text(text.format("old"))
    prod.wants({"addons": {"ccm": {"manifests": ["addons/ccm.yaml"]}}})
    prod.commit()
    assert "nothing to do" in preview(prod, "--base", "HEAD", "--words")
    file.write_text(text.format("young"))
    told = preview(prod, "--base", "HEAD", "--words")
    words = " ".join(told.split())
    assert "ccm: applied from addons/ccm.yaml, which changed; new: ConfigMap young" in words
    assert "deleted at the end: ConfigMap old" in words


def test_hosts_of_a_file_are_compared_with_the_file_of_the_commit(prod: Project) -> None:
    def hosts(*ordinals: int) -> None:
        lines = [",".join(map(str, host("worker", n).values())) for n in ordinals]
        (prod.folder / "addons/workers.csv").write_text(
            "\n".join([",".join(host("worker", 1)), *lines, ""])
        )

    (prod.folder / "addons").mkdir()
    hosts(1, 2)
    prod.wants({"pools.worker": {"roles": ["worker"], "hostsFile": "addons/workers.csv"}})
    assert "nothing to do" in preview(prod, "--base", "HEAD", "--words")
    prod.commit()
    hosts(1, 2, 3)
    assert "worker-3" in preview(prod, "--base", "HEAD", "--words")
    prod.commit()
    assert "nothing to do" in preview(prod, "--base", "HEAD", "--words")
    told = preview(prod, "--base", "HEAD^", "--words")
    assert "worker-3" in told
    assert "is refused itself" not in told


def test_a_config_that_the_engine_cannot_hand_over_never_reaches_it(prod: Project) -> None:
    long = [f"{'x' * 60}-{n}.example.com" for n in range(handed_over.LIMIT // 70)]
    prod.wants({"proxy": {"noProxy": long}})
    told = preview(prod, fails=True)
    assert "hostsFile" in told
    assert prod.calls == []


def test_a_stack_that_the_commit_does_not_know_is_all_new(prod: Project) -> None:
    prod.wants(stack="new")
    told = prod.run("operations.preview", "new", "--base", "HEAD", "--words")
    assert "has no Pulumi.new.yaml" in told
    assert "Plan for cluster prod, a new cluster" in told


def test_a_commit_that_git_does_not_know_is_told_in_the_report_too(prod: Project) -> None:
    preview(prod, "--words")
    for unknown in ("origin/main", "--all"):
        told = preview(prod, f"--base={unknown}", "--words", fails=True)
        assert f"ERROR git knows no commit {unknown} here" in told
        assert f"git knows no commit {unknown}" in report(prod, "plan.md")
        assert "plan refused" in report(prod, "status")


def test_a_change_that_mends_a_refused_file_is_not_refused_for_it(prod: Project) -> None:
    prod.wants(TOO_FEW)
    prod.commit()
    prod.wants()
    told = preview(prod, "--base", "HEAD")
    assert "is refused itself: compared with nothing" in told
    assert "Plan for cluster prod, a new cluster" in told


def test_an_edit_that_the_running_cluster_forbids_is_refused_without_the_engine(
    prod: Project,
) -> None:
    prod.wants({"cluster.name": "other"})
    told = preview(prod, "--base", "HEAD", "--words", fails=True)
    assert "cannot change from 'prod' to 'other'" in told


def test_without_a_commit_the_plan_is_compared_with_what_is_applied(prod: Project) -> None:
    assert "Plan for cluster prod, a new cluster" in preview(prod)
    prod.applied()
    assert "nothing to do" in preview(prod)
    prod.wants(FOUR_WORKERS)
    assert "worker-4" in preview(prod)


def test_a_refused_config_asks_no_engine_and_fails(prod: Project) -> None:
    prod.wants(TOO_FEW)
    preview(prod, fails=True)
    assert prod.calls == []
    assert "no machine has role master" in report(prod, "plan.md")
    assert report(prod, "status") == "plan refused\npreview none\nsteps no change\n"


def test_what_the_engine_refuses_fails_and_is_kept(prod: Project) -> None:
    prod.says(code="1", problems="Pulumi.prod.yaml: 1 problem, nothing was touched\n")
    preview(prod, fails=True)
    assert report(prod, "problems.txt") == "Pulumi.prod.yaml: 1 problem, nothing was touched\n"
    assert report(prod, "status").startswith("plan good\npreview refused\n")


def test_a_backend_that_does_not_answer_is_told_beside_the_plan(prod: Project) -> None:
    prod.says(**{"bin/pulumi": "#!/bin/bash\necho 'error: no credentials' >&2; exit 1\n"})
    told = preview(prod, fails=True)
    assert "Plan for cluster prod, a new cluster" in told
    assert "stack prod cannot be read: error: no credentials" in report(prod, "problems.txt")


def test_a_stack_that_the_backend_does_not_have_is_no_error(prod: Project) -> None:
    (prod.folder / "stack").unlink()
    assert "There is no stack prod in s3://states yet" in preview(prod)
    assert "steps 1 new-stack" in report(prod, "status")
    assert [call for call in prod.calls if call.startswith("preview")] == []


def test_the_words_alone_need_no_engine_and_no_backend(prod: Project) -> None:
    preview(prod, "--words", PULUMI_BACKEND_URL="", CI="true")
    assert prod.calls == []
    assert report(prod, "status") == "plan good\npreview none\nsteps no change\n"


def test_the_stack_file_stays_as_it_is(prod: Project) -> None:
    before = prod.read("Pulumi.prod.yaml")
    preview(prod)
    assert prod.read("Pulumi.prod.yaml") == before


def test_no_link_to_the_state_is_asked_for(prod: Project) -> None:
    preview(prod)
    (call,) = (call for call in prod.calls if call.startswith("preview"))
    assert "--suppress-permalink=true" in call.split()


def test_the_digest_is_of_plan_and_steps_in_any_order(prod: Project) -> None:
    digests = []
    for steps in (STEPS, STEPS[::-1], (*STEPS, ("same", "x:y:Z", "more")), STEPS[:2], ()):
        prod.steps(*steps)
        preview(prod)
        digests.append(report(prod, "digest"))
    assert len(set(digests[:3])) == 1
    assert len(set(digests)) == 3
    prod.wants(FOUR_WORKERS)
    preview(prod)
    assert report(prod, "digest") not in digests


def test_steps_are_told_with_the_inputs_that_change(prod: Project) -> None:
    prod.steps(*STEPS, ("create", "pulumi:providers:tls", "default_5_6_2"), ("read", "a:b:C", "d"))
    preview(prod)
    assert report(prod, "steps.txt").splitlines() == [
        "create  command:remote:Command  prod-worker-3-node",
        "update  command:remote:Command  prod-gate  [stdin]",
    ]


@pytest.mark.parametrize("module", ["operations.preview", "operations.up"])
def test_a_runner_is_not_trusted_with_the_only_state(prod: Project, module: str) -> None:
    sure = ["--yes"] if module == "operations.up" else []
    told = prod.run(module, "prod", *sure, fails=True, PULUMI_BACKEND_URL="", CI="true")
    assert "a CI runner forgets that" in told
    assert "do: set PULUMI_BACKEND_URL" in told
    assert prod.calls == []


def test_with_the_engines_own_lines_up_becomes_the_engine(prod: Project) -> None:
    command = [sys.executable, "-m", "operations.up", "prod", "--yes", "--verbose"]
    with subprocess.Popen(
        command, cwd=prod.folder, env=prod.environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.communicate(timeout=60)[0].endswith("\napplied\n")
    assert int(prod.read("pid")) == process.pid
    assert prod.calls[-1].startswith("up --yes --skip-preview --suppress-permalink=true")


ENGINE = """#!/bin/bash
case $1 in
  stack) echo {} ;;
  up)
    trap 'echo interrupted; exit 3' INT
    echo begun >begun
    for _ in {1..600}; do sleep 0.1; done ;;
esac
"""


@pytest.mark.parametrize("to_the_group", [True, False], ids=["terminal", "kill"])
def test_an_interrupt_reaches_the_engine_once_and_its_exit_code_is_the_commands(
    prod: Project, *, to_the_group: bool
) -> None:
    prod.says(**{"bin/pulumi": ENGINE})
    process = subprocess.Popen(
        [sys.executable, "-m", "operations.up", "prod", "--yes"],
        cwd=prod.folder,
        env=prod.environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    end = time.monotonic() + 60
    while not (prod.folder / "begun").exists() and time.monotonic() < end:
        time.sleep(0.05)
    (os.killpg if to_the_group else os.kill)(process.pid, signal.SIGINT)
    text = process.communicate(timeout=60)[0]
    assert process.returncode == 3
    assert text.count("interrupted") == 1


def test_an_engine_that_was_killed_is_no_success(prod: Project) -> None:
    prod.says(**{"bin/pulumi": ENGINE.replace("echo begun >begun", "kill -9 $$")})
    prod.run("operations.up", "prod", "--yes", fails=True)


@pytest.fixture
def approved(prod: Project) -> Project:
    """The report of a preview with steps is in `approved`."""
    prod.wants(FOUR_WORKERS)
    prod.steps(*STEPS)
    preview(prod)
    (prod.folder / ".local/preview/prod").rename(prod.folder / "approved")
    return prod


def up(prod: Project, *, fails: bool = False) -> str:
    return prod.run("operations.up", "prod", "--approved", "approved", fails=fails)


def test_the_approved_plan_is_applied(approved: Project) -> None:
    digest = approved.read("approved/digest").strip()
    assert up(approved) == f"as approved: 1 create, 1 update (digest {digest})\napplied\n"


def test_a_cluster_that_changed_since_the_approval_is_left_alone(approved: Project) -> None:
    approved.steps(*STEPS, ("delete", "command:remote:Command", "prod-worker-1-node"))
    told = up(approved, fails=True)
    assert "this is no longer the plan that was approved" in told
    assert "+delete  command:remote:Command  prod-worker-1-node" in told
    assert not [call for call in approved.calls if call.startswith("up")]


def test_a_config_that_changed_since_the_approval_is_not_applied(approved: Project) -> None:
    approved.wants()
    assert "no longer the plan that was approved" in up(approved, fails=True)
    approved.wants(TOO_FEW)
    assert "no machine has role master" in up(approved, fails=True)
    assert not [call for call in approved.calls if call.startswith("up")]


def test_a_preview_that_is_refused_by_now_is_not_applied(approved: Project) -> None:
    approved.says(code="1", problems="the engine says no\n")
    told = up(approved, fails=True)
    assert "nothing is applied: the preview is refused now" in told
    assert "the engine says no" in told


@pytest.mark.parametrize("words", [("--words",), ()])
def test_only_a_good_preview_can_be_an_approval(prod: Project, words: tuple[str, ...]) -> None:
    prod.says(code="0" if words else "1")
    preview(prod, *words, fails=not words)
    (prod.folder / ".local/preview/prod").rename(prod.folder / "approved")
    prod.says(code="0")
    assert "refused, or of a plan without a preview" in up(prod, fails=True)


def test_an_approval_that_is_not_there_is_told(prod: Project) -> None:
    assert "approved is not a report of a preview" in up(prod, fails=True)
    assert not [call for call in prod.calls if call.startswith("up")]


def test_a_stack_is_not_made_in_a_backend_that_may_be_the_wrong_one(prod: Project) -> None:
    (prod.folder / "stack").unlink()
    told = prod.run("operations.up", "prod", "--yes", fails=True)
    assert "s3://states has no stack prod" in told
    assert "pulumi stack init prod" in told
    assert all(call.startswith("stack output") for call in prod.calls)


def test_in_the_checkouts_own_backend_it_is_made(prod: Project) -> None:
    (prod.folder / "stack").unlink()
    prod.says(**{".env": "export PULUMI_BACKEND_URL=file://here\n"})
    prod.run("operations.up", "prod", "--yes", PULUMI_BACKEND_URL="")
    assert prod.calls[-3].startswith("stack select --create")
    assert prod.calls[-1].startswith("up ")
    assert "PULUMI_BACKEND_URL=file://here" in prod.read("environment").splitlines()


BUDGET = {"rollout": {"failureBudgetPercent": 50}}
CHANGED = ("update", "command:remote:Command", "prod-worker-1-node")


@pytest.mark.parametrize(
    ("wanted", "step", "goes_on"),
    [
        ({}, CHANGED, False),
        (BUDGET, CHANGED, True),
        # The engine would delete it though the remaining nodes have not let it go.
        (BUDGET, ("delete", "command:remote:Command", "prod-worker-2-preflight"), False),
        # A gate that is gone runs nothing.
        (BUDGET, ("delete", "command:remote:Command", "prod-wave-1"), True),
        # Nor does what a node was told that is left out.
        (BUDGET, ("delete", "command:remote:Command", "prod-worker-2-node"), True),
        (BUDGET, ("delete", "command:remote:CopyToRemote", "prod-worker-2-scripts"), True),
        (BUDGET, ("delete", "command:local:Command", "prod-worker-2-machine"), False),
        (BUDGET, ("delete-replaced", "command:remote:Command", "prod-wave-1"), True),
    ],
)
def test_only_a_failure_budget_lets_the_engine_go_on_and_never_while_something_leaves(
    prod: Project, wanted: dict[str, object], step: tuple[str, str, str], *, goes_on: bool
) -> None:
    prod.wants(wanted)
    prod.steps(step)
    told = prod.run("operations.up", "prod", "--yes")
    assert prod.calls[-1].startswith("up --yes")
    assert ("--continue-on-error" in prod.calls[-1]) == goes_on
    assert ("its first failure ends it" in told) == (bool(wanted) and not goes_on)


def test_an_up_that_would_be_refused_does_not_begin(prod: Project) -> None:
    prod.wants(BUDGET)
    prod.says(code="1", problems="error: no such file\n")
    assert "the preview is refused" in prod.run("operations.up", "prod", "--yes", fails=True)
    assert not [call for call in prod.calls if call.startswith("up ")]


def test_the_engine_gets_no_empty_settings(prod: Project) -> None:
    """CI systems hand over secrets that do not exist as empty texts."""
    (prod.folder / "empty").write_text("")
    given = prod.environment() | {
        "PULUMI_PARALLEL": "",
        "PULUMI_ACCESS_TOKEN": "",
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_CONFIG_PASSPHRASE_FILE": "passphrase",
        "AWS_REGION": "",
    }
    command = [sys.executable, "-m", "operations.up", "prod", "--yes"]
    subprocess.run(command, cwd=prod.folder, env=given, check=True, capture_output=True)
    seen = dict(line.partition("=")[::2] for line in prod.read("environment").splitlines())
    for name in ("PULUMI_PARALLEL", "PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG_PASSPHRASE"):
        assert name not in seen
    assert seen["PULUMI_CONFIG_PASSPHRASE_FILE"] == "passphrase"
    assert seen["PULUMI_HOME"] == str(prod.folder / ".local/pulumi")
    assert seen["PATH"].startswith(f"{prod.folder}/.local/bin:")


def test_an_empty_passphrase_is_one(prod: Project) -> None:
    given = prod.environment() | {"PULUMI_CONFIG_PASSPHRASE": "", "PULUMI_HOME": "/elsewhere"}
    command = [sys.executable, "-m", "operations.up", "prod", "--yes"]
    subprocess.run(command, cwd=prod.folder, env=given, check=True, capture_output=True)
    seen = prod.read("environment").splitlines()
    assert "PULUMI_CONFIG_PASSPHRASE=" in seen
    assert "PULUMI_HOME=/elsewhere" in seen


def test_any_computer_can_work_on_all_stacks_but_labs(prod: Project) -> None:
    lab = {"config": {"kube-ha:machines": {"provider": "lab"}}}
    prod.says(**{"Pulumi.dev.yaml": json.dumps(lab), "Pulumi.broken.yaml": "config: ["})
    assert prod.run("operations.stack_list") == 'stacks=["broken", "prod"]\n'


def test_a_name_that_a_shell_would_read_is_refused(prod: Project) -> None:
    prod.says(**{"Pulumi.$(id).yaml": "config: {}"})
    assert "no names of stacks: ['$(id)']" in prod.run("operations.stack_list", fails=True)
