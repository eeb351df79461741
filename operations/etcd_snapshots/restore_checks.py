"""What stands against a restore of etcd, by what its machines tell. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from operations.ssh.client import Answer
from stacks.cluster.plan import Node, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Names are of etcd machines of the config."""

    on: str  # where the new cluster begins
    source: str = ""  # the member whose own data is taken; empty: a file
    dead: tuple[str, ...] = ()  # machines that are gone, and stay off
    replace: bool = False  # data that is there may be set aside


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one machine told: restore.sh, step look."""

    is_reached: bool
    trouble: str  # why it told nothing; empty where it did
    owner: str = ""  # "cluster id node"; empty: a blank machine
    is_ready: bool = False  # keys, settings and programs of an etcd member are there
    has_data: bool = False
    has_quorum: bool = False  # its etcd answers, with a quorum behind it
    is_master: bool = False  # an API server's manifest is there
    restoring: str = ""  # SHA-256 of the snapshot whose restore began here and has not ended
    free: int = 0  # bytes
    # Highest epoch of an etcd cluster that it knows of: a restore begins one above all of them.
    epoch: int = 0
    is_settled: bool = (
        False  # its etcd serves the very cluster and epoch that are written down here
    )
    alive: tuple[str, ...] = ()  # addresses of machines said to be dead whose etcd listens


def read(answer: Answer) -> Found:
    """The lines of the step look, typed."""
    rows: dict[str, list[str]] = {}
    for line in answer.text.splitlines():
        word, _, rest = line.partition("\t")
        rows.setdefault(word, []).append(rest)
    last = answer.text.splitlines()[-1] if answer.text else "no answer"
    if not answer.reached:
        return Found(is_reached=False, trouble=last)
    if answer.status or "end" not in rows:
        return Found(is_reached=True, trouble=last)

    def one(word: str) -> str:
        return rows.get(word, [""])[0].strip()

    recorded, serving = one("recorded").split(), one("serving").split()
    return Found(
        is_reached=True,
        trouble="",
        owner=one("owner"),
        is_ready=one("ready") == "1",
        has_data=one("data") == "1",
        has_quorum=one("quorum") == "1",
        is_master=one("master") == "1",
        restoring=one("restoring"),
        free=1024 * int(one("free") or 0),
        epoch=max(
            [
                int(word)
                for word in (*recorded[1:2], *serving[1:2], one("newest"))
                if word.isdigit()
            ],
            default=0,
        ),
        is_settled=bool(serving) and serving == recorded,
        alive=tuple(rows.get("alive", ())),
    )


def unknown(plan: Plan, wish: Wish) -> list[str]:
    """Words of the wish that the config does not know, or that contradict each other."""
    names = {node.name for node in plan.etcd}
    known = ", ".join(node.name for node in plan.etcd)
    out = [
        f"{name} is not an etcd machine of the config (these are: {known})"
        for name in sorted({wish.on, wish.source, *wish.dead} - names - {""})
    ]
    if wish.on in wish.dead:
        out.append(f"{wish.on} cannot be dead and hold the new cluster: name another one by ON=")
    return out


def refusals(
    plan: Plan, wish: Wish, found: Mapping[str, Found], *, cluster_id: str, wanted: str, size: int
) -> list[str]:
    """Every reason against it, each with its fix. Nothing has been touched yet.

    `wanted` is the SHA-256 of the snapshot, empty where a member's own data is taken; `size` bytes.
    """
    out: list[str] = []
    for node in plan.etcd:
        told = found[node.name]
        out += _dead(node, told) if node.name in wish.dead else _alive(node, told)
        owner = f"{plan.spec.cluster.name} {cluster_id} {node.name}"
        if told.owner not in ("", owner):
            out.append(
                f'{node.name} belongs to "{told.owner}", not to "{owner}" (cluster, id, node)\n'
                "    do: see that this is the right stack"
            )
    out += _source(wish, found)
    out += _start(wish, found[wish.on], wanted=wanted, size=size)
    if not is_resumed(found[wish.on], wanted):
        out += _data(plan.etcd, wish, found, wanted=wanted)
    return out


def is_resumed(told: Found, wanted: str) -> bool:
    """Whether this very snapshot is restored there already, and the rest was cut off."""
    return bool(wanted) and told.restoring == wanted and told.has_quorum and told.is_settled


def next_epoch(found: Mapping[str, Found], now_s: float) -> int:
    """Above every epoch that was ever begun, by machines that are gone too: they had clocks."""
    return max(int(now_s), *(1 + told.epoch for told in found.values()))


def _dead(node: Node, told: Found) -> Iterator[str]:
    if told.is_reached:
        yield (
            f"{node.name} is named in WITHOUT, and answers over SSH: a member that runs on would "
            f"be a second cluster\n    do: take it out of WITHOUT, or switch it off"
        )


def _alive(node: Node, told: Found) -> Iterator[str]:
    if not told.is_reached:
        yield (
            f"{node.name} cannot be reached over SSH ({told.trouble}), and if it runs on it would "
            "be a second cluster\n    do: bring it up; in a lab: raise converge.generation and run "
            f"pulumi up; if it is gone for good: WITHOUT={node.name}"
        )
    elif told.trouble:
        yield f"{node.name} could not look: {told.trouble}\n    do: log in and see"


def _source(wish: Wish, found: Mapping[str, Found]) -> Iterator[str]:
    told = found.get(wish.source)
    if told and not told.trouble and not told.has_data:
        yield f"{wish.source} has no data of etcd\n    do: name a member that has (FROM=...)"


def _start(wish: Wish, told: Found, *, wanted: str, size: int) -> Iterator[str]:
    if told.trouble:
        return  # told already
    if not told.is_ready:
        yield (
            f"{wish.on} is not prepared for etcd: keys or programs are missing\n    do: raise "
            "converge.generation and run pulumi up, which prepares it and stops at etcd; then this"
        )
    elif told.owner == "":
        yield f"{wish.on} says of no cluster that it belongs to it\n    do: run pulumi up first"
    for address in told.alive:
        yield (
            f"the etcd at {address}, named in WITHOUT, still listens\n    do: switch it off: it "
            "would be a second cluster"
        )
    if wanted and told.free < 3 * size:
        mib = 1024**2
        yield (
            f"{wish.on} has {told.free // mib} MiB left in /var/lib/kube-ha, {3 * size // mib} are "
            "needed\n    do: make room there, or take another machine (ON=...)"
        )


def _data(
    nodes: Sequence[Node], wish: Wish, found: Mapping[str, Found], *, wanted: str
) -> Iterator[str]:
    if wish.replace:
        return
    way = "if you mean to go back all the same: REPLACE=1 (what is there is set aside)"
    serving = [node.name for node in nodes if found[node.name].has_quorum]
    if serving:
        yield f"etcd serves, with a quorum ({', '.join(serving)})\n    do: {way}"
        return
    # What a restore that was cut off has begun holds nothing of its own.
    holding = [
        node.name
        for node in nodes
        if found[node.name].has_data
        and node.name != wish.source
        and not (wanted and found[node.name].restoring == wanted)
    ]
    if not holding:
        return
    if 2 * len(holding) > len(nodes):
        text = f"{', '.join(holding)} have data, and are a quorum: they only have to run"
        yield f"{text}\n    do: start them (systemctl start etcd there); {way}"
    else:
        text = f"{', '.join(holding)} has data, which is newer than any snapshot"
        if wish.source:
            text = (
                f"{', '.join(holding)} has data too, which may be newer than that of {wish.source}"
            )
        yield f"{text}\n    do: FROM={holding[0]} takes that; {way}"
