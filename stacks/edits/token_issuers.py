"""Another issuer of tokens of service accounts: API servers and pods know both meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.checks.refusals import Refusal
from stacks.cluster.plan import Plan
from stacks.config import token_issuers
from stacks.edits.memory import Memory

_PATH = "controlPlane.serviceAccountIssuers"


def refusals(before: Memory, plan: Plan) -> Iterator[Refusal]:
    """Tokens that some API server, or all of them, would refuse."""
    if before.plan is None:
        return
    then = before.plan.spec
    was = token_issuers.listed(then)
    # A list that is not there means the same as before: another DNS domain is refused by itself.
    now = plan.spec.control_plane.service_account_issuers or (token_issuers.own(then),)
    several = max(len(before.plan.masters), len(plan.masters)) > 1
    if several and now[0] not in was:
        text = (
            f"cannot begin with {now[0]}: while API servers restart one after the other, those "
            "that do not know it yet would refuse what the others sign; two updates: first "
            f"[{', '.join([*was, now[0]])}], then in the order that you want"
        )
        yield Refusal("rotation", "issuers", _PATH, text)
    elif was[0] not in now:
        text = (
            f"cannot be without {was[0]}: pods hold tokens with it, which API servers would refuse "
            f"at once; two updates: first [{', '.join([now[0], was[0]])}], then without it once "
            "those tokens have ended (an hour; a year with controlPlane.extendTokenExpiration)"
        )
        yield Refusal("rotation", "left-issuer", _PATH, text)
