"""Which objects of add-ons are gone or are others than their manifests, as an API server says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from operations.engine.stack import Stack
from operations.observe.hints import RAISE, Difference
from operations.ssh import client
from stacks.cluster import user_addons
from stacks.cluster.plan import Node, Plan
from stacks.phases import manifests, system_addons

_LIMIT_S = 150  # for a master to try all of them
_LATE_S = 20 * 60  # of a timer that looks every 5 minutes, and may wait for an update
_HOW = {"differs": "differs from the plan", "missing": "is missing"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is compared."""

    own: str  # manifests that every cluster has
    configured: str  # of add-ons that the config names
    secrets: str  # which Secrets they bring, without what is in them
    # Add-on and object, for people, by what kubectl calls it: GROUP.VERSION.KIND.NAMESPACE.NAME
    objects: Mapping[str, tuple[str, str]]
    notes: tuple[str, ...]  # what cannot be compared


def wanted(plan: Plan) -> Wanted:
    """Of the files of add-ons those that this computer has."""
    own = system_addons.addons(plan)
    configured, notes = {}, []
    for addon in plan.addons:
        try:
            configured[addon.name] = addon.text or "\n---\n".join(
                user_addons.content(user_addons.HERE, path).decode() for path, _ in addon.files
            )
        except (OSError, UnicodeDecodeError) as error:
            notes.append(f"add-on {addon.name} is not compared: {error}")
    named = {**own, **configured}
    secrets = {
        f"v1.Secret.{one.namespace}.{one.name}": (name, str(one))
        for name, said in plan.spec.addons.items()
        for one in user_addons.secrets(said)
    }
    return Wanted(
        own=_joined(own),
        configured=_joined(configured),
        secrets=manifests.compared(plan),
        objects={
            **dict(pair for name, text in named.items() for pair in _objects(name, text)),
            **secrets,
        },
        notes=tuple(notes),
    )


def _joined(manifests: Mapping[str, str]) -> str:
    return "\n---\n".join(text.strip("\n") for _, text in sorted(manifests.items()))


def _objects(addon: str, text: str) -> Iterator[tuple[str, tuple[str, str]]]:
    for document in user_addons.documents(text):
        if not user_addons.is_named(document):
            continue
        one = user_addons.identity(document)
        version = user_addons.text(document, "apiVersion").replace("/", ".")
        # Whether a kind is of namespaces the API alone knows.
        spaces = {one.namespace, user_addons.text(document, "metadata", "namespace")}
        for space in spaces:
            kind = one.kind.partition(".")[0]
            yield f"{version}.{kind}.{space}.{one.name}", (addon, str(one))


def ask(stack: Stack, masters: Sequence[Node]) -> tuple[tuple[Difference, ...], tuple[str, ...]]:
    """What differs, and notes of what was not compared; by the first master that tells all."""
    asked = wanted(stack.plan)
    last = "no master told"
    acting = stack.plan.acting
    for node in sorted(masters, key=lambda one: one.name != acting.name):  # its timer runs there
        answer = client.run(
            stack.targets[node.name],
            "addons",
            stack.identity(node),
            limit_s=_LIMIT_S,
            texts={
                "OWN": asked.own,
                "CONFIGURED": asked.configured,
                **({"SECRETS": asked.secrets} if asked.secrets else {}),
            },
        )
        rows = [line.split("\t") for line in answer.text.splitlines()]
        if ["end"] in rows:
            trouble = [" ".join(row[1:]) for row in rows if row[0] == "trouble"]
            notes = [f"add-ons are not all compared: {text}" for text in trouble]
            late = kept(stack.plan, rows, node)
            return (*read(rows, asked), *late), (*asked.notes, *notes)
        last = f"{node.name}: {answer.last_line}"
    return (), (*asked.notes, f"add-ons are not compared: {last}")


def read(rows: Sequence[Sequence[str]], asked: Wanted) -> Iterator[Difference]:
    """Lines of addons.sh; those of nobody's object are none."""
    for row in rows:
        if len(row) == 2 and row[0] in _HOW and row[1] in asked.objects:
            addon, one = asked.objects[row[1]]
            text = f"{one} of add-on {addon} {_HOW[row[0]]}"
            yield Difference(kind="addon", subject=addon, text=text, do=RAISE)


def kept(plan: Plan, rows: Sequence[Sequence[str]], asked: Node) -> Iterator[Difference]:
    """Add-ons that a timer is to put back, and does not; `asked`: who told."""
    told = {row[1]: row[2:] for row in rows if len(row) == 4 and row[0] == "kept"}
    for name, said in sorted(plan.spec.addons.items()):
        if not said.reconcile:
            continue
        age, words = told.get(name, ("", ""))
        if asked.name != plan.acting.name:
            text = f"add-on {name} is put back by {plan.acting.name}, which does not tell"
        elif not age.isdecimal():
            text = f"add-on {name} is to be put back by a timer on {asked.name}, and is not"
        elif int(age) > _LATE_S:
            text = f"add-on {name} was looked at {int(age) // 60} min ago by {asked.name}"
        elif words != "good":
            text = f"add-on {name} could not be put back by {asked.name}: {words[:200]}"
        else:
            continue
        do = f"journalctl -u kube-ha-addons on {plan.acting.name} tells more; {RAISE}"
        yield Difference(kind="addon", subject=name, text=text, do=do)
