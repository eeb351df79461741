"""Gates between waves of workers: what they wait for, what ends a rollout, and when the next wave may begin."""

from __future__ import annotations

import pytest

from tests.scripts import node_list
from tests.scripts.node_api import FOR_EVER, NodeApi
from tests.scripts.shell import Shell

VALUES = {
    "WAVE": "2",
    "WAVES": "3",
    "EARLIER": "worker bbbbbbbbbbbbbbbb worker-[1-2]",
    "NODES": "worker bbbbbbbbbbbbbbbb worker-[3-4]",
    "LATER": "worker bbbbbbbbbbbbbbbb worker-[5-6]",
    "BUDGET": "0",
    "CRITICAL": "",
    "PAUSE_S": "0",
    "WINDOWS": "",
    "WINDOWS_SAID": "",
    "HOLD": "",
    "STALL_S": "50",
    "IDLE_S": "50",
    "NETWORK": "1",
}
NO_WAITING = {"STALL_S": "0", "IDLE_S": "0"}
SOON = "4"  # seconds; a retry would have begun by then


def node(name: str, applied: str = "bbbbbbbbbbbbbbbb", ready: str = "True", *told: str) -> str:
    """A row of the cluster's nodes; `told` is what it has begun, and what it failed with."""
    return "|".join((name, applied, ready, *told, "", "")[:5])


DONE = [node(f"worker-{number}") for number in (1, 2, 3)]
OLD = [node(f"worker-{number}", "aaaaaaaaaaaaaaaa") for number in (5, 6)]
FAILED = node("worker-4", "aaaaaaaaaaaaaaaa", "True", "", "bbbbbbbbbbbbbbbb 12:05 no disk")
BEGUN = node("worker-4", "aaaaaaaaaaaaaaaa", "True", "bbbbbbbbbbbbbbbb")


def gate(shell: Shell, *looks: list[str], fails: bool = False, **values: str) -> str:
    """What the gate says when the cluster lists these rows, one list a look, the last one forever."""
    for number, rows in enumerate(looks, start=1):
        (shell.folder / f"nodes-{number}").write_text(node_list.listing(rows))
    last = len(looks)
    shell.stub(
        "kubectl",
        'case "$*" in *"get nodes"*) ;; *) exit ;; esac\n'
        f'calls=$(grep -c "get nodes" "{shell.folder}/calls")\n'
        f'cat "{shell.folder}/nodes-$((calls < {last} ? calls : {last}))"',
    )
    return shell.run("main", phase="wave", values={**VALUES, **values}, fails=fails)


def changing(shell: Shell) -> list[str]:
    return [call for call in shell.calls if "get nodes" not in call and "/readyz" not in call]


def test_a_gate_passes_when_its_wave_is_as_wanted(shell: Shell) -> None:
    out = gate(shell, [*DONE, BEGUN, *OLD], [*DONE, node("worker-4"), *OLD])
    assert "wave 2 of 3 is as wanted" in out
    assert changing(shell) == []


def test_while_nobody_is_held_back_nobody_is_asked(shell: Shell) -> None:
    shell.stub("kubectl", "exit 1")
    values = {key: VALUES[key] for key in ("WAVE", "WAVES")}
    assert "nobody is held back" in shell.run("main", phase="wave", values=values)
    assert shell.calls == []


def test_a_wave_of_nobody_but_new_ones_holds_up_nothing(shell: Shell) -> None:
    out = gate(shell, [*DONE, node("worker-4"), *OLD], NODES="", STALL_S="0", IDLE_S="0")
    assert "wave 2 of 3 is as wanted" in out


def test_the_wait_for_a_wave_says_nothing_of_itself(shell: Shell) -> None:
    out = gate(shell, [*DONE, BEGUN, *OLD], [*DONE, node("worker-4"), *OLD])
    assert "ERROR" not in out


@pytest.mark.parametrize(
    "looks",
    [
        [[*DONE, BEGUN], [*DONE, FAILED]],
        # What stands there at first may be of an earlier update: only news counts at once.
        [[*DONE, node("worker-4", "aaaaaaaaaaaaaaaa", "True", "", "bbbbbbbbbbbbbbbb 11:00 old")], [*DONE, FAILED]],
        [[*DONE, FAILED], [*DONE, BEGUN], [*DONE, node("worker-4", "aaaaaaaaaaaaaaaa", "True", "", "bbbbbbbbbbbbbbbb 12:06 no disk")]],
    ],
)  # fmt: skip
def test_a_node_that_fails_ends_the_rollout_at_once(shell: Shell, looks: list[list[str]]) -> None:
    out = gate(shell, *looks, fails=True)
    assert "wave 2: 1 failed, 0 may: worker-4 (failed at 12:0" in out
    assert "no further wave has begun" in out


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (None, "worker-4 (not registered)"),
        (node("worker-4", "aaaaaaaaaaaaaaaa"), "worker-4 (has not applied this configuration)"),
        (node("worker-4", "bbbbbbbbbbbbbbbb", "Unknown"), "worker-4 (is unresponsive)"),
        (FAILED, "worker-4 (failed at 12:05 no disk)"),
        # A revert: it announces what is wanted, from before the update that left it half-way.
        (
            node("worker-4", "bbbbbbbbbbbbbbbb", "True", "", "cccccccccccccccc 12:00 x"),
            "worker-4 (was left half-way",
        ),
        (
            node("worker-4", "bbbbbbbbbbbbbbbb", "True", "cccccccccccccccc"),
            "worker-4 (was left half-way",
        ),
    ],
)
def test_a_node_on_which_nothing_begins_has_failed(
    shell: Shell, row: str | None, reason: str
) -> None:
    out = gate(shell, [*DONE, *([row] if row else [])], fails=True, **NO_WAITING)
    assert f"wave 2: 1 failed, 0 may: {reason}" in out


@pytest.mark.parametrize("row", [BEGUN, node("worker-4", "bbbbbbbbbbbbbbbb", "False")])
def test_a_node_that_never_comes_to_an_end_is_not_waited_for_for_ever(
    shell: Shell, row: str
) -> None:
    out = gate(shell, [*DONE, row], fails=True, **NO_WAITING)
    assert "wave 2: nothing moved for 0 s: worker-4 (" in out
    assert "--parallel 1" in out


def test_a_node_that_is_taken_back_has_its_turn_before_the_next_wave(shell: Shell) -> None:
    left = node("worker-4", "bbbbbbbbbbbbbbbb", "True", "cccccccccccccccc")
    under_way = node("worker-4", "bbbbbbbbbbbbbbbb", "True", "bbbbbbbbbbbbbbbb")
    out = gate(shell, [*DONE, left], [*DONE, under_way], [*DONE, node("worker-4")])
    assert "as wanted" in out
    assert sum("get nodes" in call for call in shell.calls) >= 3


def test_failures_within_the_budget_let_the_next_wave_begin(shell: Shell) -> None:
    out = gate(shell, [*DONE, BEGUN, *OLD], [*DONE, FAILED, *OLD], IDLE_S=SOON, BUDGET="1")
    assert "1 failed, which the failure budget of 1 allows: worker-4 (failed at 12:05" in out


def test_failures_of_all_waves_count_together(shell: Shell) -> None:
    earlier = node("worker-1", "aaaaaaaaaaaaaaaa", "Unknown")
    rows = [earlier, *DONE[1:]]
    out = gate(
        shell, [*rows, BEGUN, *OLD], [*rows, FAILED, *OLD], fails=True, IDLE_S=SOON, BUDGET="1"
    )
    assert "wave 2: 2 failed, 1 may: worker-4 (failed at 12:05 no disk) worker-1 (" in out


def test_a_critical_node_ends_the_rollout_whatever_the_budget(shell: Shell) -> None:
    out = gate(
        shell,
        [*DONE, BEGUN],
        [*DONE, FAILED],
        fails=True,
        IDLE_S=SOON,
        BUDGET="6",
        CRITICAL="worker-3 worker-4",
    )
    assert "wave 2: the critical node worker-4 (failed at 12:05" in out


def test_an_api_that_does_not_answer_for_a_while_is_no_failure(shell: Shell) -> None:
    rows = shell.folder / "rows"
    rows.write_text(node_list.listing([*DONE, node("worker-4")]))
    away = f'case "$*" in *"get nodes"*) ((calls > 4)) || exit 1; cat "{rows}" ;; esac'
    shell.stub("kubectl", away)
    out = shell.run("main", phase="wave", values={**VALUES, "LATER": ""})
    assert "as wanted" in out
    assert "ERROR" not in out


WHOLE = [*DONE, node("worker-4")]


def test_the_rollout_holds_where_the_config_says(shell: Shell) -> None:
    out = gate(shell, [*WHOLE, *OLD], fails=True, HOLD="1")
    assert "holds after wave 2 of 3, as rollout.holdAfter says" in out


@pytest.mark.parametrize(
    ("now", "passes"),
    [("1 09 00", True), ("5 16 59", True), ("1 08 59", False), ("5 17 00", False), ("7 12 00", False)],
)  # fmt: skip
def test_a_wave_begins_only_within_the_windows(shell: Shell, now: str, *, passes: bool) -> None:
    shell.stub("date", f'if [[ $* == *%u* ]]; then echo "{now}"; else echo "Sun 12:00"; fi')
    windows = " ".join(f"{day * 1440 + 540}-{day * 1440 + 1020}" for day in range(5))
    said = {"WINDOWS": windows, "WINDOWS_SAID": "Mon-Fri 09:00-17:00 UTC"}
    out = gate(shell, [*WHOLE, *OLD], fails=not passes, **said)
    if not passes:
        assert "wave 3 of 3 may not begin now, Sun 12:00 UTC: rollout.windows is Mon-Fri" in out


def test_a_pause_lies_between_two_waves(shell: Shell) -> None:
    shell.stub("sleep")
    gate(shell, [*WHOLE, *OLD], PAUSE_S="900")
    assert "sleep 900" in shell.calls


def test_when_nothing_is_left_to_do_there_is_no_pause_no_hold_and_no_window(shell: Shell) -> None:
    shell.stub("sleep")
    later = [node("worker-5"), node("worker-6")]
    gate(shell, [*WHOLE, *later], PAUSE_S="900", HOLD="1", WINDOWS="0-0")
    assert "sleep 900" not in shell.calls


FIRST = {
    "WAVE": "0",
    "NODES": "",
    "EARLIER": "",
    "LATER": "worker bbbbbbbbbbbbbbbb worker-[1-3]",
    "VERSIONS": "kubelet=1.36.3 containerd=2.3.7",
    "OS": "",
}


def first(
    shell: Shell,
    drain: str,
    *,
    versions: str,
    told: str = "auto 300 -",
    code: str = "main",
    fails: bool = False,
    packages: str = "",
) -> str:
    """Gate 0 before three workers of which the last one is as wanted."""
    done = {"worker-1": "a" * 16, "worker-2": "a" * 16, "worker-3": "b" * 16}
    kubelet, runtime, *os = versions.split()
    nodes = [
        node_list.one(name, applied=applied, ready="True", drain=told, kubelet=kubelet, runtime=runtime, os="".join(os))
        for name, applied in done.items()
    ]  # fmt: skip
    (shell.folder / "nodes").write_text(node_list.listed(*nodes))
    shell.stub(
        "kubectl",
        f'case "$*" in *"get nodes"*) cat "{shell.folder}/nodes" ;; *config*view*) echo a2V5 | tr -d "\\n" ;; esac',
    )
    values = {**VALUES, **FIRST, "DRAIN": drain, "OS": packages}
    return shell.run(f"KEYS={shell.folder}/keys; {code}", phase="wave", values=values, fails=fails)


SAME = "v1.36.1 containerd://2.3.9"
OTHER = "v1.35.4 containerd://2.3.7"


@pytest.mark.parametrize(
    ("drain", "versions", "tried"),
    [
        ("auto 300 -", SAME, False),
        ("auto 300 -", OTHER, True),
        ("auto 300 -", "v1.36.3 containerd://2.2.1", True),
        ("always 300 -", SAME, True),
        ("never 300 -", OTHER, False),
    ],
)
def test_evictions_are_tried_dry_before_any_node_is_cordoned(
    shell: Shell, drain: str, versions: str, *, tried: bool
) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    out = first(shell, drain, versions=versions)
    assert ("trying the evictions of 2 node(s)" in out) == tried
    assert api.steps == (["dry web-1"] * 2 if tried else [])
    assert not (shell.folder / "keys").exists()


@pytest.mark.parametrize(
    ("wanted", "done", "tried"), [("may", "may", False), ("june", "may", True), ("june", "", True)]
)
def test_evictions_for_packages_of_the_operating_system_are_tried_dry_too(
    shell: Shell, wanted: str, done: str, *, tried: bool
) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    out = first(shell, "auto 300 -", versions=f"{SAME} {done}", packages=wanted)
    assert ("trying the evictions of 2 node(s)" in out) == tried
    assert api.steps == (["dry web-1"] * 2 if tried else [])


def test_what_would_block_ends_the_rollout_before_it_begins(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    api.pod("naked", owner="")
    api.block(**{"web-1": FOR_EVER})
    code = "eval \"$(declare -f try_evictions | sed 's/SECONDS + 60/SECONDS/')\"; main"
    out = first(shell, "auto 300 -", versions=OTHER, fails=True, code=code)
    assert "evictions would be refused, no node was touched: on worker-1 default/" in out
    assert "default/naked (has no controller" in out
    assert "The disruption budget web needs 2 healthy pods" in out
    assert not (shell.folder / "keys").exists()


def test_nodes_are_told_how_to_drain_where_that_is_news(shell: Shell) -> None:
    NodeApi.of(shell)
    first(shell, "auto 300 -", versions=SAME)
    assert not [call for call in shell.calls if "annotate" in call]
    first(shell, "always 60 10", versions=SAME)
    [call] = [call for call in shell.calls if "annotate" in call]
    assert call.endswith(
        "--overwrite -- node worker-1 worker-2 worker-3 kube-ha.io/drain=always 60 10"
    )
    shell.forget()
    first(shell, "always 60 10", versions=SAME, told="always 60 10")
    assert not [call for call in shell.calls if "annotate" in call]
