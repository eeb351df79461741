"""The comment on a pull request: made once, edited in place, never too long, and true when all fails."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "ci/comment.sh"
LIMIT = 65_536  # characters, of the body of a comment on GitHub
BOT = "github-actions[bot]"

# Stands for GitHub behind its client: comments are in comments.json, and bodies over the limit are refused.
GH = r"""#!/bin/bash
set -euo pipefail
cd "$(dirname "$0")/.."
printf '%s\n' "$*" >>calls
[[ ! -f down ]] || { echo 'gh: HTTP 502' >&2; exit 1; }
method=GET path='' filter='' body=''
[[ $1 == api ]] && shift
while (($#)); do
  case $1 in
    --method) method=$2; shift ;;
    --jq) filter=$2; shift ;;
    -F) body=${2#body=@}; shift ;;
    --paginate | --silent) ;;
    *) path=$1 ;;
  esac
  shift
done
[[ -z $body || $(wc -m <"$body") -le LIMIT ]] || { echo 'gh: Body is too long (HTTP 422)' >&2; exit 1; }
case $method:$path in
  GET:repos/o/r/issues/7/comments*) jq -r "$filter" comments.json; exit ;;
  GET:repos/o/r/pulls/7/files*) jq -r "$filter" files.json; exit ;;
  POST:repos/o/r/issues/7/comments) edit='. + [{id: (length + 100), user: {login: "github-actions[bot]"}, body: $body}]' ;;
  PATCH:repos/o/r/issues/comments/*) edit='map(if .id == ($id | tonumber) then .body = $body else . end)' ;;
  *) echo "gh: $method $path (HTTP 404)" >&2; exit 1 ;;
esac
jq --rawfile body "$body" --arg id "${path##*/}" "$edit" comments.json >new.json
mv new.json comments.json
""".replace("LIMIT", str(LIMIT))

PLAN = "**cluster prod will change**\n\n| wave | nodes |\n|---|---|\n| 1 | worker-1 |\n"
DIFF = "Previewing update (prod):\n~ command:remote:Command: (update)\n"


@dataclass(frozen=True, slots=True)
class GitHub:
    """Pull request 7 of o/r, and a folder for the report of a preview."""

    folder: Path

    @property
    def report(self) -> Path:
        return self.folder / "report"

    @property
    def comments(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads((self.folder / "comments.json").read_text())
        return found

    @property
    def body(self) -> str:
        """Of the only comment."""
        (comment,) = self.comments
        return str(comment["body"])

    def changes(self, *files: str) -> None:
        """What the pull request changes."""
        (self.folder / "files.json").write_text(json.dumps([{"filename": file} for file in files]))

    def holds(self, *comments: dict[str, object]) -> None:
        (self.folder / "comments.json").write_text(json.dumps(comments))

    def reports(
        self,
        *,
        plan: str = "good",
        preview: str = "good",
        words: str = PLAN,
        diff: str = DIFF,
        problems: str = "",
    ) -> None:
        self.report.mkdir(exist_ok=True)
        status = f"plan {plan}\npreview {preview}\nsteps 2 create, 1 update\n"
        files = {"status": status, "plan.md": words, "preview.txt": diff, "problems.txt": problems}
        for name, text in (files | {"digest": "0123abcd\n"}).items():
            (self.report / name).write_text(text)

    def run(self, *words: str, fails: bool = False, **extra: str) -> str:
        done = subprocess.run(
            ["bash", str(SCRIPT), *words],
            cwd=self.folder,
            env={
                "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
                "GITHUB_REPOSITORY": "o/r",
                "COMMIT": "c0ffee",
                "RUN_URL": "https://github.com/o/r/actions/runs/1",
                "ARTIFACT": "preview-prod",
                **extra,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode != 0) == fails, done.stdout
        return done.stdout

    def post(self, stack: str = "prod", *, fails: bool = False) -> str:
        return self.run("post", stack, "report", "7", fails=fails)


@pytest.fixture
def github(tmp_path: Path) -> GitHub:
    (tmp_path / "bin").mkdir()
    client = tmp_path / "bin/gh"
    client.write_text(GH)
    client.chmod(0o755)
    found = GitHub(tmp_path)
    found.holds()
    found.changes("Pulumi.prod.yaml")
    return found


def outside_of_code(body: str) -> str:
    """What a reader sees as Markdown; the rest is in code blocks. Asserts that each is closed."""
    fence, lines = "", []
    for line in body.splitlines():
        marks = line[: len(line) - len(line.lstrip("`"))]
        if not fence and len(marks) >= 3:
            fence = marks
        elif fence and len(marks) >= len(fence):
            fence = ""
        elif not fence:
            lines.append(line)
    assert not fence, "a code block is open at the end"
    return "\n".join(lines)


def test_a_change_of_the_planner_itself_is_said_above_its_plan(github: GitHub) -> None:
    """The code of the pull request wrote the report; the list of its files is GitHub's."""
    github.reports()
    github.changes(
        "README.md", "stacks/explain/report.py", "components/scripts/a`b.sh", "Pulumi.prod.yaml"
    )
    github.post()
    seen = outside_of_code(github.body)
    assert "changes the program that wrote this plan: read 2 of its files first" in seen
    assert "`stacks/explain/report.py components/scripts/ab.sh`" in seen
    assert seen.index("changes the program") < seen.index("cluster prod will change")
    github.changes("README.md", "Pulumi.prod.yaml")
    github.post()
    assert "changes the program" not in github.body


def test_the_first_preview_makes_a_comment_with_plan_and_diff(github: GitHub) -> None:
    github.reports()
    github.post()
    assert "### Stack `prod`: 2 create, 1 update" in github.body
    assert "commit c0ffee" in github.body
    assert PLAN in github.body
    assert f"```diff\n{DIFF}```" in github.body
    assert "digest `0123abcd`" in github.body


def test_the_next_preview_edits_it_in_place(github: GitHub) -> None:
    github.reports()
    github.post()
    (first,) = github.comments
    github.reports(words="**cluster prod: nothing to do**\n")
    github.post()
    (second,) = github.comments
    assert second["id"] == first["id"]
    assert "nothing to do" in github.body
    assert "will change" not in github.body


def test_every_stack_has_a_comment_of_its_own(github: GitHub) -> None:
    github.reports()
    for stack in ("prod", "prod-eu", "prod", "prod-eu"):
        github.post(stack)
    assert [str(c["body"]).splitlines()[1].split("`")[1] for c in github.comments] == [
        "prod",
        "prod-eu",
    ]


def test_a_comment_of_somebody_else_is_never_edited(github: GitHub) -> None:
    marker = "<!-- kube-ha preview of stack prod -->"
    theirs: dict[str, object] = {"id": 1, "user": {"login": "eve"}, "body": f"{marker}\nfine!"}
    quoted: dict[str, object] = {"id": 2, "user": {"login": BOT}, "body": f"look: {marker}"}
    github.holds(theirs, quoted)
    github.reports()
    github.post()
    assert github.comments[:2] == [theirs, quoted]
    assert len(github.comments) == 3


def test_a_diff_that_is_too_long_is_cut_with_a_note(github: GitHub) -> None:
    lines = [
        f"    + resource number {number} of a cluster that is very large" for number in range(9000)
    ]
    github.reports(diff="\n".join(lines) + "\n", problems="a note of the engine\n" * 9000)
    github.post()
    assert len(github.body) <= LIMIT
    assert lines[0] in github.body
    assert lines[-1] not in github.body
    shown = sum(line in lines for line in github.body.splitlines())
    seen = outside_of_code(github.body)
    assert (
        f"*{len(lines) - shown} more lines, left out here: the whole text is in artifact `preview-prod`"
        in seen
    )
    assert seen.count("<details>") == seen.count("</details>") == 1
    assert seen.rstrip().endswith("digest `0123abcd`.")


def test_a_plan_that_is_too_long_leaves_room_for_the_diff(github: GitHub) -> None:
    rows = "".join(
        f"| {number} | worker-{number} is prepared and joins |\n" for number in range(9000)
    )
    github.reports(
        words=f"{PLAN}\n<details><summary>all</summary>\n\n````text\n```\n{rows}````\n</details>\n"
    )
    github.post()
    assert len(github.body) <= LIMIT
    assert DIFF in github.body
    seen = outside_of_code(github.body)
    assert "more lines, left out here" in seen
    assert seen.count("<details>") == seen.count("</details>") == 2


def test_characters_of_many_bytes_are_not_cut_in_two(github: GitHub) -> None:
    github.reports(diff="ü€😀" * 20 + "\n" + "😀" * 40_000 + "\n")
    github.post()
    assert "ü€😀" in github.body
    assert "�" not in github.body
    assert "*1 more lines" in github.body


def test_a_refused_plan_is_told_with_its_problems(github: GitHub) -> None:
    github.reports()
    github.post()
    github.reports(
        plan="refused", preview="none", words="**refused**\n\n- `pools`: too few\n", diff=""
    )
    github.post()
    assert "### Stack `prod`: the plan is refused" in github.body
    assert "- `pools`: too few" in github.body
    assert "digest" not in github.body


def test_a_refused_preview_is_told_with_the_plan_and_the_problems(github: GitHub) -> None:
    github.reports(preview="refused", problems="ERROR incorrect passphrase\n")
    github.post()
    assert "### Stack `prod`: the preview is refused" in github.body
    assert PLAN in github.body
    assert "```text\nERROR incorrect passphrase\n```" in github.body


def test_a_plan_without_the_engine_says_so(github: GitHub) -> None:
    github.reports(preview="none", diff="")
    assert "plan only, the engine was not asked" in github.run("body", "prod", "report")


def test_without_a_report_the_old_one_does_not_stay(github: GitHub) -> None:
    github.reports()
    github.post()
    for file in github.report.iterdir():
        file.unlink()
    github.post()
    assert "the preview was interrupted before it could tell anything" in github.body
    assert "will change" not in github.body
    assert "https://github.com/o/r/actions/runs/1" in github.body


def test_text_cannot_leave_its_code_block(github: GitHub) -> None:
    escape = "```\n</details>\n# Approved\n````\n# Approved\n"
    github.reports(diff=escape, problems=escape)
    github.post()
    assert "Approved" not in outside_of_code(github.body)


def test_a_failure_of_github_fails_the_step(github: GitHub) -> None:
    github.reports()
    (github.folder / "down").touch()
    assert "HTTP 502" in github.post(fails=True)


def test_only_posting_needs_github(github: GitHub) -> None:
    github.reports()
    body = github.run("body", "prod", "report")
    assert not (github.folder / "calls").exists()
    github.post()
    assert github.body.rstrip("\n") == body.rstrip("\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("post", 'x") | .id, ("', "report", "7"), "is not a name of a stack"),
        (("post", "prod", "report", "7/../8"), "is not a number of a pull request"),
        (("edit", "prod", "report"), "unknown verb 'edit'"),
        ((), "is not a name of a stack"),
    ],
)
def test_what_it_cannot_use_is_refused(github: GitHub, words: tuple[str, ...], reason: str) -> None:
    assert reason in github.run(*words, fails=True)
    assert not (github.folder / "calls").exists()
