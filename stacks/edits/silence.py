"""Machines that do not answer when an update begins: who acts, who is left out, what is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping

from stacks.cluster import absent, rollout
from stacks.cluster.names import spoken
from stacks.cluster.plan import Node, Plan
from stacks.config.problems import Problem
from stacks.edits import membership
from stacks.edits.memory import Memory


def asked(before: Memory | None, plan: Plan) -> list[Node]:
    """Whose answer counts: machines that exist, stay, and are not called absent."""
    if before is None:
        return []
    return [node for node in membership.staying(before, plan) if not node.is_absent]


def doors(
    nodes: Iterable[Node], known: Mapping[str, tuple[str, int]]
) -> dict[str, tuple[str, int]]:
    """(host, port) of their SSH servers: by the config, else as `known` from the last update.

    Of none behind a bastion, where only spot machines are asked (`behind_bastion`).
    """
    found = {}
    for node in nodes:
        if node.ssh is not None and node.ssh.bastion is None:
            found[node.name] = (node.ssh.address, node.ssh.port)
        elif node.ssh is None and node.name in known:
            found[node.name] = known[node.name]
    return found


def behind_bastion(
    plan: Plan, nodes: Iterable[Node], known: Mapping[str, tuple[str, int]]
) -> dict[str, tuple[str, int]]:
    """(host, port) of those that a cloud may have taken away, as `known` from the last update.

    Masters are among them: where none of all answers, it is the bastion that does not.
    """
    asked = [node for node in nodes if node.name in known]
    spot = [node for node in asked if plan.spec.pools[node.pool].spot]
    return {
        node.name: known[node.name] for node in asked if spot and (node.is_master or node in spot)
    }


def seen(
    before: Memory | None, plan: Plan, silent: Collection[str], changing: Collection[str]
) -> Plan:
    """The plan for the machines that answer, with a warning for each that does not.

    `changing`: names of nodes on whose machines the edit runs something.
    """
    quiet = [node for node in asked(before, plan) if node.name in silent]
    if not quiet:
        return plan
    named = {node.name for node in quiet}
    workers = [node.name for node in quiet if node.is_worker]
    budget = rollout.absent_budget(plan)
    out = {name for name in workers if name in changing} - {*plan.spec.rollout.critical}
    if len(workers) > budget:
        out = set()
    acting = _acting(before, plan, named)
    told = (*_of_masters(quiet, acting, changing), *_of_workers(workers, out, budget, changing))
    return dataclasses.replace(
        absent.without(plan, out),
        acting_name=acting.name,
        unreached=tuple(n.name for n in quiet if n.is_etcd or n.is_master),
        warnings=tuple(sorted({*plan.warnings, *told})),
    )


def _acting(before: Memory | None, plan: Plan, silent: Collection[str]) -> Node:
    """The one that acts, else the first that answers and was a master before."""
    if plan.acting.name not in silent:
        return plan.acting
    there = [n for n in asked(before, plan) if n.is_master and n.name not in silent]
    turn = {node.name: place for place, node in enumerate(plan.masters)}
    return min(there, key=lambda node: turn[node.name], default=plan.acting)


def _of_masters(quiet: list[Node], acting: Node, changing: Collection[str]) -> Iterator[Problem]:
    for node in quiet:
        if node.is_worker:
            continue
        text = f"{node.name} ({node.address}) does not answer"
        if node.name in changing:
            text += (
                ", and this update changes it, so it will fail there; bring it back, or say absent "
                "(or lost) here"
            )
        elif node.is_master:
            text += f"; {acting.name} acts for the cluster, and nothing changes on it"
        yield Problem(f"nodes.{node.name}.state", text)


def _of_workers(
    workers: list[str], out: Collection[str], budget: int, changing: Collection[str]
) -> Iterator[Problem]:
    if len(workers) > budget:
        text = (
            f"no answer from {spoken(workers)}, and rollout.absentBudget allows {budget}: this "
            "update will fail; bring them back, or say absent (or lost) for those that are down"
        )
        yield Problem("rollout.absentBudget", text)
        return
    for name in workers:
        text = f"{name} does not answer; nothing changes on it"
        if name in out:
            text = (
                f"{name} does not answer and is left out, as rollout.absentBudget ({budget}) "
                "allows; it is not as wanted, and the next update has it again"
            )
        elif name in changing:
            text = f"{name} does not answer, and is one of rollout.critical: this update will fail"
        yield Problem(f"nodes.{name}.state", text)
