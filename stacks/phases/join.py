"""What phases `mint` and `join` are told: a bootstrap token of the hour, and what is joined by it.

The token itself is a secret that is derived from another one; it is known to nobody here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from stacks.cluster import names
from stacks.cluster.plan import Node, Plan
from stacks.render import join, kubeadm


def purpose(pending: Collection[Node], now_s: float) -> str:
    """What the token is derived for.

    The same within an hour for the same pending nodes, so that preview and up agree. By
    incarnation: one that is recreated within the hour must not meet a token that is gone.
    """
    words = sorted(f"{node.name}={node.generation}" for node in pending)
    return f"join {int(now_s) // 3600} {' '.join(words)}"


def token(key: bytes) -> str:
    """A bootstrap token, `[a-z0-9]{6}.[a-z0-9]{16}`, of secret bytes."""
    code = hashlib.sha256(key).hexdigest()
    return f"{code[:6]}.{code[6:22]}"


def of_mint(plan: Plan, node: Node, secret: str, pending: Collection[Node]) -> dict[str, str]:
    """Values of the mint phase on a master; `secret` is the token."""
    return {
        "KUBEADM_CONFIG": join.bootstrap_token(plan, node, secret, joining=len(pending)),
        # Known to the cluster before they can join: an update that takes this back removes them.
        "JOINING": names.ranges([one.name for one in pending]),
        "TOKEN_S": str(join.token_life_s(len(pending))),
    }


def of_join(plan: Plan, node: Node, ca: str, secret: str) -> dict[str, str]:
    """Values of the join phase on a worker; `ca` is by what the API is known, PEM."""
    return {
        "KUBEADM_CONFIG": kubeadm.join_worker(plan, node).rstrip("\n"),
        "DISCOVERY": join.discovery(ca, secret).rstrip("\n"),
    }
