"""What keeps a cluster from being destroyed by one command."""

from __future__ import annotations

import pulumi
from pulumi import Resource, ResourceOptions


def against_destroy(name: str, *everything: Resource) -> pulumi.Stash:
    """A protected resource that waits for all others, those below components too.

    The engine deletes in reverse order, so a destroy comes to it before anything else and ends
    there, without a preview too. No other resource is protected: a rotation deletes CAs, and a
    protected one would end it. `pulumi state unprotect` lets the cluster go.
    """
    return pulumi.Stash(
        f"{name}-protection",
        input=f"pulumi destroy of cluster {name} is refused while this is protected",
        opts=ResourceOptions(protect=True, depends_on=everything),
    )
