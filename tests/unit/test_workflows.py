"""The workflows: they run what anybody can run, hold no more than they need, and leak nothing."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / ".github/workflows").glob("*.yml"))
TARGETS = frozenset(
    re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
)
SETTINGS = {"STACK", "BASE", "WORDS", "APPROVED"}  # variables of the Makefile that workflows set
COMMENT = re.compile(r'bash ci/comment\.sh (body|post) "\$STACK" [-/.$"\w]+( "\$PULL")?')
RUNNER_MINUTES = 360  # after which GitHub ends a job on its own runners, whatever it said

Job = Mapping[str, object]


def workflow(name: str) -> dict[object, object]:
    found: dict[object, object] = yaml.safe_load(
        (ROOT / f".github/workflows/{name}.yml").read_text()
    )
    return found


def mapping(value: object) -> dict[str, object]:
    assert isinstance(value, dict), value
    return {str(key): entry for key, entry in value.items()}


def jobs(name: str) -> dict[str, dict[str, object]]:
    return {job: mapping(body) for job, body in mapping(workflow(name)["jobs"]).items()}


def steps(job: Job) -> list[dict[str, object]]:
    found = job.get("steps", [])
    assert isinstance(found, list)
    return [mapping(step) for step in found]


def all_jobs() -> Iterator[tuple[str, Job]]:
    for file in FILES:
        for name, job in jobs(file.stem).items():
            yield f"{file.stem}.{name}", job


def all_steps() -> Iterator[tuple[str, dict[str, object]]]:
    for name, job in all_jobs():
        for step in steps(job):
            yield name, step


ALL_JOBS = [pytest.param(job, id=name) for name, job in all_jobs()]
RUNS = [pytest.param(str(step["run"]), id=name) for name, step in all_steps() if "run" in step]
ACTIONS = [pytest.param(step, id=name) for name, step in all_steps() if "uses" in step]


def test_there_are_workflows() -> None:
    assert [file.stem for file in FILES] == ["deploy", "preview", "promote", "test"]
    assert len(RUNS) > 10
    assert len(ACTIONS) > 10


@pytest.mark.parametrize("run", RUNS)
def test_a_step_runs_a_make_target_or_the_comment_script(run: str) -> None:
    # What a step prints may only go where GitHub reads it.
    command = re.sub(r' >>"\$GITHUB_(OUTPUT|STEP_SUMMARY)"$', "", run)
    if COMMENT.fullmatch(command):
        return
    program, *words = shlex.split(command)
    assert program == "make"
    target, *settings = [word for word in words if word != "-s"]
    assert target in TARGETS
    assert {word.partition("=")[0] for word in settings} <= SETTINGS


@pytest.mark.parametrize("run", RUNS)
def test_nothing_is_put_into_a_command_but_by_the_environment(run: str) -> None:
    """An expression is pasted into the shell's text: a title, or a secret, would be run or shown."""
    assert "${{" not in run
    assert "secrets" not in run


@pytest.mark.parametrize("job", ALL_JOBS)
def test_every_job_ends_in_time(job: Job) -> None:
    if "uses" in job:  # GitHub takes none there: those of the called workflow count
        assert job["uses"] == "./.github/workflows/deploy.yml"
        return
    limit = job["timeout-minutes"]
    assert isinstance(limit, int)
    assert 0 < limit < RUNNER_MINUTES


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_workflow_may_nothing_and_every_job_says_what_it_may(file: Path) -> None:
    assert workflow(file.stem)["permissions"] == {}
    for name, job in jobs(file.stem).items():
        wanted = {"contents": "read"}
        if (file.stem, name) == ("preview", "comment"):
            wanted["pull-requests"] = "write"
        assert job["permissions"] == wanted, name


@pytest.mark.parametrize("step", ACTIONS)
def test_actions_are_pinned_by_content(step: Mapping[str, object]) -> None:
    assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}", str(step["uses"]))


def test_one_version_of_every_action_and_it_is_named() -> None:
    lines = [
        line for file in FILES for line in file.read_text().splitlines() if "uses: actions/" in line
    ]
    named = {re.sub(r".*uses: ", "", line) for line in lines}
    assert all(re.search(r" # v\d+\.\d+\.\d+$", line) for line in named), named
    assert len({line.split("@")[0] for line in named}) == len(named)


@pytest.mark.parametrize("step", ACTIONS)
def test_no_checkout_leaves_a_token_behind(step: Mapping[str, object]) -> None:
    if str(step["uses"]).startswith("actions/checkout@"):
        assert mapping(step["with"])["persist-credentials"] is False


def test_no_trigger_gives_foreign_code_a_right() -> None:
    triggers = {file.stem: workflow(file.stem)[True] for file in FILES}  # YAML 1.1 reads `on` so
    assert triggers["preview"] == "pull_request"
    assert set(mapping(triggers["test"])) == {"push", "pull_request"}
    assert set(mapping(triggers["promote"])) == {"push", "workflow_dispatch"}
    assert set(mapping(triggers["deploy"])) == {"workflow_call"}
    assert mapping(mapping(triggers["promote"])["push"])["branches"] == ["main"]


def test_secrets_are_for_jobs_of_an_environment_only() -> None:
    for name, job in all_jobs():
        if "secrets." in str(job):
            assert "environment" in job, name
    assert "secrets." not in (ROOT / ".github/workflows/test.yml").read_text()


def test_forks_reach_no_secret_and_no_right() -> None:
    found = jobs("preview")
    own = mapping(found["stacks"]["outputs"])["own"]
    assert "head.repo.full_name == github.repository" in str(own)
    assert "pull_request.user.type != 'Bot' && github.event.sender.type != 'Bot'" in str(own)
    for name, job in found.items():
        more = "environment" in job or "write" in str(job["permissions"])
        assert ("needs.stacks.outputs.own == 'true'" in str(job.get("if"))) == more, name
    assert {name for name, job in found.items() if "environment" in job} == {"preview"}


def test_foreign_code_runs_on_githubs_own_runners_only() -> None:
    place = str(jobs("test")["test"]["runs-on"])
    assert "head.repo.full_name != github.repository && 'ubuntu-24.04' || vars.LAB_RUNNER" in place
    assert "vars." not in str(jobs("preview")["plan"]["runs-on"])


def test_code_of_a_branch_never_runs_where_an_up_does() -> None:
    """On a runner that lives on it could wait there for the keys of the next one."""
    for name, job in all_jobs():
        place = str(job.get("runs-on"))
        assert ("DEPLOY_RUNNER" in place) == name.startswith("deploy."), name


def test_what_packages_run_while_they_are_installed_sees_no_secret() -> None:
    for name, job in all_jobs():
        assert "secrets." not in str(job.get("env")), name
        found = [step for step in steps(job) if "run" in step]
        with_secrets = [n for n, step in enumerate(found) if "secrets." in str(step)]
        if with_secrets:
            installs = [n for n, step in enumerate(found) if step == {"run": "make engine"}]
            assert installs, name
            assert installs[0] < with_secrets[0], name


def test_the_job_that_may_write_runs_the_target_branchs_script_alone() -> None:
    job = jobs("preview")["comment"]
    (checkout,) = [step for step in steps(job) if "checkout" in str(step.get("uses"))]
    assert mapping(checkout["with"])["ref"] == "${{ github.event.pull_request.base.sha }}"
    assert [step["run"] for step in steps(job) if "run" in step] == [
        'bash ci/comment.sh post "$STACK" report "$PULL"'
    ]
    assert "!cancelled()" in str(job["if"])  # also after a preview that failed


def test_both_parts_of_a_preview_tell_also_when_they_fail() -> None:
    for name in ("plan", "preview"):
        found = steps(jobs("preview")[name])[1:]
        first, *after = [step for step in found if step != {"run": "make engine"}]
        assert str(first["run"]).startswith("make preview ")
        assert "if" not in first
        assert "continue-on-error" not in first
        assert [step["if"] for step in after] == ["${{ !cancelled() }}"] * 2


def test_what_a_job_needs_is_there() -> None:
    for file in FILES:
        found = jobs(file.stem)
        for name, job in found.items():
            needs = job.get("needs", [])
            named = set(needs) if isinstance(needs, list) else {needs}
            assert named <= set(found), name
            for other, output in re.findall(r"needs\.(\w+)\.outputs\.(\w+)", str(job)):
                assert other in named
                assert output in mapping(found[other]["outputs"])


def test_two_runs_never_update_one_stack_at_once() -> None:
    limits = mapping(jobs("deploy")["up"]["concurrency"])
    assert limits == {"group": "up-${{ inputs.stack }}", "cancel-in-progress": False}
    ups = [name for name, step in all_steps() if str(step.get("run")).startswith("make up")]
    assert ups == ["deploy.up"]


def test_only_what_was_approved_is_applied() -> None:
    found = jobs("deploy")
    assert found["up"]["needs"] == "plan"
    assert found["up"]["environment"] == "${{ inputs.stack }}"
    (kept,) = [step for step in steps(found["plan"]) if "upload" in str(step.get("uses"))]
    (taken,) = [step for step in steps(found["up"]) if "download" in str(step.get("uses"))]
    assert mapping(kept["with"])["name"] == mapping(taken["with"])["name"]
    assert mapping(taken["with"])["path"] == "approved"
    assert 'make up STACK="$STACK" APPROVED=approved' in [s.get("run") for s in steps(found["up"])]


def test_stages_follow_each_other_and_have_stack_files() -> None:
    found = jobs("promote")
    assert [(name, job.get("needs")) for name, job in found.items()] == [
        ("rehearsal", None),
        ("staging", "rehearsal"),
        ("prod", "staging"),
    ]
    for name in ("staging", "prod"):
        assert found[name]["with"] == {"stack": name}
        assert (ROOT / f"Pulumi.{name}.yaml").exists()
    assert [job for job in jobs("deploy")] == ["plan", "up", "verify"]
    assert jobs("deploy")["verify"]["needs"] == "up"


def test_no_kubeconfig_is_handed_on_in_clear() -> None:
    paths = [
        path
        for _, step in all_steps()
        if "upload-artifact" in str(step.get("uses"))
        for path in str(mapping(step["with"])["path"]).splitlines()
    ]
    assert sorted(set(paths)) == [
        ".local/log",
        ".local/outputs/${{ inputs.stack }}/inventory.json",
        ".local/outputs/${{ inputs.stack }}/kubeconfig.sealed",
        ".local/preview/${{ inputs.stack }}",
        ".local/preview/${{ matrix.stack }}",
    ]
    (handed,) = [s for s in steps(jobs("deploy")["up"]) if "upload" in str(s.get("uses"))]
    assert mapping(handed["with"])["retention-days"] == 1


def test_every_job_with_the_engine_reaches_state_in_the_same_way() -> None:
    found = []
    for name, job in all_jobs():
        given = mapping(job.get("env", {}))
        if "PULUMI_BACKEND_URL" in given:
            own = ("STACK", "ARTIFACT", "COMMIT", "RUN_URL", "KUBE_HA_SSH_KEY", "KUBE_HA_SEAL_KEY")
            for step in steps(job):
                if re.match("make (preview|up|outputs|verify)", str(step.get("run"))):
                    said = {**given, **mapping(step.get("env", {}))}
                    found.append((name, {key: said[key] for key in said if key not in own}))
    assert [name for name, _ in found] == [
        "deploy.plan",
        "deploy.up",
        "deploy.up",
        "deploy.verify",
        "preview.preview",
    ]
    assert "PULUMI_CONFIG_PASSPHRASE" in found[0][1]
    assert all(given == found[0][1] for _, given in found)


def test_keys_of_machines_are_given_to_steps_that_use_them_alone() -> None:
    given = {
        (str(step["run"]).split()[1], key)
        for _, step in all_steps()
        for key in mapping(step.get("env", {}))
        if key.startswith("KUBE_HA_")
    }
    assert given == {
        ("up", "KUBE_HA_SSH_KEY"),
        ("verify", "KUBE_HA_SSH_KEY"),
        ("outputs", "KUBE_HA_SEAL_KEY"),
        ("unseal", "KUBE_HA_SEAL_KEY"),
    }
    assert not [name for name, job in all_jobs() if "KUBE_HA_" in str(job.get("env"))]


def test_the_cache_changes_with_what_it_is_made_of() -> None:
    (cache,) = [step for _, step in all_steps() if "actions/cache@" in str(step.get("uses"))]
    patterns = re.findall(r"'([^']+)'", str(mapping(cache["with"])["key"]))
    assert len(patterns) == 4
    for pattern in patterns:
        assert list(ROOT.glob(pattern)), pattern


def test_every_setting_is_explained() -> None:
    page = (ROOT / "docs/operate/ci.md").read_text()
    used = {
        name
        for file in FILES
        for name in re.findall(r"(?:vars|secrets)\.([A-Z_]+)", file.read_text())
    }
    assert len(used) > 10
    assert [name for name in sorted(used) if f"`{name}`" not in page] == []


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["plan"], "-m stacks Pulumi.dev.yaml"),
        (["plan", "VERBOSE=1"], "-m stacks Pulumi.dev.yaml --verbose"),
        (
            ["plan", "STACK=prod", "FORMAT=markdown", "PREVIOUS=a b.yaml"],
            '-m stacks Pulumi.prod.yaml --format "markdown" --previous "a b.yaml"',
        ),
        (["preview", "STACK=prod"], "-m operations.preview prod"),
        (
            ["preview", "STACK=prod", "BASE=HEAD^1", "WORDS=1", "VERBOSE=1"],
            '-m operations.preview prod --base "HEAD^1" --words --verbose',
        ),
        (["up", "STACK=prod"], "-m operations.up prod"),
        (["up", "APPROVED=folder"], '-m operations.up dev --approved "folder"'),
        (["up", "YES=1", "BACKUP_STATE=1"], "-m operations.up dev --yes --backup-state"),
        (["outputs", "STACK=prod"], "-m operations.outputs prod"),
        (["unseal", "STACK=prod"], "-m operations.outputs --unseal prod"),
        (["verify", "STACK=prod"], "-m operations.verify prod"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_make_hands_its_variables_on(words: list[str], command: str) -> None:
    done = subprocess.run(
        ["make", "-n", *words],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},  # a STACK of the caller's would count
        capture_output=True,
        text=True,
        check=True,
    )
    ran = [re.sub(r" +", " ", line).strip() for line in done.stdout.splitlines()]
    assert [line for line in ran if line.endswith(f"python {command}")]
