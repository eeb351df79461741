"""What an edit of a running cluster is refused for, by id, and what can be allowed all the same.

An id is `kind/subject`: `allow: [host-key/worker-1]` lets this one pass, and no other.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stacks.config.problems import Problem

# Kind -> what is allowed by it. The subject of each is told in the refusal.
ALLOWABLE: Mapping[str, str] = {
    "balancer-replaced": "clients outside may miss the API, or ingress, for some minutes",
    "cloud-controller": "that add-on looks for machines only once Nodes have told their IDs",
    "host-key": "the machine of that name shows another SSH host key, and is the same machine",
    "leave-together": "those masters leave in one update together with workers",
    "machine-protected": "the cloud's deletion protection was lifted from that machine by hand",
    "mass-rebuild": (
        "more than half of all workers are recreated in one update, so they leave first"
    ),
    "mass-removal": "more than half of the workers, of that pool or of all, leave in one update",
    "network-backend": "pods of changed and unchanged nodes are cut off from each other for a time",
    "network-bgp-as-number": "pods of different nodes are cut off from each other for a time",
    "network-bgp-reflector-pools": "pods of different nodes are cut off from each other for a time",
    "network-bgp-topology": "pods of different nodes are cut off from each other for a time",
}
# Kind -> why no word of the user makes it right.
NEVER: Mapping[str, str] = {
    "absent": "it cannot be done without the machine",
    "compromised": "whoever has its keys would be that node again",
    "firewall": "machines would keep each other out",
    "fixed": "the cluster cannot be changed into it",
    "generation": "old identities are refused for good",
    "last-etcd": "the data of the cluster would be gone",
    "last-master": "nobody would be left to change the cluster",
    "leave-and-upgrade": "a failure of one would hide behind the other",
    "machine-moved": "it is another machine",
    "machine-renamed": "the machine still belongs to the node of the old name",
    "quorum": "etcd would stop",
    "rebuild": "the control plane, or the virtual IP, would lose two of its machines at once",
    "roles": "what a machine was made for is on its disks",
    "rotation": "nodes would refuse each other, or Secrets could not be read",
    "serving-certificates": "API servers would refuse kubelets",
    "zone": "a machine cannot move",
    "version": "the cluster could not be led back",
}
_ANY = "*"


class Refusal(NamedTuple):
    """One reason against an edit."""

    kind: str
    subject: str
    path: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.kind}/{self.subject}"

    def problem(self) -> Problem:
        """The reason with the fix; where it can be allowed, with the words for it."""
        if self.kind not in ALLOWABLE:
            return Problem(self.path, self.text)
        return Problem(self.path, f"{self.text}; if you mean it: `allow: [{self.id}]`")


def sift(
    found: Sequence[Refusal], allow: Sequence[str]
) -> tuple[list[Refusal], list[Refusal], list[str]]:
    """What stays refused, what is allowed, and which words of `allow` allow nothing."""
    words = set(allow)
    allowed = [one for one in found if one.id in words and one.kind in ALLOWABLE]
    refused = [one for one in found if one not in allowed]
    used = {one.id for one in allowed}
    return refused, allowed, [word for word in allow if word not in used]


def problems(allow: Iterable[str]) -> list[Problem]:
    """Words of `allow` that no refusal will ever answer to."""
    out = []
    for index, word in enumerate(allow):
        kind, slash, subject = word.partition("/")
        path = f"allow[{index}]"
        if kind in NEVER:
            out.append(Problem(path, f"`{kind}` cannot be allowed: {NEVER[kind]}"))
        elif kind not in ALLOWABLE:
            near = difflib.get_close_matches(kind, ALLOWABLE, n=1, cutoff=0.6)
            way = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(ALLOWABLE)}"
            out.append(Problem(path, f"unknown id `{kind}`; {way}"))
        elif subject == _ANY:
            text = f"`{word}` would allow all of its kind, forever; name this one, and no other"
            out.append(Problem(path, text))
        elif not slash or not subject:
            text = f"`{word}` does not say for what; write it as the refusal does: {kind}/..."
            out.append(Problem(path, text))
    return out
