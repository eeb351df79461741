"""What keeps a cluster from being destroyed by one command."""

from __future__ import annotations

from collections.abc import Sequence

from pulumi import ComponentResource, Resource, ResourceOptions, Stash


class Protection(ComponentResource):
    """A protected resource that waits for all of `everything`, below components too.

    The engine deletes in reverse order, so a destroy comes to it before anything else and ends
    there, without a preview too. No other resource is protected: a rotation deletes CAs, and a
    protected one would end it. `pulumi state unprotect` lets the cluster go.
    """

    def __init__(
        self, name: str, everything: Sequence[Resource], opts: ResourceOptions | None = None
    ) -> None:
        super().__init__("kube-ha:index:Protection", name, None, opts)
        Stash(
            f"{name}-protection",
            input=f"pulumi destroy of cluster {name} is refused while this is protected",
            opts=ResourceOptions(parent=self, protect=True, depends_on=everything),
        )
        self.register_outputs({})
