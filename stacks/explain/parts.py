"""The parts of stacks/order/steps.py in words: what each is, and how safe a moment of it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stacks.explain.actions import Order
from stacks.order.step import Part

_READY = "every node is Ready and has announced what it applied"
_QUORUM = "the remaining members have a quorum of their own"


@dataclass(frozen=True, slots=True)
class About:
    """What a reviewer has to know of a part, whatever happens in it."""

    title: str
    order: Order
    checked: str  # before the next part begins
    abort: str  # what an abort in it leaves


ABOUT: Mapping[Part, About] = {
    "machines": About(
        "machines of this computer",
        "in parallel",
        "each is there",
        "nothing has changed",
    ),
    "leafs": About(
        "leafs, on all masters and members that exist",
        "in parallel",
        "what reads them does so while it runs: nothing restarts, nobody waits for a turn",
        "old leafs or new ones, each of them good",
    ),
    "snapshot": About(
        "etcd snapshot",
        "once",
        "it is whole, of this cluster, and holds all that a quorum had",
        "nothing that serves has been touched",
    ),
    "retire": About(
        "lost nodes and those recreated, taken out by the remaining nodes",
        "one by one",
        f"before an etcd member is removed, {_QUORUM}",
        "fewer dead members; nobody else is touched",
    ),
    "new machines": About(
        "new machines",
        "in parallel",
        "preflight lists all that is wrong with a machine before anything is changed on it",
        "machines that nobody uses; the next update resumes",
    ),
    "members": About(
        "etcd members",
        "one by one",
        "each member votes and is healthy before the next",
        "fewer members; the next update resumes, and bootstraps no second cluster",
    ),
    "masters": About(
        "masters, each as soon as its etcd member is there",
        "one by one",
        "/readyz of each API server, and the API through the node's own HAProxy",
        "fewer masters; those that are made serve",
    ),
    "control plane": About(
        "etcd members and masters, each whole before the next",
        "one by one",
        "each node's services are active",
        "the one in progress old or new, the others untouched and serving",
    ),
    "settled keys": About(
        "CAs and keys, once every master has made the step",
        "once",
        "each namespace holds the CAs of this step; no Secret is under another key than the one "
        "that encrypts",
        "old and new are known to all nodes; the next update resumes",
    ),
    "add-ons": About(
        "add-ons",
        "in parallel",
        "applied by the API server; that their pods run is asked by the gate",
        "old or new manifests, each whole",
    ),
    "joining": About(
        "workers that join",
        "in parallel",
        _READY,
        "fewer workers; the next update joins them with a new token",
    ),
    "user add-ons": About(
        "add-ons of the config",
        "one by one",
        "applied by the API server; that their pods run is asked by the gate",
        "old or new manifests, each whole",
    ),
    "load balancers": About(
        "load balancers",
        "one by one",
        "HAProxy takes its configuration; after a reboot the machine is back before the next is "
        "touched",
        "some with the old configuration; all of them serve",
    ),
    "API name": About(
        "name of the API",
        "once",
        "every master serves",
        "the record as it was or as it is to be; whoever both point to serves",
    ),
    "nodes": About(
        "list of nodes: labels, taints, and those that leave",
        "one by one",
        f"every wanted node is Ready and as wanted before one leaves; before an etcd member "
        f"leaves, {_QUORUM}",
        "a node cordoned or gone; the remaining ones are untouched",
    ),
    "stopped": About(
        "what runs no longer, on machines that stay",
        "in parallel",
        "no process of kube-ha is left",
        "a machine that runs on without being in the cluster; the next update stops it",
    ),
    "ingress": About(
        "ingress tier",
        "one by one",
        "HAProxy takes its configuration and its certificates before they replace others",
        "some machines with the old list or certificates; open connections stay",
    ),
    "virtual IP": About(
        "virtual IP",
        "one by one",
        "keepalived takes its configuration, its HAProxy listens at the address, and no machine "
        "has it that the others do not hear",
        "the address where it is; fewer machines that can take it, or more",
    ),
    "gate": About(
        "acceptance gate",
        "once",
        "only now the stack remembers this config as applied",
        "everything done, not yet remembered; the next update asks again",
    ),
}
MEMBER = (
    "a member restarts only where the others have a quorum without it; after it, it votes and is "
    "healthy"
)
MASTER = (
    "an API server stops only while another is ready; after it, its /readyz, and the API through "
    "the node's own HAProxy"
)
