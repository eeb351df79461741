"""An edit of issuers is allowed where no API server, whatever it has made of it, refuses a token that pods hold."""

from __future__ import annotations

import json
from itertools import chain, permutations, product

import pytest

from stacks.edits import memory
from stacks.edits.transition import TransitionError, check, remembered
from stacks.explain import disruption
from tests.unit.configs import lab, planned

OWN = "https://kubernetes.default.svc.cluster.local"
NAMES = (OWN, "https://a.example.com", "https://b.example.com/x")
LISTS = [*chain.from_iterable(permutations(NAMES, length) for length in (0, 1, 2, 3))]
PATH = "controlPlane.serviceAccountIssuers"


def refused(was: tuple[str, ...], now: tuple[str, ...], masters: int) -> bool:
    before, after = (
        planned(lab({"pools.master.count": masters, PATH: [*one]})) for one in (was, now)
    )
    previous = json.loads(json.dumps(memory.of(before)))
    try:
        check(remembered(previous), after)
    except TransitionError as error:
        assert [path for path, _ in error.problems] == [PATH]
        return True
    return False


@pytest.mark.parametrize("masters", [1, 3])
def test_tokens_are_taken_by_every_api_server_at_any_time(masters: int) -> None:
    for was, now in product(LISTS, LISTS):
        then, wanted = (one or (OWN,) for one in (was, now))
        held = {then[0], wanted[0]} if masters > 1 else {then[0]}
        takes = [{*then}, {*wanted}] if masters > 1 else [{*wanted}]
        is_safe = all(held <= known for known in takes)
        assert refused(was, now, masters) != is_safe, (was, now)


def test_an_issuer_that_is_no_longer_taken_is_told() -> None:
    before, after = (planned(lab({PATH: [*one]})) for one in ((OWN, NAMES[1]), (OWN,)))
    told = [*disruption._tokens(before, after)]
    assert told == [f"tokens of service accounts with issuer {NAMES[1]} are refused from now on"]
    assert not [*disruption._tokens(after, before)]
