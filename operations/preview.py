"""`python -m operations.preview STACK`: what an `up` would do, told twice; changes nothing.

First the change plan, then the engine's own diff. Both are printed, and kept in
.local/preview/STACK for a comment on a pull request, or for an approval.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

from operations.engine import stack
from operations.engine.engine import PLAN_SHOWN, Engine, StackError
from operations.engine.preview_files import Report
from stacks import __main__ as in_words
from stacks.config import stack_file
from stacks.config.parse import applied_once
from stacks.config.problems import SpecError
from stacks.config.stack_file import StackFileError

FOLDER = Path(".local/preview")

# Steps that touch nothing; refresh and read happen in every preview.
_QUIET = {"same", "read", "read-replacement", "read-discard", "refresh"}


def main(arguments: list[str]) -> int:
    """Print and keep the report; exit code 1 when plan or preview is refused."""
    parser = argparse.ArgumentParser(prog="python -m operations.preview", description=__doc__)
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("--base", help="git commit whose stack file the plan is compared with")
    parser.add_argument("--words", action="store_true", help="plan only: no engine, no secrets")
    parser.add_argument(
        "--verbose", action="store_true", help="print every action, check and interruption"
    )
    given = parser.parse_args(arguments)
    options = ["--verbose"] if given.verbose else []
    try:
        report = make(given.stack, options, base=given.base, ask_engine=not given.words)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        # For the comment: a report of before would tell something else.
        Report.broken(str(error)).write(FOLDER / given.stack)
        return 1
    report.write(FOLDER / given.stack)
    print(report.text())
    return 0 if report.good else 1


def make(
    name: str, options: Sequence[str] = (), *, base: str | None = None, ask_engine: bool = True
) -> Report:
    """The report on Pulumi.<name>.yaml as it is here; `options`: of its text. Raises StackError.

    The plan is compared with `base`, else with what the engine knows to be applied, else with
    nothing: then all of the cluster is new.
    """
    told = _against(base, name, options) if base else _in_words(name, options)
    if not told.words_good or not ask_engine:
        return told
    try:
        engine = Engine(name)
        engine.keep_state(local=stack.plan_of(name).local)
        if not engine.knows_stack():
            there = (
                f"There is no stack {name} in {engine.backend} yet: its first update "
                "makes it all.\n"
            )
            return told.with_preview(there, good=True, steps=(f"new-stack  {name}",))
        if not base:
            told = _in_words(name, options, _applied(engine))
        return _with_diff(told, engine) if told.words_good else told
    except StackError as error:
        return told.with_preview("", problems=f"ERROR {error}\n", good=False)


def plan(engine: Engine) -> str:
    """The change plan for a terminal, compared with what is applied. Raises StackError."""
    told = _in_words(engine.stack, (), _applied(engine))
    if not told.words_good:
        raise StackError(told.words)
    return told.terminal


def document(engine: Engine) -> str:
    """The same as JSON (docs/plan.schema.json); of a refused config its problems."""
    file, applied = f"Pulumi.{engine.stack}.yaml", _applied(engine)
    if applied is None:
        return _plan("--format", "json", file)[1]
    with _kept(applied, engine.stack) as before:
        return _plan("--format", "json", file, "--previous", str(before))[1]


def _applied(engine: Engine) -> str | None:
    """What the stack remembers of its last success. Raises StackError."""
    applied = engine.outputs().get("applied")
    return applied if isinstance(applied, str) else None


def _against(base: str, name: str, options: Sequence[str]) -> Report:
    """The plan against the stack file of a commit. Raises StackError."""
    commit = _commit(base)
    before = _of_commit(commit, name)
    if before is None:
        note = f"Commit {commit[:12]} has no Pulumi.{name}.yaml."
        return _noted(_in_words(name, options), note)
    with _kept(before, name) as file:
        _keep_hosts(commit, file)
        usable, _ = _plan("--format", "json", str(file))
    if usable:
        note = f"Against the stack file of commit {commit[:12]}."
        return _noted(_in_words(name, options, before, commit), note)
    # A change that fixes the file must not be refused for what it fixes.
    note = f"The stack file of commit {commit[:12]} is refused itself: compared with nothing."
    return _noted(_in_words(name, options), note)


def _noted(told: Report, note: str) -> Report:
    """With what it was compared with: the engine's diff is against what is applied."""
    terminal = f"{note}\n\n{told.terminal}" if told.terminal else ""
    return replace(told, words=f"*{note}*\n\n{told.words}", terminal=terminal)


def _in_words(
    name: str, options: Sequence[str], previous: str | None = None, commit: str = ""
) -> Report:
    """The plan against a stack file (of that commit), or a memory, of before; None: nothing."""
    file = f"Pulumi.{name}.yaml"
    if previous is None:
        return _told(file, options)
    with _kept(previous, name) as before:
        words = ["--previous", str(before)]
        if commit:
            _keep_hosts(commit, before)
            _keep_manifests(commit, before)
            words += ["--previous-files", str(before.parent)]
        return _told(file, options, *words)


def _told(file: str, options: Sequence[str], *compared: str) -> Report:
    good, words = _plan("--format", "markdown", file, *compared)
    terminal = _plan(*options, file, *compared)[1] if good else ""
    return Report(words=words, words_good=good, terminal=terminal)


@contextmanager
def _kept(text: str, name: str) -> Iterator[Path]:
    """A file for as long as it is needed, by the stack file's own name: that shows in messages."""
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        file = Path(folder) / f"Pulumi.{name}.yaml"
        file.write_text(text)
        yield file


def _keep_hosts(commit: str, file: Path) -> None:
    """Files with hosts as they were in that commit, beside a stack file of it."""
    try:
        named = stack_file.hosts_files(file)
    except StackFileError:
        return  # told when it is compared with
    _keep(commit, file.parent, named)


def _keep_manifests(commit: str, file: Path) -> None:
    """Manifests and charts of add-ons as they were in that commit, beside a stack file of it."""
    try:
        said = applied_once(stack_file.read(file))
    except (StackFileError, SpecError):
        return  # told when it is compared with
    named = [path for one in said.addons.values() for path in one.manifests]
    for chart in (one.chart for one in said.addons.values() if one.chart):
        named += [chart.file, *chart.values_files]
    _keep(commit, file.parent, named)


def _keep(commit: str, folder: Path, paths: Iterable[str]) -> None:
    """Files of a commit in `folder`, by the names that its stack file has for them."""
    root = folder.resolve()
    for path in paths:
        place = (root / path).resolve()
        # What is elsewhere is no part of the repository.
        if place.is_relative_to(root):
            found = _git("show", f"{commit}:{place.relative_to(root)}")
            if not found.returncode:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(found.stdout)


def _plan(*arguments: str) -> tuple[bool, str]:
    """Whether it is good, and what `python -m stacks` prints: of a refused one its problems."""
    out = io.StringIO()
    # Of a refused plan the problems go there too.
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = in_words.main([*arguments])
    return code == 0, out.getvalue()


def _commit(name: str) -> str:
    """The SHA of a commit, branch or tag. Raises StackError."""
    found = _git("rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}")
    if found.returncode:
        raise StackError(
            f"git knows no commit {name} here\n"
            "  do: fetch it (a CI system's checkout is often of one commit only), or leave BASE out"
        )
    return found.stdout.decode().strip()


def _of_commit(sha: str, name: str) -> str | None:
    """The stack file as it was in a commit of this repository; None when it was not there."""
    file = f"Pulumi.{name}.yaml"
    if _git("cat-file", "-e", f"{sha}:{file}").returncode:
        return None
    return _git("show", f"{sha}:{file}").stdout.decode(errors="replace")


def _git(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["git", *words], capture_output=True, check=False)


def _with_diff(told: Report, engine: Engine) -> Report:
    """The report with what the engine says to it."""
    done, found = _asked(engine, "--diff")
    good = done.returncode == 0
    return told.with_preview(done.stdout, problems=done.stderr, good=good, steps=found)


def steps(engine: Engine) -> tuple[str, ...]:
    """What the engine would do, as `_steps` writes it. Raises StackError when it is refused."""
    done, found = _asked(engine)
    if done.returncode:
        raise StackError(f"the preview is refused\n{done.stdout}{done.stderr}")
    return found


def _asked(engine: Engine, *words: str) -> tuple[subprocess.CompletedProcess[str], tuple[str, ...]]:
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder, _unchanged(engine.stack):
        log = Path(folder) / "events"
        done = engine.run(
            "preview",
            *words,
            "--color=never",
            # A link to the state of a bucket is signed: whoever reads it can fetch the state.
            "--suppress-permalink=true",
            f"--event-log={log}",
            # Without the first it does not know --event-log.
            extra={"PULUMI_DEBUG_COMMANDS": "true", **PLAN_SHOWN},
        )
        return done, _steps(log)


@contextmanager
def _unchanged(name: str) -> Iterator[None]:
    """Leave the stack file as it is: into one without a salt the engine writes a new one."""
    file = Path(f"Pulumi.{name}.yaml")
    before = file.read_bytes()
    try:
        yield
    finally:
        if file.read_bytes() != before:
            file.write_bytes(before)


def _steps(log: Path) -> tuple[str, ...]:
    """Every step but the quiet ones, sorted: what is done to which resource, by which inputs.

    Without values, as some are recreated in every run.
    """
    found = set()
    for line in log.read_text().splitlines() if log.exists() else ():
        step = json.loads(line).get("resourcePreEvent", {}).get("metadata")
        # Default providers are made and replaced by the way, and do nothing by themselves.
        if step and step["op"] not in _QUIET and not step["type"].startswith("pulumi:providers:"):
            changed = sorted(step.get("detailedDiff") or step.get("diffs") or ())
            why = f"  [{', '.join(changed)}]" if changed else ""
            found.add(f"{step['op']}  {step['type']}  {step['urn'].rpartition('::')[2]}{why}")
    return tuple(sorted(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
