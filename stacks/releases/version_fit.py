"""Why the versions of a set fit together, by their documents; text of the versions page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stacks.releases import versions
from stacks.releases.versions import COMPONENTS, fitting, mapping, number

_INTRO = """# Which versions fit together

<!-- Made by `python -m stacks.reference` from artifacts/lock.yaml; edit it there. -->

`cluster.kubernetes` chooses one of these sets; `cluster.etcd` and `cluster.containerd` choose
another one for these two, of those that stand there as *or*. *Named* is what the document beside it
names for that Kubernetes: etcd, containerd and CNI plugins are that or newer, etcd within its
minor; the others are that very version. A test compares them. For runc and flannel no document
names one; [Cilium's][cilium] lists Kubernetes 1.33 to 1.36. Calico 3.32 is built with the
libraries of 1.35 and tested with it ([metadata.mk][calico]); for 1.36 no document names it.

[calico]: https://github.com/projectcalico/calico/blob/v3.32.1/metadata.mk
[cilium]: https://docs.cilium.io/en/v1.20/network/kubernetes/compatibility/

Another etcd fits from the least that kubeadm accepts as an external one (`takes` in the lock, in
the same document) up to the minor version of the set. Another containerd fits within the minor
version of the set, whose config file it reads.

A running cluster goes up one minor version of Kubernetes and of etcd at a time, and back only by
patches; etcd 3.6 follows 3.5.26 or later, 3.7 follows 3.6.11 or later
([upgrades](../operate/upgrade.md)).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Set:
    """One set of the lock, as its text says it."""

    kubernetes: str
    versions: Mapping[str, str]  # by component
    fits: Mapping[str, str]  # by component: what the documents name
    sources: Mapping[str, str]  # by component: URL of the document


def sets(lock: Mapping[str, object]) -> list[Set]:
    """Every set of a lock, newest Kubernetes first."""
    found = mapping(lock.get("sets"), "sets")
    return [_set(kubernetes, found[kubernetes]) for kubernetes in sorted(found, key=number)][::-1]


def _set(kubernetes: str, entry: object) -> Set:
    known = mapping(entry, f"sets.{kubernetes}")
    fits = mapping(known.get("fits"), f"sets.{kubernetes}.fits")
    return Set(
        kubernetes=kubernetes,
        versions={key: str(value) for key, value in known.items() if isinstance(value, str)},
        fits={key: str(value) for key, value in fits.items()},
        sources=dict(_sources(known.get("sources"), f"sets.{kubernetes}.sources")),
    )


def _sources(listed: object, where: str) -> Iterator[tuple[str, str]]:
    for entry in listed if isinstance(listed, list) else ():
        source = mapping(entry, where)
        names = source.get("of")
        for name in names if isinstance(names, list) else ():
            yield str(name), str(source["url"])


def page() -> str:
    """The text of docs/reference/versions.md."""
    lines = [_INTRO]
    for made in sets(versions.lock()):
        lines += [f"## Kubernetes {made.kubernetes}\n", "| component | version | or | named | in |"]
        lines.append("|---|---|---|---|---|")
        lines += [_row(made, name) for name in made.versions]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _row(made: Set, name: str) -> str:
    url = made.sources.get(name)
    link = f"[{url.rpartition('/')[2]}]({url})" if url else ""
    named = made.fits.get(name, "")
    return f"| {name} | {made.versions[name]} | {_others(made, name)} | {named} | {link} |"


def _others(made: Set, name: str) -> str:
    fits = [v for c in COMPONENTS if c == name for v in fitting(made.kubernetes, c)]
    return ", ".join(version for version in fits if version != made.versions[name])
