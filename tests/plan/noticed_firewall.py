"""Whom the firewall of machines keeps out from now on, by the rules that machines are told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network

from tests.plan.commands import Command

_API = re.compile(
    r'^ *(?:ip saddr \{ ([^}]*) \} )?tcp dport \d+ accept comment "api-clients"$', re.MULTILINE
)
_MORE = re.compile(r'^ *(.*) accept comment "more"$', re.MULTILINE)
_RULES = "FIREWALL_NFT"


def api_causes(commands: Iterable[Command]) -> Iterator[tuple[str, frozenset[str]]]:
    """Clients of the API that are let in no longer."""
    for one in commands:
        if one.phase != "firewall" or one.after is None:
            continue
        now = _API.findall(one.now(_RULES))
        if not now or "" in now:
            continue
        was = _API.findall(one.was(_RULES)) if one.before else [""]
        if "" in was or not _hold(now[0], was[0] if was else ""):
            yield "API let in from fewer", frozenset(now[0].split(", "))


def _hold(outer: str, inner: str) -> bool:
    wide = [IPv4Network(one) for one in outer.split(", ")]
    return all(
        any(IPv4Network(one).subnet_of(net) for net in wide)
        for one in filter(None, inner.split(", "))
    )


def port_causes(commands: Iterable[Command]) -> Iterator[tuple[str, frozenset[str]]]:
    """Ports that nobody but the user knows of."""
    own = [one for one in commands if one.phase == "firewall"]
    there = [one for one in own if one.after is not None]
    if there and not any(one.before for one in own):
        yield "ports close", frozenset()
    for one in there:
        if one.before and {*_MORE.findall(one.was(_RULES))} - {*_MORE.findall(one.now(_RULES))}:
            yield "fewer ports", frozenset()
