"""What waits for what: questions about the dependencies of one run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from graphlib import TopologicalSorter

from tests.plan.registration import Resource, Run


class Graph:
    """The resources of a run by name, components left out."""

    def __init__(self, run: Run) -> None:
        self._by_urn = {resource.urn: resource for resource in run.custom}
        self.resources = {resource.name: resource for resource in run.custom}

    def needs(self, name: str) -> set[str]:
        """Names of the resources that this one waits for by itself."""
        return {
            self._by_urn[urn].name
            for urn in self.resources[name].dependencies
            if urn in self._by_urn
        }

    @cached_property
    def order(self) -> list[str]:
        """Names, each after all that it needs. Raises graphlib.CycleError."""
        return list(
            TopologicalSorter({name: self.needs(name) for name in self.resources}).static_order()
        )

    @cached_property
    def depths(self) -> dict[str, int]:
        """Length of the longest chain that ends in each resource."""
        found: dict[str, int] = {}
        for name in self.order:
            found[name] = 1 + max((found[other] for other in self.needs(name)), default=0)
        return found

    def before(self, name: str) -> set[str]:
        """Everything that has to be done before this resource's turn comes."""
        found: set[str] = set()
        left = [name]
        while left:
            for other in self.needs(left.pop()) - found:
                found.add(other)
                left.append(other)
        return found

    def of_node(self, node: str, *, cluster: str = "dev") -> list[Resource]:
        """Resources of one node, but for its certificates."""
        return [
            resource
            for name, resource in self.resources.items()
            if name.startswith(f"{cluster}-{node}-")
        ]

    def commands_of(self, node: str, *, cluster: str = "dev") -> Iterator[str]:
        """Names of what connects to that node."""
        for resource in self.of_node(node, cluster=cluster):
            if "connection" in resource.inputs:
                yield resource.name
