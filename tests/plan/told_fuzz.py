"""Draws pairs of configs and compares what is told with what is done: `python -m tests.plan.told_fuzz --pairs 10000`.

The pairs of a life come from its number and the seed alone, so a run is taken up again by its seed and the next life.
Each kind of finding is printed once more at the end, with its pair made small. The program runs for that in this
process, whose threads a process that is forked later would not have.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tests.plan.settled import Stacks
from tests.plan.told_lives import UPDATES, Update, life
from tests.plan.told_pairs import Pair
from tests.plan.told_shrunk import shrunk

_LIVES = 20  # of one process: caches of the SDK and keys go with it
_MOST_BYTES = 6 << 30  # of memory, in each process
_SAID_S = 60


@dataclass(frozen=True, slots=True)
class Found:
    kind: str
    text: str
    pair: Pair | None  # None: the life broke while an edit of it was drawn
    life: int


@dataclass(slots=True)
class Seen:
    """What lives have shown."""

    lives: int = 0
    pairs: int = 0
    processor_s: float = 0
    of: Counter[str] = field(default_factory=Counter)  # pairs, by what is in them
    found: list[Found] = field(default_factory=list)

    def add(self, other: Seen) -> None:
        self.lives += other.lives
        self.pairs += other.pairs
        self.processor_s += other.processor_s
        self.of += other.of
        self.found += other.found


def main() -> int:
    """Exit code: 0 when all that was told was done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=int(time.time()) // 60)
    parser.add_argument("--first", type=int, default=0, help="number of the first life")
    parser.add_argument("--at-once", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    numbers = range(given.first, given.first + -(-given.pairs // UPDATES))
    _say(
        f"seed {given.seed}, lives {numbers.start} to {numbers.stop - 1}, {given.at_once} at a time"
    )
    all_, said, first = Seen(), time.monotonic(), dict[str, Found]()
    for seen in _lived(given.seed, numbers, given.at_once):
        all_.add(seen)
        for found in seen.found:
            _show(found)
            first.setdefault(found.kind, found)
        if time.monotonic() - said > _SAID_S:
            said = time.monotonic()
            _say(_progress(all_, given.first))
    _say(_progress(all_, given.first))
    _say(f"pairs with: {', '.join(f'{name} {count}' for name, count in sorted(all_.of.items()))}")
    for kind, count in Counter(found.kind for found in all_.found).most_common():
        _say(f"{count} x {kind}")
    for found in first.values():
        _show_small(found)
    return 1 if first else 0


def _lived(seed: int, numbers: range, at_once: int) -> Iterator[Seen]:
    """In their order, so that what is left of a run begins with one number."""
    _imported()
    work = [(seed, number) for number in numbers]
    # Forked: each would take a while to import the SDKs of the clouds.
    context = multiprocessing.get_context("fork")
    with context.Pool(at_once, initializer=_begun, maxtasksperchild=_LIVES) as pool:
        yield from pool.imap(_one, work)


def _imported() -> None:
    for name in (
        "pulumi_gcp.compute",
        "pulumi_gcp.dns",
        "pulumi_aws.ec2",
        "pulumi_aws.lb",
        "pulumi_hcloud",
    ):
        __import__(name)
    gc.collect()
    gc.freeze()


def _begun() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    gc.set_threshold(50_000, 20, 20)
    _stacks.cache_clear()


@cache
def _stacks() -> Stacks:
    return Stacks(Path(tempfile.mkdtemp(prefix="told-")))


def _one(work: tuple[int, int]) -> Seen:
    seed, number = work
    seen, began = Seen(lives=1), time.process_time()
    try:
        for update in life(_stacks(), seed, number):
            seen.pairs += 1
            seen.of.update(_in(update))
            seen.found += [
                Found(one.kind, one.text, update.pair, number) for one in update.findings()
            ]
    except Exception as error:  # an edit that breaks the checks is a finding, and ends its life
        text = "".join(traceback.format_exception(error)[-3:])
        seen.found.append(Found(f"drawing: {type(error).__name__}", text, None, number))
    seen.processor_s = time.process_time() - began
    return seen


def _in(update: Update) -> Iterator[str]:
    """What a pair has in it."""
    pair = update.pair
    for section, key in (("machines", "provider"), ("network", "plugin")):
        said = pair.after.get(section, {})
        yield f"{key} {said.get(key, 'by default') if isinstance(said, Mapping) else said}"
    yield from (f"section {key}" for key in pair.after)
    if pair.before is None:
        yield "a birth"
    else:
        keys = {*pair.before, *pair.after}
        yield from (f"edit of {k}" for k in keys if pair.before.get(k) != pair.after.get(k))
    if pair.silent:
        yield "silent machines"
    if update.told and not update.told.run.changes:
        yield "nothing to do"


def _show(found: Found) -> None:
    where = found.pair.name if found.pair else f"life {found.life}"
    _say(f"FALSE {found.kind} ({where}): {found.text}")


def _show_small(found: Found) -> None:
    """The pair, as small as it can be while it is told falsely."""
    if found.pair is None:
        return
    small = shrunk(_stacks(), found.pair, found.kind)
    _say(
        f"{found.kind}: {found.pair.name}, {'made small' if small else 'only behind the updates before it'}"
    )
    pair = small or found.pair
    _say(f"  before {json.dumps(pair.before)}")
    _say(f"  after {json.dumps(pair.after)}")
    _say(f"  silent {sorted(pair.silent)}")


def _progress(seen: Seen, first: int) -> str:
    each = seen.processor_s / (seen.pairs or 1)
    return (
        f"{seen.pairs} pairs, lives {first} to {first + seen.lives - 1}; "
        f"{each:.2f} s of a processor each; {len(seen.found)} findings"
    )


def _say(line: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # The program that is compared takes the name __main__, by which nothing that a process hands
    # over would be found again: by its own name it is.
    from tests.plan import told_fuzz

    sys.exit(told_fuzz.main())
