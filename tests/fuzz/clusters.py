"""Whole configs: a topology, settings of every section of the model, and at times something broken."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache

from hypothesis import strategies as st

from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.config import cluster, machines
from stacks.config import pools as config_pools
from stacks.config.problems import SpecError
from stacks.config.spec import Spec
from stacks.load import load
from stacks.releases import versions
from tests.fuzz import breakage, clouds, draws, draws_of_addons
from tests.fuzz.dice import Dice
from tests.unit.configs import host_key

Config = dict[str, object]
Pools = dict[str, dict[str, object]]

LOGIN = json.dumps(
    {
        "auths": {
            host: {"username": "ops", "password": breakage.MARK}
            for host in draws_of_addons.LOGIN_HOSTS
        }
    }
)
BYTES = 400  # of choices; a config that needs more is plain in the rest
_OF_CLOUDS = ("machineType", "diskGib", "etcdDiskGib", "spot")
TOPOLOGY = frozenset(
    {"roles", "count", "hosts", "hostsFile", "addressOffset", "zones", *_OF_CLOUDS}
)
_OWN_SECTIONS = frozenset({"cluster", "machines", "pools", "nodes"})
STACKED = (("etcd", "master"), ("etcd", "master"), ("etcd", "master", "worker"))


@st.composite
def configs(draw: st.DrawFn) -> Config:
    """Configs of 1 to 7 members, 1 to 5 masters, 0 to 60 workers; one in four has something broken."""
    return config(Dice(draw(st.binary(min_size=BYTES, max_size=BYTES))))


def config(dice: Dice) -> Config:
    broken = dice.chance(25)
    raw = right(dice) if dice.chance(25) else accepted(dice)
    for _ in range(dice.between(1, 2) if broken else 0):
        breakage.broken(dice, raw)
    return raw


def right(dice: Dice) -> Config:
    """A config that is meant to be accepted; where settings do not fit together it is not."""
    provider = dice.one_of(("lab", "adopt", "lab", "adopt", "gcp", "aws", "hcloud"))
    pools = _pools(dice, provider)
    raw: Config = {
        "cluster": draws.section(
            dice, cluster.ClusterSpec, without=("name", "kubernetes", *versions.COMPONENTS)
        )
        | {"name": "dev", **chosen_versions(dice)},
        "machines": _machines(dice, provider),
        "pools": pools,
    }
    if dice.chance(30):
        raw["nodes"] = exceptions(dice, pools)
    for key in sections():
        if dice.chance(30):
            raw[key] = draws.field(dice, Spec, key)
    if "edge" in pools:
        doors = raw.setdefault("frontDoors", {})
        assert isinstance(doors, dict)
        doors["vip"] = {"subnet": "192.168.0.0/16"} if provider == "adopt" else {}
        doors["vip"]["address"] = "192.168.0.250" if provider == "adopt" else "10.92.3.250"
        if dice.chance(20):
            doors["vip"]["failover"] = "own"
    if provider in ("gcp", "aws") and dice.chance(40):
        clouds.named(dice, raw)
    if provider in clouds.ALL and dice.chance(25):
        clouds.with_ingress(dice, raw)
    if provider in ("gcp", "aws") and dice.chance(20):
        clouds.with_identity(dice, raw)
    if dice.chance(20):
        raw["sshPrivateKey"] = {"secure": breakage.MARK}
    if dice.chance(90):  # without it object stores are refused
        raw["backupSecretKey"] = {"secure": breakage.MARK}
    if dice.chance(95):  # without them Secrets of add-ons are refused
        raw["addonSecrets"] = {
            name: {"secure": breakage.MARK if name != "login" else LOGIN}
            for name in draws_of_addons.VALUES
        }
    return raw


def chosen_versions(dice: Dice) -> Config:
    """A Kubernetes version, the newest most often, and perhaps others than its set's."""
    kubernetes = dice.one_of((versions.known()[0], *versions.known()))
    chosen: Config = {
        component: dice.one_of(versions.fitting(kubernetes, component))
        for component in versions.COMPONENTS
        if dice.chance(20)
    }
    return {"kubernetes": kubernetes, **chosen}


def accepted(dice: Dice) -> Config:
    """A config that is right: of most that are not, what is left without what they are refused for."""
    raw = right(dice)
    try:
        load(raw, read_keys=False)
    except SpecError as error:
        wrong = {path.partition(".")[0].partition("[")[0] for path, _ in error.problems}
    else:
        return raw
    for key in wrong.intersection([*sections(), "nodes"]):
        raw.pop(key, None)
    pools = raw["pools"]
    if "frontDoors" in wrong and isinstance(pools, dict):
        pools.pop("edge", None)
    if "cluster" in wrong:
        raw["cluster"] = {"name": "dev", "kubernetes": versions.known()[0]}
    return raw


def sample(seed: int) -> Iterator[Plan]:
    """Plans of accepted configs without end, the same ones every time."""
    source = random.Random(seed)  # noqa: S311 (no secret)
    while True:
        raw = accepted(Dice(source.randbytes(BYTES)))
        try:
            yield plan(load(raw, read_keys=False))
        except SpecError:
            continue


@cache
def sections() -> tuple[str, ...]:
    """Keys of the config that are settings, as the model has them."""
    keys = (info.alias or name for name, info in Spec.model_fields.items())
    return tuple(key for key in keys if key not in _OWN_SECTIONS)


def _machines(dice: Dice, provider: str) -> dict[str, object]:
    if provider in clouds.ALL:
        return clouds.machines(dice, provider)
    others = ("provider", "lab", "ssh", *clouds.ALL)
    if provider == "lab":
        own = draws.section(dice, machines.MachinesSpec, without=others)
        return {**own, "provider": "lab", "lab": {"subnet": "10.92.0.0/20"}}
    keys = ("privateKeyFile", "agent", "insecureIgnoreHostKey")
    own = draws.section(dice, machines.MachinesSpec, without=others)
    ssh = draws.section(dice, machines.SshSpec, without=keys, often=25)
    ssh |= (
        {"agent": True}
        if dice.chance(70)
        else {"privateKeyFile": draws.field(dice, machines.SshSpec, keys[0])}
    )
    if dice.chance(40):
        ssh["insecureIgnoreHostKey"] = True
    return {**own, "provider": "adopt", "ssh": ssh}


def _pools(dice: Dice, provider: str) -> Pools:
    masters = dice.one_of((3, 1, 2, 4, 5))
    found: list[tuple[str, tuple[str, ...], int]] = []
    if dice.chance(40):
        found.append(("master", ("master", "worker") if dice.chance(20) else ("master",), masters))
        found.append(("etcd", ("etcd",), dice.one_of((3, 1, 2, 4, 5, 6, 7))))
    else:
        roles = dice.one_of(STACKED)
        apart = dice.between(0, masters - 1) if dice.chance(20) else 0
        found.append(("master", roles, masters - apart))
        if apart:
            found.append(("boss", roles, apart))
        if dice.chance(15):
            found.append(("etcd", ("etcd",), dice.between(1, 7 - masters)))
    for name in ("worker", "gpu", "x")[: dice.one_of((1, 2, 0, 3))]:
        found.append(
            (name, ("worker",), dice.between(0, 20) if dice.chance(20) else dice.between(0, 5))
        )
    # Machines whose only work is the virtual IP, which clouds do not carry.
    if provider in ("lab", "adopt") and dice.chance(20):
        found.append(("edge", ("loadbalancer",), dice.between(1, 3)))
    return {
        name: _pool(dice, place, name, roles, count, provider)
        for place, (name, roles, count) in enumerate(found)
    }


def _pool(
    dice: Dice, place: int, name: str, roles: tuple[str, ...], count: int, provider: str
) -> dict[str, object]:
    marks = ("labels", "taints") if roles in (("etcd",), ("loadbalancer",)) else ()
    pool = draws.section(dice, config_pools.PoolSpec, without=TOPOLOGY | set(marks))
    pool["roles"] = list(roles)
    if provider in clouds.ALL:
        pool |= {"count": count, "addressOffset": 10 + 70 * place}
        pool |= clouds.pool(dice, provider, str(pool.get("arch", "amd64")))
        if provider != "hcloud" and roles == ("worker",) and dice.chance(25):
            pool["spot"] = True
    elif provider == "lab":
        pool |= {"count": count, "addressOffset": 10 + 70 * place}
        if dice.chance(20):
            pool["zones"] = ["a", "b", "c"][: dice.between(1, 3)]
    else:
        pool["hosts"] = [_host(dice, place, name, number) for number in range(1, count + 1)]
    return pool


def host(place: int, pool: str, number: int) -> dict[str, object]:
    """An adopted machine; its address and key are nobody else's."""
    return {
        "name": f"{pool}-{number}",
        "address": f"192.168.{place}.{number}",
        "hostKey": host_key(1000 * place + number),
    }


def _host(dice: Dice, place: int, pool: str, number: int) -> dict[str, object]:
    own = host(place, pool, number)
    if dice.chance(10):
        own |= draws.section(dice, config_pools.HostSpec, without=own, often=30)
    return own


def exceptions(dice: Dice, pools: Pools) -> dict[str, object]:
    names = [
        f"{pool}-{number}"
        for pool, entry in pools.items()
        if entry["roles"] not in (["etcd"], ["loadbalancer"])
        for number in range(1, _size(entry) + 1)
    ]
    edge = {"edge-1": {"state": dice.one_of(("maintenance", "absent", "lost", "removed"))}}
    rests: tuple[dict[str, object], ...] = ({"drain": True}, {"keepPodsS": 3600}, {})
    some: dict[str, object] = {
        dice.one_of(names or ["none-1"]): draws.section(dice, config_pools.NodeSpec, often=60)
        for _ in range(2)
    }
    if names and dice.chance(30):
        some[dice.one_of(names)] = {"state": "maintenance", **dice.one_of(rests)}
    return {**(edge if "edge" in pools and dice.chance(30) else {}), **some}


def _size(pool: dict[str, object]) -> int:
    hosts = pool.get("hosts")
    return len(hosts) if isinstance(hosts, list) else int(str(pool["count"]))
