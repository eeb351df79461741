"""What holds for every plan, and for every edit that is not refused."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from stacks import load
from stacks.cluster import api_record, certificates, clouds
from stacks.cluster.plan import Node, Plan
from stacks.config import translation
from stacks.config.problems import Problem, SpecError
from stacks.edits import membership, memory, quorum, transition
from stacks.edits.memory import Memory
from stacks.explain import report
from stacks.explain.actions import Kind
from stacks.explain.report import Report
from stacks.phases import desired, downloads, gate, nodes, system_addons
from tests.fuzz import edits
from tests.fuzz.breakage import MARK
from tests.fuzz.paths import leads_somewhere

Raw = Mapping[str, object]

# Values that list machines: those of a master or member follow who the others are.
_LISTS = frozenset({"MEMBERS", "HAPROXY_CFG", "KUBEADM_CONFIG", "KEEPALIVED_CONF", "PEERS"})


def of_problems(found: Sequence[Problem], *configs: Raw) -> None:
    """Each has a path that leads somewhere in one of the configs, is one line, and shows no secret."""
    assert found
    for path, text in found:
        assert any(leads_somewhere(path, raw) for raw in configs), path
        assert text
        assert len(f"{path}: {text}".splitlines()) == 1, text
        assert MARK not in text


def of_plan(raw: Raw, made: Plan) -> Memory:
    """A plan stands on its own; returns what will be remembered of it."""
    _names_and_addresses(made)
    _written_otherwise(raw, made)
    _name_of_the_api(made)
    kept = json.dumps(memory.of(made))
    assert MARK not in kept + repr(made)
    remembered = memory.read(json.loads(kept))
    assert remembered.plan is not None
    assert remembered.plan.acting.name == made.acting.name
    kept_plan = replace(remembered.plan, acting_name=made.acting_name)
    assert kept_plan == replace(made, warnings=())  # a success has shown them
    if made.absent:  # nodes begin to be absent: no cluster is made with some
        with pytest.raises(transition.TransitionError, match="absent"):
            transition.check(None, made)
        return remembered
    verdict = transition.check(remembered, made)
    assert verdict.allowed == ()
    compromised = [node for node in made.away if node.state == "compromised"]
    assert len(verdict.warnings) == len(made.spec.allow) + len(compromised)
    return remembered


def _name_of_the_api(made: Plan) -> None:
    """A record of the stack's is in its zone, and points to masters or to their load balancer."""
    zone = api_record.zone(made.spec)
    if zone is None:
        return
    assert f".{api_record.name(made.spec)}".endswith(f".{zone.domain}")
    found = api_record.known(made)
    masters = tuple(node.address for node in made.masters)
    assert found in (None, masters, clouds.balancer_addresses(made.spec))
    assert found != ()
    assert (made.balancer == "none") == (api_record.lead(made) != "balancer")


def _written_otherwise(raw: Raw, made: Plan) -> None:
    """Neither the order of what is listed, nor what is said though it is the default, matters."""
    other: dict[str, object] = json.loads(json.dumps(raw))
    edits.reorder(other)
    # The plan keeps the config as it was written, and warnings name its lines.
    assert replace(planned(other), spec=made.spec, warnings=made.warnings) == made
    dumped = made.spec.model_dump(mode="json", by_alias=True)
    hidden = (*translation.SECRETS, translation.ADDON_SECRETS)  # no part of the plan
    secrets = {key: raw[key] for key in hidden if key in raw}
    assert load.load({**dumped, **secrets}, read_keys=False) == made.spec


def of_neighbours(raw: Raw, made: Plan) -> bool:
    """A pool of another name, or a machine more, is not business of other nodes; whether it was tried.

    Of a master or member more, they learn only that it is there.
    """
    text = json.dumps(raw)
    # One of them for each config: any, but the same every time.
    turn, pools = zlib.crc32(text.encode()), list(made.spec.pools)
    name, edit = pools[turn % len(pools)], (edits.rename, edits.more)[turn // 8 % 2]
    other: dict[str, object] = json.loads(text)
    edit(other, name)
    try:
        after = planned(other)
    except SpecError:
        return False  # the networks are too small for one more, an exception is for the old name
    # A machine that is made is named after its pool.
    listed = made.spec.pools[name].roles != ("worker",) and (edit is edits.more or made.made)
    # What points to the cluster from outside lists those to whom it leads, workers too.
    leads = {"INGRESS_CFG"} if edit is edits.more or made.made else set()
    _same_nodes(made, after, but=frozenset(leads | (_LISTS if listed else set())))
    return True


def planned(raw: Raw) -> Plan:
    return load.planned(load.load(raw, read_keys=False))


def _names_and_addresses(made: Plan) -> None:
    assert made.masters
    assert made.etcd
    names = [node.name for node in made.nodes]
    assert len(set(names)) == len(names)
    assert len({node.address for node in made.nodes}) == len(names)
    for listed, role in ((made.etcd, "etcd"), (made.masters, "master")):
        with_role = {node.name for node in made.nodes if role in node.roles}
        assert sorted(node.name for node in listed) == sorted(with_role)
    leafs = [leaf.name for leaf in certificates.table(made)]
    assert len(set(leafs)) == len(leafs)
    for node in made.nodes:
        kinds = (node.is_etcd or node.is_master, node.is_worker, node.is_load_balancer)
        assert kinds.count(True) == 1, node
    if made.load_balancers:
        assert not {*made.masters} & {*made.holders, *made.ingress}


def _same_nodes(one: Plan, other: Plan, *, but: frozenset[str]) -> None:
    """What both plans have of nodes is the same, but for these values."""
    twins = {node.name: node for node in other.nodes}
    for node in one.nodes:
        twin = twins.get(node.name)
        if twin is not None:
            assert replace(twin, pool=node.pool) == node
            was, now = desired.of_phases(one, node), desired.of_phases(other, twin)
            assert _differing(was, now) <= but, node.name


def _differing(
    was: Mapping[str, Mapping[str, str]], now: Mapping[str, Mapping[str, str]]
) -> set[str]:
    """Names of the values that differ."""
    return {
        name
        for phase in was.keys() | now.keys()
        for name in was.get(phase, {}).keys() | now.get(phase, {}).keys()
        if was.get(phase, {}).get(name) != now.get(phase, {}).get(name)
    }


def of_accepted_edit(before: Memory, after: Plan) -> Report:
    """An edit that is not refused: one member a step, quorum always, a master stays."""
    verdict = transition.check(before, after)
    assert before.plan is not None
    old = [node.name for node in before.plan.etcd]
    new = [node.name for node in after.etcd]
    lost = {node.name for node in after.away if node.state == "lost"}
    replaced = membership.rebuilt(before, after)
    voters = [frozenset(old)]
    absent = {node.name for node in after.etcd if node.is_absent}
    assert len(after.etcd) - len(absent) >= len(after.etcd) // 2 + 1
    assert not after.acting.is_absent
    for step in quorum.steps(old, new, lost=lost, rebuilt={*lost, *replaced}, absent=absent):
        assert frozenset(step.deciding) == voters[-1]
        voters.append(frozenset(step.voters))
        assert voters[-1] & voters[-2], "nobody hands the data on"
        assert step.up_before >= len(step.deciding) // 2 + 1
        assert step.up >= len(step.voters) // 2 + 1
    assert all(len(earlier ^ later) == 1 for earlier, later in pairwise(voters))
    assert voters[-1] == set(new)
    assert _staying(before.plan.masters, after.masters)
    said = report.report(before, after, verdict)
    _in_turn(said)
    _words(before.plan, after, said)
    _way_back(before, after, said)
    return said


def _way_back(before: Memory, after: Plan, said: Report) -> None:
    """Where the edit back would be refused, what is told first says so."""
    applied = memory.read(memory.of(after, before))
    assert before.plan is not None
    if transition.refused(applied, before.plan):
        assert said.headline.no_way_back


def _staying(before: Sequence[Node], after: Sequence[Node]) -> set[str]:
    """Names of those that were there and go on, as the same machines."""
    was = {node.name: node.generation for node in before}
    return {node.name for node in after if was.get(node.name) == node.generation}


def _in_turn(said: Report) -> None:
    """Never two voters or two masters in one step; leafs are read while their programs run."""
    for wave in said.waves:
        phases = {action.phase for node in wave.nodes for action in node.actions}
        if phases & {"etcd-member", "master", "nodes"}:
            assert wave.order == "one by one" or all(
                not _controls(node.roles) for node in wave.nodes
            )
    listed = [
        (node.name, action) for wave in said.waves for node in wave.nodes for action in node.actions
    ]
    # Every action of every node happens in one wave.
    assert sorted(listed, key=repr) == sorted(
        ((node.name, action) for node in said.changes.nodes for action in node.actions), key=repr
    )


def _controls(roles: Sequence[str]) -> bool:
    return "etcd" in roles or "master" in roles


def _words(before: Plan, after: Plan, said: Report) -> None:
    """The nodes that the words name are exactly those of which something differs."""
    was = {node.name: node for node in before.nodes}
    now = {node.name: node for node in after.nodes}
    replaced = {
        name for name in was.keys() & now.keys() if now[name].generation > was[name].generation
    }
    stay = (was.keys() & now.keys()) - replaced
    differing = {name for name in stay if _is_told(before, was[name], after, now[name])}
    kinds: tuple[Kind, ...] = ("new", "rebuilt", "changed", "leaving")
    new, rebuilt, changed, leaving = (
        {node.name for node in said.changes.of(kind)} for kind in kinds
    )
    assert new == now.keys() - was.keys()
    assert rebuilt == replaced
    assert changed == differing
    # Of machines that were not nodes any more, or never, some are wiped or forgotten.
    away = {node.name for node in (*before.away, *after.away)}
    assert was.keys() - now.keys() <= leaving <= (was.keys() | away) - now.keys()
    assert said.changes.unchanged == len(stay - changed)
    addons = (
        system_addons.addons(before) != system_addons.addons(after) or before.addons != after.addons
    )
    once_more = before.spec.converge != after.spec.converge
    once_more = once_more or _asked_through(before) != _asked_through(after)
    assert bool(said.changes.addons) == (addons or once_more)
    # Of every other change of what is wanted the list of nodes and the gate are run.
    idle = before.spec.rollout == after.spec.rollout
    idle = idle and gate.plan_digest(before) == gate.plan_digest(after)
    assert said.is_empty == (not said.changes.nodes and not said.changes.addons and idle)


def _differs(before: Plan, old: Node, after: Plan, new: Node) -> bool:
    lifetimes = before.spec.pki.leaf_validity_hours != after.spec.pki.leaf_validity_hours
    leafs = tuple(certificates.of_node(after, new))
    return (
        desired.of_phases(before, old) != desired.of_phases(after, new)
        or replace(old, pool=new.pool, ordinal=new.ordinal, zone=new.zone) != new
        or tuple(certificates.of_node(before, old)) != leafs
        or (lifetimes and bool(leafs))
        or _downloads(before, old) != _downloads(after, new)
        or _is_reached_otherwise(before, after, new)
    )


def _is_reached_otherwise(before: Plan, after: Plan, node: Node) -> bool:
    """Another login, another place to fetch from, another time that a reboot may take: commands run again."""
    fetches, follows = node.in_kubernetes or node.is_etcd, node.roles != ("worker",)
    return (
        clouds.way_in(before.spec) != clouds.way_in(after.spec)
        or (fetches and _mirror(before) != _mirror(after))
        or (follows and nodes.more_s(before) != nodes.more_s(after))
    )


def _mirror(made: Plan) -> str:
    return made.mirror.url if made.mirror else ""


def _is_told(before: Plan, was: Node, after: Plan, now: Node) -> bool:
    """Of one that is absent alone what is written on its Node; of one that is back, all."""
    if now.is_absent:
        marks = [(node.state, node.labels, node.taints) for node in (was, now)]
        return now.in_kubernetes and marks[0] != marks[1]
    return was.is_absent or _differs(before, was, after, now)


def _asked_through(made: Plan) -> tuple[object, ...]:
    """The master that add-ons are applied from, and how it is reached."""
    first = made.acting
    return first.name, first.generation, first.ssh, clouds.way_in(made.spec)


def _downloads(plan: Plan, node: Node) -> dict[str, str]:
    """Version by name of what the node phase fetches; its sums are not values of the plan."""
    component = {"cni-plugins": "cni_plugins", "containerd": "containerd", "runc": "runc"}
    component |= {"etcd": "etcd"}
    return {
        name: str(getattr(plan.versions, component.get(name, "kubernetes")))
        for name in downloads.downloads(node)
    }
