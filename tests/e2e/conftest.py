"""What every story shares: its stack, its limit, and evidence of a failure, kept while the machines still run."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import STORY_LIMIT_S


@pytest.fixture(scope="module", autouse=True)
def _limit(request: pytest.FixtureRequest) -> Iterator[None]:
    """A story that takes too long fails where it is, with its evidence, and none of its tests continues."""

    def late(*_: object) -> None:
        words = f"{request.path.stem}: not at its end after {STORY_LIMIT_S / 60:.0f} min"
        request.session.shouldfail = words
        raise AssertionError(words)

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(STORY_LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """The stack of the story, by the config that its `wanted` gives; at its end nothing of it is left."""
    with Stack(request.path.stem.removeprefix("test_"), request.module.wanted()) as stack:
        yield stack


@pytest.fixture(scope="module")
def cluster(stack: Stack) -> Stack:
    """The same after its first up."""
    stack.up()
    return stack


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        # The hook sees tests of all folders.
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.lab)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and report.when != "teardown":
        for stack in Stack.there:
            stack.keep_journals()
    return report
