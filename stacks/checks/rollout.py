"""Checks of `rollout` and `hooks`: names that nobody has, fields that contradict each other."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from stacks.cluster import inventory
from stacks.config.hooks import HooksSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec


def problems(spec: Spec) -> list[Problem]:
    """Groups that name nobody, and fields of which one makes the other do nothing."""
    wanted = spec.rollout
    out = [*_names("rollout.critical", wanted.critical, spec)]
    seen: set[str] = set()
    for index, group in enumerate(wanted.order):
        path = f"rollout.order[{index}]"
        if not (group.pools or group.zones or group.nodes or group.labels):
            out.append(Problem(path, "names nobody; say pools, zones, nodes or labels"))
        out += _names(f"{path}.nodes", group.nodes, spec)
        out += _pools(f"{path}.pools", group.pools, spec)
        out += _zones(f"{path}.zones", group.zones, spec)
        for name in (name for name in group.nodes if name in seen):
            text = f"{name} is in rollout.order twice, and changes once; leave one out"
            out.append(Problem(f"{path}.nodes", text))
        seen |= {*group.nodes}
    canary = wanted.canary
    if canary is not None:
        out += _names("rollout.canary.nodes", canary.nodes, spec)
        if (canary.count is None) == (not canary.nodes):
            out.append(Problem("rollout.canary", "takes one of count and nodes"))
    if wanted.plan is not None:
        others = (("order", bool(wanted.order)), ("canary", canary is not None))
        text = "stands beside rollout.plan, which says all of it; leave one of them out"
        out += [Problem(f"rollout.{name}", text) for name, is_said in others if is_said]
    if spec.hooks is not None:
        out += _hooks(spec.hooks)
    return out


def _hooks(said: HooksSpec) -> Iterator[Problem]:
    if not said.url.startswith("https://"):
        text = "is not https: nothing would say who asks, nor who answers"
        yield Problem("hooks.url", text)
    if not said.events:
        yield Problem("hooks.events", "names no event; say one, or take hooks out")


def warnings(spec: Spec) -> list[Problem]:
    """Fields that do nothing as things are."""
    wanted, out = spec.rollout, []
    workers = sum(1 for place in inventory.present(spec) if _is_worker(spec, place.pool))
    percent = wanted.failure_budget_percent
    if percent and workers and workers * percent < 100:
        text = f"{percent} percent of {workers} workers are less than one: none may fail"
        out.append(Problem("rollout.failureBudgetPercent", text))
    if wanted.critical and not percent:
        text = "without rollout.failureBudgetPercent any failure ends the rollout"
        out.append(Problem("rollout.critical", text))
    return out


def _is_worker(spec: Spec, pool: str) -> bool:
    roles = spec.pools[pool].roles
    return "worker" in roles and "master" not in roles


def _names(path: str, names: Iterable[str], spec: Spec) -> Iterator[Problem]:
    places = {place.name: place.pool for place in inventory.places(spec)}
    workers = [name for name, pool in places.items() if _is_worker(spec, pool)]
    for name in names:
        if name in places and name not in workers:
            text = (
                f"{name!r} is not a worker; masters and etcd machines change one by one, and any "
            )
            yield Problem(path, f"{text}failure there ends the update")
        elif name not in places:
            near = difflib.get_close_matches(name, workers, n=1, cutoff=0.6)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            yield Problem(path, f"no worker is called {name!r}{hint}")


def _zones(path: str, zones: Iterable[str], spec: Spec) -> Iterator[Problem]:
    known = {place.zone for place in inventory.places(spec) if _is_worker(spec, place.pool)}
    there = ", ".join(sorted(filter(None, known))) or "none"
    for zone in zones:
        if zone not in known:
            yield Problem(path, f"no worker is in zone {zone!r}; there are {there}")


def _pools(path: str, pools: Iterable[str], spec: Spec) -> Iterator[Problem]:
    workers = sorted(pool for pool in spec.pools if _is_worker(spec, pool))
    for pool in pools:
        if pool not in workers:
            there = ", ".join(workers) or "none"
            yield Problem(path, f"no pool of workers is called {pool!r}; there are {there}")
