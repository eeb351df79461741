"""Checks of the user's add-ons: files that cannot be used, objects that stand twice."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address

import yaml

from stacks.catalogue import metallb
from stacks.catalogue import registry as catalogue
from stacks.cluster import charts, clouds, inventory, user_addons
from stacks.cluster.charts import ChartError
from stacks.cluster.user_addons import HERE, Addon, KubernetesObject
from stacks.config import local_file
from stacks.config.charts import ChartSpec
from stacks.config.engine_yaml import NoYamlError
from stacks.config.problems import Problem
from stacks.config.spec import AddonSpec, Spec
from stacks.networks import registry as networks

# The widest of all names, those of roles: system:node@x. Nothing that would be more than a word.
_WORD = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.:@/+-]*)?")


def said_problems(spec: Spec) -> list[Problem]:
    """What can be known to be wrong without the files."""
    chosen = catalogue.chosen(spec)
    out = [one for entry in chosen.values() for one in entry.problems(spec)]
    out += [*_without_policies(spec), *_layer_2(spec), *_addresses(spec)]
    for name, said in sorted(spec.addons.items()):
        path = f"addons.{name}"
        if name in user_addons.own(spec):
            out.append(Problem(path, "is the name of an add-on that the stack makes; take another"))
        taken = chosen[name].SETTINGS if name in chosen else ()
        out += [
            Problem(f"{path}.{field.alias or key}", f"has no meaning for {name}; leave it out")
            for key, field in sorted(AddonSpec.model_fields.items())
            if key not in ("manifests", "chart", "secrets", "reconcile", *taken)
            and getattr(said, key) != field.get_default(call_default_factory=True)
        ]
        if said.manifests and said.chart:
            text = "is a chart beside manifests; make two add-ons of them, applied by their names"
            out.append(Problem(f"{path}.chart", text))
        if not (said.manifests or said.chart or said.secrets) and name not in chosen:
            text = (
                "is empty; name a file, or leave the add-on out. Without manifests there are, from "
                f"the catalogue: {', '.join(catalogue.ENTRIES)}"
            )
            out.append(Problem(f"{path}.manifests", text))
        for index, file in enumerate(said.manifests):
            if file in said.manifests[:index]:
                text = f"{file!r} stands here twice; leave one of them out"
                out.append(Problem(f"{path}.manifests[{index}]", text))
    return out


def _without_policies(spec: Spec) -> Iterator[Problem]:
    """What is made of NetworkPolicies, and would look as if it did something."""
    if networks.of(spec).POLICIES:
        return
    others = [name for name, one in networks.NETWORKS.items() if one.POLICIES and one.PROVED]
    for name, entry in catalogue.chosen(spec).items():
        if entry.NEEDS_POLICIES:
            text = (
                f"does nothing with {spec.network.plugin}, which enforces no NetworkPolicy; leave "
                f"it out, or use {' or '.join(others)}"
            )
            yield Problem(f"addons.{name}", text)


def _layer_2(spec: Spec) -> Iterator[Problem]:
    for name, entry in catalogue.chosen(spec).items():
        if entry.NEEDS_LAYER_2 and clouds.in_cloud(spec):
            text = "answers ARP, which no network of a cloud asks; leave it out: the cloud's own "
            yield Problem(f"addons.{name}", f"{text}controller makes load balancers")


def _addresses(spec: Spec) -> Iterator[Problem]:
    """Of Services, that a machine has already."""
    for name, said in sorted(spec.addons.items()):
        for index, (first, last) in enumerate(metallb.ranges(said)):
            for place in inventory.places(spec):
                if first <= IPv4Address(place.address) <= last:
                    text = f"holds {place.address}, which {place.name} has; leave that out"
                    yield Problem(f"addons.{name}.addresses[{index}]", text)


def problems(spec: Spec) -> list[Problem]:
    """Files that are missing or hold what cannot be applied, and objects that stand twice."""
    out: list[Problem] = []
    owners: dict[KubernetesObject, str] = {}
    for name, said in sorted(spec.addons.items()):
        for one in user_addons.secrets(said):
            where = f"addons.{name}.secrets.{one.name}"
            first = owners.setdefault(one, where)
            if first != where:
                out.append(Problem(where, f"{one} is of {first}, too; take it out of one"))
    for name, said in sorted(spec.addons.items()):
        for index, path in enumerate(said.manifests):
            where = f"addons.{name}.manifests[{index}]"
            found = list(_unusable(path))
            for one in [] if found else user_addons.objects(HERE, path):
                first = owners.setdefault(one, where)
                if first != where:
                    found.append(f"{path!r} holds {one}, as {first} does; take it out of one")
            out += [Problem(where, text) for text in dict.fromkeys(found)]
        if said.chart:
            out += _of_chart(name, said.chart, spec.cluster.kubernetes)
    return out


def _of_chart(name: str, said: ChartSpec, kubernetes: str) -> Iterator[Problem]:
    """What helm says of a chart, and what is wrong with what it makes of it."""
    path = f"addons.{name}.chart"
    try:
        text = charts.rendered(name, said, kubernetes, HERE)
    except ChartError as error:
        yield Problem(f"{path}.{error.key}" if error.key else path, str(error))
        return
    for words in dict.fromkeys(_wrong_text(text, said.file, from_chart=True)):
        yield Problem(path, words)


def taken(addons: Iterable[Addon], manifests: Mapping[str, str]) -> list[Problem]:
    """Objects of add-ons that the stack makes, by name and manifest or as chosen, in others."""
    made = {**manifests, **{addon.name: addon.text for addon in addons if addon.text}}
    return [
        Problem(f"addons.{addon.name}", f"{one} is of add-on {name}, which the stack makes")
        for addon in addons
        for name, text in made.items()
        for one in addon.objects
        if name != addon.name
        # Reading YAML takes its time, and hardly any name stands there.
        if one.name in text
        and one in {user_addons.identity(document) for document in user_addons.documents(text)}
    ]


def _unusable(path: str) -> Iterator[str]:
    """What is wrong with one file."""
    try:
        text = user_addons.content(HERE, path).decode()
    except OSError as error:
        yield f"{path!r} cannot be read ({local_file.why(error)})"
        return
    except UnicodeDecodeError:
        yield f"{path!r} is not text in UTF-8"
        return
    yield from _wrong_text(text, path)


def _wrong_text(text: str, path: str, *, from_chart: bool = False) -> Iterator[str]:
    """What is wrong with manifests of a file, or of a chart."""
    try:
        documents = user_addons.documents(text)
    except yaml.YAMLError as error:
        yield f"{path!r} is not YAML ({_line(error)})"
        return
    except NoYamlError as error:
        yield f"{path!r} {error}"
        return
    if not documents:
        yield f"{path!r} holds no object"
    seen: set[KubernetesObject] = set()
    for number, document in enumerate(documents, start=1):
        for words in _wrong(document, may_be_secret=from_chart):
            yield f"{path!r}: document {number} {words}"
        if user_addons.is_named(document):
            one = user_addons.identity(document)
            if one in seen:
                yield f"{path!r} holds {one} twice"
            seen.add(one)


def _wrong(document: object, *, may_be_secret: bool) -> Iterator[str]:
    """`may_be_secret`: of a chart, where it follows from values that everybody may read."""
    if not isinstance(document, Mapping):
        yield "is not a mapping"
        return
    kind = user_addons.text(document, "kind")
    if kind.endswith("List") and "items" in document:
        yield f"is a {kind}; write its items as documents, with --- between them"
        return
    for keys in (("apiVersion",), ("kind",), ("metadata", "name")):
        if not user_addons.text(document, *keys):
            yield f"has no {'.'.join(keys)}"
    is_secret = kind == "Secret" and not may_be_secret
    if is_secret and (document.get("data") or document.get("stringData")):
        yield (
            "is a Secret with its content, which would be in the repository for everybody to "
            "read; name it below secrets of the add-on (docs/operate/add-ons.md)"
        )
    for keys in (("metadata", "name"), ("metadata", "namespace"), ("kind",), ("apiVersion",)):
        if not _WORD.fullmatch(user_addons.text(document, *keys)):
            yield f"has a {'.'.join(keys)} that no object can have"


def _line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = str(getattr(error, "problem", None) or error).splitlines()[0]
    return f"line {mark.line + 1}: {what}" if mark else what
