"""Edits of machines in a cloud: what is refused, and what existing machines do not take over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stacks.checks.refusals import Refusal
from stacks.cluster import cloud_machines, cloud_resources, clouds
from stacks.cluster.cloud_differences import Differences
from stacks.cluster.plan import Node, Plan
from stacks.config.problems import Problem
from stacks.edits.membership import listed
from stacks.edits.memory import Memory
from stacks.providers import registry
from stacks.providers.cloud import api_clients


def refusals_of(before: Memory, plan: Plan) -> list[Refusal]:
    """Machines that would move to another zone, or leave while the cloud protects them."""
    then = before.plan
    if then is None or not clouds.in_cloud(then.spec) or not clouds.in_cloud(plan.spec):
        return []
    return [
        *_moved(then, plan),
        *_protected(then, plan),
        *_too_early(then, plan),
        *_balancer_replaced(then, plan),
        *_elsewhere(then, plan),
        *_members(then, plan),
        *_disks(then, plan),
        *_spot(then, plan),
    ]


def _too_early(then: Plan, plan: Plan) -> Iterator[Refusal]:
    """A cloud controller manager that runs while Nodes do not tell which machine they are."""
    if not clouds.has_controller(plan.spec) or clouds.has_controller(then.spec):
        return
    there = {addon.name for addon in then.addons}
    for addon in plan.addons:
        if addon.name not in there:
            yield Refusal(
                "cloud-controller",
                addon.name,
                f"addons.{addon.name}",
                "comes in the same up that sets cloudController: external; a cloud controller "
                "manager would find no machine for the Nodes that are there, and may delete those "
                "that are not Ready; run up without it, then add it",
            )


def _members(then: Plan, plan: Plan) -> Iterator[Refusal]:
    """Who gets or loses the role etcd under its name.

    Groups of the firewall change before members do, so that peers would be cut off; and a disk is
    mounted by a machine's first boot alone.
    """
    known, other = {node.name: node for node in then.nodes}, dict[str, list[str]]()
    for node in plan.nodes:
        old = known.get(node.name)
        if old is not None and old.is_etcd != node.is_etcd:
            other.setdefault(node.pool, []).append(node.name)
    for pool, names in other.items():
        text = (
            f"etcd cannot come to {listed(names)}, or leave, in a cloud: its disk and its firewall "
            "groups are the machine's from the first boot on; set them back, and make another pool "
            "with the roles that you want; take the old one out once that has joined"
        )
        yield Refusal("roles", pool, f"pools.{pool}.roles", text)


def _disks(then: Plan, plan: Plan) -> Iterator[Refusal]:
    """Disks of etcd, which outlive their machine, grow and do not shrink."""
    known, smaller = {node.name: node for node in then.etcd}, dict[tuple[str, int], list[str]]()
    for old, node in ((known[node.name], node) for node in plan.etcd if node.name in known):
        size, wanted = (
            cloud_machines.hardware(one, of).etcd_disk_gib or 0
            for one, of in ((then, old), (plan, node))
        )
        if wanted < size:
            own = plan.spec.pools[node.pool].etcd_disk_gib is not None
            path = f"pools.{node.pool}" if own else clouds.path(plan.spec)
            smaller.setdefault((f"{path}.etcdDiskGib", size), []).append(node.name)
    for (path, size), names in smaller.items():
        text = f"disks of {listed(names)} have {size} GiB, and none shrinks; set it back"
        yield Refusal("fixed", path, path, text)


def _spot(then: Plan, plan: Plan) -> Iterator[Refusal]:
    """What a machine is bought as stays with it."""
    kept: dict[str, list[str]] = {}
    for old, node in _kept(then, plan):
        if then.spec.pools[old.pool].spot != plan.spec.pools[node.pool].spot:
            kept.setdefault(node.pool, []).append(node.name)
    for pool, names in kept.items():
        path = f"pools.{pool}.spot"
        text = (
            f"cannot change for {listed(names)}: a machine is a spot one or not for life; raise "
            "the generation of each of them too, or set it back and make another pool"
        )
        yield Refusal("fixed", path, path, text)


def _elsewhere(then: Plan, plan: Plan) -> Iterator[Refusal]:
    """Another network, or parts of it: what is in the old one keeps it from being deleted."""
    cloud = registry.cloud(plan.spec)
    if cloud is None or cloud is not registry.cloud(then.spec):
        return
    was, now = cloud.ground(then.spec), cloud.ground(plan.spec)
    for path in was:
        if path in now and was[path] != now[path]:
            text = (
                f"cannot change from {was[path] or 'unset'} to {now[path] or 'unset'}: machines, "
                "bastion and gateways are in it for life; set it back, or make a new stack with "
                "the new value and move the workload over"
            )
            yield Refusal("fixed", path, path, text)


def _balancer_replaced(then: Plan, plan: Plan) -> Iterator[Refusal]:
    both = Differences(cloud_resources.told(then, ()), cloud_resources.told(plan, ()))
    replaced = {both.now[one].kind for one in both.changed() if both.of(one).is_replaced}
    if "ingress" in replaced:
        gone = [zone for zone in clouds.zones(then.spec) if zone not in clouds.zones(plan.spec)]
        text = (
            "the load balancer for ingress would be deleted and made again, for it cannot leave "
            f"{', '.join(gone) or 'its subnets'}; its name would be another one; leave a pool "
            "there, or two updates: frontDoors.ingress out, then in again with this edit"
        )
        path = f"{clouds.path(plan.spec)}.subnets"
        yield Refusal("balancer-replaced", "ingress", path, text)
    kind = plan.balancer
    if kind == then.balancer and "load balancer" in replaced:
        where, zones = clouds.path(plan.spec), clouds.zones(plan.spec)
        gone = [zone for zone in clouds.zones(then.spec) if zone not in zones]
        text = (
            f"the {kind} load balancer would be deleted and made again, for it cannot leave "
            f"{', '.join(gone) or 'its subnets'}; clients that go by it miss the API for some "
            f"minutes{_under_another_name(plan)}, nodes do not; leave a pool there, or two "
            "updates: "
        )
        way = f"{where}.apiLoadBalancer: none, then {kind} again with this edit"
        yield Refusal("balancer-replaced", kind, f"{where}.subnets", text + way)


def _under_another_name(plan: Plan) -> str:
    return " and need a new kubeconfig" if plan.is_at_balancer else ""


def warnings_of(before: Memory | None, plan: Plan) -> list[Problem]:
    """Settings of machines that count when a machine is made, and not before."""
    then = before.plan if before else None
    if then is None or not clouds.in_cloud(plan.spec) or not clouds.in_cloud(then.spec):
        return []
    stale: dict[str, list[str]] = {}
    for old, node in _kept(then, plan):
        was, now = cloud_machines.hardware(then, old), cloud_machines.hardware(plan, node)
        if was != replace(now, etcd_disk_gib=was.etcd_disk_gib):
            stale.setdefault(node.pool, []).append(node.name)
    text = (
        "another machine type, boot disk, diskKey, image, podMetadata, podRoutes or secureBoot is "
        "for machines still to be made; until their generation "
    )
    return [
        *_way_in(then, plan),
        *_controller_words(then, plan),
        *(
            Problem(f"pools.{pool}", f"{text}is raised {listed(names)} stay as they are")
            for pool, names in sorted(stale.items())
        ),
    ]


def _controller_words(then: Plan, plan: Plan) -> Iterator[Problem]:
    was, now = clouds.has_controller(then.spec), clouds.has_controller(plan.spec)
    path = f"{clouds.path(plan.spec)}.cloudController"
    if now and not was:
        text = (
            "Nodes that are there get the ID of their machine, which is for life; labels of the "
            "cloud, as the instance type, only those whose generation is raised"
        )
        yield Problem(path, text)
    if was and not now:
        text = (
            "Nodes keep the IDs of their machines; load balancers, routes and disks that the cloud "
            "controller manager made stay in the cloud unless you delete their objects first"
        )
        yield Problem(path, text)


def _way_in(then: Plan, plan: Plan) -> Iterator[Problem]:
    """Another way to the machines, while nothing of it shows on them."""
    was, now = cloud_machines.of_plan(then), cloud_machines.of_plan(plan)
    where = clouds.path(plan.spec)
    if now.access == "tunnel" and was.access != "tunnel":
        yield Problem(
            f"{where}.access",
            f"every machine is reached through {clouds.way_in(plan.spec)} from now on: run "
            "`make tunnel` beside this update, and whenever machines are to be reached",
        )
    if api_clients(was) and not api_clients(now):
        listed = ", ".join(api_clients(was))
        yield Problem(
            f"{where}.apiFrom",
            f"is empty, and there is no sshFrom any more: the API is closed to {listed}",
        )


def _kept(then: Plan, plan: Plan) -> Iterator[tuple[Node, Node]]:
    """Machines of both plans, as they were and as they are to be."""
    known = {node.name: node for node in then.nodes}
    for node in plan.nodes:
        old = known.get(node.name)
        if old is not None and node.generation <= old.generation:
            yield old, node


def _moved(then: Plan, plan: Plan) -> Iterator[Refusal]:
    for old, node in _kept(then, plan):
        if old.zone != node.zone:
            own = f"nodes.{node.name}.zone"
            said = plan.spec.nodes.get(node.name)
            yield Refusal(
                "zone",
                node.name,
                own if said and said.zone else f"pools.{node.pool}",
                f"{node.name} would move from {old.zone} to {node.zone}, where it would be another "
                f"machine; write {old.zone} at {own}, or raise its generation too",
            )


def _protected(then: Plan, plan: Plan) -> Iterator[Refusal]:
    """Where no machine is deleted while it is protected, not by the stack either."""
    cloud = registry.cloud(then.spec)
    if not cloud or not cloud.PROTECTED_BY or not cloud_machines.of_plan(then).deletion_protection:
        return
    stay = {node.name for _, node in _kept(then, plan)}
    # The machine of one that is decommissioned is kept, and so is its protection.
    stay |= {node.name for node in plan.away if node.state == "decommissioned"}
    for old in then.etcd:
        if old.name not in stay:
            yield Refusal(
                "machine-protected",
                old.name,
                f"{clouds.path(then.spec)}.deletionProtection",
                f"{old.name} would be deleted, and {cloud.PROTECTED_BY} protects it; set this to "
                "false and run up, then make this edit, and set it back",
            )
