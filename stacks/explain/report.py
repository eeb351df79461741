"""What a reviewer has to know of an edit; terminal.py, comment.py and document.py write it down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from stacks.cluster.plan import Plan
from stacks.edits import endings
from stacks.edits.endings import Ending
from stacks.edits.memory import Memory
from stacks.edits.transition import Verdict
from stacks.explain import sizing, waves
from stacks.explain.actions import Wave
from stacks.explain.changes import Changes, changes
from stacks.explain.headline import Headline, headline

NOTHING = (
    "nothing to do: the config is the one last applied. If an update has failed or was "
    "interrupted since, the engine's own list shows the commands that run again to take it back."
)
UNCOMPARABLE = (
    "the config was last applied by an older version of this program, which did not keep it: only "
    "nodes that are added or removed are told here, the engine's own list shows the rest"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    plan: Plan
    is_new: bool  # there is no cluster yet
    changes: Changes
    waves: tuple[Wave, ...]
    headline: Headline
    verdict: Verdict
    sizing: str  # empty: nothing is decided about it
    endings: tuple[Ending, ...]  # of certificates, as the last success knew them

    @property
    def is_empty(self) -> bool:
        return not self.waves

    @property
    def title(self) -> str:
        """Of what, and compared with what."""
        what = "a new cluster" if self.is_new else "compared with the config last applied"
        return f"Plan for cluster {self.plan.spec.cluster.name}, {what}"


def report(before: Memory | None, plan: Plan, verdict: Verdict) -> Report:
    """Everything a reviewer has to know of an edit that was not refused."""
    found = changes(before, plan)
    return Report(
        plan=plan,
        is_new=before is None,
        changes=found,
        waves=waves.waves(before, plan, found),
        headline=headline(before, plan, found),
        verdict=verdict,
        sizing=sizing.line(before, plan, found),
        endings=before.endings if before else (),
    )


def warnings(said: Report, now: datetime) -> list[tuple[str, str]]:
    """What to see to, as (config path, text): of the config, the edit, and the calendar."""
    renewal = timedelta(hours=said.plan.spec.pki.leaf_renewal_hours)
    ending = endings.warnings(said.endings, renewal=renewal, now=now)
    missed = [
        (f"nodes.{name}.state", f"put off until {name} is back: {text}")
        for name, text in said.changes.put_off
    ]
    return [*said.plan.warnings, *said.verdict.warnings, *missed, *ending]
