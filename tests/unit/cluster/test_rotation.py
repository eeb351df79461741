"""Rotations of CAs and keys: what counts in each step, and which steps are refused with which way."""

from __future__ import annotations

import functools
import itertools
import json

import pytest

from stacks.cluster import rotation
from stacks.cluster.plan import Plan
from stacks.config.pki import RotationSpec, Step
from stacks.edits import memory
from stacks.edits.memory import Memory
from stacks.edits.transition import TransitionError, Verdict, check, remembered
from stacks.explain import report, terminal
from stacks.phases import desired
from tests.unit.configs import lab, planned, problems

PATHS = sorted(rotation.PATHS.values())
DERIVED = ("controlPlane.encryptionKey", "pki.rotation.seed")
CAS = [path for path in PATHS if path not in DERIVED]


def at(generation: int, step: Step) -> RotationSpec:
    return RotationSpec(generation=generation, step=step)


def said(path: str, generation: int, step: Step) -> dict[str, object]:
    return lab({path: {"generation": generation, "step": step}})


@functools.cache
def _plan(text: str) -> Plan:
    return planned(json.loads(text))


@functools.cache
def _memory(text: str) -> Memory | None:
    return remembered(json.loads(json.dumps(memory.of(_plan(text)))))


def refused(before: dict[str, object], after: dict[str, object]) -> list[tuple[str, str]]:
    try:
        check(_memory(json.dumps(before)), _plan(json.dumps(after)))
    except TransitionError as error:
        return [(path, text) for path, text in error.problems]
    return []


@pytest.mark.parametrize(
    ("generation", "step", "counting"),
    [(1, "drop", (1,)), (2, "trust", (1, 2)), (2, "issue", (2, 1)), (2, "drop", (2,)), (3, "trust", (2, 3))],
)  # fmt: skip
def test_the_one_that_signs_comes_first(
    generation: int, step: Step, counting: tuple[int, ...]
) -> None:
    assert rotation.generations(at(generation, step)) == counting
    assert rotation.signing(at(generation, step)) == counting[0]


CHAIN: list[tuple[int, Step]] = [
    *((1, "drop"), (2, "trust"), (2, "issue"), (2, "drop"), (3, "trust"), (3, "issue"), (3, "drop")),
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_the_whole_chain_is_allowed_step_by_step(path: str) -> None:
    for before, after in itertools.pairwise(CHAIN):
        assert refused(said(path, *before), said(path, *after)) == []
        assert refused(said(path, *after), said(path, *after)) == []


@pytest.mark.parametrize("path", PATHS)
def test_no_step_can_be_skipped(path: str) -> None:
    for place, before in enumerate(CHAIN):
        for after in CHAIN[place + 2 :]:
            ((where, text),) = refused(said(path, *before), said(path, *after))
            assert where == path
            number, step = CHAIN[place + 1]
            assert text.endswith(f"set {{generation: {number}, step: {step}}}")


SKIPPED = [
    ((1, "drop"), (2, "issue"), "cannot go from {generation: 1, step: drop} to {generation: 2, step: issue}: {generation: 1, step: drop} is the last step that every node has made: nodes that do not know the new one would refuse what it made; set {generation: 2, step: trust}"),
    ((1000, "drop"), (1, "drop"), "cannot go from {generation: 1000, step: drop} to {generation: 1, step: drop}: generation 999 was dropped, its key is gone for good; set {generation: 1000, step: drop}"),
    ((1, "drop"), (2, "drop"), "cannot go from {generation: 1, step: drop} to {generation: 2, step: drop}: {generation: 1, step: drop} is the last step that every node has made: what the old one made is still in use; set {generation: 2, step: trust}"),
    ((2, "trust"), (2, "drop"), "cannot go from {generation: 2, step: trust} to {generation: 2, step: drop}: {generation: 2, step: trust} is the last step that every node has made: what the old one made is still in use; set {generation: 2, step: issue}"),
    ((2, "issue"), (3, "trust"), "cannot go from {generation: 2, step: issue} to {generation: 3, step: trust}: {generation: 2, step: issue} is the last step that every node has made: the generation before is not in use on every node; set {generation: 2, step: drop}"),
    ((2, "trust"), (1, "drop"), "cannot go from {generation: 2, step: trust} to {generation: 1, step: drop}: generation 2 may be in use by an update that was interrupted; set {generation: 2, step: issue}"),
    ((2, "drop"), (2, "issue"), "cannot go from {generation: 2, step: drop} to {generation: 2, step: issue}: generation 1 was dropped, its key is gone for good; set {generation: 3, step: trust}"),
    ((2, "drop"), (1, "drop"), "cannot go from {generation: 2, step: drop} to {generation: 1, step: drop}: generation 1 was dropped, its key is gone for good; set {generation: 3, step: trust}"),
]  # fmt: skip


@pytest.mark.parametrize("path", CAS)
@pytest.mark.parametrize(("before", "after", "text"), SKIPPED)
def test_what_is_refused_says_why_and_what_to_set(
    path: str, before: tuple[int, Step], after: tuple[int, Step], text: str
) -> None:
    assert refused(said(path, *before), said(path, *after)) == [(path, text)]


@pytest.mark.parametrize("path", PATHS)
def test_issuing_can_be_taken_back(path: str) -> None:
    assert refused(said(path, 2, "issue"), said(path, 2, "trust")) == []


@pytest.mark.parametrize("path", DERIVED)
def test_what_is_derived_can_be_had_again(path: str) -> None:
    assert refused(said(path, 2, "drop"), said(path, 2, "issue")) == []
    assert refused(said(path, 2, "trust"), lab()) != []


def test_every_step_can_read_what_its_neighbours_write() -> None:
    """Of encryption key and seed, whichever of them makes a step, or both."""
    for own, seed in itertools.product(itertools.pairwise(CHAIN), repeat=2):
        for moved in ((1, 0), (0, 1), (1, 1)):
            plans = [
                planned(
                    lab(
                        {
                            "controlPlane.encryptionKey": _step(own[moved[0] * side]),
                            "pki.rotation.seed": _step(seed[moved[1] * side]),
                        }
                    )
                )
                for side in (0, 1)
            ]
            for one, other in (plans, plans[::-1]):
                assert rotation.encrypts(one) in rotation.encryption_keys(other.spec)
    assert list(rotation.encryption_keys(planned(lab()).spec)) == ["key-1"]


def _step(place: tuple[int, Step]) -> dict[str, object]:
    return {"generation": place[0], "step": place[1]}


def test_a_stack_of_before_there_were_rotations_begins_with_trust() -> None:
    previous = json.loads(json.dumps(memory.of(planned(lab()))))
    del previous["config"]["pki"]["rotation"]
    before = remembered(previous)
    assert check(before, planned(said(CAS[0], 2, "trust"))) == Verdict()
    with pytest.raises(TransitionError):
        check(before, planned(said(CAS[0], 2, "issue")))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("step", ["trust", "issue"])
def test_the_first_generation_has_no_step_to_make(path: str, step: Step) -> None:
    text = f"{step!r} of generation 1, which is there from birth; set generation: 2"
    assert problems(said(path, 1, step)) == [(f"{path}.step", text)]


def test_a_key_that_encrypts_nothing_is_no_key_to_rotate() -> None:
    raw = lab({"controlPlane": {"encryptSecrets": False, "encryptionKey": {"generation": 2}}})
    text = "does nothing while controlPlane.encryptSecrets is false"
    assert problems(raw) == [("controlPlane.encryptionKey", text)]


def values(raw: dict[str, object]) -> dict[str, str]:
    plan = planned(raw)
    found = desired.of_phases(plan, plan.masters[0])
    return {name: text for phase in found.values() for name, text in phase.items()}


def test_what_never_was_rotated_leaves_no_trace_in_values() -> None:
    found = values(lab())
    assert found["KEYS"] == ""
    assert not {"KUBERNETES_CA", "ETCD_CA"} & set(found)
    assert "signing-ca" not in found["KUBEADM_CONFIG"]


def test_every_step_of_a_ca_shows_in_the_values_of_those_that_read_it() -> None:
    assert values(said("pki.rotation.etcd", 2, "trust"))["ETCD_CA"] == "1,2"
    rotated = values(said("pki.rotation.kubernetes", 2, "issue"))
    assert (rotated["KUBERNETES_CA"], rotated["KEYS"]) == ("2,1", "kubernetes=2,1")
    assert "/etc/kubernetes/pki/signing-ca.crt" in rotated["KUBEADM_CONFIG"]


def words(before: dict[str, object], after: dict[str, object]) -> str:
    previous = remembered(json.loads(json.dumps(memory.of(planned(before)))))
    plan = planned(after)
    return terminal.as_text(report.report(previous, plan, check(previous, plan)), verbose=True)


def test_words_name_what_restarts() -> None:
    path = "pki.rotation.etcd"
    trust = words(lab(), said(path, 2, "trust"))
    assert "CA of etcd: the apiserver beside it drains, etcd restarts" in trust
    assert "CAs and keys: the apiserver drains and restarts" in trust
    assert "new certificates" not in trust
    issue = words(said(path, 2, "trust"), said(path, 2, "issue"))
    assert "new certificates apiserver-etcd-client, etcd-server, etcd-peer, etcd-client" in issue
    assert "etcd restarts" not in issue
    # Of this CA the cluster keeps nothing that would change.
    for said_once in (trust, issue):
        assert "CAs and keys that count are written down again, nothing changes" in said_once
    assert "worker-1" not in trust + issue


def test_words_tell_what_happens_once_every_master_has_made_the_step() -> None:
    issue = words(
        said("controlPlane.encryptionKey", 2, "trust"),
        said("controlPlane.encryptionKey", 2, "issue"),
    )
    assert "Secrets that are under another key are written again with key-2" in issue
    trust = words(lab(), said("pki.rotation.kubernetes", 2, "trust"))
    assert "pods of every namespace and nodes that join learn the CAs of this step" in trust
    assert "extension API servers learn the CAs of this step" in trust
    assert "CA of the cluster: HAProxy reloads, kubelet restarts, pods keep running" in trust
    assert "worker-1" in trust
