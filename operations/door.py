"""`python -m operations.door`: looks from this computer at the door of clients outside.

On stdin JSON: `door` (host:port), `limit_s`; `addresses` that its name may have, or names that
have them, none where nobody looks, by records that the stack has `made` or the user; `ask` for
/readyz there by the CA `ca` (PEM), `at` each of these addresses of a load balancer where its name
does not lead there yet. Ends well once all that is asked for is so.
"""

from __future__ import annotations

import json
import socket
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from http.client import HTTPException, HTTPSConnection

_TRY_S = 10.0


def main() -> int:
    """Exit code 1, and the last answer, where the API does not answer within the limit."""
    said = json.load(sys.stdin)
    door, limit_s = str(said["door"]), float(said["limit_s"])
    host, wanted = door.rpartition(":")[0], [str(address) for address in said["addresses"]]
    trouble = wait(lambda: leads_astray(host, wanted), limit_s=limit_s) if wanted else ""
    if trouble:
        print(f"ERROR {host}: {trouble}")
        print(f"  do: {_record_way_out(host, wanted, made=bool(said.get('made')))}")
        return 1
    for address in _dialled(said.get("at"), limit_s) if said["ask"] else []:
        where = f"{door} at {address}" if address else door
        trouble = wait(partial(ask, door, str(said["ca"]), at=address), limit_s=limit_s)
        if trouble:
            print(f"ERROR {where}: API not ready in {limit_s:.0f} s; last answer: {trouble}")
            print(f"  do: {_way_out(trouble)}; the stack's output loadBalancer lists the masters")
            return 1
    print(f"{door} points to the API")
    return 0


def _dialled(at: Sequence[str] | None, limit_s: float) -> Sequence[str | None]:
    """Each address of a load balancer; None: whichever the API's own name has."""
    if not at:
        return [None]
    wait(lambda: "" if addresses_of(at) else "no address yet", limit_s=limit_s)
    return addresses_of(at) or at


def leads_astray(host: str, wanted: Sequence[str]) -> str:
    """What is wrong with the addresses of a name; empty: it has some of those, and no others.

    A master that has just come may not be among them yet; one that has gone must not.
    """
    try:
        found = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        return f"no address of it is known here ({error.strerror or error})"
    strange = sorted({str(entry[4][0]) for entry in found} - {*addresses_of(wanted)})
    return f"points to {', '.join(strange)} too, where no client belongs" if strange else ""


def addresses_of(known: Sequence[str]) -> list[str]:
    """IPv4 addresses: those that are some, and those that names have now."""
    out: list[str] = []
    for one in known:
        try:
            found = socket.getaddrinfo(one, None, socket.AF_INET, socket.SOCK_STREAM)
        except OSError:
            continue  # a load balancer's name comes minutes after it
        out += sorted({str(entry[4][0]) for entry in found})
    return out


def wait(look: Callable[[], str], *, limit_s: float) -> str:
    """Look until there is no trouble: empty, or the last one."""
    end = time.monotonic() + limit_s
    while True:
        trouble = look()
        if not trouble or time.monotonic() >= end:
            return trouble
        time.sleep(1)


def ask(door: str, ca: str, *, at: str | None = None) -> str:
    """What is wrong with this door now; empty: the API behind it is ready.

    `at` is an address to dial in place of its name.
    """
    host, _, port = door.rpartition(":")
    try:
        context = ssl.create_default_context(cadata=ca)
        connection = HTTPSConnection(host, int(port), timeout=_TRY_S, context=context)
        try:
            if at is not None:
                plain = socket.create_connection((at, int(port)), timeout=_TRY_S)
                connection.sock = context.wrap_socket(plain, server_hostname=host)
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            text = answer.read(200).decode(errors="replace").strip()
        finally:
            connection.close()
    except (OSError, HTTPException) as error:
        return str(error) or type(error).__name__
    return "" if answer.status == 200 else f"HTTP {answer.status} {text}"


def _record_way_out(host: str, wanted: Sequence[str], *, made: bool) -> str:
    if made:
        return (
            "the stack has made the record; resolvers may know for up to 15 minutes that there was "
            "none: run it again. Else see who answers for the domain: does the one above point to "
            "the zone, and does a zone of the same domain come before it here"
        )
    return f"make records of type A: {host} -> {', '.join(wanted)}; then run it again"


def _way_out(trouble: str) -> str:
    if "certificate" in trouble.lower():
        return "let TLS end at the masters, not at the load balancer; see that it points to them"
    return "see that the load balancer runs, and sends TCP to port 6443 of every master"


if __name__ == "__main__":
    sys.exit(main())
