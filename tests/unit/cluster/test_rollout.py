"""In which waves workers change: order, size, canary, files of other tools, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stacks.cluster import rollout
from stacks.config.rollout_values import minutes, of_share
from tests.unit.configs import lab, planned, problems


def made(**said: object) -> list[list[str]]:
    """The waves of 5 workers in 2 zones and 2 GPU machines."""
    return [list(wave.nodes) for wave in rollout.node_waves(planned(config(**said)))]


def config(**said: object) -> dict[str, object]:
    return lab(
        {
            "pools.worker.count": 5,
            "pools.worker.zones": ["a", "b"],
            "pools.gpu": {
                "roles": ["worker"],
                "count": 2,
                "labels": {"gpu": "yes"},
                "addressOffset": 150,
            },
            "rollout": said,
        }
    )


GPU = ["gpu-1", "gpu-2"]
A, B = ["worker-1", "worker-3", "worker-5"], ["worker-2", "worker-4"]
REST = [f"worker-{number}" for number in range(1, 6)]


@pytest.mark.parametrize(
    ("said", "waves"),
    [
        # Pool by pool, one at a time: 10 % of a few are one.
        ({}, [[name] for name in GPU + REST]),
        ({"parallel": 2}, [GPU, REST[:2], REST[2:4], REST[4:]]),
        # A part is one of the group, so that a small pool does not go at once.
        ({"parallel": "50%"}, [GPU[:1], GPU[1:], REST[:2], REST[2:4], REST[4:]]),
        ({"parallel": "100%", "order": [{"pools": ["worker"]}]}, [REST, GPU]),
        ({"parallel": "100%", "order": [{"zones": ["b"]}]}, [B, GPU, A]),
        ({"parallel": 9, "order": [{"labels": {"gpu": "yes"}}, {"zones": ["a"]}]}, [GPU, A, B]),
        # The order of a list of names is that of the list.
        (
            {"parallel": 2, "order": [{"nodes": ["worker-5", "gpu-2", "worker-1"]}]},
            [["worker-5", "gpu-2"], ["worker-1"], ["gpu-1"], ["worker-2", "worker-3"], ["worker-4"]],
        ),
        # All that a group says has to hold; what an earlier one has, a later one does not.
        (
            {"parallel": 9, "order": [{"pools": ["worker"], "zones": ["b"]}, {"zones": ["b", "a"]}]},
            [B, A, GPU],
        ),
        ({"parallel": 9, "canary": {"count": 3}}, [[*GPU, "worker-1"], REST[1:]]),
        (
            {"parallel": 9, "canary": {"count": 1}, "order": [{"zones": ["b"]}]},
            [["worker-2"], ["worker-4"], GPU, A],
        ),
        ({"parallel": 9, "canary": {"nodes": ["worker-4"]}}, [["worker-4"], GPU, [*A[:1], "worker-2", "worker-3", "worker-5"]]),
    ],
)  # fmt: skip
def test_waves_follow_from_the_config(said: dict[str, object], waves: list[list[str]]) -> None:
    assert made(**said) == waves


def test_every_worker_is_in_one_wave_and_masters_in_none() -> None:
    for said in ({}, {"canary": {"count": 2}}, {"order": [{"zones": ["a"]}], "parallel": "34%"}):
        assert sorted(name for wave in made(**said) for name in wave) == sorted(GPU + REST)


def test_a_worker_more_comes_last_in_its_pool() -> None:
    before, after = (
        rollout.node_waves(planned(lab({"pools.worker.count": count}))) for count in (8, 9)
    )
    assert after[:-1] == before
    assert after[-1].nodes == ("worker-9",)


def test_waves_of_another_tool_are_taken_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "waves.json"
    file.write_text(json.dumps([["worker-4"], ["gpu-2", "worker-1"]]))
    rest = [["gpu-1"], ["worker-2", "worker-3"], ["worker-5"]]
    assert made(plan=str(file), parallel=2) == [["worker-4"], ["gpu-2", "worker-1"], *rest]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "cannot be read"),
        ("[", "neither YAML nor JSON"),
        ("worker-1", "holds no list of waves"),
        ("[]", "holds no list of waves"),
        ("[worker-1]", 'wave 1 of'),
        ("[[worker-1], [7]]", "wave 2 of"),
        ("[[worker-1], []]", "wave 2 of"),
        ("[[worker-9, master-1]]", "names master-1, worker-9, which are not workers"),
        ("[[worker-1], [worker-1]]", "has worker-1 twice"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_refused(tmp_path: Path, text: str | None, reason: str) -> None:
    file = tmp_path / "waves.yaml"
    if text is not None:
        file.write_text(text)
    [(path, said)] = problems(config(plan=str(file)))
    assert path == "rollout.plan"
    assert reason in said


def test_all_problems_are_told_at_once() -> None:
    said = {
        "parallel": "0%",
        "order": [{}, {"pools": ["master"]}, {"nodes": ["worker-77"]}],
        "canary": {"count": 1, "nodes": ["master-1"]},
        "critical": ["worker-1", "wroker-2"],
        "windows": ["Mon-Fri 09:00-17:00 CET", "10:00-10:00 UTC"],
        "holdAfter": 100,
        "plan": "waves.yaml",
    }
    found = [path for path, _ in problems(config(**said))]
    assert found == [
        "rollout.canary",
        "rollout.canary",
        "rollout.canary.nodes",
        "rollout.critical",
        "rollout.holdAfter",
        "rollout.order",
        "rollout.order[0]",
        "rollout.order[1].pools",
        "rollout.order[2].nodes",
        "rollout.parallel",
        "rollout.windows[0]",
        "rollout.windows[1]",
    ]


def test_a_name_with_a_slip_is_answered_with_the_one_that_is_meant() -> None:
    [(path, text)] = problems(config(critical=["worker-11"]))
    assert (path, text) == (
        "rollout.critical",
        "no worker is called 'worker-11'; did you mean 'worker-1'?",
    )


def test_too_many_waves_are_refused() -> None:
    many = lab({"pools.worker.count": 101, "rollout": {"parallel": 1}})
    [(path, text)] = problems(many)
    assert path == "rollout.parallel"
    assert text == (
        "makes 101 waves, 100 fit; '1' of each group is too small; use '20%', or bigger groups"
    )


def test_a_hold_after_the_last_wave_is_refused() -> None:
    [(path, text)] = problems(config(holdAfter=7))
    assert path == "rollout.holdAfter"
    assert text == "7 is the last of 7 waves or none, and holds nothing; use 0 to 6"
    assert planned(config(holdAfter=6))
    assert planned(lab({"pools.worker.count": 0, "rollout": {"holdAfter": 6}}))


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ({"failureBudgetPercent": 10}, "rollout.failureBudgetPercent"),
        ({"critical": ["worker-1"]}, "rollout.critical"),
    ],
)
def test_what_does_nothing_is_warned_about(said: dict[str, object], path: str) -> None:
    warned = [where for where, _ in planned(config(**said)).warnings]
    assert warned == ["pools", path]  # GPU machines without zones among those that have some


@pytest.mark.parametrize(("percent", "nodes"), [(0, 0), (14, 0), (15, 1), (50, 3), (100, 7)])
def test_the_budget_is_rounded_down(percent: int, nodes: int) -> None:
    assert rollout.budget(planned(config(failureBudgetPercent=percent))) == nodes


@pytest.mark.parametrize(
    ("share", "count", "size"),
    [("10%", 9, 1), ("10%", 25, 2), ("100%", 7, 7), ("3", 2, 3), ("1%", 1000, 10), ("10%", 0, 1)],
)
def test_a_share_is_rounded_down_but_never_to_none(share: str, count: int, size: int) -> None:
    assert of_share(share, count) == size


@pytest.mark.parametrize(
    ("window", "ranges"),
    [
        ("Mon 00:00-24:00 UTC", [(0, 1440)]),
        ("Tue-Wed 09:30-10:00 UTC", [(2010, 2040), (3450, 3480)]),
        ("Sat-Mon 00:00-01:00 UTC", [(0, 60), (7200, 7260), (8640, 8700)]),
        ("Fri 22:00-04:00 UTC", [(7080, 7440)]),
        ("Sun 23:00-01:00 UTC", [(0, 60), (10020, 10080)]),
    ],
)
def test_windows_are_minutes_of_the_week(window: str, ranges: list[tuple[int, int]]) -> None:
    assert list(minutes((window,))) == ranges


def test_a_window_without_days_is_of_every_day() -> None:
    assert [start for start, _ in minutes(("06:00-07:00 UTC",))] == [
        day * 1440 + 360 for day in range(7)
    ]
