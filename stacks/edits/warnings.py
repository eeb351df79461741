"""What a reviewer should know of an edit that is not refused: it may stop writes, or pods."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.cluster import api_record, clouds
from stacks.cluster.plan import Plan
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.edits import snapshots
from stacks.edits.memory import Memory
from stacks.networks import registry as networks
from stacks.providers import registry

_LEVELS = ("privileged", "baseline", "restricted")


def of(before: Memory | None, plan: Plan) -> Iterator[Problem]:
    """Warnings of the edit from the last success to the plan."""
    if before is None:
        yield from _policies(plan)
        yield from _one_address(plan)
    if before is None or before.plan is None:
        return
    then, now = before.plan.spec, plan.spec
    was, wanted = then.etcd.quota_backend_gib, now.etcd.quota_backend_gib
    if wanted < was:
        text = (
            f"goes from {was} to {wanted}: where the database is bigger already, etcd stops all "
            "writes; `make status` shows its size"
        )
        yield Problem("etcd.quotaBackendGib", text)
    if _level(now) > _level(then):
        text = (
            f"becomes {_LEVELS[_level(now)]} on a living cluster: pods that run stay, and where "
            "they break it nothing takes their place when they end; write it at warn first"
        )
        yield Problem("controlPlane.podSecurity.enforce", text)
    if then.pki.admin_generation is None and now.pki.admin_generation is not None:
        text = (
            "is new on a living cluster: the kubeconfig of before is in kubeadm's own group and "
            "does everything until it ends, or pki.rotation.kubernetes has dropped its CA; each "
            "raise from now on ends the one before"
        )
        yield Problem("pki.adminGeneration", text)
    yield from _balancer_goes(before.plan, plan)
    yield from _unsaved(before, plan)
    yield from _disks(then, now)


def _policies(plan: Plan) -> Iterator[Problem]:
    """Of a new cluster: later on its plugin stays."""
    if not networks.of(plan.spec).POLICIES:
        others = [name for name, one in networks.NETWORKS.items() if one.POLICIES and one.PROVED]
        text = (
            f"{plan.spec.network.plugin} enforces no NetworkPolicy: the API takes them, and "
            f"nothing comes of it; {' or '.join(others)} does, and the plugin of a living "
            "cluster stays"
        )
        yield Problem("network.plugin", text)


def _one_address(plan: Plan) -> Iterator[Problem]:
    """Of a new cluster in a cloud: an address that is of its only master."""
    if clouds.in_cloud(plan.spec) and plan.balancer == "none" and len(plan.masters) == 1:
        [master] = plan.masters
        text = (
            f"is none by default: the API has the addresses of {master.name} alone; with internal "
            "or external from the beginning it has one that stays with more masters, and with "
            "one of them again"
        )
        if plan.spec.cluster.endpoint is None and _balancer_by_default(plan):
            yield Problem(f"{clouds.path(plan.spec)}.apiLoadBalancer", text)


def _balancer_by_default(plan: Plan) -> bool:
    cloud = clouds.settings(plan.spec)
    return cloud is not None and cloud.api_load_balancer is None


def _balancer_goes(then: Plan, plan: Plan) -> Iterator[Problem]:
    """The usual load balancer, which is there for two masters and more."""
    is_led = api_record.zone(plan.spec) is not None  # clients have a name, which moves before
    was = then.balancer == "internal" and not is_led
    if was and plan.balancer == "none" and _balancer_by_default(plan):
        addresses = ", ".join(clouds.balancer_addresses(then.spec))
        text = (
            f"is none by default with one master: the load balancer goes, and {addresses} with it; "
            "write internal, and both stay"
        )
        yield Problem(f"{clouds.path(plan.spec)}.apiLoadBalancer", text)


def _level(spec: Spec) -> int:
    said = spec.control_plane.pod_security
    return _LEVELS.index(said.enforce) if said is not None else 0


def _unsaved(before: Memory, plan: Plan) -> Iterator[Problem]:
    if before.plan and before.plan.etcd and snapshots.place(before, plan) is None:
        text = (
            "every machine that has etcd leaves in this edit, so no snapshot is taken before it; "
            "run `make backup` first"
        )
        yield Problem("pools", text)


def _disks(then: Spec, now: Spec) -> Iterator[Problem]:
    cloud = registry.cloud(now)
    was, wanted = (cloud.said(then), cloud.said(now)) if cloud else (None, None)
    if was is None or wanted is None:
        return
    for key, value in wanted.etcd_disk.items():
        if (old := was.etcd_disk.get(key)) != value:
            text = f"is {value or 'unset'} for disks of etcd still to be made; those that are there"
            yield Problem(
                f"{clouds.path(now)}.{key}", f"{text} keep {old or 'the key of the cloud'}"
            )
