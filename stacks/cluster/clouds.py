"""Machines that are made in a cloud: what follows from the config, before any provider is asked."""

from __future__ import annotations

from stacks.config.clouds import CloudSpec
from stacks.config.pools import PoolSpec
from stacks.config.spec import Spec
from stacks.providers import cloud as shared
from stacks.providers import registry
from stacks.providers.site import Balancer


def settings(spec: Spec) -> CloudSpec | None:
    """The section of the cloud that machines are made in; None: they are made in none."""
    found = registry.cloud(spec)
    section = getattr(spec.machines, found.NAME) if found else None
    return section if isinstance(section, CloudSpec) else None


def path(spec: Spec) -> str:
    """Of that section."""
    return f"machines.{spec.machines.provider}"


def in_cloud(spec: Spec) -> bool:
    """Whether machines are made in a cloud, and so counted, not listed."""
    return registry.cloud(spec) is not None


def has_controller(spec: Spec) -> bool:
    """Whether kubelets wait for a cloud controller manager."""
    cloud = settings(spec)
    return cloud is not None and cloud.cloud_controller == "external"


def inner_domain(spec: Spec) -> str:
    """Domain of the names that a cloud's controller manager gives nodes; empty: their own."""
    cloud = registry.cloud(spec)
    return cloud.inner_domain(spec) if cloud else ""


def balancer(spec: Spec, masters: int) -> Balancer:
    """The load balancer before so many masters: what the user said, else one for two or more."""
    cloud = settings(spec)
    if cloud is None:
        return "none"
    return cloud.api_load_balancer or ("internal" if masters > 1 else "none")


def balancer_addresses(spec: Spec) -> tuple[str, ...]:
    """Addresses kept for the internal load balancer, whether there is one now or not.

    Certificates hold them from the start, so that it can come and go.
    """
    cloud = registry.cloud(spec)
    return cloud.balancer_addresses(spec) if cloud else ()


def ingress_pools(spec: Spec) -> tuple[str, ...]:
    """Pools behind the load balancer for what runs in the cluster, sorted; none in no cloud."""
    wanted = spec.front_doors.ingress
    if wanted is None or not in_cloud(spec):
        return ()
    return tuple(sorted(wanted.pools or may_be_behind_ingress(spec)))


def may_be_behind_ingress(spec: Spec) -> list[str]:
    """Pools of workers alone: masters are behind the API's load balancer.

    Google takes a machine into one group that is behind a load balancer, and not into two.
    """
    roles = {name: set(pool.roles) for name, pool in spec.pools.items()}
    return [name for name, has in roles.items() if "worker" in has and "master" not in has]


def way_in(spec: Spec) -> str:
    """How machines of a cloud are reached over SSH; empty where they are in none."""
    cloud = settings(spec)
    if cloud is None:
        return ""
    return f"{shared.LOCAL}:{cloud.tunnel_port}" if cloud.access == "tunnel" else cloud.access


def zones(spec: Spec) -> tuple[str, ...]:
    """Zones that machines may be made in, sorted."""
    cloud = registry.cloud(spec)
    return shared.zones(spec, cloud.zones(spec) if cloud else None)


def machine_type(spec: Spec, pool: PoolSpec) -> str:
    """The pool's machine type; empty where machines are made in no cloud."""
    cloud = registry.cloud(spec)
    said = cloud.said(spec) if cloud else None
    return pool.machine_type or (said.machine_type if said else "")
