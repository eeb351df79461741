"""Settings of the config that an edit changes, by section, with old and new value where short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from stacks.config import redaction
from stacks.config.spec import Spec

# Sections by the beginning of their path, the longer one first; the rest is told by its path.
_SECTIONS: Mapping[str, str] = {
    "sizing": "sizing",
    "cluster.endpoint": "API endpoint",
    "loadBalancing": "HAProxy settings",
    "etcd.backup": "etcd backups",
    "etcd": "etcd settings",
    "controlPlane": "control plane settings",
    "kubelet": "kubelet settings",
    "runtime": "containerd settings",
    "network": "network settings",
    "frontDoors.vip": "virtual IP",
    "frontDoors.ingress": "ingress tier",
    "frontDoors.etcd": "access to etcd",
    "frontDoors": "API DNS record",
    "mirror": "mirror",
    "proxy": "proxy",
    "rollout": "rollout",
    "os": "operating system",
    "machines": "machines",
    "pki": "certificates",
    "pools": "pools",
}
# Told as versions, membership, states, marks, rotations and add-ons; `allow` changes nothing.
_ELSEWHERE = (
    *("cluster.kubernetes", "cluster.etcd", "cluster.containerd", "pki.rotation"),
    *("controlPlane.encryptionKey", "os.packages", "converge", "addons", "nodes", "allow"),
)
_OF_POOLS = frozenset({"count", "hosts", "labels", "taints", "zones", "roles"})
_SHORT = 32  # letters of a value that is shown
_MOST = 3  # settings of one section that are named

_Change = tuple[str, object, object]


def changed(then: Spec, now: Spec) -> Iterator[str]:
    """`Change kubelet settings: maxPods 110 -> 60`, one for each section that differs."""
    was, wanted = (of.model_dump(mode="json", by_alias=True) for of in (then, now))
    found = [one for one in _differences("", was, wanted) if not _is_told_elsewhere(one[0])]
    for section, group in groupby(sorted(found, key=_place), key=lambda one: _section(one[0])):
        yield _line(section, list(group))


def _line(section: str, found: list[_Change]) -> str:
    name = _SECTIONS.get(section, section)
    [(path, old, new), *others] = found
    if path == section and not others and isinstance(new, Mapping) and old is None:
        return f"Add {name}{_first(new)}"
    if path == section and not others and isinstance(old, Mapping) and new is None:
        return f"Remove {name}"
    words = [_one(change, section) for change in found[:_MOST]]
    rest = len(found) - _MOST
    more = f" and {rest} more" if rest > 0 else ""
    return f"Change {name}: {', '.join(words)}{more}"


def _one(change: _Change, section: str) -> str:
    path, old, new = change
    key = path.removeprefix(section).removeprefix(".")
    if isinstance(new, Mapping) or isinstance(old, Mapping):
        return f"{key} {'removed' if new is None else 'added' if old is None else 'changed'}"
    was, now = _shown(old), _shown(new)
    values = f"{was} -> {now}" if was and now else ""
    return " ".join(part for part in (key, values) if part) or path


def _first(of: Mapping[str, object]) -> str:
    """The first setting of a section, where it is a plain one."""
    key, value = next(iter(of.items()), ("", None))
    plain = "" if isinstance(value, Mapping | list | tuple) else _shown(value)
    return f" ({key} {plain})" if value is not None and plain else ""


def _shown(value: object) -> str:
    """A value in a few letters; empty where it has more."""
    if value is None:
        return "unset"
    if isinstance(value, Mapping | list | tuple):
        return "" if value else "none"
    text = str(value).lower() if isinstance(value, bool) else str(redaction.of_value(value))
    return text if text and len(text) <= _SHORT and "\n" not in text else ""


def _differences(path: str, was: object, now: object) -> Iterator[_Change]:
    if was == now:
        return
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*was, *now)):
            below = f"{path}.{key}" if path else str(key)
            yield from _differences(below, was.get(key), now.get(key))
    else:
        yield path, was, now


def _is_told_elsewhere(path: str) -> bool:
    keys = path.split(".")
    # A pool that comes or goes is nodes that do.
    if keys[0] == "pools":
        return len(keys) < 3 or keys[2] in _OF_POOLS
    return any(path == other or path.startswith(f"{other}.") for other in _ELSEWHERE)


def _section(path: str) -> str:
    fitting = [one for one in _SECTIONS if path == one or path.startswith(f"{one}.")]
    return max(fitting, key=len, default=path)


def _place(change: _Change) -> tuple[int, str]:
    section = _section(change[0])
    places = [*_SECTIONS]
    return (places.index(section) if section in places else len(places), change[0])
