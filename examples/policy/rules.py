"""What a stack's config must not say: plain values in, reasons out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase


def overrides(allow: Sequence[str], approved: Collection[str]) -> Iterator[str]:
    """Refusals that the stack passes over without approval."""
    for refusal in allow:
        if refusal not in approved:
            yield f"allow: {refusal} is not approved; the policy's config `approved` lists what is"


def host_keys(machines: Mapping[str, object], pools: Mapping[str, object]) -> Iterator[str]:
    """Hosts that are reached whatever key they show."""
    ssh = machines.get("ssh")
    if not isinstance(ssh, dict) or ssh.get("insecureIgnoreHostKey") is not True:
        return
    for pool, index, host in _hosts(pools):
        if not host.get("hostKey"):
            path = f"pools.{pool}.hosts[{index}].hostKey"
            yield f"{path}: is missing, and machines.ssh.insecureIgnoreHostKey is set"


def members(
    stack: str, pools: Mapping[str, object], nodes: Mapping[str, object], stacks: Sequence[str]
) -> Iterator[str]:
    """Fewer than three etcd members in a stack whose name is one of the globs `stacks`."""
    if not any(fnmatchcase(stack, glob) for glob in stacks):
        return
    found = sum(_count(pool) for pool in pools.values() if _is_etcd(pool))
    found -= sum(_leaves(name, entry, pools) for name, entry in nodes.items())
    if found < 3:
        yield f"pools: {found} etcd member(s) in stack {stack}; at least 3 survive the loss of one"


def _hosts(pools: Mapping[str, object]) -> Iterator[tuple[str, int, Mapping[str, object]]]:
    for name, pool in pools.items():
        hosts = pool.get("hosts") if isinstance(pool, dict) else None
        for index, host in enumerate(hosts if isinstance(hosts, list) else []):
            if isinstance(host, dict):
                yield name, index, host


def _is_etcd(pool: object) -> bool:
    return isinstance(pool, dict) and "etcd" in (pool.get("roles") or [])


def _count(pool: object) -> int:
    if not isinstance(pool, dict):
        return 0
    hosts, count = pool.get("hosts"), pool.get("count")
    return len(hosts) if isinstance(hosts, list) else count if isinstance(count, int) else 0


def _leaves(node: str, entry: object, pools: Mapping[str, object]) -> bool:
    """Whether a node of a pool of members leaves."""
    state = entry.get("state") if isinstance(entry, dict) else None
    pool = pools.get(node.rpartition("-")[0])
    listed = {host.get("name") for name, _, host in _hosts(pools) if _is_etcd(pools[name])}
    return state in ("removed", "lost", "decommissioned") and (_is_etcd(pool) or node in listed)
