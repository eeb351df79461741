"""Whatever lies behind --previous, or where a config names a file: words come of it, and soon."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacks.__main__ import main
from stacks.cluster.resolve import plan
from stacks.edits import memory
from stacks.load import load
from tests.fuzz.breakage import broken
from tests.fuzz.counted import counted
from tests.fuzz.dice import Dice
from tests.unit.configs import adopted, aws, gcp, hcloud, lab

_ENOUGH_S = 20  # the computer may be busy; what does not end takes minutes
_ROOM = 2 << 30
Json = dict[str, object]


@pytest.fixture
def _bounded() -> Iterator[None]:
    """A limit on memory: a mistake here once took all that the computer had."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def _told(*arguments: str) -> tuple[int, str]:
    out, began = io.StringIO(), time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main([*arguments])
    assert time.monotonic() - began < _ENOUGH_S
    assert out.getvalue().strip()
    return code, out.getvalue()


def _stack(folder: Path, raw: Json, name: str = "now.yaml") -> str:
    file = folder / name
    file.write_text(json.dumps({"config": {f"kube-ha:{key}": raw[key] for key in raw}}))
    return str(file)


@pytest.mark.usefixtures("quick_yaml", "_bounded")
def test_any_memory_is_compared_with_or_refused(examples: int, tmp_path: Path) -> None:
    """A success's memory, with anything in it replaced, taken out, doubled or added."""
    seen: Counter[int] = Counter()
    raws = [lab(), adopted(), gcp(), aws(), hcloud()]
    kept = [json.dumps(memory.of(plan(load(raw, read_keys=False)))) for raw in raws]
    files = [_stack(tmp_path, raw, f"now-{number}.yaml") for number, raw in enumerate(raws)]
    then = tmp_path / "then.json"

    @counted(max(examples // 5, 40))
    @given(st.binary(min_size=8, max_size=32))
    def each(given_bytes: bytes) -> None:
        dice = Dice(given_bytes)
        number = dice.below(len(raws))
        held = json.loads(kept[number])
        for _ in range(dice.between(1, 3)):
            broken(dice, held)
        text = json.dumps(held)
        then.write_text(json.dumps(text) if dice.chance(20) else text)
        code, _ = _told(files[number], "--previous", str(then))
        seen[code] += 1

    each()
    assert seen[0]
    assert seen[1]


_TEXTS = [
    '"[secret]"', "[secret]", '"{}"', "null", "{}", "[]", "1", "", "\0", '"', "{", "\ufeff{}",
    "[" * 100_000, '"' + "[" * 50_000 + '"', '{"a":' * 20_000, '{"format": 2}', '{"format": 1}',
    '{"format": 2, "config": {}}', '{"format": 2, "config": {}, "versions": 5}', '{"format": 1e999}',
    '{"format": 1, "fixed": {}, "pools": {}, "kubernetes": "latest"}',
    '{"format": 1, "fixed": {"cluster.name": 1e999}, "pools": {}, "kubernetes": "1.36.3"}',
    "config: &a [*a]", "config: {kube-ha:pools: &a {x: *a}}",
    "a: &a [x]\n" + "".join(f"{c}: &{c} [{','.join(['*' + p] * 10)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)) + "config: *i",
]  # fmt: skip


@pytest.mark.usefixtures("_bounded")
@pytest.mark.parametrize("text", _TEXTS, ids=lambda text: text[:24])
def test_no_text_behind_previous_is_too_much(tmp_path: Path, text: str) -> None:
    now, then = _stack(tmp_path, lab()), tmp_path / "then"
    then.write_text(text, encoding="utf-8")
    code, said = _told(now, "--previous", str(then))
    assert code == 1
    assert re.search("--previous|last success|cluster.name: cannot change from inf", said)
    assert _told(str(then))[0] == 1  # nor as the stack file itself


def test_what_the_engine_hides_is_told_with_the_way_to_see_it(tmp_path: Path) -> None:
    now, then = _stack(tmp_path, lab()), tmp_path / "then"
    for text in ('"[secret]"\n', "[secret]\n"):
        then.write_text(text)
        assert (
            "`pulumi stack output applied --show-secrets`" in _told(now, "--previous", str(then))[1]
        )


_FILES = {
    "addons": {"x": {"manifests": ["FILE"]}},
    "rollout": {"plan": "FILE"},
    "mirror": {"url": "http://m.example.com", "registry": "http://r.example.com", "manifest": "FILE"},
    "machines": {"provider": "adopt", "ssh": {"privateKeyFile": "FILE"}},
    "frontDoors": {
        "vip": {"address": "192.0.2.200"},
        "ingress": {"certificates": [{"certificate": "FILE", "key": "FILE"}]},
    },
}  # fmt: skip


@pytest.mark.usefixtures("_bounded")
@pytest.mark.parametrize("key", sorted(_FILES))
def test_no_file_that_a_config_names_holds_up_or_fills_whoever_plans(
    tmp_path: Path, key: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 34)
    (tmp_path / "deep").write_text("[" * 100_000)
    (tmp_path / "bytes").write_bytes(bytes(range(256)))
    (tmp_path / "link").symlink_to("/dev/zero")
    named = [f"{tmp_path}/{name}" for name in ("pipe", "huge", "deep", "bytes", "link", "none")]
    for path in (*named, str(tmp_path), "/dev/zero", "/proc/self/mem", "~nobody-here/x"):
        section = json.loads(json.dumps(_FILES[key]).replace("FILE", path))
        raw = adopted({key: section})
        code, said = _told(_stack(tmp_path, raw))
        # One of the file; the other one is of flannel, as of every new cluster with it.
        assert code == 1 or "  Warnings    2\n" in said, path
        assert _told(_stack(tmp_path, lab()), "--previous", path)[0] == 1
        assert _told(path)[0] == 1
