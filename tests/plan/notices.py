"""What the change plan says that somebody notices, by one table of its sentences: a sentence that fits none raises."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stacks.explain.disruption import Disruption
from tests.plan.noticed import Cause

# Beginning of a notice -> what it says; group `about` holds the nodes or names that are meant.
_SENTENCES = (
    (r"the API does not answer while its only API server restarts \((?P<about>.+)\)", "no API"),
    (r"the API can neither read nor write while .*\((?P<about>.+?)\)(: without it there is no quorum)?", "no quorum"),
    (r"once (?P<about>\S+) has (joined|left), one more failure ends its quorum \(\d+ of \d+ members are up\)", "no spare"),
    (r"\S+ does not answer while its API server restarts \((?P<about>.+)\)", "endpoint stops"),
    (r"\S+ does not answer while (?P<about>.+) is replaced", "endpoint replaced"),
    (r"\S+ resolves to every master: ", "one of the name's addresses stops"),
    (r"the endpoint \S+ becomes \S+: ", "endpoint changes"),
    (r"the endpoint \S+ is of a master that leaves: ", "endpoint changes"),
    (r"record \S+ in zone \S+ is deleted: ", "record deleted"),
    (r"the \S+ load balancer of the API is deleted, ", "balancer deleted"),
    (r"certificates of the API no longer hold (?P<about>.+)", "names go"),
    (r"kubeconfigs from before step `trust` ", "CA unknown"),
    (r"kubeconfigs from before step `issue` ", "kubeconfigs refused"),
    (r"the stack's kubeconfig from before ", "administrator refused"),
    (r"tokens of service accounts from before ", "tokens refused"),
    (r"tokens of service accounts with issuer (?P<about>\S+) are refused ", "issuer refused"),
    (r"the VIP \S+ (is released|becomes \S+): ", "VIP ends"),
    (r"the VIP \S+ is unavailable while (?P<about>.+) is replaced", "VIP waits"),
    (r"the VIP \S+ is unavailable for .*, while it moves to (?P<about>.+)", "VIP is handed over"),
    (r"the VIP \S+ moves, in about a second, if (?P<about>.+) has it", "VIP moves"),
    (r"the VIP \S+ moves, in about a second, before ", "VIP moves for packages"),
    (r"the VIP \S+ is unavailable while (?P<about>\S+) is updated( and reboots)?", "VIP waits for packages"),
    (r"keepalived gives up the VIP \S+: ", "VIP left to another failover"),
    (r"the API lets in new connections of (?P<about>.+) and of pods alone", "API let in from fewer"),
    (r"what listens in the network of its node is reached by new connections only where ", "ports close"),
    (r"evicted from (?P<about>.+?), as PodDisruptionBudgets allow, within (?P<limit>\d+) s a node", "evicted, updated within {limit} s"),
    (r"evicted from (?P<about>.+?), for maintenance, ", "evicted, maintenance"),
    (r"evicted from (?P<about>.+?), which leaves? the cluster", "evicted, leaves"),
    (r"evicted from (?P<about>.+?) before the replacement, ", "evicted, replaced"),
    (r"deleted with (?P<about>.+?), without an eviction", "deleted"),
    (r"all workload ends: ", "workload ends"),
    (r"pods of different nodes do not reach each other while the pod network changes its (?P<about>\S+)", "network cut"),
    (r"connections to Services may break while kube-proxy ", "Services break"),
    (r"what add-on (?P<about>.+) runs is deleted", "add-on deleted"),
    (r"connections from and to pods in (?P<about>.+) end, but ", "denied by default"),
    (r"pods in (?P<about>.+) are reached by everybody again, ", "denied no more"),
    (r"images of (?P<about>.+) are pulled without the nodes' login", "login goes"),
    (r"Services of type LoadBalancer with an address of (?P<about>.+) get another one, .*", "addresses go"),
    (r"pods that do not tolerate a new taint NoExecute end on (?P<about>.+)", "ended by a taint"),
    (r"programs on (?P<about>.+) lose the way to etcd ", "door closed"),
    (r"the output etcdClient from before step `trust` ", "etcd's CA unknown"),
    (r"the output etcdClient from before step `issue` ", "etcd's clients refused"),
    (r"nothing serves ports 80 and 443 ", "ingress stops"),
    (r"it moves from \S+ to \S+", "ingress moves"),
    (r"its certificate no longer holds (?P<about>.+)", "hosts go"),
    (r"it no longer shows (?P<about>.+)", "certificates go"),
)  # fmt: skip
_NAMES_AS_THEY_ARE = (
    *("names go", "hosts go", "certificates go", "add-on deleted", "network cut"),
    *("denied by default", "denied no more", "addresses go", "issuer refused", "login goes"),
    "API let in from fewer",
)


class UnknownNoticeError(Exception):
    """No row of the table fits: say what it tells, and in noticed.py what causes it."""


def told(found: tuple[Disruption, ...]) -> set[Cause]:
    """Every notice of every audience."""
    return {_cause(one.audience, text) for one in found for text in one.notices}


def _cause(audience: str, text: str) -> Cause:
    for sentence, kind in _SENTENCES:
        match = re.fullmatch(sentence if sentence.endswith(")") else f"{sentence}.*", text)
        if match is None:
            continue
        about = match.groupdict().get("about") or ""
        listed = about.split(", ") if kind in _NAMES_AS_THEY_ARE else names(about)
        if kind == "network cut":
            listed = [word.lower() for word in listed]
        return Cause(audience, kind.format(**match.groupdict()), frozenset(filter(None, listed)))
    raise UnknownNoticeError(f"{audience}: {text}")


def names(text: str) -> Iterator[str]:
    """`a-1 to a-3, b or c`: each."""
    for words in re.split(r", | or | and ", text):
        first, _, last = words.partition(" to ")
        if not last:
            yield first
            continue
        prefix = first.rstrip("0123456789")
        numbers = range(int(first.removeprefix(prefix)), int(last.removeprefix(prefix)) + 1)
        yield from (f"{prefix}{number}" for number in numbers)
