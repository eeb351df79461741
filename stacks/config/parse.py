"""From plain values to the typed config: the values alone, and what is right of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import ValidationError

from stacks.config import problems, pruning, translation
from stacks.config.problems import Problem, SpecError
from stacks.config.spec import Spec


def applied_once(raw: Mapping[str, object]) -> Spec:
    """The config of a stack file that may have been applied, by an older program too.

    Its values are judged; checks across fields are not, for they grow with the program, and who
    takes out what it refuses by now has to see the edit. Raises SpecError.
    """
    found, spec = parse(raw)
    if found or spec is None:
        raise SpecError(problems.in_order(found))
    return spec


def remembered(raw: Mapping[str, object]) -> Spec:
    """The config of a past success, as far as today's model knows it.

    What was accepted then is not judged again: keys that are gone are left out, and of what would
    be wrong today the rest is taken. Raises SpecError when nothing can be made of it.
    """
    found, spec = parse(raw)
    if spec is None:
        raise SpecError(found)
    return spec


def parse(raw: Mapping[str, object]) -> tuple[list[Problem], Spec | None]:
    """All problems of single values, and the Spec of the values that are right, if that is one."""
    try:
        # Through JSON: lists may stand for tuples while "5" still is not a number, and nothing but
        # plain data can hide in it. The engine hands mappings over sorted, and the memory is so
        # too: in a file, or in somebody's program, their order means as little. Sorted once all
        # keys are strings: those of YAML may be numbers, too.
        kept, found = translation.opened(raw, Spec)
        plain = json.loads(json.dumps(kept))
        text = json.dumps(plain, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        return [Problem("config", f"holds something that is not plain data ({error})")], None
    seen: set[str] = set()
    while text not in seen:
        seen.add(text)
        try:
            return found, Spec.model_validate_json(text, strict=True, by_alias=True, by_name=False)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=True)
            found += problems.unrelated(translation.translate(details, Spec), to=found)
            text = pruning.pruned(text, details)
    return found, None
