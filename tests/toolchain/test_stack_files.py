"""A stack file says to the plan what it says to the engine, or the plan refuses it with the place."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Iterator

import pytest

from stacks.config import engine_yaml
from stacks.config.stack_file import StackFile, StackFileError, look
from tests.toolchain.project import Project

_FILES = 12
_SCALARS = 3000
# Each of these is something else to one reader of YAML than to another.
_WORDS = ["on", "off", "yes", "no", "y", "n", "On", "OFF", "Yes", "NO", "Y", "N", "true", "True", "TRUE", "tRUE", "false", "False", "null", "Null", "NULL", "nULL", "~", "1:30", "190:20:30", "1:30.5", "010", "0o10", "0O10", "-010", "08", "09.5", "0x1F", "0X1f", "-0x1f", "0xg", "0b11", "0B11", "0b12", "1_000", "1__0", "_1", "1_", "0x_1", "1,000", "1e3", "1E3", "1e+3", "1.e3", ".5", "-.5", "+.5", "5.", "+5", "-0", "00", "0", ".", "..", "-", "--", "+", "+-", "1.30", "1.0", "3.0", "99999999999999999999", "18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "+9223372036854775808", "1e999", "1e-999", "0.1e1", "2026-11-21", "2026-1-2", "2026-13-45", "2026-11-21T10:00:00Z", "2026-11", "20:26", ".inf", ".Inf", "-.inf", "+.INF", ".nan", ".NaN", "inf", "nan", "Infinity", "<<", "=", "!x", "a#b", "a:b", "1.2.3", "1.36.3", "v1.36", "10.0.0.1", "10.0.0.0/8", "0.0", "-0.0", "1e5", "12e03", "0e0", "0o8", "0b", "0x", ".e5", "._5"]  # fmt: skip
_LETTERS = "0123456789" * 2 + "abxoeEnNyYfFTZ_.:+-,/~"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project.make(tmp_path_factory.mktemp("stack-files") / "project", "")
    text = (made.folder / "Pulumi.yaml").read_text()
    (made.folder / "Pulumi.yaml").write_text(text.replace("name: tiny", "name: kube-ha"))
    made.pulumi("stack", "init", "read").succeeded()
    return made


def _engine(project: Project, text: str) -> dict[str, object] | None:
    """What the engine reads, None where it refuses."""
    (project.folder / "Pulumi.read.yaml").write_text(text)
    ran = project.pulumi("config", "--json", "--stack", "read")
    if ran.code:
        return None
    said = json.loads(ran.text[ran.text.index("{\n") :] if "{\n" in ran.text else "{}")
    return {
        key.removeprefix("kube-ha:"): entry.get("objectValue", entry.get("value"))
        for key, entry in said.items()
        if key.startswith("kube-ha:")
    }


def _plan(project: Project, text: str) -> StackFile | None:
    file = project.folder / "ours.yaml"
    file.write_text(text)
    try:
        return look(file)
    except StackFileError:
        return None


def test_every_word_without_quotes_is_the_engines(project: Project) -> None:
    dice = random.Random(14)  # noqa: S311 (no secret)
    drawn = ("".join(dice.choices(_LETTERS, k=dice.randint(1, 8))) for _ in range(_SCALARS))
    words = [word for word in dict.fromkeys([*_WORDS, *drawn]) if _is_plain(word)]
    ours, left = {}, []
    for number, word in enumerate(words):
        value, problems, _ = engine_yaml.read(f"x: {word}\n")
        assert isinstance(value, dict)
        if not problems:
            ours[f"k{number}"] = value["x"]
            left.append(f"    k{number}: {word}")
    assert len(left) > _SCALARS / 2
    theirs = _engine(project, "config:\n  kube-ha:pools:\n" + "\n".join(left) + "\n")
    assert theirs is not None
    assert isinstance(theirs["pools"], dict)
    differ = {
        words[int(key[1:])]: (value, theirs["pools"].get(key))
        for key, value in ours.items()
        if not _same(value, theirs["pools"].get(key))
    }
    assert not differ


def _is_plain(word: str) -> bool:
    """A word that YAML takes without quotes in this place."""
    return word[0] not in "!,=:" and not word.endswith(":") and word not in ("-", "<<")


def _same(one: object, other: object) -> bool:
    """Numbers of JSON have no kind: 3.0 is 3."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return float(one) == float(other)  # the command prints what a double holds
    return one == other


def test_drawn_stack_files_say_the_same_to_plan_and_engine(project: Project) -> None:
    dice, agreed, refused = random.Random(15), 0, 0  # noqa: S311 (no secret)
    for number in range(_FILES):
        text = "\n".join(_file(dice, with_traps=number % 4 == 3)) + "\n"
        said, theirs = _plan(project, text), _engine(project, text)
        if said is None or said.problems:
            refused += 1
            continue
        assert theirs is not None, text
        assert _same(said.config, theirs), text
        agreed += 1
    assert agreed > _FILES / 2
    assert refused


def _file(dice: random.Random, *, with_traps: bool) -> Iterator[str]:
    yield "config:"
    keys = [
        "kube-ha:pools",
        "cluster",
        "kube-ha:nodes",
        "rollout",
        "aws:region",
        "allow",
        "no",
        "os",
    ]
    traps = [
        "Kube-HA:os",
        "kube-ha:config:x",
        "kube-ha:cluster",
        "a:b:c",
        "kube-ha:x",
        "2026-01-01",
    ]
    named = dice.sample(keys, 5) + (dice.sample(traps, 2) if with_traps else [])
    for key in named:
        # Of what is not a list or mapping the engine keeps the text.
        yield f"  {key}: [{_value(dice, 3)}, {_value(dice, 3)}]"


def _value(dice: random.Random, depth: int) -> str:
    kind = dice.randint(0, 9 if depth else 5)
    if kind <= 3:
        word = dice.choice([w for w in _WORDS if _is_plain(w) and w[0] not in "<"])
        # Dates and infinities are refused, which would leave little to compare.
        return (
            word
            if "," not in word and not word.startswith(("2026", ".n", ".N", "-.", "+."))
            else "x"
        )
    if kind == 4:
        return json.dumps(dice.choice([*_WORDS, "ä", "a b", "'", '"', "\\", "@", "%", "\t"]))
    if kind == 5:
        return "'" + dice.choice(_WORDS) + "'"
    if kind <= 7:
        return f"[{', '.join(_value(dice, depth - 1) for _ in range(dice.randint(0, 3)))}]"
    names = dice.sample(
        [*string.ascii_lowercase, "on", "no", "yes", "true", "1", "22", '"null"'], 4
    )
    return "{" + ", ".join(f"{name}: {_value(dice, depth - 1)}" for name in names) + "}"


_ALIASES = [
    "config:\n  pools: {a: &a {x: 1, y: no}, b: {<<: *a, y: 2}, c: {<<: [*a, {x: 5, z: 6}], z: 7}}\n",
    "config:\n  pools: {a: &a [1, no], b: *a, c: [*a, *a]}\n",
    "x: &x {roles: [on]}\nconfig:\n  pools: {a: *x, b: {<<: *x}}\n",
    "config:\n  pools: {a: &a {<<: {x: 1}, y: 2}, b: {<<: *a}}\n",
    "config: {pools: {true: a, 1: b, on: c, '2': d}}\n",
    "config:\n  secret: {secure: abc}\n",
]


@pytest.mark.parametrize("text", _ALIASES)
def test_aliases_and_odd_keys_are_the_engines(project: Project, text: str) -> None:
    said, theirs = _plan(project, text), _engine(project, text)
    assert said is not None
    assert not said.problems
    if "secure" in text:
        assert said.config == {"secret": {"secure": "abc"}}
    else:
        assert theirs is not None
        assert _same(said.config, theirs)
