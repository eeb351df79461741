"""Changes reach workers that exist in waves: gates that open one wave after the other.

A gate depends on no node. It asks the cluster whether those of its wave announce what is wanted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import partial

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions

from components.cluster_wide import node_list
from components.nodes.prepared import announced
from components.ssh.commands import ANY_CHANGE, Identity, Machine, after, converge
from stacks.cluster import digests, rollout
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Plan

_STALL_S = 300  # besides the time for evictions: an update of one node takes about a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutArgs:
    plan: Plan
    machine: Machine  # a master
    identity: Identity
    files: Mapping[str, Mapping[str, File]]  # what nodes fetch, by architecture and name
    ca_cert: Output[str]
    settled: Collection[str]  # workers that exist; others are in no wave yet
    after: Resource  # the control plane is as wanted


class Rollout(ComponentResource):
    """Resources `<cluster>-wave-0` to `<cluster>-wave-<n-1>` of n waves; gate k opens wave k+1.

    What follows the last wave, the list of nodes, waits for its nodes itself. A gate runs when what
    the nodes of its wave should be has changed, and at no other time: neither when a node comes or
    goes nor when only a limit changes.
    """

    def __init__(self, name: str, args: RolloutArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Rollout", name, None, opts)
        self._name, self._args = name, args
        self._waves = rollout.node_waves(args.plan)
        known = Output.all(
            **{
                node.name: announced(args.plan, node, args.files[node.arch], args.ca_cert)
                for node in args.plan.workers
            }
        )
        self._opens: dict[str, Resource] = {}
        self.last: Resource = args.after
        for number, wave in enumerate(self._waves):
            self.last = self._gate(number, known)
            self._opens |= dict.fromkeys(wave.nodes, self.last)
        self.register_outputs({})

    def opens(self, node: str) -> Resource:
        """What the update of a worker that exists waits for."""
        return self._opens[node]

    def _gate(self, number: int, known: Output[dict[str, str]]) -> Resource:
        """Gate 0 stands before all workers; gate k after wave k."""
        settled = self._args.settled
        done = [name for wave in self._waves[: max(0, number - 1)] for name in wave.nodes]
        own = self._waves[number - 1].nodes if number else ()
        later = [name for wave in self._waves[number:] for name in wave.nodes]
        parts = {
            "EARLIER": [name for name in done if name in settled],
            "NODES": [name for name in own if name in settled],
            "LATER": [name for name in later if name in settled],
        }
        values: dict[str, Input[str]] = {
            key: known.apply(partial(self._lines, names)) for key, names in parts.items() if names
        }
        if values:
            values |= settings(self._args.plan, number, parts["NODES"])
        concerned = own or later
        return converge(
            f"{self._name}-wave-{number}",
            self._args.machine,
            "wave",
            values,
            identity=self._args.identity,
            opts=ResourceOptions.merge(
                # While nobody is held back, one gate need not wait for the other.
                after(
                    self.last if settled else self._args.after,
                    parent=self,
                    ignore=ANY_CHANGE,
                ),
                # In place of an update: the engine ignores no change of a resource that it makes
                # anew, and deleting the old one runs nothing.
                ResourceOptions(
                    replacement_trigger=known.apply(
                        lambda hashes: self._wanted(number, {hashes[name] for name in concerned})
                    )
                ),
            ),
        )

    def _lines(self, names: Collection[str], hashes: Mapping[str, str]) -> str:
        nodes = [node for node in self._args.plan.workers if node.name in set(names)]
        return node_list.wanted_lines(nodes, hashes)

    def _wanted(self, number: int, hashes: Collection[str]) -> str:
        """What makes a gate run: not who is in the wave, or each that comes would move others."""
        drain = _drain(self._args.plan) if number == 0 else ""
        return digests.digest(drain, *sorted(hashes))


def settings(plan: Plan, number: int, nodes: Collection[str]) -> dict[str, str]:
    """Values of the wave phase that are the config's; `nodes` are those of the wave."""
    wanted = plan.spec.rollout
    windows = rollout.windows(plan)
    return {
        "WAVE": str(number),
        "WAVES": str(len(rollout.node_waves(plan))),
        "BUDGET": str(rollout.budget(plan)),
        "CRITICAL": " ".join(name for name in wanted.critical if name in nodes),
        "PAUSE_S": str(wanted.pause_s) if number else "0",
        "WINDOWS": " ".join(f"{start}-{end}" for start, end in windows),
        "WINDOWS_SAID": ", ".join(wanted.windows),
        "HOLD": "1" if wanted.hold_after == number else "",
        "STALL_S": str(_STALL_S + wanted.drain.timeout_s + node_list.reboot_s(plan)),
        "IDLE_S": str(node_list.IDLE_S),
        "NETWORK": "1" if plan.spec.network.plugin != "none" else "0",
        **({} if number else _evictions(plan)),
    }


def _evictions(plan: Plan) -> dict[str, str]:
    """What gate 0 needs to know whose pods will be evicted, and how."""
    packages = plan.spec.os.packages or ""
    return {"DRAIN": _drain(plan), "VERSIONS": _versions(plan), "OS": packages}


def _drain(plan: Plan) -> str:
    """As the nodes read it on themselves: when, seconds, grace in seconds or `-`."""
    drain = plan.spec.rollout.drain
    grace = "-" if drain.grace_s is None else str(drain.grace_s)
    return f"{drain.when} {drain.timeout_s} {grace}"


def _versions(plan: Plan) -> str:
    return f"kubelet={plan.versions.kubernetes} containerd={plan.versions.containerd}"
