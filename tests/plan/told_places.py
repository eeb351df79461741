"""Which place of the change plan tells of a resource: one table, which knows every resource there is.

A place is (part, subject): a phase and the node on which it runs, or a line and what it is about. A resource that no
row fits raises: whoever adds one decides what tells of it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tests.plan.clouds import is_cloud
from tests.plan.providers import COMMAND, COPY, LOCAL, STASH
from tests.plan.registration import Change, Resource

Place = tuple[str, str]

# Of one node, by the end of the name: the phase that tells of it when it is made, changed, or
# deleted while the node stays. Each deletion of the third column runs nothing.
_OF_NODE: Mapping[str, tuple[str, str, str]] = {
    "machine": ("machine", "machine", "machine"),
    "scripts": ("node", "node", "node"),
    "preflight": ("node", "node", "node"),
    "node": ("node", "node", "node"),
    "keys": ("node", "pki", "node"),
    "join": ("join", "join", "master"),
    "etcd-keys": ("etcd-member", "pki", "etcd-absent"),
    "etcd-found": ("etcd-member", "etcd-member", "etcd-absent"),
    "etcd": ("etcd-member", "etcd-member", "etcd-absent"),
    "etcd-absent": ("etcd-absent", "etcd-absent", "etcd-member"),
    "master-keys": ("master", "pki", "node"),
    "master-shared-keys": ("master", "master", "node"),
    "master": ("master", "master", "node"),
    "vip-peers": ("vip-peers", "vip-peers", "node"),
    "vip": ("vip", "vip", "node"),
    "ingress": ("ingress", "ingress", "node"),
    "decommission": ("decommission", "decommission", "node"),
}
# Of the cluster, by the rest of the name.
_OF_CLUSTER: Mapping[str, Place] = {
    "snapshot": ("snapshot", ""),
    "retire": ("first", ""),
    "rotation": ("keys", ""),
    "join-token": ("join-token", ""),
    "nodes": ("nodes", ""),
    "gate": ("gate", ""),
    "door": ("gate", ""),
    "acceptance": ("gate", ""),  # its stamp
    "protection": ("gate", ""),  # made once, behind it
    "vip-holders": ("vip-holders", ""),
    "balancer-serves": ("api-name", ""),
    "api-name": ("api-name", ""),
    "api-name-known": ("api-name", ""),
    "lab": ("ground", ""),  # told with the birth of a cluster
    "lab-ssh": ("ground", ""),
    "lab-host-keys": ("ground", ""),
    "ssh": ("ground", ""),
    "host-keys": ("ground", ""),
}
# Leafs of a node are told with the command that places them.
_LEAFS = {
    "etcd-server": "etcd-keys",
    "etcd-peer": "etcd-keys",
    "etcd-client": "etcd-keys",
    "apiserver": "master-keys",
    "apiserver-etcd-client": "master-keys",
    "apiserver-kubelet-client": "master-keys",
    "front-proxy-client": "master-keys",
    "approver": "master-keys",
    "load-balancer": "keys",
}
# Of no node: who holds a file of it is told with the outputs.
_LEAFS_PLACED = ("etcd-keys", "master-keys")
_OUTPUTS = re.compile(r"admin(-\d+)?|etcd-client")
_SECRETS = re.compile(r"(kubernetes-ca|etcd-ca|front-proxy-ca|service-account|seed)(-\d+)?(-key)?")


# Of a cluster that is made: nobody is saved or taken out, but the commands are there from the first day on.
_AT_BIRTH = ("snapshot", "retire")


def _is_of_no_node(rest: str) -> bool:
    leaf = rest.removeprefix("pki-").removesuffix("-key").removesuffix("-request")
    return rest.startswith("pki-") and (
        bool(_SECRETS.fullmatch(leaf)) or _OUTPUTS.fullmatch(leaf) is not None
    )


# Of a cloud, what is of no new machine: type, end of the name, and the group that the line names. The first that fits.
_OF_CLOUD = (
    (r"hcloud:index/loadBalancer", r"-ingress(-.*)?", "ingress"),
    (r"hcloud:index/loadBalancer", r"", "load balancer"),
    (r"hcloud:index/network", r"", "network"),
    (r"hcloud:index/firewall:", r"", "firewall"),
    (r"hcloud:index/(sshKey|placementGroup):", r"", "account"),
    (r"hcloud:", r"", "machines"),
    (r"pulumi:providers:", r"", "account"),
    (r"aws:s3/|aws:iam/openId|gcp:iam/", r"", "workload identity"),
    (r"aws:iam/role|gcp:projects/", r"-pods/.*", "workload identity"),
    (
        r"aws:(lb|vpc)/|aws:ec2/securityGroup:|gcp:compute/(?!instance:)",
        r"-ingress(-.*)?",
        "ingress",
    ),
    (
        r"(aws:vpc/securityGroup\w*Rule|aws:ec2/securityGroup|gcp:compute/firewall):",
        r"",
        "firewall",
    ),
    (r"aws:ec2/eip:", r"-nat-[^-]+-\d?\w+-address|-nat-.*-address", "network"),
    (r"aws:ec2/eip:", r"-(bastion|tunnel)-address", "bastion"),
    (r"aws:ec2/eip:", r"-api-.*-address", "load balancer"),
    (r"aws:ec2/eip:", r"-address", "machines"),
    (r"gcp:compute/address:", r"-(bastion|tunnel)-address", "bastion"),
    (r"gcp:compute/address:", r"-api-external-address", "load balancer"),
    (r"gcp:compute/address:", r"-address", "machines"),
    (
        r"aws:ec2/(vpc|internetGateway|routeTable|route|routeTableAssociation|subnet|natGateway):",
        r"",
        "network",
    ),
    (r"gcp:compute/(network|subnetwork|router|routerNat):", r"", "network"),
    (
        r"aws:lb/|gcp:compute/(instanceGroup|instanceGroupMembership|region\w+|forwardingRule):",
        r"",
        "load balancer",
    ),
    (
        r"aws:iam/|aws:ec2/placementGroup:|gcp:serviceaccount/|gcp:projects/|gcp:storage/",
        r"",
        "account",
    ),
    (r"(aws:ec2|gcp:compute)/instance:", r"-(bastion|tunnel)", "bastion"),
    (
        r"(aws:ec2|gcp:compute)/instance:|aws:ebs/|aws:ec2/volumeAttachment:|gcp:compute/disk:",
        r"",
        "machines",
    ),
    (r"aws:route53/zone:|gcp:dns/managedZone:", r"", "DNS zone"),
)
_VERBS = {"+": "made", "~": "changed", "!": "changed", "-": "deleted"}


def _of_cloud(change: Change) -> Place:
    resource = _resource(change)
    for kind, end, group in _OF_CLOUD:
        if re.match(kind, resource.type) and re.search(f"({end})$", resource.name):
            return "cloud", f"{group} {_VERBS[change.mark]}"
    raise UnknownResourceError(f"{resource.type} {resource.name}")


class UnknownResourceError(Exception):
    """No row of the table fits: say what tells of it."""


@dataclass(frozen=True, slots=True)
class Places:
    """Of one edit; `nodes` are the names of both plans, `gone` those that are no more."""

    cluster: str
    nodes: Collection[str]
    gone: Mapping[str, str]  # by name: the phase that tells of what goes with it
    adopted: bool
    anew: Collection[str]  # recreated under their name, or back as another incarnation
    absent: Collection[str]  # stay, and nothing runs on them: told with the list of nodes
    back: Collection[str]  # were absent
    born: bool  # nothing was there
    were: Mapping[str, Collection[str]]  # phases of each node that was there
    phases: Mapping[str, Collection[str]]  # of each node that stays or comes
    changes: Mapping[str, Change]  # by name of the resource

    def of(self, change: Change) -> Place:
        resource = _resource(change)
        rest = resource.name.removeprefix(f"{self.cluster}-")
        rest = rest.removesuffix("-attempt")
        node, part = self._split(rest)
        if node:
            return self._of_node(node, part, change)
        if resource.type.startswith("pulumi:providers:") and not is_cloud(resource.type):
            return "ground", ""  # the engine's own
        if self.born and (rest in _AT_BIRTH or _is_of_no_node(rest)):
            return "ground", ""
        if is_cloud(resource.type):
            return self._of_cluster(rest) if rest in _OF_CLUSTER else _of_cloud(change)
        if rest.startswith("pki-"):
            if change.mark == "~" and change.paths == ("earlyRenewalHours",):
                return "renewal", ""
            return self._of_pki(rest.removeprefix("pki-"), change.mark)
        return self._of_cluster(rest)

    def _split(self, rest: str) -> tuple[str, str]:
        """The node that a name begins with, the longest there is, and what follows."""
        for node in sorted(self.nodes, key=len, reverse=True):
            if rest.startswith(f"{node}-"):
                return node, rest.removeprefix(f"{node}-")
        return "", rest

    def _of_node(self, node: str, part: str, change: Change) -> Place:
        resource = _resource(change)
        if is_cloud(resource.type):
            # A machine that stays, decommissioned or not, has them as others have theirs.
            own = self.changes.get(f"{self.cluster}-{node}-machine")
            if own is None or own.mark == "~":
                return _of_cloud(change)
            return self.gone.get(node, "machine"), node
        if node in self.gone:
            return self.gone[node], node
        if node in self.absent and part != "machine":
            return "nodes", ""
        if part.startswith("ingress-"):
            part = "ingress"
        if part == "preflight" and self.adopted and (change.mark == "+" or node in self.anew):
            return "machine", node
        if part not in _OF_NODE:
            raise UnknownResourceError(f"{resource.type} {resource.name}")
        made, changed, deleted = _OF_NODE[part]
        if node in self.anew:
            changed = made
        elif node in self.back:
            made = changed
        elif part in _LEAFS_PLACED and node in self.were:
            made = changed  # a role more: its leafs lie there before all turns
        if part == "etcd-found" and changed in self.phases[node]:
            deleted = changed  # it stays a member, and another one is the first from now on
        phase = {"+": made, "-": deleted}.get(change.mark, changed)
        if part.startswith("vip") and change.mark == "-":
            return self._without_vip(part, node), node
        if phase in ("vip", "ingress") and phase not in self.phases[node]:
            phase = f"{phase}-away"
        return phase, node

    def _without_vip(self, part: str, node: str) -> str:
        """Deleting these runs nothing: what takes their place tells of it."""
        if part == "vip-peers":
            return "vip" if "vip" in self.phases[node] else "vip-away"
        return "vip-away" if "vip-away" in self.were[node] else "node"

    def _of_pki(self, rest: str, mark: str) -> Place:
        if _SECRETS.fullmatch(rest):
            return ("keys" if mark == "-" else "secrets"), ""
        leaf = rest.removesuffix("-key").removesuffix("-request")
        node, kind = self._split(leaf)
        if node in self.gone:
            return self.gone[node], node
        if node in self.absent:
            return "nodes", ""
        if node and kind in _LEAFS:
            placed = f"{self.cluster}-{node}-{_LEAFS[kind]}"
            if placed not in self.changes:
                raise UnknownResourceError(f"leaf {leaf}, which nothing places")
            return self.of(self.changes[placed])
        if leaf == "ingress":
            return self._of_ingress()
        if _OUTPUTS.fullmatch(leaf):
            return "outputs", ""
        raise UnknownResourceError(f"leaf {leaf}")

    def _of_ingress(self) -> Place:
        """With the first machine that gets it; where none is any more, with one of those that stop."""
        for name, change in self.changes.items():
            if name.endswith("-ingress-own"):
                return self.of(change)
        raise UnknownResourceError("the leaf of the ingress tier, which nothing places")

    def _of_cluster(self, rest: str) -> Place:
        if found := re.fullmatch(r"addon-(.+?)(-file-\d+)?", rest):
            return "addon", found[1]
        if re.fullmatch(r"wave-\d+", rest):
            return "waves", ""
        if rest not in _OF_CLUSTER:
            raise UnknownResourceError(rest)
        return _OF_CLUSTER[rest]


def happens(change: Change) -> bool:
    """Whether it does anything to what runs: only then it has a time that can be told.

    A stamp, a key and a certificate come to be in the state alone. Scripts lie on a machine until a phase runs them.
    A gate between waves asks, and a command that is deleted without a command for it does nothing.
    """
    resource = _resource(change)
    if resource.type.startswith("tls:") or resource.type in (STASH, COPY):
        return False
    if change.mark == "-" and resource.type in (COMMAND, LOCAL):
        return bool(resource.inputs.get("delete")) and not resource.retained
    return re.search(r"-wave-\d+$", resource.name) is None


def _resource(change: Change) -> Resource:
    found = change.after or change.before
    assert found is not None
    return found
