"""Values keep secrets and unknowns on their way over the wire, and differences name their paths."""

from __future__ import annotations

import pytest

from toolchain.command.output import quoted
from toolchain.differences import differences
from toolchain.values import (
    OUTPUT,
    SIGNATURE,
    UNKNOWN,
    Properties,
    Secret,
    Value,
    decode,
    encode,
    has_unknown,
    plain,
)


def test_values_come_back_as_they_went() -> None:
    sent: Properties = {
        "text": "a",
        "number": 1.5,
        "flag": True,
        "list": ["a", 1.0, None],
        "object": {"deep": Secret({"deeper": UNKNOWN})},
        "secret": Secret("s"),
        "unknown": UNKNOWN,
    }
    assert decode(encode(sent)) == sent


def test_null_means_not_set() -> None:
    assert decode(encode({"a": None, "b": "x"})) == {"b": "x"}


def test_outputs_of_the_engine_become_values() -> None:
    known: Properties = {"a": {SIGNATURE: OUTPUT, "value": "x", "secret": True}}
    assert decode(encode(known)) == {"a": Secret("x")}
    unknown: Properties = {"a": {SIGNATURE: OUTPUT}}
    assert decode(encode(unknown)) == {"a": UNKNOWN}


def test_a_secret_shows_nothing() -> None:
    assert "hidden" not in repr(Secret("hidden"))


def test_plain_takes_marks_off_at_any_depth() -> None:
    assert plain({"a": Secret(["b", Secret("c")])}) == {"a": ["b", "c"]}
    with pytest.raises(ValueError, match=r"not known yet"):
        plain([Secret(UNKNOWN)])
    assert has_unknown({"a": [Secret(UNKNOWN)]})
    assert not has_unknown({"a": [Secret("x")]})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a", "a", {}),
        ("a", "b", {"x": "update"}),
        (1.0, True, {"x": "update"}),
        (Secret("a"), Secret("a"), {}),
        (Secret("a"), "a", {"x": "update"}),
        (Secret({"a": 1.0}), Secret({"a": 2.0}), {"x.a": "update"}),
        (Secret({"a": Secret("b")}), Secret({"a": "b"}), {}),
        ({"a": "1", "__defaults": []}, {"a": "1"}, {}),
        ({"a": "1", "b": "2"}, {"b": "2", "c": "3"}, {"x.a": "delete", "x.c": "add"}),
        (["a", "b"], ["a", "c", "d"], {"x[1]": "update", "x[2]": "add"}),
        (["a", "b"], ["a"], {"x[1]": "delete"}),
        ("a", UNKNOWN, {"x": "update"}),
    ],
)
def test_differences(old: Value, new: Value, expected: dict[str, str]) -> None:
    assert differences({"x": old}, {"x": new}) == expected


def test_text_is_quoted_as_go_does() -> None:
    assert quoted('a "b"\n\t\\ \x01 é\u200b') == r'"a \"b\"\n\t\\ \x01 é\u200b"'
