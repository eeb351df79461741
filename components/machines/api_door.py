"""What clients outside find at the name of the API, where the stack makes its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pulumi import Input, Resource


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDoor:
    """Where a record leads, and what makes it."""

    addresses: Sequence[Input[str]]  # IPv4, or a name; of the load balancer, or of the masters
    parts: Sequence[Resource]  # of the load balancer: it serves nobody before they are there
    record: Callable[[Sequence[Resource]], Resource]  # makes it, once these are done
    alias: bool = False  # the record has whatever addresses the load balancer has
