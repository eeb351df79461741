"""What the controls say of a stack's machines: verdicts, and their table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from operations.cis.control import Control
from operations.cis.facts import Facts
from stacks.cluster import names

Result = Literal["PASS", "FAIL", "BY-DESIGN", "N-A", "MANUAL", "UNKNOWN"]
# The worst first.
_ORDER: tuple[Result, ...] = ("FAIL", "UNKNOWN", "BY-DESIGN", "MANUAL", "PASS", "N-A")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    result: Result
    text: str  # what is wrong, or why it is meant
    nodes: tuple[str, ...]  # those of which it is true


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    control: Control
    verdicts: tuple[Verdict, ...]  # the worst first; one where all machines agree

    @property
    def result(self) -> Result:
        return self.verdicts[0].result if self.verdicts else "N-A"


def of_machine(control: Control, facts: Facts) -> tuple[Result, str]:
    """What a control says of one machine that it concerns."""
    if control.decide is None:
        return "MANUAL", control.reason
    trouble = control.decide(facts)
    if trouble is None:
        return "N-A", ""
    if not trouble:
        return "PASS", ""
    if control.reason and control.meant(facts):
        return "BY-DESIGN", f"{trouble}: {control.reason}"
    return "FAIL", trouble


def judge(
    controls: Iterable[Control],
    concerned: Mapping[str, Sequence[str]],
    found: Mapping[str, Facts | None],
) -> list[Judged]:
    """Verdicts on each control, by the machines that it concerns (control id -> names).

    A machine that did not answer is unknown to every control that asks it.
    """
    out = []
    for control in controls:
        groups: dict[tuple[Result, str], list[str]] = {}
        for name in concerned[control.id]:
            facts = found[name]
            said: tuple[Result, str] = ("UNKNOWN", "does not answer")
            if facts is not None or control.decide is None:
                said = of_machine(control, facts or _SILENT)
            groups.setdefault(said, []).append(name)
        verdicts = [
            Verdict(result=result, text=text, nodes=tuple(nodes))
            for (result, text), nodes in groups.items()
        ]
        verdicts.sort(key=lambda verdict: _ORDER.index(verdict.result))
        out.append(Judged(control=control, verdicts=tuple(verdicts)))
    return out


_SILENT = Facts(flags={}, modes={}, documents={}, providers=(), proxy_metrics=())


def failed(judged: Iterable[Judged]) -> list[Judged]:
    """Scored controls that fail somewhere."""
    return [each for each in judged if each.control.scored and each.result == "FAIL"]


def table(judged: Sequence[Judged]) -> list[str]:
    """Lines for a person: a control each, and below it who differs."""
    lines = []
    for each in judged:
        word = each.result + ("" if each.control.scored else " (not scored)")
        lines.append(f"{each.control.id:7} {word:22} {each.control.title}")
        for verdict in each.verdicts:
            where = f"{_listed(verdict.nodes)}: " if len(each.verdicts) > 1 else ""
            if verdict.text or where:
                lines.append(f"{'':8}{where}{verdict.text or verdict.result}")
    counted = Counter(each.result for each in judged)
    words = ", ".join(f"{counted[word]} {word}" for word in _ORDER if counted[word])
    lines.append(f"{len(judged)} controls: {words}; {len(failed(judged))} scored ones FAIL")
    return lines


def _listed(nodes: Sequence[str]) -> str:
    return ", ".join(nodes) if len(nodes) < 4 else names.ranges(nodes)


def document(judged: Sequence[Judged]) -> dict[str, object]:
    """The same for programs: keys as documented in docs/reference/cis.md."""
    return {
        "scoredFailures": [each.control.id for each in failed(judged)],
        "controls": [
            {
                "id": each.control.id,
                "title": each.control.title,
                "scored": each.control.scored,
                "result": each.result,
                "verdicts": [
                    {"result": one.result, "text": one.text, "nodes": list(one.nodes)}
                    for one in each.verdicts
                ],
            }
            for each in judged
        ],
    }
