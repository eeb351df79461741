"""`python -m tests.cloud_acceptance PROVIDER`: a throwaway cluster there, step by step.

Without `--spend-money` it only prints the steps. With it each is done, and the first that fails
ends it; `--from N` continues there. What is checked is what the lab checks: the gate of every `up`,
`verify`, and that a second `up` changes nothing.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from operations.engine.engine import Engine
from stacks.config.stack_file import PREFIX
from stacks.providers import registry

_EXAMPLES = Path("examples")
_UNCHANGED = "unchanged"
_DESTROY = "destroy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One edit of the stack's config, if any, and what is run then."""

    title: str
    edit: Mapping[str, object] = field(default_factory=dict)  # config path -> value
    run: tuple[str, ...] = ()  # make targets; or what this program does itself


def steps(provider: str, zone: Mapping[str, object] | None = None) -> tuple[Step, ...]:
    """What is done, in order; with a DNS `zone`, as in frontDoors, the API's record too."""
    recreated = {"nodes.master-2.generation": 2}
    protection = f"machines.{provider}.deletionProtection"
    balancer = f"machines.{provider}.apiLoadBalancer"
    domain = zone["domain"] if zone else "acceptance.example.com"
    outside: dict[str, object] = {balancer: "external", "cluster.endpoint": f"api.{domain}"}
    if provider == "hcloud":
        # Its load balancers let in everybody, and the config has to say so.
        outside["machines.hcloud.apiFrom"] = ["0.0.0.0/0"]
    named: tuple[Step, ...] = ()
    if zone:
        outside["frontDoors"] = {"dns": "managed", "zone": dict(zone)}
        to_masters = Step(
            title="the name points to the masters, the load balancer goes",
            edit={balancer: "none"},
            run=("up", "verify", _UNCHANGED),
        )
        named = (to_masters,)
    lifted: tuple[Step, ...] = ()
    if registry.CLOUDS[provider].PROTECTED_BY:
        # Nobody deletes a protected machine there, whoever asks.
        lifted = (Step(title="lift the protection", edit={protection: False}, run=("up",)),)
    return (
        Step(title="show what will be made", run=("plan", "preview")),
        Step(title="make it", run=("up", "verify")),
        Step(title="a second update changes nothing", run=(_UNCHANGED,)),
        Step(title="look at it", run=("status", "drift", "outputs")),
        Step(title="one worker more", edit={"pools.worker.count": 3}, run=("up", "verify")),
        *lifted,
        Step(
            title=("a master recreated, on its kept disk"),
            edit=recreated,
            run=("up", "verify", _UNCHANGED),
        ),
        Step(title="a snapshot of etcd, brought here", run=("backup",)),
        Step(
            title="an external load balancer" + (", and a name" if zone else ""),
            edit=outside,
            run=("up", "verify"),
        ),
        *named,
        Step(
            title="from three masters to one",
            edit={"pools.master.count": 1, "nodes": {}},
            run=("up", "verify"),
        ),
        Step(title="take all of it away", run=(_DESTROY,)),
    )


def config(
    provider: str, given: Mapping[str, object], *, tunnel: bool = False
) -> dict[str, object]:
    """The config of the throwaway stack: the example, small, with what the account needs.

    Behind a `tunnel` those networks that SSH would come from are those of API clients alone.
    """
    text = (_EXAMPLES / f"{provider}.yaml").read_text()
    found: dict[str, dict[str, object]] = yaml.safe_load(text)["config"]
    raw: dict[str, object] = {key.removeprefix(PREFIX): value for key, value in found.items()}
    small = {"aws": "t3.large", "gcp": "e2-standard-2", "hcloud": "cx33"}[provider]
    first = {
        "cluster.name": "acceptance",
        "pools.worker.count": 2,
        "pools.worker.machineType": small,
    }
    machines = {f"machines.{provider}.{key}": value for key, value in given.items()}
    for path, value in {**first, **machines}.items():
        edit(raw, path, value)
    if tunnel:
        said = found["kube-ha:machines"][provider]
        if isinstance(said, dict):
            said |= {"access": "tunnel", "apiFrom": said.pop("sshFrom")}
    return raw


def edit(raw: dict[str, object], path: str, value: object) -> None:
    """Set one value, as `pulumi config set --path` does."""
    *parents, last = path.split(".")
    at = raw
    for key in parents:
        below = at.setdefault(key, {})
        if not isinstance(below, dict):
            msg = f"{path}: {key} is not a mapping"
            raise TypeError(msg)
        at = below
    at[last] = value


def main(arguments: list[str]) -> int:
    """Print the steps, or do them; exit code 1 at the first that fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.cloud_acceptance")
    parser.add_argument("provider", choices=tuple(registry.CLOUDS))
    parser.add_argument("--project", help="project ID at Google")
    parser.add_argument("--ssh-from", metavar="CIDR", help="network that you come from")
    parser.add_argument("--tunnel", action="store_true", help="no public SSH: access tunnel")
    parser.add_argument("--domain", help="domain of a public DNS zone that is there, to try names")
    parser.add_argument("--zone", help="its name at Google, its ID on AWS")
    parser.add_argument("--spend-money", action="store_true", help="do it; it costs something")
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="N")
    said = parser.parse_args(arguments)
    stack = f"acceptance-{said.provider}"
    given = {"project": said.project} if said.project else {}
    given |= {"sshFrom": [said.ssh_from]} if said.ssh_from else {}
    raw = config(said.provider, given, tunnel=said.tunnel)
    if bool(said.domain) != bool(said.zone):
        parser.error("--domain and --zone go together")
    zone = {"domain": said.domain, "id": said.zone} if said.zone else None
    if said.tunnel:
        # It reads the stack file, which the first step writes.
        print(f"Once step 1 is done, run in another terminal: make tunnel STACK={stack}\n")
    for number, step in enumerate(steps(said.provider, zone), start=1):
        for path, value in step.edit.items():
            edit(raw, path, value)
        edits = ", ".join(f"{path}: {value}" for path, value in step.edit.items())
        print(f"{number:2}. {step.title}" + (f" ({edits})" if edits else ""), flush=True)
        for what in step.run:
            print(f"      {_words(what, stack)}", flush=True)
            if said.spend_money and number >= said.first and not _done(what, stack, raw):
                print(f"ERROR step {number} failed\n  do: fix it, then --from {number}")
                return 1
    if not said.spend_money:
        print(
            f"\nNothing was done. See docs/install/clouds.md, then SPEND_MONEY=1 (Pulumi.{stack}.yaml)"
        )
    return 0


def _words(what: str, stack: str) -> str:
    if what == _UNCHANGED:
        return f"pulumi preview --expect-no-changes --stack {stack}"
    if what == _DESTROY:
        return (
            f"pulumi state unprotect --all --yes --stack {stack} && "
            f"pulumi destroy --yes --stack {stack}"
        )
    return shlex.join(_make(what, stack))


def _make(what: str, stack: str) -> list[str]:
    return ["make", what, f"STACK={stack}", *(["YES=1"] if what == "up" else [])]


def _done(what: str, stack: str, raw: Mapping[str, object]) -> bool:
    file = Path(f"Pulumi.{stack}.yaml")
    known = yaml.safe_load(file.read_text()) if file.exists() else {}
    known["config"] = {f"{PREFIX}{key}": value for key, value in raw.items()}
    file.write_text(yaml.safe_dump(known, sort_keys=False))  # the engine's own keys stay
    if what == _UNCHANGED:
        return _engine(stack, "preview", "--expect-no-changes")
    if what == _DESTROY:
        unprotected = _engine(stack, "state", "unprotect", "--all", "--yes")
        return unprotected and _engine(stack, "destroy", "--yes", "--skip-preview")
    return subprocess.run(_make(what, stack), check=False).returncode == 0


def _engine(stack: str, *words: str) -> bool:
    done = Engine(stack).run(*words)
    print(done.stdout, done.stderr, sep="\n", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
