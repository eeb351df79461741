"""Values of a config drawn from the model itself: a new field is drawn without a word here."""

from __future__ import annotations

import types
from collections.abc import Callable, Collection
from functools import cache
from typing import Annotated, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import AfterValidator
from pydantic.fields import FieldInfo

from stacks.checks import refusals
from stacks.checks.networks import OF_SOME
from stacks.config.fields import Section
from stacks.config.network import NetworkSpec
from stacks.networks import registry as networks
from tests.fuzz import draws_of_addons
from tests.fuzz.corpus import accepted
from tests.fuzz.dice import Dice
from tests.unit.flags import SWITCHABLE, TEXT_FLAGS

Draw = Callable[[Dice], object]
Model = type[Section]

_OFTEN = 15  # percent of the optional fields of a section that are set


def section(
    dice: Dice, model: Model, *, without: Collection[str] = (), often: int = _OFTEN
) -> dict[str, object]:
    """A mapping for one section, but for the keys in `without`."""
    return {
        key: draw(dice)
        for key, required, draw in _fields(model)
        if key not in without and (required or dice.chance(often))
    }


def field(dice: Dice, model: Model, key: str) -> object:
    """A value for one key of a section."""
    return next(draw for name, _, draw in _fields(model) if name == key)(dice)


@cache
def _fields(model: Model) -> tuple[tuple[str, bool, Draw], ...]:
    return tuple(
        (info.alias or name, info.is_required(), _draw(model, name, info))
        for name, info in model.model_fields.items()
    )


def _draw(model: Model, name: str, info: FieldInfo) -> Draw:
    by_type = _of(info.annotation, info.metadata)
    better = _BETTER.get((model.__name__, name))
    return by_type if better is None else lambda dice: better(dice, by_type)


def _of(kind: object, marks: Collection[object]) -> Draw:
    """What draws a value of a type. Raises NotImplementedError for one that no field had before."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _of(parts[0], [*_flat(parts[1:]), *marks])
    if origin in (Union, types.UnionType):
        [only] = [part for part in parts if part is not types.NoneType]
        return _or_none(_of(only, marks))
    if origin is Literal:
        return lambda dice: dice.one_of(parts)
    if origin is tuple:
        return _list(_of(parts[0], ()))
    if origin is dict:
        return _mapping(_of(parts[0], ()), _of(parts[1], ()))
    if kind is object:
        return anything
    if kind is bool:
        return lambda dice: dice.chance(50)
    if kind is int:
        return _number(marks)
    if kind is str:
        return _text(marks)
    if isinstance(kind, type) and issubclass(kind, Section):
        return lambda dice: section(dice, kind, often=45)
    raise NotImplementedError(f"nothing draws {kind}: say how")


def _flat(marks: Collection[object]) -> list[object]:
    return [
        one for mark in marks for one in (mark.metadata if isinstance(mark, FieldInfo) else [mark])
    ]


def _or_none(draw: Draw) -> Draw:
    return lambda dice: None if dice.chance(3) else draw(dice)


def _list(draw: Draw) -> Draw:
    return lambda dice: [draw(dice) for _ in range(dice.between(1, 3))]


def _mapping(key: Draw, draw: Draw) -> Draw:
    return lambda dice: {str(key(dice)): draw(dice) for _ in range(dice.between(1, 3))}


def _number(marks: Collection[object]) -> Draw:
    low = next(mark.ge for mark in marks if isinstance(mark, Ge))
    high = next(mark.le for mark in marks if isinstance(mark, Le))
    assert isinstance(low, int)
    assert isinstance(high, int)
    # Small ones are what people write, and the ends are where checks are wrong.
    ends = (low, high, low + 1, high - 1)
    return lambda dice: (
        dice.one_of(ends) if dice.chance(20) else dice.between(low, min(high, low + 4 * (low + 25)))
    )


def _text(marks: Collection[object]) -> Draw:
    checks = [mark.func for mark in marks if isinstance(mark, AfterValidator)]
    if not checks:
        return lambda dice: str(dice.one_of(_JSON))
    return lambda dice: dice.one_of(accepted(checks[0]))


_JSON = (
    None,
    True,
    0,
    -1,
    1.5,
    10**20,
    "",
    "a",
    "no",
    "1e3",
    "a: b\n",
    "# x",
    "'\"$`\\",
    "ä\u2028\U0001f600",
    "\0",
)


def anything(dice: Dice, depth: int = 2) -> object:
    """Any plain data."""
    kind = dice.below(4) if depth else 0
    if kind == 2:
        return [anything(dice, depth - 1) for _ in range(dice.below(4))]
    if kind == 3:
        return {str(dice.one_of(_JSON)): anything(dice, depth - 1) for _ in range(dice.below(4))}
    return dice.one_of(_JSON)


def _policy(dice: Dice, _: Draw) -> object:
    """An audit policy that is mostly right, with texts of the user's in it."""
    levels = ("Metadata", "None", "Request", "RequestResponse", "None", "Everything")
    rules = [
        {"level": dice.one_of(levels), **({"users": [anything(dice)]} if dice.chance(40) else {})}
        for _ in range(dice.between(1, 3))
    ]
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}


def _allow(dice: Dice, _: Draw) -> object:
    return [
        f"{dice.one_of(tuple(refusals.ALLOWABLE))}/{dice.one_of(('worker-2', 'worker', 'worker-1'))}"
        for _ in range(dice.between(1, 4))
    ]


def _plugins(dice: Dice, by_type: Draw) -> object:
    named = by_type(dice)
    if named is None:
        return None
    assert isinstance(named, list)
    return named if dice.chance(5) else ["NodeRestriction", *named]


def _state(dice: Dice, by_type: Draw) -> object:
    return "active" if dice.chance(50) else by_type(dice)


def _seldom(dice: Dice, by_type: Draw) -> object:
    """What only maintenance has: clusters.py draws it with that."""
    return by_type(dice) if dice.chance(5) else None


def _hardly(dice: Dice, _: Draw) -> object:
    return dice.chance(5)


def _one_worker(dice: Dice, _: Draw) -> object:
    return [dice.one_of(("worker-1", "gpu-1", "x-1"))]


def _one_pool(dice: Dice, _: Draw) -> object:
    return [dice.one_of(("worker", "gpu", "x"))]


def _network(dice: Dice, by_type: Draw) -> object:
    """Most often the backend is one of the plugin, and settings are those that it follows."""
    said = by_type(dice)
    network = (
        networks.NETWORKS.get(str(said.get("plugin", "flannel")))
        if isinstance(said, dict)
        else None
    )
    if network is None or dice.chance(25):
        return said
    assert isinstance(said, dict)
    backend = dice.one_of((*network.BACKENDS, *network.BACKENDS, "vxlan"))
    kept: dict[str, object] = {"backend": backend} if network.BACKENDS else {}
    others = {key for one in network.BACKENDS.values() for key in one.settings}
    of_it = {*network.SETTINGS} - (
        others - {*network.BACKENDS[backend].settings} if kept else set()
    )
    for name, info in NetworkSpec.model_fields.items():
        key = info.alias or name
        if key in said and (name in of_it or name not in OF_SOME) and key != "backend":
            kept[key] = said[key]
    if kept.get("bgpReflectorPools") and dice.chance(90):
        kept["bgpTopology"] = "reflectors"  # that they are for
    if kept.get("own"):
        kept["mtu"] = dice.between(1280, 1500)  # what its overhead is added to
    return kept


def _rollouts(dice: Dice, _: Draw) -> object:
    return ["kube-system/daemonset/kube-router", "net/deployment/a.b-c"][: dice.between(1, 2)]


def _node_port(dice: Dice, by_type: Draw) -> object:
    return dice.between(30000, 32767) if dice.chance(90) else by_type(dice)


def _zones(dice: Dice, by_type: Draw) -> object:
    """Those that pools of clouds are in most often (clouds.py)."""
    known = ["europe-west3-a", "eu-central-1a", "fsn1"]
    return [dice.one_of(known)] if dice.chance(90) else by_type(dice)


def _free_address(dice: Dice, _: Draw) -> object:
    """Of the lab's subnet, or of the first pool of adopted machines (clusters.py)."""
    return dice.one_of(("10.92.3.250", "192.168.0.250", "192.168.0.250", "10.92.3.250", "10.1.2.3"))


def _subnet_of_all(dice: Dice, by_type: Draw) -> object:
    return "192.168.0.0/16" if dice.chance(80) else by_type(dice)


def _machines_networks(dice: Dice, by_type: Draw) -> object:
    """Those of clusters.py most often, each as it is or with others beside it."""
    known = ["10.92.0.0/20", "192.168.0.0/16"]
    drawn = by_type(dice)
    more = [one for one in drawn if dice.chance(30)] if isinstance(drawn, list) else []
    return [*known, *more] if dice.chance(90) else drawn


def _comes_from(dice: Dice, by_type: Draw) -> object:
    """Bastions may be anywhere."""
    return ["0.0.0.0/0"] if dice.chance(50) else _machines_networks(dice, by_type)


def _hosts(dice: Dice, _: Draw) -> object:
    return ["shop.example.com", "*.example.com"][: dice.between(1, 2)]


def _domain(dice: Dice, by_type: Draw) -> object:
    """That of the names at which clusters are reached (corpus.py, clusters.py)."""
    return "example.com" if dice.chance(80) else by_type(dice)


def _canary(dice: Dice, _: Draw) -> object:
    if dice.chance(50):
        return {"count": dice.between(1, 3)}
    return {"nodes": ["worker-1"]}


def _waves(dice: Dice, _: Draw) -> object:
    """A file that is there; another tool's in life."""
    return "tests/fuzz/waves.yaml" if dice.chance(90) else "tests/fuzz/none.yaml"


def _flags(dice: Dice, by_type: Draw) -> object:
    """Flags that there are most often, with texts of any kind."""
    named = by_type(dice)
    assert isinstance(named, dict)
    if dice.chance(5):
        return named
    return dict(zip(TEXT_FLAGS[dice.below(6) :], named.values(), strict=False))


def _verbose(dice: Dice, by_type: Draw) -> object:
    return by_type(dice) if dice.chance(5) else {"v": str(dice.below(10))}


def _gates(dice: Dice, by_type: Draw) -> object:
    if dice.chance(5):
        return by_type(dice)
    return {dice.one_of(SWITCHABLE): dice.chance(50) for _ in range(dice.between(1, 3))}


def _webhook(dice: Dice, by_type: Draw) -> object:
    return by_type(dice) if dice.chance(20) else f"https://hooks-{dice.below(3)}.example.com/nodes"


# Where the type alone says too little for a value that is often accepted.
_BETTER: dict[tuple[str, str], Callable[[Dice, Draw], object]] = {
    ("AddonSpec", "chart"): draws_of_addons.chart,
    ("AddonSpec", "manifests"): draws_of_addons.manifests,
    ("AuditSpec", "policy"): _policy,
    ("ControlPlaneSpec", "admission_plugins"): _plugins,
    ("ControlPlaneSpec", "api_server_args"): _flags,
    ("ControlPlaneSpec", "controller_manager_args"): _verbose,
    ("ControlPlaneSpec", "feature_gates"): _gates,
    ("ControlPlaneSpec", "scheduler_args"): _verbose,
    ("KubeletSpec", "feature_gates"): _gates,
    ("DnsZoneSpec", "domain"): _domain,
    ("EtcdDoorSpec", "pools"): _one_pool,
    ("FirewallSpec", "networks"): _machines_networks,
    ("FirewallSpec", "ssh_from"): _comes_from,
    ("BgpPeerSpec", "zones"): _zones,
    ("NetworkSpec", "bgp_reflector_pools"): _one_pool,
    ("OwnNetworkSpec", "rollouts"): _rollouts,
    ("Spec", "network"): _network,
    ("HooksSpec", "url"): _webhook,
    ("IngressSpec", "hosts"): _hosts,
    ("IngressSpec", "node_port"): _node_port,
    ("IngressSpec", "pools"): _one_pool,
    ("NodeSpec", "drain"): _hardly,
    ("NodeSpec", "keep_pods_s"): _seldom,
    ("NodeSpec", "state"): _state,
    ("Spec", "addons"): draws_of_addons.addons,
    ("Spec", "allow"): _allow,
    ("VipSpec", "address"): _free_address,
    ("VipSpec", "subnet"): _subnet_of_all,
    ("NodeGroupSpec", "nodes"): _one_worker,
    ("NodeGroupSpec", "pools"): _one_pool,
    ("NodeGroupSpec", "zones"): _zones,
    ("CanarySpec", "nodes"): _one_worker,
    ("RolloutSpec", "critical"): _one_worker,
    ("RolloutSpec", "canary"): _canary,
    ("RolloutSpec", "plan"): _waves,
}
