"""When the first certificates of a stack end, as its last success knew it. Pure.

Only an update renews leaf certificates, so a year without one ends a cluster. Every preview says
so, by what the stack remembers: the plan itself knows no dates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

SOON = timedelta(days=60)  # from then on somebody has to see to it
_KINDS = {"leaf": "leaf", "ca": "CA"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The first one of its kind that ends."""

    kind: str  # leaf or ca
    name: str
    ends: datetime

    @property
    def said(self) -> str:
        return f"{_KINDS[self.kind]} {self.name}"


def first(kind: str, ends: Mapping[str, str]) -> dict[str, str]:
    """What to remember of these: the first one's name, and its end in UTC; ends as RFC 3339."""
    known = {name: datetime.fromisoformat(text).astimezone(UTC) for name, text in ends.items()}
    name = min(known, key=lambda name: (known[name], name))
    return {"kind": kind, "name": name, "ends": f"{known[name]:%Y-%m-%dT%H:%M:%SZ}"}


def read(found: object) -> tuple[Ending, ...]:
    """As they were remembered; nothing of what is none, or was not remembered yet."""
    return tuple(_endings(found if isinstance(found, list) else []))


def _endings(entries: list[object]) -> Iterator[Ending]:
    for entry in entries:
        known = entry if isinstance(entry, Mapping) else {}
        kind, name, ends = (str(known.get(key, "")) for key in ("kind", "name", "ends"))
        try:
            day = datetime.fromisoformat(ends)
        except ValueError:
            continue
        if kind in _KINDS and day.tzinfo is not None:
            yield Ending(kind=kind, name=name, ends=day)


def line(found: tuple[Ending, ...], now: datetime | None = None) -> str:
    """What a preview says of them; with the days that are left where `now` is given."""
    if not found:
        return ""
    return "certificates, as of the last success: the first to end are " + " and ".join(
        f"{one.said} on {one.ends:%Y-%m-%d}" + (f" ({_left(one, now)})" if now else "")
        for one in found
    )


def _left(one: Ending, now: datetime) -> str:
    days = (one.ends - now).days
    return f"{days} days left" if days >= 0 else "HAS ENDED"


def warnings(
    found: tuple[Ending, ...], *, renewal: timedelta, now: datetime
) -> list[tuple[str, str]]:
    """Those that end soon, as (config path, what to do)."""
    return [_warning(one, renewal, now) for one in found if one.ends - now < SOON]


def _warning(one: Ending, renewal: timedelta, now: datetime) -> tuple[str, str]:
    # The day, and not how many are left: an approval of this preview holds for more than one.
    when = "has ended" if one.ends <= now else "ends"
    said = f"{one.said} {when} on {one.ends:%Y-%m-%d}"
    if one.kind == "ca":
        return "pki.rotation", f"{said}; replace it in three steps (docs/operate/rotate.md)"
    if one.ends - renewal <= now:
        return "pki.leafRenewalHours", f"{said}; this update renews it"
    due = f"an update from {one.ends - renewal:%Y-%m-%d} on renews it"
    return "pki.leafRenewalHours", f"{said}; {due}, or raise leafRenewalHours"
