"""Which API server a hollow kubelet asks first."""

from __future__ import annotations

import asyncio
from typing import cast

import aiohttp
import pytest

from tests.e2e.harness.hollow import api

SERVERS = ("a:6443", "b:6443", "c:6443")


def test_one_that_did_not_answer_is_asked_last_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def orders() -> tuple[list[str], ...]:
        asked = api.Api(SERVERS, cast("aiohttp.ClientSession", None))
        before = asked.order(1)
        asked.failed("b:6443")
        during = asked.order(1)
        monkeypatch.setattr(api, "OUT_S", 0)
        asked.failed("b:6443")
        return before, during, asked.order(1)

    before, during, after = asyncio.run(orders())
    assert before == after == ["b:6443", "c:6443", "a:6443"]
    assert during == ["c:6443", "a:6443", "b:6443"]
