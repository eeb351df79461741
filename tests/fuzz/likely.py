"""Edits that people make and that chance alone hardly finds: each changes `raw` in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

from stacks.config import machines, pki, pools
from stacks.config.spec import Spec
from stacks.networks import registry as networks
from tests.fuzz import clusters, draws, edits
from tests.fuzz.clusters import Config
from tests.fuzz.dice import Dice

_NEXT = {"drop": "trust", "trust": "issue", "issue": "drop"}


def applied(dice: Dice, raw: Config) -> None:
    """One or two of them, at times with words that allow what they would be refused for."""
    for _ in range(dice.between(1, 2)):
        dice.one_of(_ALL)(dice, raw)
    if dice.chance(40):
        raw["allow"] = edits.allowed(raw)


def walked(dice: Dice, raw: Config) -> None:
    """What happens to machines over the years, and hardly anything else: one to three of it."""
    for _ in range(dice.between(1, 3)):
        dice.one_of(_OF_MACHINES)(dice, raw)
    if dice.chance(60):
        raw["allow"] = edits.allowed(raw)


def network(dice: Dice, raw: Config) -> None:
    """Each pod network as often as another; `accepted` takes most of those that are drawn away."""
    drawn = draws.field(dice, Spec, "network")
    kept = drawn if isinstance(drawn, dict) and dice.chance(50) else {}
    raw["network"] = {**kept, "plugin": dice.one_of(tuple(networks.NETWORKS))}


def _section(dice: Dice, raw: Config) -> None:
    """Another whole section, one key of it, or one less."""
    key = dice.one_of([key for key in clusters.sections() if key != "allow"])
    drawn, there = draws.field(dice, Spec, key), raw.get(key)
    if not isinstance(drawn, dict) or not isinstance(there, dict) or dice.chance(30):
        raw[key] = drawn
    elif there and dice.chance(30):
        del there[dice.one_of(list(there))]
    elif drawn:
        name = dice.one_of(list(drawn))
        there[name] = drawn[name]


def _one_key(dice: Dice, raw: Config) -> None:
    """A section with one key more, where whole ones seldom fit."""
    key = dice.one_of([key for key in clusters.sections() if key != "allow"])
    drawn = draws.field(dice, Spec, key)
    if isinstance(drawn, dict) and drawn:
        name = dice.one_of(list(drawn))
        _own(raw, key)[name] = drawn[name]


def _rotated(dice: Dice, raw: Config) -> None:
    """The next step of a rotation."""
    subject = dice.one_of(_subjects())
    rotation = _own(_own(raw, "pki"), "rotation")
    stands = _own(rotation, subject)
    step = _NEXT[str(stands.get("step", "drop"))]
    generation = int(str(stands.get("generation", 1))) + (1 if step == "trust" else 0)
    rotation[subject] = {"generation": generation, "step": step}


def _own(raw: Config, key: str) -> Config:
    """A section; an empty one where there was none."""
    found = raw.get(key)
    section: Config = found if isinstance(found, dict) else {}
    raw[key] = section
    return section


def _subjects() -> list[str]:
    return [info.alias or name for name, info in pki.PkiRotationSpec.model_fields.items()]


def _node(dice: Dice, raw: Config) -> None:
    """One node in another state, recreated, or back from where it was."""
    names = [f"{pool}-{number}" for pool in edits.pools(raw) for number in range(1, 4)]
    listed = _own(raw, "nodes")
    name = dice.one_of([*listed, *names])
    states = get_args(pools.NodeSpec.model_fields["state"].annotation)
    if name in listed and dice.chance(60):
        del listed[name]
    elif dice.chance(40):
        own = _own(listed, name)
        own["generation"] = int(str(own.get("generation") or 1)) + 1
    else:
        listed[name] = {"state": dice.one_of(states)}


def _secret(dice: Dice, raw: Config) -> None:
    """Another secret of the object store's key."""
    raw["backupSecretKey"] = {"secure": f"another-{dice.below(3)}"}


def _value(dice: Dice, raw: Config) -> None:
    """Another value of a Secret of an add-on."""
    known = _own(raw, "addonSecrets")
    known[dice.one_of(("token", "other"))] = {"secure": f"another-{dice.below(3)}"}


def _firewall(dice: Dice, raw: Config) -> None:
    """It begins, changes or ends, where machines are in no cloud."""
    own = _own(raw, "machines")
    if own["provider"] not in ("lab", "adopt"):
        return
    if "firewall" in own and dice.chance(40):
        del own["firewall"]
    else:
        own["firewall"] = draws.field(dice, machines.MachinesSpec, "firewall")


def _size(dice: Dice, raw: Config) -> None:
    """A machine more or less, at the end of a pool; of given ones any may go."""
    name = dice.one_of(list(edits.pools(raw)))
    pool = edits.pools(raw)[name]
    if dice.chance(50):
        edits.more(raw, name)
    elif "hosts" in pool:
        if edits.hosts(pool):
            del edits.hosts(pool)[dice.below(len(edits.hosts(pool)))]
    else:
        pool["count"] = max(0, int(str(pool["count"])) - 1)


def _roles(dice: Dice, raw: Config) -> None:
    """Workload on masters or not, etcd beside them or not."""
    pool = dice.one_of(list(edits.pools(raw).values()))
    pool["roles"] = list(dice.one_of((*clusters.STACKED, ("master",), ("etcd",), ("worker",))))


def _place(dice: Dice, raw: Config) -> None:
    """Another zone of a given machine; another list of them in the lab."""
    pool = dice.one_of(list(edits.pools(raw).values()))
    zone = dice.one_of(("a", "b", "c"))
    if "hosts" in pool and edits.hosts(pool):
        dice.one_of(edits.hosts(pool))["zone"] = zone
    elif "machineType" not in pool and "hosts" not in pool:
        pool["zones"] = ["a", "b", "c"][: dice.between(1, 3)]


def _endpoint(dice: Dice, raw: Config) -> None:
    """How clients outside come to the API, by a name or without one."""
    own = _own(raw, "cluster")
    if "endpoint" in own and dice.chance(50):
        del own["endpoint"]
    else:
        own["endpoint"] = dice.one_of(("api.example.com", "other.example.com:443"))


def _again(dice: Dice, raw: Config) -> None:
    """Everything is made so once again."""
    own = _own(raw, "converge")
    own["generation"] = int(str(own.get("generation", 1))) + 1


def _rollout(dice: Dice, raw: Config) -> None:
    """How workers take turns, and whether they are drained."""
    raw["rollout"] = draws.field(dice, Spec, "rollout")


_ALL: tuple[Callable[[Dice, Config], None], ...] = (
    *(_section, _section, _one_key, _one_key, _one_key, _rotated, _node, _node, _secret, _value),
    _firewall,
)  # fmt: skip
_OF_MACHINES: tuple[Callable[[Dice, Config], None], ...] = (
    *(_node, _node, _node, _size, _size, _roles, _place, _endpoint, _again, _rollout, _rotated),
)
