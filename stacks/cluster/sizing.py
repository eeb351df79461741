"""Settings that follow from the number of nodes: by a few sizes, and never by themselves.

A size is chosen once, when the cluster is made; from then on the stack's memory holds it, until the
config says another one by `sizing.nodes`. So a worker more restarts no API server, whatever the
number is. Why each value is what it is, and who says so: docs/explain/sizing.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stacks.cluster.plan import Plan
from stacks.config.fields import Section
from stacks.config.problems import Problem
from stacks.config.sizing import PATH, SIZES, SMALLEST, Size, SizingSpec
from stacks.config.spec import Spec
from stacks.networks import registry as networks
from stacks.providers.places import Place

# Of bigger ones, where the pod network follows them: sessions of a mesh grow with the square of the
# nodes, watches of the API with the nodes.
_OF_NETWORKS: Mapping[str, object] = {"bgp_topology": "reflectors", "typha": True}

# Per size, by section and field, what differs from the defaults of the model: those are for the
# smallest one. Flags are single entries of their mapping, so that the user's replace them one by
# one.
_VALUES: Mapping[Size, Mapping[str, Mapping[str, object]]] = {
    100: {},
    300: {
        "etcd": {"quota_backend_gib": 4},
        "load_balancing": {"check_interval_ms": 3000},
        "network": {"dns_replicas": 20},
        "control_plane": {
            "api_server_args": {
                "goaway-chance": "0.001",
                "max-mutating-requests-inflight": "400",
                "max-requests-inflight": "800",
            },
            "controller_manager_args": {"kube-api-burst": "60", "kube-api-qps": "40"},
        },
    },
    1000: {
        "etcd": {"quota_backend_gib": 4},
        "load_balancing": {"check_interval_ms": 5000},
        "network": {"dns_replicas": 64},
        "control_plane": {
            "api_server_args": {
                "goaway-chance": "0.001",
                "max-mutating-requests-inflight": "500",
                "max-requests-inflight": "1500",
            },
            "controller_manager_args": {"kube-api-burst": "100", "kube-api-qps": "100"},
            "scheduler_args": {"kube-api-burst": "100", "kube-api-qps": "100"},
        },
    },
}


def nodes(spec: Spec, places: Iterable[Place]) -> int:
    """How many of the machines are nodes of Kubernetes."""
    working = {"master", "worker"}
    pools = {name for name, pool in spec.pools.items() if not working.isdisjoint(pool.roles)}
    return sum(place.pool in pools for place in places)


def needed(count: int) -> Size:
    """The smallest size that so many nodes fit in; of more than fit in any, the biggest."""
    return next((size for size in SIZES if count <= size), SIZES[-1])


def of(known: Plan | None) -> Size:
    """The size of a cluster that exists; None: nothing is known of its config."""
    return (known.spec.sizing.nodes if known else None) or SMALLEST


def settled(spec: Spec, count: int, remembered: Size | None = None) -> Spec:
    """The config with its size, and all that follows from it; what the config says counts first.

    `count` is the number of nodes, `remembered` the size of the cluster that exists; None: there
    is none.
    """
    size = spec.sizing.nodes or remembered or needed(count)
    update: dict[str, Section] = {"sizing": SizingSpec(nodes=size)}
    for name, values in _VALUES[size].items():
        section = getattr(spec, name)
        update[name] = section.model_copy(update=_unsaid(section, values))
    if size != SMALLEST:
        followed = {key: v for key, v in _OF_NETWORKS.items() if networks.follows(spec, key)}
        section = update["network"]
        update["network"] = section.model_copy(update=_unsaid(spec.network, followed))
    return spec.model_copy(update=update)


def _unsaid(section: Section, values: Mapping[str, object]) -> dict[str, object]:
    """Those of the values that the config does not give itself."""
    out: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            out[name] = {**value, **getattr(section, name)}
        elif name not in section.model_fields_set:
            out[name] = value
    return out


def hints(spec: Spec, count: int, remembered: Size | None) -> list[Problem]:
    """That a cluster has outgrown its size, as long as nobody has chosen one."""
    if spec.sizing.nodes is not None or remembered is None or remembered >= needed(count):
        return []
    text = (
        f"this cluster has the settings of {remembered} nodes and gets {count}. Set it to "
        f"{needed(count)}, in an edit of its own: that restarts etcd and the control plane, one "
        f"machine after another (docs/explain/sizing.md); or to {remembered} to hear no more of it"
    )
    return [Problem(PATH, text)]
