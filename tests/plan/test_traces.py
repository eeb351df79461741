"""What the SDK tells the engine of the program, and nobody needs."""

from __future__ import annotations

from unittest import mock

import pytest
from pulumi import log

from components.traces import without_debug


@pytest.mark.parametrize(
    ("asked_for", "sent"), [("", ["a warning"]), ("1", ["a debug message", "a warning"])]
)
def test_debug_messages_are_sent_to_who_asks_for_them(
    monkeypatch: pytest.MonkeyPatch, asked_for: str, sent: list[str]
) -> None:
    engine = mock.Mock()
    monkeypatch.setattr(log, "debug", log.debug)  # put back at the end
    monkeypatch.setattr(log, "get_engine", lambda: engine)
    monkeypatch.setenv("KUBE_HA_DEBUG", asked_for)
    without_debug()
    log.debug("a debug message")
    log.warn("a warning")
    assert [call.args[0].message for call in engine.Log.call_args_list] == sent
