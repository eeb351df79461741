"""A secret that stands where none belongs is never printed, wherever that is."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given

from stacks.config import redaction
from stacks.config.problems import SpecError
from stacks.edits import transition
from stacks.edits.transition import TransitionError
from stacks.explain import comment, document, formats, report, terminal
from stacks.load import load, planned
from tests.fuzz.breakage import places
from tests.fuzz.clusters import Config, configs
from tests.fuzz.counted import counted

_SECRET = "hunter2Zq9"
_FORMS = (
    f"http://someone:{_SECRET}@proxy.example.com:3128",
    f"https://{_SECRET}@id.example.com/realms/x",
    f"someone:{_SECRET}@mirror.example.com",
    f"https://store.example.com/?X-Amz-Signature={_SECRET}",
    f"http://a:b'c {_SECRET}@h",
    f"{_SECRET}wJalrXUtnFEMIK7MDENGbPxRfiCYE2",  # forty letters, as a secret of AWS has
    f"-----BEGIN RSA PRIVATE KEY-----\n{_SECRET}\n-----END RSA PRIVATE KEY-----\n",
)


@pytest.mark.usefixtures("quick_yaml")
def test_no_message_and_no_plan_shows_a_secret(examples: int) -> None:
    seen: Counter[str] = Counter()

    @counted(max(examples // 20, 40))
    @given(configs())
    def each(raw: Config) -> None:
        kept = json.dumps(raw)
        texts = [(number, key) for number, (at, key) in enumerate(places(raw)) if _is_text(at, key)]
        form = _FORMS[len(kept) % len(_FORMS)]
        for number, key in texts[len(kept) % 7 :: 7]:
            edited = json.loads(kept)
            at, _ = [*places(edited)][number]
            at[key] = form  # type: ignore[call-overload]
            printed = _printed(edited)
            assert _SECRET not in printed
            seen[printed[:7]] += 1

    each()
    assert seen["refused"] > 40


def _is_text(at: object, key: object) -> bool:
    held = at[key] if isinstance(at, dict | list) else None  # type: ignore[call-overload]
    return isinstance(held, str)


def _printed(raw: Config) -> str:
    try:
        made = planned(load(raw, read_keys=False))
        verdict = transition.check(None, made)
    except (SpecError, TransitionError) as error:
        problems = error.problems
        told = json.dumps(redaction.inside([list(one) for one in problems]))
        return (
            "refused"
            + formats.problems("f", problems)
            + formats.problems_markdown("f", problems)
            + told
        )
    said = report.report(None, made, verdict)
    words = "".join(
        terminal.as_text(said, made.warnings, verbose=verbose) for verbose in (True, False)
    )
    words += comment.as_markdown(said, made.warnings) + document.as_json(said, made.warnings)
    return (
        "planned" + redaction.without(formats.plan(made)) + words + formats.warnings(made.warnings)
    )
