"""The plan in words: what an `up` will do to which machine, for people, programs, pull requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from stacks.cluster.names import spoken
from stacks.cluster.plan import Plan
from stacks.config import redaction
from stacks.edits import endings
from stacks.edits.endings import Ending
from stacks.edits.memory import Memory
from stacks.edits.transition import Verdict
from stacks.explain import disruption, formats, markdown, waves
from stacks.explain.actions import Action, NodeChange, Wave
from stacks.explain.changes import Changes, changes

_NOTHING = (
    "nothing to do: the config is the one of the last successful up. If an up has failed or was "
    "broken off since, the engine's own list shows the commands that run again to take it back."
)
_UNCOMPARABLE = (
    "the last success was one of an older version of this program, which did not keep the config: "
    "only who joins and who leaves is told here, the engine's own list shows the rest"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    plan: Plan
    is_new: bool  # there is no cluster yet
    changes: Changes
    waves: tuple[Wave, ...]
    downtime: tuple[str, ...]
    verdict: Verdict
    endings: tuple[Ending, ...]  # of certificates, as the last success knew them

    @property
    def is_empty(self) -> bool:
        return not self.waves


def report(before: Memory | None, plan: Plan, verdict: Verdict) -> Report:
    """Everything a reviewer has to know of an edit that was not refused."""
    found = changes(before, plan)
    return Report(
        plan=plan,
        is_new=before is None,
        changes=found,
        waves=waves.waves(before, plan, found),
        downtime=disruption.downtime(before, plan, found),
        verdict=verdict,
        endings=before.endings if before else (),
    )


def warnings(said: Report, now: datetime) -> list[tuple[str, str]]:
    """What to see to, as (config path, text): of the config, the edit, and the calendar."""
    renewal = timedelta(hours=said.plan.spec.pki.leaf_renewal_hours)
    ending = endings.warnings(said.endings, renewal=renewal, now=now)
    return [*said.plan.warnings, *said.verdict.warnings, *ending]


def as_text(said: Report, now: datetime | None = None) -> str:
    """For a terminal, and for the engine's messages; `now`: with the days that are left."""
    lines = [_summary(said)]
    if said.endings:
        lines.append(endings.line(said.endings, now))
    lines += [f"ALLOWED {one.id}: {one.path}: {one.text}" for one in said.verdict.allowed]
    lines += [f"this version of the program: {line}" for line in said.changes.program]
    if not said.changes.comparable:
        lines.append(_UNCOMPARABLE)
    for number, wave in enumerate(said.waves, start=1):
        lines.append(f"{number}. {wave.title}, {wave.order}")
        lines += [f"     {line}" for line in wave.lines]
        for names, actions in _groups(wave.nodes):
            lines.append(f"     {spoken(names)}")
            lines += [f"       - {text}" for text in _texts(actions)]
        lines.append(f"     checked: {wave.checked}")
        lines.append(f"     an abort here leaves: {wave.abort}")
    if said.waves:
        lines.append(_downtime(said))
    return redaction.without("\n".join(lines) + "\n")


def as_markdown(said: Report) -> str:
    """For a comment in a pull request."""
    lines = [f"**{_summary(said)}**", ""]
    lines += [
        f"> **allowed** {markdown.code(one.id)}: {_words(one.text)}\n"
        for one in said.verdict.allowed
    ]
    lines += [f"> this version of the program: {_words(line)}\n" for line in said.changes.program]
    if not said.changes.comparable:
        lines.append(f"> {_UNCOMPARABLE}\n")
    if said.endings:
        lines += [_words(endings.line(said.endings)), ""]
    if said.waves:
        lines += ["| wave | nodes | what happens |", "|---|---|---|"]
        lines += [row for number, wave in enumerate(said.waves, 1) for row in _rows(number, wave)]
        lines += [
            "",
            _words(_downtime(said)),
            "",
            "<details><summary>checks and aborts</summary>",
            "",
        ]
        for number, wave in enumerate(said.waves, 1):
            lines.append(f"{number}. {_words(wave.title)}: checked: {_words(wave.checked)}. ")
            lines.append(f"   An abort leaves {_words(wave.abort)}.")
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _rows(number: int, wave: Wave) -> Iterator[str]:
    title = f"{number}. {_words(wave.title)}, {_words(wave.order)}"
    for line in wave.lines:
        yield f"| {title} | | {_words(line)} |"
        title = ""
    for names, actions in _groups(wave.nodes):
        what = "<br>".join(map(_words, _texts(actions)))
        yield f"| {title} | {spoken(names)} | {what} |"
        title = ""


def _words(said: str) -> str:
    return markdown.escaped(redaction.without(said))


def as_json(said: Report) -> str:
    """For programs; keys are stable. See docs/ci.md."""
    found = redaction.inside(
        {
            "cluster": said.plan.spec.cluster.name,
            "new": said.is_new,
            "comparable": said.changes.comparable,
            "summary": _summary(said),
            "unchanged": said.changes.unchanged,
            "allowed": [
                {"id": one.id, "path": one.path, "text": one.text} for one in said.verdict.allowed
            ],
            "warnings": [
                {"path": path, "text": words}
                for path, words in (*said.plan.warnings, *said.verdict.warnings)
            ],
            "program": list(said.changes.program),
            "downtime": list(said.downtime),
            "certificates": [
                {"kind": one.kind, "name": one.name, "ends": f"{one.ends:%Y-%m-%dT%H:%M:%SZ}"}
                for one in said.endings
            ],
            "waves": [_wave(wave) for wave in said.waves],
        }
    )
    return json.dumps(found, indent=2)


def _wave(wave: Wave) -> dict[str, object]:
    return {
        "title": wave.title,
        "order": wave.order,
        "lines": list(wave.lines),
        "nodes": [
            {
                "name": node.name,
                "kind": node.kind,
                "roles": list(node.roles),
                "actions": [{"phase": act.phase, "text": act.text} for act in node.actions],
            }
            for node in wave.nodes
        ],
        "checked": wave.checked,
        "abort": wave.abort,
    }


def _summary(said: Report) -> str:
    name = said.plan.spec.cluster.name
    if said.is_empty:
        return f"cluster {name}: {_NOTHING}"
    if said.is_new:
        return f"cluster {name} will be made: {formats.size(said.plan)}"
    parts = [
        f"{len(found)} {word}"
        for word, found in (
            ("new", said.changes.of("new")),
            ("made anew", said.changes.of("rebuilt")),
            ("changed", said.changes.of("changed")),
            ("leaving", said.changes.of("leaving")),
        )
        if found
    ]
    rest = f"{said.changes.unchanged} untouched" if said.changes.comparable else "the rest unknown"
    return f"cluster {name}, against its last successful up: {', '.join([*parts, rest])}"


def _downtime(said: Report) -> str:
    return "needs downtime of: " + ("; ".join(said.downtime) or "nothing")


def _texts(actions: Iterable[Action]) -> tuple[str, ...]:
    """What several phases of a node have in common is said once."""
    return tuple(dict.fromkeys(action.text for action in actions))


def _groups(
    nodes: Iterable[NodeChange],
) -> list[tuple[Sequence[str], tuple[Action, ...]]]:
    """Nodes with the same actions together, in the order of the first of them."""
    groups: dict[tuple[Action, ...], list[str]] = {}
    for node in nodes:
        groups.setdefault(node.actions, []).append(node.name)
    return [(names, actions) for actions, names in groups.items()]
