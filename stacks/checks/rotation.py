"""Checks of rotations: steps that no cluster can be in."""

from __future__ import annotations

from stacks.cluster import rotation as cluster_rotation
from stacks.cluster.rotation import PATHS
from stacks.config.problems import Problem
from stacks.config.spec import Spec


def problems(spec: Spec) -> list[Problem]:
    """Steps that no cluster can be in."""
    out = []
    for subject, rotation in cluster_rotation.of(spec).items():
        if rotation.generation == 1 and rotation.step != "drop":
            text = f"{rotation.step!r} of generation 1, which is there from birth"
            out.append(Problem(f"{PATHS[subject]}.step", f"{text}; set generation: 2"))
    if not spec.control_plane.encrypt_secrets and cluster_rotation.has_begun(
        spec.control_plane.encryption_key
    ):
        text = "does nothing while controlPlane.encryptSecrets is false"
        out.append(Problem(PATHS["encryption"], text))
    return out
