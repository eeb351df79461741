"""`python -m operations.hostkeys STACK`: SSH host keys of the machines that a stack file lists.

Prints the line of each that the file lacks, with its fingerprint, and which keys differ. It writes
nothing: whoever answers at an address shows a key, and only the machine's console tells whose.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from operations.engine.engine import StackError
from operations.ssh import client, host_keys
from operations.ssh.client import Target
from stacks.cluster import inventory, resolve
from stacks.config import parse, stack_file
from stacks.config.fields import GIVEN_UP
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.config.stack_file import StackFileError
from stacks.edits.memory import fingerprint
from stacks.explain import formats
from stacks.providers import registry

_AT_ONCE = 16  # machines asked in parallel
_BASTION = "the bastion"  # no name of a machine, which has no blank
_BEHIND = "not asked: the way to it is through the bastion, whose key is not on record"
# What OpenSSH calls the file of a key of that kind.
_FILES = {"ssh-ed25519": "ed25519", "ssh-rsa": "rsa"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """An SSH server that the stack file names."""

    name: str
    path: str  # config path of its lines
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What one of them showed."""

    server: Server
    shown: str | None  # `type base64`; None: nothing that could be pinned
    said: str = ""  # the SSH client's last words where nothing was shown
    twins: tuple[str, ...] = ()  # names of others that showed the very same key

    @property
    def pinned(self) -> str | None:
        return self.server.target.hop.host_key

    @property
    def is_proved(self) -> bool:
        return self.shown is not None and self.shown == self.pinned

    @property
    def is_good(self) -> bool:
        return self.is_proved and not self.twins


def main(arguments: list[str]) -> int:
    """Print what each machine shows; exit code 1 unless all are on record already."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.hostkeys",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    try:
        found = scan(servers(Path(f"Pulumi.{parser.parse_args(arguments).stack}.yaml")))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    print(report(found))
    return 0 if all(one.is_good for one in found) else 1


def servers(file: Path) -> list[Server]:
    """The bastion, if there is one, and every machine that is ever dialled. Raises StackError.

    Of the file's problems only those about the way to machines count: keys are what it lacks.
    """
    try:
        said = stack_file.look(file)
    except StackFileError as error:
        raise StackError(f"{file}: {error}") from None
    problems, spec = parse.parse(said.config)
    known = [*said.problems, *(one for one in problems if spec is None or _is_in_the_way(one))]
    if known or spec is None:
        raise StackError(formats.problems(str(file), said.located(known)))
    if registry.of(spec).MADE:
        raise StackError(
            f"{file}: machines of provider {spec.machines.provider} are made, with their host "
            "keys\n  do: nothing; this is for machines of provider adopt"
        )
    try:
        return [replace(one, path=said.placed(one.path)) for one in _servers(spec)]
    except OSError as error:
        raise StackError(f"machines.ssh: key file cannot be read: {error}") from None


def _is_in_the_way(problem: Problem) -> bool:
    is_about_machines = problem.path.startswith(("machines", "pools"))
    return is_about_machines and not problem.path.endswith(".hostKey")


def _servers(spec: Spec) -> Iterator[Server]:
    bastion = None
    for place in inventory.places(spec):
        if place.host is None or place.state in (*GIVEN_UP, "absent", "removed"):
            continue
        # Nobody logs in to it, so its own key file may be missing still; the bastion's may not.
        way = resolve.way(spec.machines.ssh, place.host)
        target = client.of_config(replace(way, private_key_file=None))
        if target.bastion and bastion is None:
            bastion = target.bastion
            path = "machines.ssh.bastion"
            yield Server(name=_BASTION, path=path, target=Target(hop=bastion))
        yield Server(name=place.name, path=place.path, target=target)


def scan(asked: Sequence[Server]) -> list[Found]:
    """What each shows, in the same order. Behind a bastion that is not proved nobody is asked."""
    first = [one for one in asked if one.target.bastion is None]
    rest = [one for one in asked if one.target.bastion is not None]
    found = {one.server.name: one for one in _scanned(first)}
    way = found.get(_BASTION)
    if rest and way and not way.is_proved:
        found |= {one.name: Found(server=one, shown=None, said=_BEHIND) for one in rest}
    else:
        found |= {one.server.name: one for one in _scanned(rest)}
    return _with_twins([found[one.name] for one in asked])


def _scanned(asked: Sequence[Server]) -> Iterable[Found]:
    def one(server: Server) -> Found:
        pinned = server.target.hop.host_key or ""
        shown, said = host_keys.shown(server.target, first=pinned.partition(" ")[0])
        return Found(server=server, shown=shown, said=said)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [*pool.map(one, asked)]


def _with_twins(found: Sequence[Found]) -> list[Found]:
    names: dict[str, list[str]] = {}
    for one in found:
        names.setdefault(one.shown or "", []).append(one.server.name)
    return [
        replace(one, twins=tuple(name for name in names[one.shown] if name != one.server.name))
        if one.shown
        else one
        for one in found
    ]


def report(found: Sequence[Found]) -> str:
    """A line a machine, what to paste below it, and at the end how to compare."""
    width = max((len(one.server.name) for one in found), default=0)
    lines = []
    for one in found:
        hop = one.server.target.hop
        where = hop.address if hop.port == 22 else f"{hop.address}:{hop.port}"
        shown = fingerprint(one.shown) if one.shown else "no key"
        lines.append(f"{one.server.name.ljust(width)}  {where}  {shown}  {_verdict(one)}")
        if one.twins:
            lines += [
                f"    the same key as {', '.join(one.twins)}: cloned, or one machine twice",
                "    do: on the clones rm /etc/ssh/ssh_host_*; ssh-keygen -A; restart sshd",
            ]
        if one.shown and one.shown != one.pinned:
            lines.append(f"    hostKey: {one.shown}")
    good = sum(one.is_proved for one in found)
    lines.append(f"{good} of {len(found)} host keys are on record")
    return "\n".join([*lines, *_advice(found)])


def _verdict(one: Found) -> str:
    if one.shown is None:
        return one.said
    if one.pinned is None:
        return f"is not on record; below {one.server.path} write:"
    if one.shown == one.pinned:
        return "on record"
    return (
        f"THE KEY ON RECORD IS ANOTHER ONE: {fingerprint(one.pinned)} "
        f"({one.pinned.partition(' ')[0]}), {one.server.path}.hostKey"
    )


def _advice(found: Sequence[Found]) -> Iterator[str]:
    silent = [one.server for one in found if one.shown is None and one.said != _BEHIND]
    if silent:
        yield (
            f"{', '.join(one.name for one in silent)}: the line says why there is no key; one that "
            "is off times out, in the handshake too\n"
            "  do: see that it is on and reached from here, that its address, port and the bastion "
            "are right in the file, and that its server has an ECDSA or Ed25519 key; run this again"
        )
    shown = [one for one in found if one.shown and one.shown != one.pinned]
    if any(one.pinned for one in shown):
        yield (
            "A key that changed is that of a reinstalled machine, of another machine at the "
            "address, or of somebody between: find out which before you replace it."
        )
    if shown:
        yield (
            "Nothing was written. Whoever answers at an address shows a key: compare each "
            "fingerprint with the machine's own console before you paste its line. There run:"
        )
        kinds: Mapping[str, None] = dict.fromkeys(str(one.shown).partition(" ")[0] for one in shown)
        for kind in kinds:
            yield f"  ssh-keygen -lf /etc/ssh/ssh_host_{_FILES.get(kind, 'ecdsa')}_key.pub"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
