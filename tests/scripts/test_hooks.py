"""The user's webhook: who may wait for it, what it is told, whom it sees, and what its answers mean."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripts.node_api import NodeApi
from tests.scripts.shell import Shell
from tests.scripts.webhook import Webhook, certify

ALL = ("beforeDrain", "afterUncordon", "beforeRelease")


@pytest.fixture
def webhook(tmp_path: Path, shell: Shell) -> Iterator[Webhook]:
    hook = Webhook(tmp_path, text="not now\n::error::x")
    certify(tmp_path, "kubelet", "/O=system:nodes/CN=system:node:master-1")
    shell.identity.parent.mkdir(parents=True, exist_ok=True)
    shell.identity.write_text(
        (tmp_path / "kubelet.crt").read_text() + (tmp_path / "kubelet.key").read_text()
    )
    hook.start(callers=hook.ca)
    yield hook
    hook.stop()


def ask(
    shell: Shell,
    hook: Webhook,
    event: str = "beforeDrain",
    *,
    events: tuple[str, ...] = ALL,
    fails: bool = False,
) -> str:
    """What a phase says that asks about worker-1; it waits for 2 s at most."""
    said = {
        "url": hook.url,
        "events": events,
        "timeoutS": 2,
        "ca": hook.ca.read_text(),
    }
    known = shell.root / "etc/kube-ha/hooks.json"
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text(json.dumps(said))
    code = f'tell_hook {event} worker-1 "leaves"; echo went on'
    return shell.run(code, phase="nodes", fails=fails)


def test_it_is_told_what_happens_and_sees_by_whom(shell: Shell, webhook: Webhook) -> None:
    assert "went on" in ask(shell, webhook)
    told = {
        "event": "beforeDrain",
        "cluster": "dev",
        "node": "worker-1",
        "by": "master-1",
        "reason": "leaves",
    }
    assert webhook.asked == [{**told, "caller": "system:node:master-1", "seen": None}]


def test_events_that_it_does_not_want_are_not_sent(shell: Shell, webhook: Webhook) -> None:
    assert "went on" in ask(shell, webhook, events=("afterUncordon",))
    assert webhook.asked == []


@pytest.mark.parametrize("content", [None, ""])
def test_without_a_webhook_nothing_is_asked(shell: Shell, content: str | None) -> None:
    if content is not None:
        (shell.root / "etc/kube-ha").mkdir(parents=True)
        (shell.root / "etc/kube-ha/hooks.json").write_text(content)
    shell.stub("curl", "exit 1")
    shell.run("tell_hook beforeDrain worker-1 x", phase="nodes")
    assert shell.calls == []


@pytest.mark.parametrize("not_yet", [425, 429, 503])
def test_one_that_is_not_ready_is_asked_again(shell: Shell, webhook: Webhook, not_yet: int) -> None:
    webhook.answers = [not_yet, 204]
    assert "went on" in ask(shell, webhook)
    assert len(webhook.asked) == 2


@pytest.mark.parametrize("event", ["beforeDrain", "beforeRelease"])
def test_a_no_ends_the_phase(shell: Shell, webhook: Webhook, event: str) -> None:
    webhook.answers = [403]
    out = ask(shell, webhook, event, fails=True)
    assert f"the hook {event} of worker-1 at {webhook.url}: HTTP 403 not now ::error::x" in out
    assert f"or take {event} out of hooks.events" in out
    assert "went on" not in out
    assert len(webhook.asked) == 1


def test_no_consent_in_time_is_a_no(shell: Shell, webhook: Webhook) -> None:
    webhook.answers = [503]
    out = ask(shell, webhook, fails=True)
    assert "no consent within 2 s; last answer: HTTP 503 not now" in out
    assert len(webhook.asked) >= 2


def test_one_that_is_away_is_a_no(shell: Shell, webhook: Webhook) -> None:
    webhook.port = 1
    assert "no consent within 2 s; last answer: HTTP 000 curl: (7)" in ask(
        shell, webhook, fails=True
    )


def test_what_is_over_already_is_only_told(shell: Shell, webhook: Webhook) -> None:
    webhook.answers = [500]
    out = ask(shell, webhook, "afterUncordon")
    assert "WARNING the hook afterUncordon of worker-1 at https://127.0.0.1" in out
    assert "went on" in out


def test_a_server_of_another_ca_learns_nothing(shell: Shell, webhook: Webhook) -> None:
    certify(webhook.folder, "ca", "/CN=ca")  # another one of that name
    out = ask(shell, webhook, fails=True)
    assert "certificate" in out
    assert webhook.asked == []


def test_a_node_is_cordoned_before_it_is_asked_and_evicted_after(shell: Shell) -> None:
    api = NodeApi.of(shell, drain="always 300 -")
    api.pod("web-1")
    code = 'tell_hook() { log "hook $*"; printf "POST 1/2/3/4/5/6/hook/eviction {}\\n" >>../calls; }; cd home; '
    out = shell.run(f'{code}begin_update "kubelet 1.35 -> 1.36" intrusive', phase="node")
    assert api.steps == ["dry web-1", "cordon", "evict hook", "evict web-1"]
    assert "hook beforeDrain master-1 update: kubelet 1.35 -> 1.36" in out
    assert "hook afterUncordon master-1 updated" in shell.run(f"{code}end_update", phase="node")
    assert not api.cordoned


def test_an_update_that_evicts_nobody_asks_nobody(shell: Shell) -> None:
    NodeApi.of(shell)
    code = 'tell_hook() { log "hook $*"; }; begin_update "configuration x"; end_update'
    assert "hook" not in shell.run(code, phase="node")
