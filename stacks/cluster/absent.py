"""Members of the cluster that an update leaves out: called absent, or silent when it began."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

from stacks.cluster.plan import Node, Plan


def without(plan: Plan, silent: Collection[str]) -> Plan:
    """The plan with these nodes left out: absent for this update, though nobody has said so."""
    if not silent:
        return plan

    def marked(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(
            dataclasses.replace(node, is_silent=True) if node.name in silent else node
            for node in nodes
        )

    return dataclasses.replace(
        plan,
        nodes=marked(plan.nodes),
        etcd=marked(plan.etcd),
        masters=marked(plan.masters),
        workers=marked(plan.workers),
        load_balancers=marked(plan.load_balancers),
    )


def as_memory(plan: Plan, known: Mapping[str, str], kubernetes: str) -> dict[str, object]:
    """What to remember: of absent nodes the Kubernetes version that they have, and who acts.

    `known`: what was remembered of those that are absent already; others have `kubernetes`, that of
    the last success.
    """
    left_out = {node.name: known.get(node.name, kubernetes) for node in plan.absent}
    return {
        **({"absent": left_out} if left_out else {}),
        **({"acting": plan.acting.name} if plan.acting != plan.masters[0] else {}),
    }


def of_memory(plan: Plan, left_out: Collection[str], acting: str) -> Plan:
    """The plan as it was carried out: without those that nobody had called absent, too."""
    silent = [node.name for node in plan.nodes if node.name in left_out and not node.is_absent]
    return dataclasses.replace(without(plan, silent), acting_name=acting)
