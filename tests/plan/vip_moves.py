"""When a virtual IP is moved, or is unavailable, by the commands of an update."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tests.plan.commands import Command, Values, expand

_BIND = re.compile(r"^ *bind (\S+) transparent$", re.MULTILINE)
Found = tuple[str, frozenset[str]]


def vip_causes(commands: Sequence[Command]) -> Iterator[Found]:
    """(what happens to it, on which machines)."""
    nodes = [one for one in commands if one.phase == "node"]
    was, now = (
        {
            address
            for values in side
            for address in _BIND.findall((values or {}).get("HAPROXY_CFG", ""))
        }
        for side in ([one.before for one in nodes], [one.after for one in nodes])
    )
    if not was:
        return
    if not was & now:
        yield "VIP ends", frozenset()
        return
    then = {one.node for one in commands if one.phase == "vip" and _stands_by(one.before)}
    after = {one.node for one in commands if one.phase == "vip" and _stands_by(one.after)}
    # Its command is gone, which runs nothing: whether it is off or has the address, that stays so.
    lists = [expand(one.now("ABSENT")) for one in commands if one.phase == "nodes"]
    after |= then & {name for listed in lists for name in listed}
    recreated = {one.node for one in nodes if one.is_recreated}
    yield from _given_up(commands, then, after, recreated)
    yield from _handed_over(commands, then & after - recreated, after)


def _given_up(
    commands: Sequence[Command], then: set[str], after: set[str], recreated: set[str]
) -> Iterator[Found]:
    """By machines that leave, are recreated, rest, or are standby no more."""
    stay = then & after - recreated
    words = [
        word
        for one in commands
        if one.phase == "retire" and one.runs
        for word in one.now("INCARNATIONS").split()
    ]
    dead = {word.partition("=")[0] for word in words if word.endswith(":lost")}
    if then and not after:
        yield "VIP left to another failover", frozenset()
    elif then and not stay:
        yield (
            ("VIP waits", frozenset(then))
            if then <= recreated
            else ("VIP is handed over", frozenset(after))
        )
    elif going := then - stay - dead:
        yield "VIP moves", frozenset(going)


def _handed_over(commands: Sequence[Command], stay: set[str], after: set[str]) -> Iterator[Found]:
    """os.sh: hand_over_vip of a load balancer before packages change; of a master reboot_now."""
    updated = [
        one
        for one in commands
        if one.phase == "node"
        and one.is_again
        and one.node in stay
        and "OS_PACKAGES" in one.changed
        and one.now("OS_PACKAGES")
        and (one.now("ROLES") == "loadbalancer" or one.now("OS_REBOOT") != "never")
    ]
    if updated and len(after) == 1:
        yield "VIP waits for packages", frozenset(after)
    elif updated:
        yield "VIP moves for packages", frozenset()


def _stands_by(values: Values | None) -> bool:
    return values is not None and values.get("RESTING") != "1"
