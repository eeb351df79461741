"""The replay of a rollout: waves one after the other, slots shared between nodes and gates."""

from __future__ import annotations

import pytest

from tests.bench.rollout import Times, replay

TIMES = Times(worker_s=10, master_s=60)


def waves(sizes: list[int]) -> tuple[dict[str, frozenset[str]], list[frozenset[str]]]:
    """The graph of workers in waves of these sizes, as stacks/order/workers.py makes it."""
    waits: dict[str, frozenset[str]] = {"prod-wave-0": frozenset()}
    made: list[frozenset[str]] = []
    number = 0
    for wave, size in enumerate(sizes):
        names = [f"prod-worker-{number + step}-node" for step in range(size)]
        number += size
        waits |= {name: frozenset({f"prod-wave-{wave}"}) for name in names}
        made.append(frozenset(names))
        if wave + 1 < len(sizes):
            waits[f"prod-wave-{wave + 1}"] = frozenset({f"prod-wave-{wave}"})
    return waits, made


@pytest.mark.parametrize(
    ("sizes", "slots", "seconds"),
    [
        ([1], 8, 10.5),
        ([4], 4, 10.5),
        ([4], 2, 20.5),
        ([2, 2], 8, 20.5),
        # The gate after the first wave takes one of the two slots.
        ([2, 2], 2, 30.5),
    ],
)
def test_a_rollout_takes_as_long_as_its_waves_and_slots_let_it(
    sizes: list[int], slots: int, seconds: float
) -> None:
    assert replay(*waves(sizes), times=TIMES, slots=slots) == seconds


def test_with_one_slot_a_gate_waits_for_ever() -> None:
    with pytest.raises(ValueError, match="nothing moves"):
        replay(*waves([1, 1]), times=TIMES, slots=1)
