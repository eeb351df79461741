"""What is checked in a part of an update before the next begins: what its phases do, no more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from stacks.catalogue import registry as catalogue
from stacks.cluster import api_record
from stacks.cluster.plan import Plan
from stacks.edits import quorum
from stacks.explain.doing import Doing
from stacks.networks import registry as networks
from stacks.order.step import Part, Said


class Check(NamedTuple):
    """In words, and by whom: a phase, and its function as in stacks/phases/checks.py."""

    text: str
    phase: str
    by: str


_QUORUM = "the remaining members have a quorum of their own"
SAVED = Check(
    "it is whole, of this cluster, and holds all that a quorum had", "snapshot", "verified"
)
ANSWERED = Check("etcd answers with a quorum before anybody goes", "retire", "expect_quorum")
GOES_FIRST = Check(f"before an etcd member is removed, {_QUORUM}", "retire", "quorum_without")
FIT = Check(
    "preflight lists all that is wrong with a machine before anything is changed on it",
    "preflight",
    "main",
)
OTHERS_VOTE = Check(
    "a member restarts only where the others have a quorum without it",
    "etcd-member",
    "etcd_successor",
)
VOTES = Check("each member votes and is healthy before the next", "etcd-member", "promote")
VOTES_AFTER = Check("after it, it votes and is healthy", "etcd-member", "promote")
VOTES_ALONE = Check("the member votes and is healthy", "etcd-member", "answers")
OTHERS_SERVE = Check("an API server stops only while another is ready", "master", "others_serve")
SERVES_AFTER = Check(
    "after it, its /readyz, and the API through the node's own HAProxy",
    "master",
    "api_server_ready",
)
SERVES = Check(
    "/readyz of each API server, and the API through the node's own HAProxy",
    "master",
    "api_server_ready",
)
ACTIVE = Check("each node's services are active", "node", "settle")
COPIES = Check("each namespace holds the CAs of this step", "rotation", "await_pods")
EXTENSIONS = Check(
    "extension API servers know the CAs of this step", "rotation", "tell_extension_servers"
)
ENCRYPTED = Check(
    "no Secret is under another key than the one that encrypts", "rotation", "encrypt_again"
)
APPLIED = Check("applied by the API server", "addon", "apply")
APPLIED_TOO = Check("applied by the API server", "manifests", "apply")
PODS_RUN = Check("that their pods run is asked by the gate", "gate", "rolled_out")
JOINED = Check("each worker that joins announces what it has applied", "join", "announce")
TAKES = Check("HAProxy takes its configuration", "node", "local_api")
IS_BACK = Check(
    "after a reboot the machine is back before the next is touched", "pki", "await_resumed"
)
LEADS = Check("the load balancer answers before the record leads there", "balancer", "wait_for")
AS_WANTED = Check("every wanted node is Ready and as wanted", "nodes", "wait_for_nodes")
STAY_FIRST = Check(
    "every wanted node is Ready and as wanted before one leaves", "nodes", "wait_for_nodes"
)
APPLIED_ALL = Check("every wanted node has applied what is wanted", "nodes", "wait_for_nodes")
LEAVES = Check(f"before an etcd member leaves, {_QUORUM}", "nodes", "quorum_without")
NOTHING_LEFT = Check("no process of kube-ha is left", "decommission", "nothing_runs")
NO_ETCD = Check("etcd stops only where it is not a member any more", "etcd-absent", "still_votes")
ENDS_TLS = Check(
    "HAProxy takes its configuration and its certificates before they replace others",
    "ingress",
    "main",
)
TAKES_VRRP = Check("keepalived takes its configuration", "vip", "validated")
HEARS_TOO = Check("keepalived takes its configuration", "vip-peers", "validated")
LISTENS = Check("its HAProxy listens at the address", "vip", "listens")
HEARD = Check("no machine has it that the others do not hear", "vip", "expect_adverts")
GONE = Check("no master has the address any more", "vip-away", "virtual_ip_gone")
LISTED = Check("the list is applied by the API server", "addon", "apply")
REMEMBERED = Check("only now the stack remembers this config as applied", "gate", "check_api")
WIPED = Check("no process and no data of kube-ha is left", "leave", "nothing_runs")
STOPPED = Check("no process of kube-ha is left", "leave", "nothing_runs")
WAVE = "every node of it is Ready and has announced what it applied"
OF_WAVE = Check(WAVE, "wave", "await_wave")
OF_LAST_WAVE = Check(WAVE, "nodes", "wait_for_nodes")

_NOTHING: Mapping[Part, str] = {
    "machines": "each is there",
    "leafs": "what reads them does so while it runs: nothing restarts, nobody waits for a turn",
    "settled keys": "nothing: no copy of them is kept in the cluster",
    "joining": "no worker joins",
}


def checked(part: Part, doing: Doing) -> str:
    """Of what runs in that part."""
    found = _OF.get(part, _nothing)(doing)
    said = "; ".join(dict.fromkeys(one.text for one in found))
    if part == "API name":
        said = _of_record(doing, said)
    return said or _NOTHING.get(part, "nothing more than that its commands end well")


def of_left(plan: Plan, names: Collection[str]) -> str:
    """Of machines that leave for good, after the gate; nobody looks at one that is dead."""
    if plan.made:
        return "the provider says that they are gone"
    dead = {node.name for node in plan.away if node.is_given_up}
    if {*names} <= dead:
        return "nothing: no SSH is tried"
    return (STOPPED if plan.spec.machines.on_release == "keep" else WIPED).text


def _of_record(doing: Doing, said: str) -> str:
    """The record waits for whoever it points to; then as long as others may remember it."""
    first = said or "every master serves before the record leads there"
    return f"{first}; then {api_record.TTL_S} s, for as long resolvers keep the old one"


def _nothing(_doing: Doing) -> Iterator[Check]:
    yield from ()


def _retire(doing: Doing) -> Iterator[Check]:
    yield ANSWERED
    if doing.members_go_first:
        yield GOES_FIRST


def _members(doing: Doing) -> Iterator[Check]:
    yield VOTES if len(doing.machines) > 1 else VOTES_ALONE


def _control_plane(doing: Doing) -> Iterator[Check]:
    """A restart asks the others, where there are any; every run ends with a look at its own."""
    members, servers = doing.stops("etcd"), doing.stops("kube-apiserver")
    others_vote = any(one.left >= quorum.quorum(one.of) for one in members)
    others_serve = any(one.left for one in servers)
    if others_vote:
        yield OTHERS_VOTE
    if "etcd-member" in doing.phases:
        yield VOTES_AFTER if others_vote else VOTES_ALONE
    if others_serve:
        yield OTHERS_SERVE
    if "master" in doing.phases:
        yield SERVES_AFTER if others_serve else SERVES
    if not doing.phases & {"etcd-member", "master"}:
        yield ACTIVE


def _settled_keys(doing: Doing) -> Iterator[Check]:
    told = doing.values("rotation")
    subjects = {word.partition("=")[0] for word in _text(told.get("KEYS")).split()}
    if "kubernetes" in subjects:
        yield COPIES
    if subjects & {"kubernetes", "front-proxy"}:
        yield EXTENSIONS
    if told.get("ENCRYPTS") and subjects & {"encryption", "seed"}:
        yield ENCRYPTED


def _text(said: Said | None) -> str:
    return said if isinstance(said, str) else ""


def _addons(doing: Doing) -> Iterator[Check]:
    if "addon" in doing.phases:
        yield APPLIED
    if "manifests" in doing.phases:
        yield APPLIED_TOO
    # The gate waits for what kube-ha makes itself, and only where nodes become Ready.
    names = {one.step.name for one in doing.running if one.step.phase == "manifests"}
    asked = {
        f"{doing.plan.spec.cluster.name}-addon-{name}" for name in catalogue.chosen(doing.plan.spec)
    }
    if networks.of(doing.plan.spec).PROVED and ("addon" in doing.phases or names & asked):
        yield PODS_RUN


def _joining(doing: Doing) -> Iterator[Check]:
    if "join" in doing.phases:
        yield JOINED


def _load_balancers(doing: Doing) -> Iterator[Check]:
    if "node" in doing.phases:
        yield TAKES
    reboots = any("OS_PACKAGES" in one.by for one in doing.running)
    if reboots and doing.plan.spec.os.reboot != "never" and len(doing.machines) > 1:
        yield IS_BACK


def _api_name(doing: Doing) -> Iterator[Check]:
    if doing.plan.balancer != "none":
        yield LEADS


def _nodes(doing: Doing) -> Iterator[Check]:
    if not networks.of(doing.plan.spec).PROVED:
        yield APPLIED_ALL
    else:
        yield STAY_FIRST if doing.nodes_leave else AS_WANTED
    if doing.members_leave:
        yield LEAVES


def _stopped(doing: Doing) -> Iterator[Check]:
    if "decommission" in doing.phases:
        yield NOTHING_LEFT
    if "etcd-absent" in doing.phases:
        yield NO_ETCD


def _virtual_ip(doing: Doing) -> Iterator[Check]:
    phases = doing.phases
    if "vip-peers" in phases:
        yield HEARS_TOO
    if "vip" in phases:
        yield from (TAKES_VRRP, LISTENS, HEARD)
    if "vip-away" in phases and "OWN_FAILOVER" not in doing.values("vip-away"):
        yield GONE
    if phases == {"addon"}:
        yield LISTED


_OF: Mapping[Part, Callable[[Doing], Iterator[Check]]] = {
    "snapshot": lambda _: iter((SAVED,)),
    "retire": _retire,
    "new machines": lambda _: iter((FIT,)),
    "members": _members,
    "masters": lambda _: iter((SERVES,)),
    "control plane": _control_plane,
    "settled keys": _settled_keys,
    "add-ons": _addons,
    "joining": _joining,
    "user add-ons": _addons,
    "load balancers": _load_balancers,
    "API name": _api_name,
    "nodes": _nodes,
    "stopped": _stopped,
    "ingress": lambda _: iter((ENDS_TLS,)),
    "virtual IP": _virtual_ip,
    "gate": lambda _: iter((REMEMBERED,)),
}
EVERY = tuple(one for one in [*vars().values()] if isinstance(one, Check))
