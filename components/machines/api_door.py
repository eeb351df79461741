"""What clients outside find at the name of the API, where the stack makes its record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pulumi import Input, Resource, RunError

from stacks.cluster import api_record
from stacks.config.front_doors import DnsZoneSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiDoor:
    """Where a record leads, and what makes it."""

    addresses: Sequence[Input[str]]  # IPv4, or a name; of the load balancer, or of the masters
    parts: Sequence[Resource]  # of the load balancer: it serves nobody before they are there
    record: Callable[[Sequence[Resource]], Resource]  # makes it, once these are done
    alias: bool = False  # the record has whatever addresses the load balancer has


def checked(said: DnsZoneSpec, zone: str, *, domain: str, private: bool) -> str:
    """The zone, which is there: its ID or name. Raises RunError where it is not the one meant."""
    trouble = api_record.mismatch(said, domain=domain, private=private)
    if trouble:
        raise RunError(trouble)
    return zone
