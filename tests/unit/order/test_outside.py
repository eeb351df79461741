"""Files that a config names: what is in them counts as far as it is known."""

from __future__ import annotations

import dataclasses
import json

from stacks.cluster import outside, resolve
from stacks.cluster.outside import Sums
from stacks.edits import memory
from stacks.load import load
from stacks.order.difference import LOGIN, edit
from tests.unit.configs import adopted

CONFIG = adopted({"machines.ssh": {"privateKeyFile": "keys/a"}})


def other_logins(then: Sums, now: Sums) -> bool:
    """Whether the edit runs anything because of another way of login."""
    made = resolve.plan(load(CONFIG, read_keys=False))
    was, plan = (dataclasses.replace(made, outside=sums) for sums in (then, now))
    known = memory.read(json.loads(json.dumps(memory.of(was))))
    return any(LOGIN in one.by for one in edit(known, plan).differences)


def test_little_is_kept_of_a_secret_and_nothing_of_one_that_is_not_known() -> None:
    once, again = (outside.with_secrets((), {"x": "a-secret"}, "dev") for _ in range(2))
    assert once == again != outside.with_secrets((), {"x": "another"}, "dev")
    assert [len(total) for _, total in once] == [8]
    assert outside.with_secrets((), {"x": ""}, "dev") == ()


def test_another_content_is_another_way_of_login() -> None:
    assert other_logins((("keys/a", "1"),), (("keys/a", "2"),))


def test_the_same_content_is_not() -> None:
    assert not other_logins((("keys/a", "1"),), (("keys/a", "1"),))


def test_a_computer_without_the_file_tells_none() -> None:
    assert not other_logins((("keys/a", "1"),), ())


def test_a_memory_that_did_not_know_it_tells_none() -> None:
    assert not other_logins((), (("keys/a", "1"),))
