"""The typed config of one stack, with every problem at once; and the plan that it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stacks.checks import (
    addon_secrets,
    ingress_certificates,
    object_store,
    rollout_waves,
    sizes,
    ssh_keys,
    static,
    user_addons,
)
from stacks.cluster import sizing
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.config import defaults, parse, problems
from stacks.config.problems import Problem, SpecError
from stacks.config.spec import Spec
from stacks.edits import fence
from stacks.edits.memory import Memory
from stacks.phases import system_addons


def load(
    raw: Mapping[str, object], *, read_keys: bool = True, misread: Sequence[Problem] = ()
) -> Spec:
    """The typed config of plain `raw` values, keyed without the `kube-ha:` prefix.

    Every problem is found in one go: values that are wrong are set aside, so that the checks across
    fields still run on the rest. `read_keys=False` leaves SSH key files unread, for a plan on a
    computer that has none. `misread`: what was wrong with the file already. Raises SpecError.
    """
    found, spec = look(raw, read_keys=read_keys, misread=misread)
    if found or spec is None:
        raise SpecError(found)
    return spec


def look(
    raw: Mapping[str, object], *, read_keys: bool = True, misread: Sequence[Problem] = ()
) -> tuple[list[Problem], Spec | None]:
    """As `load`: all problems, and the config of what is right, if that is one."""
    found, spec = parse.parse(raw)
    found = [*misread, *problems.unrelated(found, to=misread)]
    if spec is not None:
        late = static.problems(spec)
        late += object_store.secret_problems(spec, raw) + addon_secrets.problems(spec, raw)
        if read_keys:
            late += ssh_keys.problems(spec) + ingress_certificates.problems(spec)
            late += user_addons.problems(spec)
        found += problems.unrelated(late, to=found)
    if spec is not None and not found:
        found += _sizes(spec)
    return problems.in_order(found), spec


def planned(spec: Spec, before: Memory | None = None) -> Plan:
    """What a config that load() accepted makes of the cluster that was before; None: a new one.

    With the warnings that the config deserves, and all that the stack remembers as given up.
    """
    level, size = (before.level, sizing.of(before.plan)) if before else (None, None)
    made = plan(spec, level=level, size=size)
    count = sum(node.in_kubernetes for node in made.nodes)
    hints = [*defaults.hints(spec, level), *sizing.hints(spec, count, size)]
    found = [*static.warnings(made.spec), *hints]
    acting = before.plan.acting_name if before and before.plan else ""
    return fence.kept(before, replace(made, warnings=tuple(sorted(found)), acting_name=acting))


def _sizes(spec: Spec) -> list[Problem]:
    """Problems of what the plan becomes on machines; `spec` is right in everything else."""
    made = plan(spec)
    taken = user_addons.taken(made.addons, system_addons.addons(made)) if made.addons else []
    return sizes.problems(made) + rollout_waves.problems(made) + taken
