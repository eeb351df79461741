"""Lists of names in their short form: `worker-[1-998],spare-[3-9/3],db`, as nodes.sh expands it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence


def ranges(names: Iterable[str]) -> str:
    """Names that count on written as one, so that a thousand take few bytes.

    `a-[1-3]` is a-1, a-2, a-3; `a-[1-9/4]` is a-1, a-5, a-9: machines take turns in their zones.
    """
    numbered, plain = _counted(names)
    parts = [
        f"{prefix}[{run[0]}-{run[-1]}{f'/{step}' if step > 1 else ''}]"
        for prefix in sorted(numbered)
        for run, step in _runs(sorted(numbered[prefix]))
    ]
    return ",".join([*parts, *sorted(plain)])


def spoken(names: Iterable[str]) -> str:
    """Names for people: `worker-1, worker-3 to worker-998, db`."""
    numbered, plain = _counted(names)
    parts = []
    for prefix in sorted(numbered):
        runs: list[list[int]] = []
        for number in sorted(numbered[prefix]):
            if runs and runs[-1][-1] == number - 1:
                runs[-1].append(number)
            else:
                runs.append([number])
        for run in runs:
            ends = [run[0]] if len(run) == 1 else [run[0], run[-1]]
            between = ", " if len(run) < 3 else " to "
            parts.append(between.join(f"{prefix}{number}" for number in ends))
    return ", ".join([*parts, *sorted(plain)])


def split(name: str) -> tuple[str, int | None]:
    """The number at the end of a name, without leading zeros, and what stands before it."""
    match = re.fullmatch(r"(.*?)(0|[1-9][0-9]*)", name)
    return (match[1], int(match[2])) if match else (name, None)


def _counted(names: Iterable[str]) -> tuple[dict[str, list[int]], list[str]]:
    """Numbers at the end of names by what stands before them, and the names without one."""
    numbered: dict[str, list[int]] = {}
    plain: list[str] = []
    for name in names:
        prefix, number = split(name)
        if number is None:
            plain.append(name)
        else:
            numbered.setdefault(prefix, []).append(number)
    return numbered, plain


def _runs(numbers: Sequence[int]) -> Iterator[tuple[Sequence[int], int]]:
    """The numbers, sorted and each there once, in runs of one step; with the step."""
    start = 0
    while start < len(numbers):
        end = start + 1
        step = numbers[end] - numbers[start] if end < len(numbers) else 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
            end += 1
        # Two that are apart are not a run: the second may well begin one.
        if step > 1 and end - start < 3:
            end, step = start + 1, 1
        yield numbers[start:end], step
        start = end
