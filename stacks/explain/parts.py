"""The parts of stacks/order/steps.py in words: what each is, and how nodes take their turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stacks.explain.actions import Order
from stacks.order.step import Part


class About(NamedTuple):
    """What a part is, whatever happens in it."""

    title: str
    order: Order


ABOUT: Mapping[Part, About] = {
    "machines": About("machines of this computer", "in parallel"),
    "leafs": About("leafs, on all masters and members that exist", "in parallel"),
    "snapshot": About("etcd snapshot", "once"),
    "retire": About(
        "lost nodes and those recreated, taken out by the remaining nodes", "one by one"
    ),
    "new machines": About("new machines", "in parallel"),
    "members": About("etcd members", "one by one"),
    "masters": About("masters, each as soon as its etcd member is there", "one by one"),
    "control plane": About("etcd members and masters, each whole before the next", "one by one"),
    "settled keys": About("CAs and keys, once every master has made the step", "once"),
    "add-ons": About("add-ons", "in parallel"),
    "joining": About("workers that join", "in parallel"),
    "user add-ons": About("add-ons of the config", "one by one"),
    "load balancers": About("load balancers", "one by one"),
    "API name": About("name of the API", "once"),
    "nodes": About("list of nodes: labels, taints, and those that leave", "one by one"),
    "stopped": About("what runs no longer, on machines that stay", "in parallel"),
    "ingress": About("ingress tier", "one by one"),
    "virtual IP": About("virtual IP", "one by one"),
    "gate": About("acceptance gate", "once"),
}
