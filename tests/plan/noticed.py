"""What those who use a cluster notice of an update, by the resources that it registers: no word of the change plan."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from stacks.cluster.plan import Plan
from tests.plan.commands import Command, commands, members
from tests.plan.noticed_firewall import api_causes, port_causes
from tests.plan.noticed_pods import Pods
from tests.plan.registration import Change, Run
from tests.plan.stops import Stop, Stops, nodes_of
from tests.plan.vip_moves import vip_causes

OUTSIDE, INSIDE, ETCD, PODS, INGRESS = (
    "API clients outside",
    "API clients inside",
    "etcd",
    "pods",
    "ingress",
)
_BALANCERS = (
    "aws:lb/loadBalancer:LoadBalancer",
    "gcp:compute/forwardingRule:ForwardingRule",
    "hcloud:index/loadBalancer:LoadBalancer",
)
_ETCD_DOOR = re.compile(r"^listen etcd\n  bind (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an audience notices something, and which nodes or names it is about."""

    audience: str
    kind: str
    about: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.audience}: {self.kind} {', '.join(sorted(self.about))}"


@dataclass(frozen=True)
class Noticed:
    """One update of a living cluster."""

    then: Plan
    plan: Plan
    run: Run

    @cached_property
    def commands(self) -> tuple[Command, ...]:
        return commands(self.run)

    @cached_property
    def stops(self) -> Stops:
        return Stops(self.commands)

    def causes(self) -> set[Cause]:
        api = [*self._without_api(), *self._without_quorum()]
        found = {
            Cause(audience, kind, about) for kind, about in api for audience in (OUTSIDE, INSIDE)
        }
        found |= {Cause(ETCD, kind, about) for kind, about in self._without_quorum()}
        found |= {Cause(OUTSIDE, kind, about) for kind, about in self._outside()}
        found |= {Cause(INSIDE, "tokens refused") for _ in self._dropped("service-account")}
        found |= {Cause(INSIDE, "issuer refused", frozenset([one])) for one in self._left_issuers()}
        found |= {Cause(ETCD, "no spare", frozenset([name])) for name in self._without_spare()}
        found |= {Cause(ETCD, kind, about) for kind, about in self._etcd_door()}
        of_pods = Pods(self.then, self.plan, self.run, self.commands)
        found |= {Cause(PODS, kind, about) for kind, about in of_pods.causes()}
        found |= {Cause(PODS, kind, about) for kind, about in port_causes(self.commands)}
        return found | {Cause(INGRESS, kind, about) for kind, about in self._ingress()}

    def _named(self, end: str) -> Command | None:
        name = f"{self.plan.spec.cluster.name}-{end}"
        return next((one for one in self.commands if one.name == name), None)

    def _of(self, phase: str) -> Iterator[Command]:
        return (one for one in self.commands if one.phase == phase)

    @cached_property
    def _listed(self) -> Command:
        return next(self._of("nodes"))

    def whys(self) -> set[str]:
        """What may be said to those who notice nothing."""
        api, etcd = (
            len(nodes_of(self.stops.of(program))) for program in ("kube-apiserver", "etcd")
        )
        voters = len(members(self._listed.was("MEMBERS")))
        again = "only what has drifted restarts" if "GENERATION" in self._changed else ""
        of_api = {
            0: again or "no API server restarts",
            1: "1 API server restarts, the others answer",
        }
        of_etcd = {0: again or "no etcd member restarts", 1: f"1 of {voters} etcd members restarts"}
        return {
            of_api.get(api, f"{api} API servers restart one at a time, the others answer"),
            of_etcd.get(etcd, f"{etcd} of {voters} etcd members restart one at a time"),
            "no pod is evicted",
            "open connections to it are kept",
        }

    @cached_property
    def _changed(self) -> frozenset[str]:
        return frozenset[str]().union(*(one.changed for one in self._of("node") if one.is_again))

    # API servers and members

    def _without_api(self) -> Iterator[tuple[str, frozenset[str]]]:
        alone = [stop for stop in self.stops.of("kube-apiserver") if stop.of == 1]
        if alone:
            yield "no API", frozenset(nodes_of(alone)[:1])

    def _without_quorum(self) -> Iterator[tuple[str, frozenset[str]]]:
        lost = [stop for stop in self.stops.of("etcd") if stop.left < stop.of // 2 + 1]
        if lost:
            yield "no quorum", frozenset(nodes_of(lost))

    def _without_spare(self) -> Iterator[str]:
        lost = (
            move.member for move in self.stops.moves if move.spare <= 0 < self.stops.spare_before
        )
        yield from [*lost][:1]

    def _etcd_door(self) -> Iterator[tuple[str, frozenset[str]]]:
        """HAProxy of nodes leads programs to etcd."""
        doors = {
            one.node: (
                _ETCD_DOOR.findall(one.was("HAPROXY_CFG")),
                _ETCD_DOOR.findall(one.now("HAPROXY_CFG")),
            )
            for one in self._of("node")
            if one.after is not None
        }
        if closed := {name for name, (was, now) in doors.items() if was and was != now}:
            yield "door closed", frozenset(closed)
        if any(was for was, _ in doors.values()) and any(now for _, now in doors.values()):
            was, now = self._generations("etcd")
            if now[0] > was[0]:
                yield "etcd's CA unknown", frozenset()
            elif [*self._dropped("etcd")]:
                yield "etcd's clients refused", frozenset()

    # clients outside

    def _outside(self) -> Iterator[tuple[str, frozenset[str]]]:
        yield from self._endpoint()
        yield from vip_causes(self.commands)
        for change in self.run.changes:
            kind = change.before.type if change.before else ""
            if (
                change.mark in "-!"
                and change.name.endswith("-api-name")
                and kind.startswith(("aws:", "gcp:"))
            ):
                yield "record deleted", frozenset()
            if change.mark == "-" and kind in _BALANCERS and "-api-" in change.name:
                yield "balancer deleted", frozenset()
        if names := self._names_that_go():
            yield "names go", names
        yield from self._kubeconfigs()
        yield from api_causes(self.commands, self.plan.spec.cluster.pod_cidr)

    def _endpoint(self) -> Iterator[tuple[str, frozenset[str]]]:
        host = self.then.endpoint.rpartition(":")[0]
        was = {one.was("ADDRESS"): one.node for one in self._of("master") if one.before}
        stops: list[Stop] = self.stops.of("kube-apiserver")
        if len(was) > 1 and host in was:
            recreated = {one.node for one in self._of("master") if one.is_recreated}
            if was[host] in nodes_of(stops) and not any(stop.of == 1 for stop in stops):
                yield "endpoint stops", frozenset([was[host]])
            elif was[host] in recreated:
                yield "endpoint replaced", frozenset([was[host]])
        turns = (
            self.then.spec.front_doors.dns != "none"
            and not self.then.vip
            and self.then.balancer == "none"
        )
        if (
            turns
            and host not in was
            and len(was) > 1
            and stops
            and not any(stop.of == 1 for stop in stops)
        ):
            yield "one of the name's addresses stops", frozenset()
        if self._is_lost(host):
            yield "endpoint changes", frozenset()

    def _is_lost(self, host: str) -> bool:
        """Nothing answers there any more, or with a certificate that does not hold it."""
        if host == self.then.vip.rpartition(":")[0]:
            return False  # told with the VIP
        was = {node.address: node.name for node in self.then.masters}
        if host in was:
            # One that is absent stays the master that it is.
            return was[host] not in {node.name for node in self.plan.masters}
        if self.then.balancer != "none" and self.then.spec.cluster.endpoint is None:
            return self.plan.balancer != self.then.balancer
        return any(host in before and host not in after for before, after in self._certificates())

    def _certificates(self) -> Iterator[tuple[set[str], set[str]]]:
        """Names in certificates of API servers that stay, before and after."""
        cluster = self.plan.spec.cluster.name
        stay = {one.node for one in self._of("master") if one.before and one.after}
        for change in self.run.changes:
            found = re.fullmatch(rf"{cluster}-pki-(.+)-apiserver-request", change.name)
            if found and found[1] in stay:
                yield _names(change, after=False), _names(change, after=True)

    def _names_that_go(self) -> frozenset[str]:
        told = {self.then.endpoint.rpartition(":")[0], self.then.vip.rpartition(":")[0]}
        return frozenset(name for was, now in self._certificates() for name in was - now) - told

    def _kubeconfigs(self) -> Iterator[tuple[str, frozenset[str]]]:
        was, now = self._generations("kubernetes")
        if now[0] > was[0]:
            yield "CA unknown", frozenset()
        elif [*self._dropped("kubernetes")]:
            yield "kubeconfigs refused", frozenset()
        admin = self._named("addon-admin-generation")
        if admin and admin.is_again and "MANIFEST" in admin.changed:
            yield "administrator refused", frozenset()

    def _generations(self, subject: str) -> tuple[list[int], list[int]]:
        """That count before and after, the one that signs first: value KEYS of masters."""
        known = next((one for one in self._of("master") if one.before and one.after), None)
        if known is None:
            return [1], [1]
        found = (
            re.search(rf"\b{subject}=([\d,]+)", text)
            for text in (known.was("KEYS"), known.now("KEYS"))
        )
        was, now = ([int(one) for one in match[1].split(",")] if match else [1] for match in found)
        return was, now

    def _dropped(self, subject: str) -> Iterator[int]:
        """Generations by which something was signed, and that count no more."""
        was, now = self._generations(subject)
        return (one for one in was if one not in now and one < now[0])

    def _left_issuers(self) -> Iterator[str]:
        """Names in tokens that API servers took, and take no more."""
        for one in [one for one in self._of("master") if one.before and one.after][:1]:
            was, now = map(_issuers, (one.was("KUBEADM_CONFIG"), one.now("KUBEADM_CONFIG")))
            yield from (issuer for issuer in was if issuer not in now)

    # ingress

    def _ingress(self) -> Iterator[tuple[str, frozenset[str]]]:
        old = [change.before for change in self.run.changes if change.mark == "-"]
        if any(o and o.name.endswith("-ingress") and o.type in _BALANCERS for o in old):
            yield "ingress stops", frozenset()
        tier = [*self._of("ingress")]
        if not any(one.before for one in tier):
            return
        if not any(one.after for one in tier):
            yield "ingress stops", frozenset()
            return
        for kind, about in vip_causes(self.commands):
            yield ("ingress moves" if kind == "VIP ends" else kind), about
        for change in self.run.changes:
            if change.name.endswith("-pki-ingress-request"):
                gone = _names(change, after=False) - _names(change, after=True)
                if gone:
                    yield "hosts go", frozenset(gone)
        was = {word for one in tier for word in one.was("GIVEN").split()}
        now = {word for one in tier for word in one.now("GIVEN").split()}
        if was - now:
            yield "certificates go", frozenset(was - now)


def _names(change: Change, *, after: bool) -> set[str]:
    resource = change.after if after else change.before
    found: set[str] = set()
    for key in ("dnsNames", "ipAddresses"):
        listed = resource.value(key) if resource else None
        found |= {str(one) for one in listed} if isinstance(listed, list) else set()
    return found


def _issuers(config: str) -> list[str]:
    """Of the API server's flags, or kubeadm's own."""
    own = re.findall(r'dnsDomain: "?([^"\s]+)', config)
    said = re.findall(r'name: service-account-issuer\n\s+value: "?([^"\s]+)', config)
    return said or [f"https://kubernetes.default.svc.{domain}" for domain in own]
