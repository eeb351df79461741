"""How the specs of a run ended, on one screen and as JUnit."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Result = Literal["passed", "failed", "known", "not run"]
Why = Callable[[str], str]  # words about a spec of that name; empty: none
_SHOWN = 160  # of a failure's words, on the screen
_LISTED = 40  # failures on the screen; JUnit has them all
_ENDED_EARLY = "the run ended before it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One spec of the run; `words`: why it failed or did not run.

    Known: it failed, and the network's own documentation says that it does.
    """

    name: str
    result: Result
    seconds: float
    words: str = ""
    output: str = ""  # of a failed one


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which specs were wanted."""

    focus: str
    skip: str

    def has(self, name: str) -> bool:
        if not re.search(self.focus, name):
            return False
        return not (self.skip and re.search(self.skip, name))


def read(file: Path, choice: Choice, *, lacking: Why, known: Why) -> list[Spec]:
    """The wanted specs of ginkgo's report, and what failed around them, by name.

    `lacking`: why a spec was left out; `known`: why one may fail.
    """
    suites = json.loads(file.read_bytes())
    reports = [report for suite in suites for report in suite.get("SpecReports") or []]
    return sorted(_specs(reports, choice, lacking, known), key=lambda spec: spec.name)


def _specs(
    reports: Sequence[Mapping[str, object]], choice: Choice, lacking: Why, known: Why
) -> Iterator[Spec]:
    for report in reports:
        texts = [*_texts(report.get("ContainerHierarchyTexts")), str(report["LeafNodeText"])]
        name, state = " ".join(text for text in texts if text), str(report["State"])
        is_spec = report["LeafNodeType"] == "It"
        if not is_spec:  # set-up of the whole, that of a process, reports
            name = name or str(report["LeafNodeType"])
        if (is_spec and not choice.has(name)) or (not is_spec and state in ("passed", "skipped")):
            continue
        failure = report.get("Failure")
        words = str(failure.get("Message") or "") if isinstance(failure, dict) else ""
        seconds = float(str(report.get("RunTime") or 0)) / 1e9
        if state == "passed":
            yield Spec(name=name, result="passed", seconds=seconds)
        elif state in ("skipped", "pending"):
            why = lacking(name) or words or ("pending" if state == "pending" else _ENDED_EARLY)
            yield Spec(name=name, result="not run", seconds=0, words=_line(why))
        elif state == "failed" and (why := known(name)):
            yield Spec(name=name, result="known", seconds=seconds, words=why)
        else:
            output = str(report.get("CapturedGinkgoWriterOutput") or "")
            output += str(report.get("CapturedStdOutErr") or "")
            text = words.strip() or state
            yield Spec(name=name, result="failed", seconds=seconds, words=text, output=output)


def good(specs: Sequence[Spec], code: int) -> bool:
    """Whether it is a pass: something ran, and ginkgo is content but for what is known."""
    if _of(specs, "failed") or not _of(specs, "passed"):
        return False
    whole = all(spec.words != _ENDED_EARLY for spec in specs)
    return code == 0 or (whole and bool(_of(specs, "known")))


def screen(specs: Sequence[Spec], code: int, *, seconds: float) -> list[str]:
    """Lines for a person."""
    failed, known = _of(specs, "failed"), _of(specs, "known")
    lines = [f"passed   {len(_of(specs, 'passed'))}", f"failed   {len(failed)}"]
    for spec in failed[:_LISTED]:
        lines += [f"  {spec.name}", f"    {_line(spec.words)[:_SHOWN]}"]
    if len(failed) > _LISTED:
        lines.append(f"  and {len(failed) - _LISTED} more")
    if known:
        lines += [f"known    {len(known)}, failed as the network's documentation says"]
        lines += _by_reason(known)
    left = _of(specs, "not run")
    lines += [f"not run  {len(left)}", *_by_reason(left)]
    if code and not failed and not known:
        lines.append(f"ginkgo ended with {code}, though no spec failed: see the end of its log")
    return [*lines, f"took {seconds / 60:.0f} min"]


def junit(specs: Sequence[Spec], file: Path, name: str) -> None:
    """Write what CI systems read: skipped ones are those that did not run, and those known."""
    counts = {
        "tests": len(specs),
        "failures": len(_of(specs, "failed")),
        "skipped": len(_of(specs, "not run")) + len(_of(specs, "known")),
    }
    root = ElementTree.Element(
        "testsuite", {"name": name, **{key: str(count) for key, count in counts.items()}}
    )
    for spec in specs:
        case = ElementTree.SubElement(
            root, "testcase", {"name": spec.name, "classname": name, "time": f"{spec.seconds:.1f}"}
        )
        if spec.result in ("not run", "known"):
            ElementTree.SubElement(case, "skipped", {"message": _plain(spec.words)})
        elif spec.result == "failed":
            words = _plain(spec.words)
            failure = ElementTree.SubElement(case, "failure", {"message": _line(words)})
            failure.text = words
            ElementTree.SubElement(case, "system-out").text = _plain(spec.output)
    file.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))


def _by_reason(specs: Sequence[Spec]) -> Iterator[str]:
    for why in sorted({spec.words for spec in specs}):
        names = [spec.name for spec in specs if spec.words == why]
        yield f"  {why[:_SHOWN]}: {len(names)}"
        yield from (f"    {name}" for name in names[:_LISTED])


def _of(specs: Sequence[Spec], result: Result) -> list[Spec]:
    return [spec for spec in specs if spec.result == result]


def _texts(found: object) -> list[str]:
    return [str(text) for text in found] if isinstance(found, list) else []


def _line(text: str) -> str:
    return " ".join(text.split())


def _plain(text: str) -> str:
    """Without characters that XML cannot hold."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text)
