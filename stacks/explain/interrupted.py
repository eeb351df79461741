"""What an interruption in a part leaves: by what runs in it, and on how many machines."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.explain import rotation
from stacks.explain.doing import Doing
from stacks.order.step import Part

_RESUMES = "the next update resumes"
_FIXED: Mapping[Part, str] = {
    "machines": "nothing has changed",
    "leafs": "old leafs or new ones, each of them good",
    "snapshot": "nothing that serves has been touched",
    "add-ons": "old or new manifests, each whole",
    "user add-ons": "old or new manifests, each whole",
    "API name": "the record as it was or as it is to be; whoever both point to serves",
    "gate": "everything done, not yet remembered; the next update asks again",
}


def interrupted(part: Part, doing: Doing) -> str:
    """What is so then."""
    alone = len(doing.machines) <= 1
    match part:
        case "retire":
            what = "dead members" if doing.members_go_first else "nodes"
            return f"fewer {what}; nobody else is touched"
        case "new machines":
            what = "a machine that nobody uses" if alone else "machines that nobody uses"
            return f"{what}; {_RESUMES}"
        case "members":
            what = "no member yet" if alone else "fewer members"
            return f"{what}; {_RESUMES}, and bootstraps no second cluster"
        case "masters":
            return f"no master yet; {_RESUMES}" if alone else "fewer masters; those made serve"
        case "control plane":
            return _control_plane(doing)
        case "settled keys":
            return f"{_known(doing)} to all nodes; {_RESUMES}"
        case "joining":
            if "join" not in doing.phases:
                return f"a token that ends by itself; {_RESUMES}"
            return "fewer workers; the next update joins them with a new token"
        case "load balancers":
            return _serve(alone=alone)
        case "nodes":
            return _nodes(doing)
        case "stopped":
            return _stopped(doing)
        case "ingress":
            if alone:
                return "its old list and certificates, or the new ones; open connections stay"
            return "some machines with the old list or certificates; open connections stay"
        case "virtual IP":
            if doing.phases == {"addon"}:
                return "the list as it was or as it is to be; the address stays where it is"
            return "the address where it is; fewer machines that can take it, or more"
    return _FIXED.get(part, _RESUMES)


def _control_plane(doing: Doing) -> str:
    there = {node.name for node in (*doing.plan.masters, *doing.plan.etcd)}
    if len(there) == 1:
        return f"the machine old or new, or not serving; {_RESUMES}"
    return "the one in progress old or new, the others untouched and serving"


def _known(doing: Doing) -> str:
    then = doing.before.plan if doing.before else None
    moved = [*rotation.moved(then, doing.plan)] if then else []
    dropped = bool(moved) and all(now.step == "drop" for _, _, now in moved)
    return "the new one alone is known" if dropped else "old and new are known"


def _serve(*, alone: bool) -> str:
    if alone:
        return "the old or the new configuration; it serves"
    return "some with the old configuration; all of them serve"


def _nodes(doing: Doing) -> str:
    emptied = {node.name for node in doing.plan.nodes if node.drain}
    if doing.nodes_leave:
        return "a node cordoned or gone; the remaining ones are untouched"
    if emptied:
        return f"a node cordoned, some of its pods evicted; {_RESUMES}"
    return f"some labels, taints and cordons set, others not; {_RESUMES}"


def _stopped(doing: Doing) -> str:
    if "decommission" in doing.phases:
        return "a machine that runs on without being in the cluster; the next update stops it"
    if "etcd-absent" not in doing.phases:
        return "nothing has changed"
    return "an etcd that runs on without being a member; the next update stops it"
