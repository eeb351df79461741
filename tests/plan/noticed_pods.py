"""What pods notice of an update, by its commands: evicted, deleted, ended by a taint, or cut off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stacks.cluster.plan import Plan
from stacks.networks import registry as networks
from tests.plan.commands import Command, by_name, downloads, expand, wanted
from tests.plan.registration import Run

_WITHOUT_PODS = ("default-deny", "registry-login")
_LOGINS = "CREDENTIAL_PROVIDERS"  # of kubelets, JSON
USUAL_DRAIN = "auto 300 -"  # update.sh: of a Node that says nothing


@dataclass(frozen=True)
class Pods:
    """Of one update of a living cluster."""

    then: Plan
    plan: Plan
    run: Run
    commands: Sequence[Command]

    def _named(self, end: str) -> Command | None:
        name = f"{self.plan.spec.cluster.name}-{end}"
        return next((one for one in self.commands if one.name == name), None)

    def _of(self, phase: str) -> Iterator[Command]:
        return (one for one in self.commands if one.phase == phase)

    def causes(self) -> Iterator[tuple[str, frozenset[str]]]:
        listed, recreated = (
            next(self._of("nodes")),
            {one.node for one in self._of("node") if one.is_recreated},
        )
        updated = [*self._evicted_for_update()]
        for limit in {limit for _, limit in updated}:
            names = (name for name, known in updated if known == limit)
            yield f"evicted, updated within {limit} s", frozenset(names)
        emptied = {*expand(listed.now("EMPTIED"))} - {*expand(listed.was("EMPTIED"))}
        if emptied:
            yield "evicted, maintenance", frozenset(emptied)
        were = wanted(listed.before)
        gone = {
            word.partition("=")[0]: word
            for word in self._taken_out()
            if word.partition("=")[0] in were
        }
        given_up = {name for name, word in gone.items() if word.endswith((":lost", ":compromised"))}
        if leaving := were - wanted(listed.after) - {*gone}:
            yield "evicted, leaves", frozenset(leaving)
        if given_up:
            yield "deleted", frozenset(given_up)
        if replaced := {*gone} - given_up:
            yield "evicted, replaced", frozenset(replaced)
        was, now = by_name(listed.was("TAINTS")), by_name(listed.now("TAINTS"))
        tainted = {
            name
            for name in {*was}
            & {*now} - recreated - {word.partition("=")[0] for word in self._taken_out()}
            if any(taint.endswith(":NoExecute") for taint in {*now[name]} - {*was[name]})
        }
        if tainted:
            yield "ended by a taint", frozenset(tainted)
        gone_addons = {*listed.was("ADDONS").split()} - {*listed.now("ADDONS").split()}
        if addons := {name for name in gone_addons if not self._runs_nothing(name)}:
            yield "add-on deleted", frozenset(addons)
        yield from self._pod_network()
        yield from self._of_the_catalogue()
        if self._no_worker_stays():
            yield "workload ends", frozenset()

    def _runs_nothing(self, addon: str) -> bool:
        """One of the catalogue without pods, of which pods notice what it did (below)."""
        said = self.then.spec.addons[addon]
        return addon in _WITHOUT_PODS and not said.manifests and said.chart is None

    def _taken_out(self) -> list[str]:
        return [
            word
            for one in self._of("retire")
            if one.runs
            for word in one.now("INCARNATIONS").split()
        ]

    def _pod_network(self) -> Iterator[tuple[str, frozenset[str]]]:
        cuts = [key for key, _ in networks.cuts(self.then.spec, self.plan.spec)]
        own = [self._named(f"addon-{name}") for name in networks.of(self.plan.spec).ADDONS]
        if cuts and any(one and one.is_again and "MANIFEST" in one.changed for one in own):
            for key in cuts:
                yield "network cut", frozenset([key.replace("_", "").lower()])
        proxy = self._named("addon-kube-proxy")
        if proxy and proxy.is_again:
            modes = [re.findall(r"^ *mode: (\S+)$", proxy.was("MANIFEST"), re.MULTILINE)]
            modes += [re.findall(r"^ *mode: (\S+)$", proxy.now("MANIFEST"), re.MULTILINE)]
            if modes[0] != modes[1]:
                yield "Services break", frozenset()

    def _of_the_catalogue(self) -> Iterator[tuple[str, frozenset[str]]]:
        """Policies by their namespaces; logins by kubelets' settings; addresses, which are in a file alone, where it is applied again."""
        applied = {one.was("NAME") or one.now("NAME"): one for one in self._of("manifests")}
        if policies := applied.get("default-deny"):
            was, now = (
                frozenset(re.findall(r"^NetworkPolicy\S* (\S+) ", text, re.MULTILINE))
                for text in (policies.was("OBJECTS"), policies.now("OBJECTS"))
            )
            if denied := now - was:
                yield "denied by default", denied
            if free := was - now:
                yield "denied no more", free
        hosts = [
            {
                host
                for text in texts
                if text
                for host in json.loads(text)["providers"][0]["matchImages"]
            }
            for texts in zip(
                *((one.was(_LOGINS), one.now(_LOGINS)) for one in self._of("node")), strict=True
            )
        ]
        if hosts and (lost := hosts[0] - hosts[1]):
            yield "login goes", frozenset(lost)
        if (pools := applied.get("metallb")) and pools.is_again:
            was, now = (
                frozenset(plan.spec.addons["metallb"].addresses) for plan in (self.then, self.plan)
            )
            if gone := was - now:
                yield "addresses go", gone

    def _no_worker_stays(self) -> bool:
        was, now = (
            {(node.name, node.generation) for node in plan.nodes if "worker" in node.roles}
            for plan in (self.then, self.plan)
        )
        return bool(was) and not was & now

    def _evicted_for_update(self) -> Iterator[tuple[str, str]]:
        gate = self._named("wave-0")
        said = (gate.now("DRAIN") if gate else "") or USUAL_DRAIN
        for one in self._of("node"):
            roles = one.now("ROLES").split()
            if not one.is_again or not {"master", "worker"} & {*roles}:
                continue
            # Gate 0 tells workers how to drain; a master's Node says nothing.
            when, limit, _ = (USUAL_DRAIN if "master" in roles else said).split()
            packages = "OS_PACKAGES" in one.changed and bool(one.now("OS_PACKAGES"))
            minor = _other_minor(one, "kubelet") or (
                "master" not in roles and _other_minor(one, "containerd")
            )
            # node.sh, announce_update: what was applied whole before, and only runs again, is not an update.
            is_new = packages or minor or "APPLIED" in one.changed
            is_drained = (when == "always" and is_new) or (when == "auto" and (packages or minor))
            if is_drained and not self._is_held(one):
                yield one.node, limit

    def _is_held(self, command: Command) -> bool:
        """A gate before it says HOLD."""
        resource = self.run.named(command.name)
        gates = [
            int(found[1])
            for urn in resource.dependencies
            if (found := re.search(r"-wave-(\d+)$", urn))
        ]
        holding = [
            int(one.name.rpartition("-")[2]) for one in self._of("wave") if one.now("HOLD") == "1"
        ]
        return any(number <= gate for number in holding for gate in gates)


def _other_minor(command: Command, program: str) -> bool:
    was, now = (
        downloads(values).get(program, ("", ""))[0] for values in (command.before, command.after)
    )
    minors = [re.search(r"/v(\d+\.\d+)\.\d+/", url) for url in (was, now)]
    return bool(minors[0] and minors[1] and minors[0][1] != minors[1][1])
