"""Machines that were given up: refused for as long as what they held counts, whatever the config says of them later."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import yaml

from stacks.cluster import fence as cluster_fence
from stacks.cluster.plan import Plan
from stacks.edits import fence as edit_fence
from stacks.edits import memory
from stacks.edits.transition import TransitionError, Verdict, check
from stacks.explain.changes import changes
from stacks.render.lost_nodes import CREDENTIALS, INCARNATIONS, lost_nodes
from tests.unit.configs import lab, planned

CA = "pki.rotation.kubernetes"
ACCOUNTS = "pki.rotation.serviceAccount"


class Stack:
    """Edits one after another, each compared with what the last one left."""

    def __init__(self) -> None:
        self.kept: dict[str, object] | None = None
        self.plan: Plan = planned(lab())
        self.words: str = ""
        self.up({})

    def up(self, edit: dict[str, object]) -> Verdict:
        before = memory.read(self.kept) if self.kept else None
        plan = edit_fence.kept(before, planned(lab(edit)))
        verdict = check(before, plan)
        self.words = dict(changes(before, plan).addons).get("lost-nodes", "")
        self.plan, self.kept = plan, json.loads(json.dumps(memory.of(plan)))
        return verdict

    def refused(self, edit: dict[str, object]) -> list[tuple[str, str]]:
        with pytest.raises(TransitionError) as error:
            self.up(edit)
        return [(path, text) for path, text in error.value.problems]

    def rotate(self, *paths: str, keep: dict[str, object] | None = None) -> None:
        for step in ("trust", "issue", "drop"):
            self.up({**(keep or {}), **rotated(step, *paths)})

    @property
    def shut_out(self) -> list[str]:
        return [one.name for one in cluster_fence.shut_out(self.plan)]

    @property
    def replaced(self) -> list[tuple[str, int]]:
        return [(one.name, node.generation) for one, node in cluster_fence.replaced(self.plan)]


def rotated(step: str, *paths: str) -> dict[str, object]:
    return {path: {"generation": 2, "step": step} for path in paths}


def worker_1(**said: object) -> dict[str, object]:
    return {"nodes/worker-1": said}


GONE: dict[str, object] = {"pools.worker.count": 0}


def test_whoever_was_lost_stays_out_when_nothing_names_it_any_more() -> None:
    stack = Stack()
    stack.up(worker_1(state="lost"))
    assert stack.words == (
        f"worker-1 is refused whatever it writes, until {CA} has dropped generation 1; nothing restarts"
    )
    for edit in (worker_1(state="removed"), GONE, worker_1(state="removed")):
        stack.up(edit)
        assert stack.shut_out == ["worker-1"]
        assert stack.words == ""
    text = (
        "worker-1 was lost, and its old identity is refused; set it to 2, so that the machine is "
        "wiped and joins as a new one"
    )
    for back in ({}, worker_1(generation=1), worker_1(state="maintenance")):
        assert stack.refused(back) == [("nodes.worker-1.generation", text)]
    stack.up(worker_1(generation=2))
    assert (stack.shut_out, stack.replaced) == ([], [("worker-1", 2)])


def test_after_a_raised_generation_only_the_new_incarnation_counts() -> None:
    stack = Stack()
    stack.up(worker_1(state="lost"))
    stack.up(worker_1(generation=2))
    assert stack.words.startswith(
        "worker-1 writes as incarnation 2 alone: a certificate of the one before"
    )
    stack.up(worker_1(generation=2))
    assert stack.replaced == [("worker-1", 2)]
    stack.up(worker_1(generation=2, state="lost"))
    stack.up(worker_1(generation=3))
    assert stack.replaced == [("worker-1", 3)]


@pytest.mark.parametrize("state", ["lost", "compromised"])
@pytest.mark.parametrize("between", [{}, {"state": "decommissioned", "generation": 2}])
def test_it_is_the_incarnation_that_was_there_whatever_the_line_says(
    state: str, between: dict[str, object]
) -> None:
    """The state takes the place of `generation: 2` in its line; the machine was that all the same."""
    stack = Stack()
    stack.up(worker_1(generation=2))
    if between:
        stack.up(worker_1(**between))
    stack.up(worker_1(state=state))
    assert [(one.name, one.generation) for one in stack.plan.fenced] == [("worker-1", 2)]
    stack.up(worker_1(state="removed"))
    ((path, _),) = stack.refused(worker_1(generation=2))
    assert path == (
        "nodes.worker-1.state" if state == "compromised" else "nodes.worker-1.generation"
    )
    if state == "lost":
        stack.up(worker_1(generation=3))
        assert stack.replaced == [("worker-1", 3)]


def test_of_a_master_the_words_promise_less() -> None:
    """It has the CA's key, and makes itself whatever certificate it likes."""
    stack = Stack()
    stack.up({"nodes/master-3": {"state": "lost"}})
    stack.up({"nodes/master-3": {"generation": 2}})
    assert "so may whoever has a certificate of the one before, until" in stack.words
    assert stack.replaced == [("master-3", 2)]
    assert cluster_fence.known_anew(stack.plan) == ()


def test_a_fence_ends_with_the_ca_and_not_before() -> None:
    stack = Stack()
    stack.up(worker_1(state="lost"))
    for step in ("trust", "issue"):
        stack.up({**GONE, **rotated(step, CA)})
        assert stack.shut_out == ["worker-1"]
    stack.up({**GONE, **rotated("drop", CA)})
    assert stack.shut_out == []
    assert stack.words == (
        "no fence any more for worker-1: the CA that knew them is gone; nothing restarts"
    )
    # The machine is the old one still: it is wiped all the same.
    assert stack.refused(rotated("drop", CA))[0][0] == "nodes.worker-1.generation"
    stack.up({**worker_1(generation=2), **rotated("drop", CA)})
    assert stack.plan.fenced == ()


def test_one_that_is_lost_while_a_ca_changes_may_hold_both() -> None:
    for step, is_out in (("trust", True), ("issue", True)):
        stack = Stack()
        for made in ("trust", "issue")[: 1 + (step == "issue")]:
            stack.up(rotated(made, CA))
        stack.up({**worker_1(state="lost"), **rotated(step, CA)})
        for left in ("issue", "drop")[(step == "issue") :]:
            stack.up({**GONE, **rotated(left, CA)})
        assert (stack.shut_out == ["worker-1"]) is is_out


def test_a_compromised_worker_comes_back_once_its_keys_are_worthless() -> None:
    stack = Stack()
    verdict = stack.up(worker_1(state="compromised"))
    steps = f"{CA} to {{generation: 2, step: drop}} and {ACCOUNTS} to {{generation: 2, step: drop}}"
    text = f"worker-1 was compromised, and what it held counts until you bring {steps}"
    assert list(verdict.warnings) == [("nodes.worker-1", text)]
    reason = "worker-1 was compromised, and what it held counts still; first bring"
    told = [("nodes.worker-1.state", f"{reason} {steps} (docs/operate/compromised.md)")]
    assert stack.refused(worker_1(generation=2)) == told
    # Neither a milder word nor none at all makes it another story.
    for milder in (worker_1(state="lost"), GONE):
        assert stack.up(milder).warnings != ()
        assert stack.refused(worker_1(generation=2)) == told
    stack.rotate(CA, keep=GONE)
    left = f"{reason} {ACCOUNTS} to {{generation: 2, step: drop}} (docs/operate/compromised.md)"
    edit = {**worker_1(generation=2), **rotated("drop", CA)}
    assert stack.refused(edit) == [("nodes.worker-1.state", left)]
    for step in ("trust", "issue", "drop"):
        stack.up({**GONE, **rotated("drop", CA), **rotated(step, ACCOUNTS)})
    whole = rotated("drop", CA, ACCOUNTS)
    assert stack.refused(whole)[0][0] == "nodes.worker-1.generation"
    assert stack.up({**worker_1(generation=2), **whole}).warnings == ()
    assert (stack.shut_out, stack.replaced, stack.plan.fenced) == ([], [], ())


def test_of_a_master_more_has_to_be_rotated() -> None:
    stack = Stack()
    (warning,) = stack.up({"nodes/master-3": {"state": "compromised"}}).warnings
    for path in (CA, ACCOUNTS, "pki.rotation.etcd", "pki.rotation.frontProxy"):
        assert f"{path} to {{generation: 2, step: drop}}" in warning.text
    assert "controlPlane.encryptionKey to {generation: 2, step: drop}" in warning.text


def test_keys_of_a_step_that_a_master_had_made_were_there_too() -> None:
    stack = Stack()
    stack.up(rotated("trust", CA))
    stack.up({"nodes/master-3": {"state": "compromised"}, **rotated("trust", CA)})
    assert dict(stack.plan.fenced[0].keys)["kubernetes"] == 2
    # A rotation that begins with the word itself is the one that counts.
    other = Stack()
    other.up({"nodes/master-3": {"state": "compromised"}, **rotated("trust", CA)})
    assert dict(other.plan.fenced[0].keys)["kubernetes"] == 1


def test_a_memory_of_before_there_were_fences_knows_those_of_its_config() -> None:
    stack = Stack()
    stack.up(worker_1(state="lost"))
    assert stack.kept is not None
    del stack.kept["fenced"]
    stack.up(GONE)
    assert stack.shut_out == ["worker-1"]


def test_a_memory_that_is_no_fence_is_unreadable() -> None:
    stack = Stack()
    stack.up(worker_1(state="lost"))
    for wrong in ({"generation": 1}, {"generation": "x", "state": "lost", "keys": {}}, 7):
        kept = {**(stack.kept or {}), "fenced": {"worker-1": wrong}}
        with pytest.raises(memory.UnreadableMemoryError):
            memory.read(kept)


def said(stack: Stack, edit: dict[str, object]) -> list[dict[str, Any]]:
    stack.up(edit)
    found = list(yaml.safe_load_all(lost_nodes(stack.plan)))
    kinds = ["Policy", "PolicyBinding", "ConfigMap", "Policy", "PolicyBinding"]
    assert [one["kind"].removeprefix("ValidatingAdmission") for one in found] == kinds
    assert "data" not in found[2], "it is the approver's"
    return found


def condition(policy: dict[str, Any]) -> str:
    (found,) = policy["spec"]["matchConditions"]
    return str(found["expression"])


def test_what_is_said_to_the_api() -> None:
    stack = Stack()
    out, _, _, new, binding = said(stack, {})
    assert (condition(out), condition(new)) == ("false", "false")
    assert "paramKind" not in new["spec"]
    assert "paramRef" not in binding["spec"]

    named = 'request.userInfo.username in ["system:node:worker-1"]'
    out, _, _, new, _ = said(stack, worker_1(state="lost"))
    # Whatever is written, in every group: a list would forget something.
    (rule,) = out["spec"]["matchConstraints"]["resourceRules"]
    assert rule == {
        **{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"]},
        "resources": ["*/*"],
    }
    assert (condition(out), condition(new)) == (named, "false")
    assert out["spec"]["validations"][0]["expression"] == "false"

    out, _, noted, new, binding = said(stack, worker_1(generation=2))
    assert (condition(out), condition(new)) == ("false", named)
    assert binding["spec"]["paramRef"]["name"] == noted["metadata"]["name"] == CREDENTIALS
    assert noted["metadata"]["annotations"] == {INCARNATIONS: "worker-1.2"}
    assert '"worker-1.2"' in new["spec"]["validations"][0]["expression"]


@pytest.mark.parametrize("seed", range(20))
def test_no_chain_of_edits_lets_an_old_identity_in(seed: int) -> None:
    """Whatever is written between: until the CA is dropped its name is refused, or stands for a later incarnation."""
    dice, stack = random.Random(seed), Stack()  # noqa: S311
    given_up, step = 0, 0
    steps = ({}, *(rotated(name, CA) for name in ("trust", "issue", "drop")))
    dropped = False
    for _ in range(25):
        step = min(step + dice.choice((0, 0, 0, 1)), 3)
        state = dice.choice(("active", "lost", "compromised", "removed", "decommissioned"))
        edit = worker_1(state=state, generation=dice.randint(1, 4))
        if dice.random() < 0.3:
            edit = dict(GONE)
        try:
            stack.up({**edit, **steps[step]})
        except TransitionError:
            step = (
                max(step - 1, 0)
                if stack.plan.spec.pki.rotation.kubernetes.generation == 1
                else step
            )
            continue
        now = {node.name: node for node in (*stack.plan.nodes, *stack.plan.away)}
        if "worker-1" in now and now["worker-1"].is_given_up:
            given_up = max(given_up, now["worker-1"].generation)
        dropped = step == 3
        here = {node.name: node.generation for node in stack.plan.nodes}
        assert here.get("worker-1", given_up + 1) > given_up
        if given_up and not dropped:
            assert stack.shut_out == [n for n in ["worker-1"] if n not in here]
            assert [name for name, _ in stack.replaced] == [n for n in ["worker-1"] if n in here]
