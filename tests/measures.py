"""What a story measured, as its machines and clients reported it: lines of a file while it runs, part of the record when it has
passed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

FILE = "measures.jsonl"  # in the story's folder of logs


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """How long something took, in seconds; `what` says which update or recovery."""

    what: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Requests of one client while something happened."""

    during: str
    client: str
    requests: int
    failed: int  # no answer at the first try
    failed_twice: int  # nor at the second one
    gap_ms: int  # longest time between two good answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A measure that is neither."""

    text: str


Measure = Took | Served | Note
_KINDS: dict[str, type[Took | Served | Note]] = {"took": Took, "served": Served, "note": Note}


def entry(measure: Measure) -> dict[str, object]:
    """As JSON, with its kind."""
    (kind,) = [word for word, one in _KINDS.items() if isinstance(measure, one)]
    return {"kind": kind, **asdict(measure)}


def of_entry(found: dict[str, object]) -> Measure:
    """Back from JSON. Raises KeyError and TypeError for what `entry` did not make."""
    values = dict(found)
    made: Measure = _KINDS[str(values.pop("kind"))](**values)  # type: ignore[arg-type]
    return made


def add(folder: Path, measure: Measure) -> None:
    """Keep it with those before it."""
    with (folder / FILE).open("a") as file:
        file.write(json.dumps(entry(measure)) + "\n")


def read(folder: Path) -> list[Measure]:
    """All of a story's run; none where it measured nothing."""
    try:
        lines = (folder / FILE).read_text().splitlines()
    except FileNotFoundError:
        return []
    return [of_entry(json.loads(line)) for line in lines]


def sentence(measure: Measure) -> str:
    """For the log and the end of a run."""
    match measure:
        case Took():
            return f"{measure.what}: {measure.seconds:.1f} s"
        case Served():
            return (
                f"{measure.during}: {measure.client}: {measure.failed} of {measure.requests} requests "
                f"failed, {measure.failed_twice} after a retry, longest gap {measure.gap_ms} ms"
            )
        case Note():
            return measure.text
