"""Checks of the mirror: its manifest has to be there."""

from __future__ import annotations

from pathlib import Path

from stacks.cluster import artifacts
from stacks.cluster.artifacts import ArtifactError
from stacks.cluster.plan import Mirror
from stacks.config.problems import Problem
from stacks.config.spec import Spec


def problems(spec: Spec) -> list[Problem]:
    """A mirror whose manifest is missing, or is none."""
    if spec.mirror is None:
        return []
    try:
        artifacts.checksums(Mirror(**spec.mirror.model_dump()), root=Path())
    except ArtifactError as error:
        return [Problem("mirror.manifest", str(error))]
    return []
