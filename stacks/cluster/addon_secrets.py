"""Secrets that add-ons bring, as objects; what they hold is known to an update alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping

from stacks.cluster import outside
from stacks.config.spec import AddonSpec, Spec


def places(said: AddonSpec) -> Iterator[tuple[str, str]]:
    """(namespace, name) of each object, in their order."""
    for name, secret in sorted(said.secrets.items()):
        for namespace in sorted(set(secret.namespaces)):
            yield namespace, name


def values(said: AddonSpec) -> tuple[str, ...]:
    """Names of the values that are in them."""
    return tuple(sorted({name for one in said.secrets.values() for name in one.data.values()}))


def of_spec(spec: Spec) -> tuple[str, ...]:
    """Names of the values of all add-ons."""
    return tuple(sorted({name for said in spec.addons.values() for name in values(said)}))


def manifest(said: AddonSpec, texts: Mapping[str, str]) -> str:
    """All of them with these values, by name; JSON, for its size.

    `data` and not `stringData`: of that API servers note no owner for each key, by which one that
    is taken out leaves, and by which an edit of somebody else is seen.
    """
    items = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "type": said.secrets[name].type,
            "data": {
                key: base64.b64encode(texts[value].encode()).decode()
                for key, value in sorted(said.secrets[name].data.items())
            },
        }
        for namespace, name in places(said)
    ]
    whole = {"apiVersion": "v1", "kind": "List", "items": items}
    return json.dumps(whole, separators=(",", ":"))


def changed(then: outside.Sums, now: outside.Sums, was: AddonSpec, said: AddonSpec) -> set[str]:
    """Names of Secrets of both that are other ones, by what they are made of or by a value."""
    known, wanted = dict(then), dict(now)
    other = {
        value
        for value in values(said)
        for name in [outside.name_of_value(value)]
        if known.get(name) and wanted.get(name, known[name]) != known[name]
    }
    return {
        name
        for name, secret in said.secrets.items()
        if name in was.secrets
        and (
            (secret.type, secret.data) != (was.secrets[name].type, was.secrets[name].data)
            or other & {*secret.data.values()}
        )
    }
