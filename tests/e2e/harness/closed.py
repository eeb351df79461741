"""The network of a lab, closed: its machines reach each other and the mirror, and nobody else, this computer included."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network

from tests.e2e.harness import lab

_CHAIN = "KUBE-HA-TEST-CLOSED"
_INPUT = "-m conntrack --ctstate NEW -m comment --comment kube-ha-test-closed -j DROP"
# By their order, as the kernel counts what each drops.
_DROPPED = {
    "questions for names": ("-p udp --dport 53", "-p tcp --dport 53"),
    "announcements": ("-d 224.0.0.0/4", "-d 255.255.255.255"),
    "the rest": ("",),
}


@dataclass(frozen=True, slots=True)
class Closed:
    """What its machines ask of anybody else; `before`: packets that were asked for to see that it is closed."""

    before: dict[str, int]

    def asked(self) -> dict[str, int]:
        """Packets that went nowhere, by kind. Machines answering this computer are not among them."""
        return {kind: count - self.before[kind] for kind, count in _dropped().items()}


@contextmanager
def closed(name: str, subnet: str) -> Iterator[Closed]:
    """Close the network of a lab that is up. Raises AssertionError where its mirror reaches nobody before, or somebody after."""
    mirror = str(ip_network(subnet)[2])
    told = lab.shell(["ip", "-o", "route", "get", mirror])
    (bridge,) = re.findall(r"\bdev (\S+)", told)
    with _listener(subnet) as places:
        for place in places:
            assert _reached(name, place), f"{place} was never reached: closing proves nothing"
        _open()  # what a killed run left
        try:
            _close(bridge, subnet)
            for place in places:
                assert not _reached(name, place), f"{place} is reached although all is closed"
            yield Closed(_dropped())
        finally:
            _open()


def _close(bridge: str, subnet: str) -> None:
    # Where a packet comes in: neither pods that nobody masquerades nor this computer's other networks are a way out.
    _iptables(f"-t raw -N {_CHAIN}")
    _iptables(f"-t raw -A {_CHAIN} -d {subnet} -j RETURN")
    for rules in _DROPPED.values():
        for rule in rules:
            _iptables(f"-t raw -A {_CHAIN} {rule} -j DROP")
    _iptables(f"-t raw -I PREROUTING -i {bridge} -j {_CHAIN}")
    _iptables(f"-I INPUT -i {bridge} {_INPUT}")


def _dropped() -> dict[str, int]:
    """Packets since it was closed, by kind."""
    found = iter(_counts(f"-t raw -nvxL {_CHAIN}"))
    outside = {kind: sum(next(found) for _ in rules) for kind, rules in _DROPPED.items()}
    (computer,) = _counts("-nvxL INPUT", marked=_CHAIN.lower())
    return {**outside, "this computer": computer}


def _counts(words: str, *, marked: str = "") -> list[int]:
    rows = _iptables(words).splitlines()[2:]
    return [int(row.split()[0]) for row in rows if " DROP " in row and marked in row]


def _open() -> None:
    for table, chain in (("raw", "PREROUTING"), ("filter", "INPUT")):
        for rule in _iptables(f"-t {table} -S {chain}").splitlines():
            if _CHAIN.lower() in rule.lower():
                _iptables(f"-t {table} -D {rule.removeprefix('-A ')}")
    if f"-N {_CHAIN}" in _iptables("-t raw -S").splitlines():
        _iptables(f"-t raw -F {_CHAIN}")
        _iptables(f"-t raw -X {_CHAIN}")


def _iptables(words: str) -> str:
    script = 'source lab/engine.sh; PATH=$PATH:/usr/sbin:/sbin; as_root iptables -w "$@"'
    return lab.shell(["bash", "-c", script, "iptables", *words.replace('"', "").split()])


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        return


@contextmanager
def _listener(subnet: str) -> Iterator[list[str]]:
    """A server of this computer, by its address in the lab's network and by those outside."""
    told = lab.shell(["ip", "-o", "-4", "address", "show", "scope", "global"])
    addresses = re.findall(r"\binet ([0-9.]+)/", told)
    inside = str(ip_network(subnet)[1])
    outside = [address for address in addresses if address != inside]
    assert inside in addresses, told
    assert outside, f"this computer has no address outside of {subnet}: {told}"
    server = ThreadingHTTPServer(("0.0.0.0", 0), _Answers)  # noqa: S104 (for as long as it is asked)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield [f"http://{address}:{server.server_port}" for address in (inside, outside[0])]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _reached(name: str, place: str) -> bool:
    command = f"curl -s -o /dev/null --max-time 5 {place} && echo reached || true"
    told = lab.engine("exec", f"kube-ha-{name}-mirror", "bash", "-c", command)
    return told.strip() == "reached"
