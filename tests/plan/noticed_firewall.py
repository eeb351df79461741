"""Whom the firewall of machines keeps out from now on, by the rules that machines are told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, collapse_addresses

from tests.plan.commands import Command, Values

_API = 6443
_RULE = re.compile(
    r"^(?:ip saddr (?:\{ (?P<several>.*?) \}|(?P<one>\S+)) )?tcp dport (?:\{ (?P<ports>.*?) \}|(?P<port>\S+)) accept$",
    re.MULTILINE,
)


def api_causes(commands: Iterable[Command], pods: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Clients of the API that are let in no longer; `pods`: their network, of which nobody speaks."""
    masters = [one for one in commands if one.phase == "node" and _is_master(one)]
    was = [_let_in(one.before, pods) for one in masters if one.before is not None]
    now = [_let_in(one.after, pods) for one in masters if one.after is not None]
    if was and now and not all(any(net.subnet_of(new) for new in now[0]) for net in was[0]):
        yield "API let in from fewer", frozenset(map(str, now[0]))


def _is_master(command: Command) -> bool:
    return "master" in (command.now("ROLES") or command.was("ROLES")).split()


def _let_in(values: Values, pods: str) -> list[IPv4Network]:
    """Networks by which a master's API is reached."""
    if "FIREWALL" not in values:
        return [IPv4Network("0.0.0.0/0")]
    found: set[str] = set()
    for rule in _RULE.finditer(values["FIREWALL"]):
        if any(_holds(span) for span in (rule["ports"] or rule["port"]).split(", ")):
            found |= {*(rule["several"] or rule["one"] or "0.0.0.0/0").split(", ")} - {pods}
    return [*collapse_addresses(map(IPv4Network, found))]


def _holds(span: str) -> bool:
    first, _, last = span.partition("-")
    return int(first) <= _API <= int(last or first)


def port_causes(commands: Iterable[Command]) -> Iterator[tuple[str, frozenset[str]]]:
    """Ports that nobody but the user knows of."""
    own = [one for one in commands if one.phase == "node"]
    begins = any("FIREWALL" in (one.after or {}) for one in own)
    if begins and not any("FIREWALL" in (one.before or {}) for one in own):
        yield "ports close", frozenset()
