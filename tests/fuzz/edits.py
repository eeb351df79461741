"""Edits of a config that runs: each changes `raw` in place."""

from __future__ import annotations

import copy
from collections.abc import Callable

from hypothesis import strategies as st

from stacks.checks import refusals
from stacks.config import cluster as config_cluster
from stacks.config import pools as config_pools
from stacks.config.spec import Spec
from stacks.releases import versions
from tests.fuzz import breakage, clusters, draws
from tests.fuzz.clusters import Config
from tests.fuzz.dice import Dice

_BYTES = 2 * clusters.BYTES  # of choices, for a config and its edits

Edit = Callable[[Dice, Config], None]
Pool = dict[str, object]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Config, Config]:
    """A config that is mostly accepted, and an edit of it."""
    dice = Dice(draw(st.binary(min_size=_BYTES, max_size=_BYTES)))
    raw = clusters.accepted(dice)
    edited = copy.deepcopy(raw)
    applied(dice, edited)
    return raw, edited


def applied(dice: Dice, raw: Config) -> None:
    """One to three edits, and at times words that allow what they would be refused for."""
    for _ in range(dice.between(1, 3)):
        dice.one_of(_ALL)(dice, raw)
    allowing = allowed(raw)  # a config that is broken may have no pools
    if dice.chance(5):
        breakage.broken(dice, raw)
    if dice.chance(40):
        raw["allow"] = allowing


def allowed(raw: Config) -> list[str]:
    """Words that allow whatever can be allowed."""
    return [f"{kind}/{word}" for kind in refusals.ALLOWABLE for word in _subjects(raw)]


def _subjects(raw: Config) -> list[str]:
    """What most refusals are about: pools, the first nodes of each, all workers, backends."""
    nodes = [f"{name}-{number}" for name in pools(raw) for number in range(1, 8)]
    return [*pools(raw), *nodes, "all.workers", "vxlan", "host-gw"]


def reorder(raw: Config) -> None:
    """The same config, written down in another order."""
    raw["pools"] = dict(reversed(pools(raw).items()))
    for pool in pools(raw).values():
        if isinstance(pool.get("hosts"), list):
            pool["hosts"] = hosts(pool)[::-1]
        if isinstance(pool.get("taints"), list):
            pool["taints"] = [*pool["taints"]][::-1]  # type: ignore[misc]


def rename(raw: Config, name: str) -> None:
    """That pool has another name, wherever it is named."""
    raw["pools"] = {"renamed" if pool == name else pool: at for pool, at in pools(raw).items()}
    rollout = raw.get("rollout")
    groups = rollout.get("order") if isinstance(rollout, dict) else None
    for group in groups or []:
        if "pools" in group:
            group["pools"] = ["renamed" if pool == name else pool for pool in group["pools"]]


def more(raw: Config, name: str) -> None:
    """One machine more in that pool, with the next number."""
    pool = pools(raw)[name]
    if "hosts" in pool:
        numbers = [int(str(each["name"]).rpartition("-")[2]) for each in hosts(pool)]
        place = list(pools(raw)).index(name)
        hosts(pool).append(clusters.host(10 + place, name, max(numbers, default=0) + 1))
    else:
        pool["count"] = int(str(pool["count"])) + 1


def pools(raw: Config) -> dict[str, Pool]:
    found = raw["pools"]
    assert isinstance(found, dict)
    return found


def hosts(pool: Pool) -> list[dict[str, object]]:
    found = pool["hosts"]
    assert isinstance(found, list)
    return found


def _fewer(dice: Dice, raw: Config, name: str) -> None:
    pool = pools(raw)[name]
    if "hosts" not in pool:
        pool["count"] = max(0, int(str(pool["count"])) - dice.between(1, 4))
    for _ in range(dice.between(1, 4)):
        if hosts(pool) if "hosts" in pool else []:
            del hosts(pool)[dice.below(len(hosts(pool)))]


def _resized(dice: Dice, raw: Config) -> None:
    name = dice.one_of(list(pools(raw)))
    if dice.chance(50):
        more(raw, name)
    else:
        _fewer(dice, raw, name)


def _replaced(dice: Dice, raw: Config) -> None:
    """A machine more, and one of the others less."""
    name = dice.one_of(list(pools(raw)))
    more(raw, name)
    if "hosts" in pools(raw)[name]:
        del hosts(pools(raw)[name])[dice.below(len(hosts(pools(raw)[name])) - 1 or 1)]


def _other_settings(dice: Dice, raw: Config) -> None:
    key = dice.one_of([key for key in clusters.sections() if key != "allow"])
    raw[key] = draws.field(dice, Spec, key)


def _marks(dice: Dice, raw: Config) -> None:
    pool = pools(raw)[dice.one_of(list(pools(raw)))]
    if pool["roles"] not in (["etcd"], ["loadbalancer"]):
        pool |= draws.section(dice, config_pools.PoolSpec, without=clusters.TOPOLOGY, often=40)


def _another_host(dice: Dice, raw: Config) -> None:
    """Way of login, zone, even address and key of one machine."""
    for pool in pools(raw).values():
        if pool.get("hosts") and dice.chance(50):
            own = draws.section(dice, config_pools.HostSpec, without=("name", "address"), often=30)
            dice.one_of(hosts(pool)).update(own)
            return


def _cluster(dice: Dice, raw: Config) -> None:
    cluster = raw["cluster"]
    assert isinstance(cluster, dict)
    own = ("name", "kubernetes", *versions.COMPONENTS)
    cluster |= draws.section(dice, config_cluster.ClusterSpec, without=own, often=20)


def _other_versions(dice: Dice, raw: Config) -> None:
    """An upgrade, or what would be a way back."""
    cluster = raw["cluster"]
    assert isinstance(cluster, dict)
    for component in versions.COMPONENTS:
        cluster.pop(component, None)
    cluster |= clusters.chosen_versions(dice)


def _pool_less(dice: Dice, raw: Config) -> None:
    if len(pools(raw)) > 1:
        del pools(raw)[dice.one_of(list(pools(raw)))]


def _exceptions(dice: Dice, raw: Config) -> None:
    raw["nodes"] = clusters.exceptions(dice, pools(raw))


_ALL: tuple[Edit, ...] = (
    _resized, _resized, _replaced, _other_settings, _other_settings, _marks, _another_host,
    _exceptions, _cluster, _pool_less, _other_versions,
)  # fmt: skip
