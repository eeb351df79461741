"""No pod network of kube-ha: the user's own comes as an add-on, or by hand.

What the config says of it is in users_own.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from stacks.documents.kubernetes_objects import Document
from stacks.networks.network import Backend, Tunnel, Wanted, never_smooth, no_marks, no_problems

PROVED = False  # until the user's own runs nodes are NotReady
OPEN = True  # the user's own may take ports and protocols of all kinds
POLICIES = True  # or not: that is for the user's own to say
DEVIATES: Mapping[str, str] = {}
SETTINGS: tuple[str, ...] = ("own",)
BACKENDS: Mapping[str, Backend] = {}
CUTS: Mapping[str, str] = {}
TUNNELS: tuple[Tunnel, ...] = ()
LOCAL_PORTS: Mapping[int, str] = {}
MASTER_LOCAL_PORTS: Mapping[int, str] = {}
SYSCTLS: Mapping[str, str] = {}
FILESYSTEMS: tuple[str, ...] = ()
NAMESPACES: tuple[str, ...] = ()
IMAGES: tuple[str, ...] = ()
REGISTRIES: tuple[str, ...] = ()
MASTER_IMAGES: tuple[str, ...] = ()
ROLLOUTS: tuple[str, ...] = ()
ADDONS: tuple[str, ...] = ()
PRUNED: Mapping[str, str] = {}
DEFINED_BY: Mapping[str, str] = {}
problems, marks, is_smooth = no_problems, no_marks, never_smooth


def manifests(_wanted: Wanted) -> Mapping[str, str]:
    """Nothing."""
    return {}


def policies() -> tuple[tuple[Document, Document], ...]:
    """Nothing."""
    return ()
