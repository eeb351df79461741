"""`python -m operations.tunnel STACK`: hold the tunnel to the bastion of a stack, until Ctrl-C.

For machines of clouds with `access: tunnel`. It waits while there is no bastion yet, points to it
by the cloud's own command (gcloud, aws), and begins again whenever that one ends.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

from components.ssh import tunnel
from operations.engine import stack
from operations.engine.engine import StackError
from operations.holding import ending, say, until_ended
from stacks.cluster import clouds
from stacks.cluster.plan import Plan
from stacks.providers import registry
from stacks.providers.cloud import LOCAL, bastion_name
from stacks.providers.provider import Way

_WHO = "tunnel"
_PAUSE_S = 5  # between two looks, and before a tunnel that ended begins again
_LOOK_S = 120  # for one answer of the cloud


def way(plan: Plan) -> Way | None:
    """How the bastion of a plan is found and reached; None: no tunnel points to it."""
    cloud = clouds.settings(plan.spec)
    if cloud is None or cloud.access != "tunnel":
        return None
    provider = registry.cloud(plan.spec)
    bastion = f"{plan.spec.cluster.name}-{bastion_name(cloud)}"
    return provider.way(plan.spec, bastion) if provider else None


def main(arguments: list[str]) -> int:
    """Hold the tunnel; exit code 0 when a person ends it."""
    parser = argparse.ArgumentParser(prog="python -m operations.tunnel", description=__doc__)
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    name = parser.parse_args(arguments).stack
    return until_ended(_WHO, lambda: hold(_way_of(name)))


def _way_of(name: str) -> Way:
    found = way(stack.plan_of(name))
    if found is None:
        raise StackError(
            f"no tunnel reaches the machines of Pulumi.{name}.yaml\n  do: nothing; it is for "
            "machines of a cloud with access: tunnel (docs/install/clouds.md)"
        )
    return found


def hold(to: Way, *, pause_s: float = _PAUSE_S) -> None:
    """Find the bastion, point to it, and begin again, without an end.

    Raises StackError for what a person has to fix first: a program or a login that is missing, a
    port that is taken. What goes wrong later passes, or is said and tried again.
    """
    for program, where in to.programs:
        if shutil.which(program) is None:
            raise StackError(f"there is no {program} on this computer\n  do: install it: {where}")
    if tunnel.listens(to.port):
        raise StackError(
            f"something listens at {LOCAL}:{to.port} already\n  do: end it, if it is "
            "another `make tunnel`; else set tunnelPort to a free port, and run up"
        )
    look, waits = _looks(to), False
    while True:
        rest = next(look)
        if rest is None:
            if not waits:
                say(_WHO, f"waiting for {to.bastion}, which is not there yet; the update makes it")
            waits = True
            time.sleep(pause_s)
            continue
        waits = False
        say(_WHO, f"{LOCAL}:{to.port} points to {to.bastion}; leave this running, end with Ctrl-C")
        status = _run((*to.lead, rest))
        say(_WHO, f"{to.lead[0]} ended (exit code {status}); once more in {pause_s:g} s")
        time.sleep(pause_s)


def _looks(to: Way) -> Iterator[str | None]:
    """Each time: the last word of the leading command, None while the bastion is not there.

    Raises StackError when the very first look fails, or when there are two bastions.
    """
    first = True
    while True:
        done = _asked(to.find)
        if done.returncode:
            said = done.stderr.strip() or "no reason given"
            if first:
                raise StackError(
                    f"{to.find[0]} cannot find {to.bastion}: {said}\n  do: {to.log_in}"
                )
            say(_WHO, f"{to.bastion} cannot be looked for: {said.splitlines()[-1]}")
            yield None
            continue
        first = False
        found = to.read(_json(done.stdout))
        if len(found) > 1:
            raise StackError(
                f"{to.bastion} is there {len(found)} times ({', '.join(found)})\n"
                "  do: delete those that are left over"
            )
        yield found[0] if found else None


def _asked(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LOOK_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer within {_LOOK_S} s")


def _json(text: str) -> object:
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    return found


def _run(command: tuple[str, ...]) -> int:
    """Run it to its end, which is ours too: a tunnel that is left over would keep the port."""
    with ending(subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)) as it:
        return it.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
