"""The checks of many nodes by one HAProxy: every node's part, with its own text."""

from __future__ import annotations

from tests.bench.checks import FIRST_PORT, sized, text_of
from tests.e2e.harness import config

WANTED = config.lab("test-bench-checks", "10.93.144.0/24", masters=3, workers=1)


def test_each_node_has_its_part_of_the_text_and_a_port_of_its_own() -> None:
    lines = text_of(sized(WANTED, 1000), 20).splitlines()
    assert [line for line in lines if line.startswith("listen ")] == [
        f"listen node-{number}" for number in range(20)
    ]
    binds = [line for line in lines if line.startswith("  bind ")]
    assert binds == [f"  bind 127.0.0.1:{FIRST_PORT + number}" for number in range(20)]
    assert sum(" check tcp-ut" in line for line in lines) == 60


def test_the_interval_is_that_of_the_size() -> None:
    for size, interval in ((100, "inter 2s "), (1000, "inter 5s ")):
        assert text_of(sized(WANTED, size), 2).count(interval) == 2
