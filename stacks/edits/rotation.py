"""Rotations in an edit: a step that is skipped, or taken back too late."""

from __future__ import annotations

from stacks.checks.refusals import Refusal
from stacks.cluster import rotation
from stacks.cluster.plan import Plan
from stacks.cluster.rotation import PATHS
from stacks.config.pki import LAST_GENERATION, RotationSpec, Step, Subject
from stacks.edits.memory import Memory

_STEPS: tuple[Step, ...] = ("trust", "issue", "drop")
# What skipping to a step would do.
_TOO_EARLY = {
    "trust": "the generation before is not in use on every node",
    "issue": "nodes that do not know the new one would refuse what it made",
    "drop": "what the old one made is still in use",
}


def refusals(before: Memory, plan: Plan) -> list[Refusal]:
    """Every rotation that would skip a step, or take back one that cannot be."""
    then = rotation.of(before.plan.spec) if before.plan else {}
    out = []
    for subject, now in rotation.of(plan.spec).items():
        was = then.get(subject, RotationSpec())
        text = _refused(subject, was, now)
        if text:
            out.append(Refusal("rotation", subject, PATHS[subject], text))
    return [*out, *_of_administrators(before, plan)]


def _of_administrators(before: Memory, plan: Plan) -> list[Refusal]:
    """A kubeconfig that was shut out would count again."""
    was = before.plan.spec.pki.admin_generation if before.plan else None
    now = plan.spec.pki.admin_generation
    if was is None or (now is not None and now >= was):
        return []
    text = (
        f"cannot go from {was} to {now or 'none'}: kubeconfigs of before would do everything "
        f"again; set {was}"
    )
    if was < LAST_GENERATION:
        text += f", or {was + 1} to shut out the present one too"
    return [Refusal("rotation", "administrators", "pki.adminGeneration", text)]


def _refused(subject: Subject, was: RotationSpec, now: RotationSpec) -> str:
    """Why not, and the way; empty when the step may be made."""
    steps = _place(now) - _place(was)
    if steps in (0, 1) or (steps == -1 and _may_go_back(subject, was)):
        return ""
    if steps > 1:
        reason = f"{_word(was)} is the last step that every node has made: {_TOO_EARLY[now.step]}"
    elif was.step == "drop":
        reason = f"generation {was.generation - 1} was dropped, its key is gone for good"
    else:
        reason = f"generation {was.generation} may be in use by an update that was interrupted"
    return f"cannot go from {_word(was)} to {_word(now)}: {reason}; set {_word(_next(was))}"


def _may_go_back(subject: Subject, was: RotationSpec) -> bool:
    # Encryption keys are derived, and seeds never leave the state: an old one can be had again; a
    # CA's key cannot. From `trust` no way leads back: an update of `issue` that was
    # interrupted is not
    # remembered, and may have used it.
    return was.step == "issue" or (subject in ("encryption", "seed") and was.step == "drop")


def _place(rotation: RotationSpec) -> int:
    return len(_STEPS) * rotation.generation + _STEPS.index(rotation.step)


def _next(rotation: RotationSpec) -> RotationSpec:
    """The step behind it; of the last one there is, itself."""
    if rotation == RotationSpec(generation=LAST_GENERATION, step=_STEPS[-1]):
        return rotation
    place = _place(rotation) + 1
    number, step = divmod(place, len(_STEPS))
    return RotationSpec(generation=number, step=_STEPS[step])


def _word(rotation: RotationSpec) -> str:
    return f"{{generation: {rotation.generation}, step: {rotation.step}}}"
