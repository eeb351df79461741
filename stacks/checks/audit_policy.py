"""Checks of an audit policy: a field that nobody reads widens the rule that it was to narrow."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

from stacks.config.problems import Problem, shown

_STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
# Field -> what it is, by audit.k8s.io/v1.
_POLICY = {
    **{"apiVersion": "text", "kind": "text", "metadata": "any", "rules": "any"},
    **{"omitStages": "stages", "omitManagedFields": "bool"},
}
_RULE = {
    **{"level": "any", "users": "texts", "userGroups": "texts", "verbs": "texts"},
    **{"resources": "any", "namespaces": "texts", "nonResourceURLs": "texts"},
    **{"omitStages": "stages", "omitManagedFields": "bool"},
}
_RESOURCES = {"group": "text", "resources": "texts", "resourceNames": "texts"}


def problems(policy: Mapping[str, object] | None) -> Iterator[Problem]:
    """Fields that are not there, and values of another kind; levels are said elsewhere."""
    if policy is None:
        return
    path = "controlPlane.audit.policy"
    yield from _fields(path, policy, _POLICY)
    for index, rule in _listed(policy.get("rules")):
        at = f"{path}.rules[{index}]"
        yield from _fields(at, rule, _RULE)
        listed = rule.get("resources", [])
        if not isinstance(listed, list):
            yield Problem(f"{at}.resources", f"{shown(listed)} is not a list of groups")
        for number, group in _listed(listed):
            yield from _fields(f"{at}.resources[{number}]", group, _RESOURCES)


def _listed(value: object) -> Iterator[tuple[int, Mapping[str, object]]]:
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield index, item


def _fields(path: str, held: Mapping[str, object], known: Mapping[str, str]) -> Iterator[Problem]:
    for key, value in held.items():
        kind = known.get(key)
        if kind is None:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
            text = f"holds `{shown(key)[1:-1]}`, which no API server reads; {hint}"
            yield Problem(path, text)
        elif not _is(kind, value):
            yield Problem(f"{path}.{key}", f"{shown(value)} is not {_WORDS[kind]}")


_WORDS = {
    "text": "text; put it in quotes",
    "texts": "a list of texts; write [a, b]",
    "stages": f"a list of stages, which are {', '.join(_STAGES)}",
    "bool": "true or false",
}


def _is(kind: str, value: object) -> bool:
    if kind == "any":
        return True
    if kind == "bool":
        return isinstance(value, bool)
    if kind == "text":
        return isinstance(value, str)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return False
    return kind != "stages" or set(value) <= set(_STAGES)
