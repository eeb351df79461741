"""Stacks after a first successful up, and what an edit of their config changes."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from stacks.cluster import artifacts
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.load import load
from stacks.releases import versions
from stacks.releases.versions import Versions
from tests.plan.recording import Engine
from tests.plan.registration import Change, Run

Config = Mapping[str, object]


class Stacks:
    """Makes engines. A config's first update is run once; those who ask get a fork."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made: dict[str, tuple[Engine, Run]] = {}
        bundle = folder / ".local/bundle"
        bundle.mkdir(parents=True)
        # The sums of files that nobody downloads here; those of every version that can be chosen.
        self._manifest = bundle / "manifest.json"

    def new(self, config: Config) -> Engine:
        """A stack that was never applied, in a checkout that has the bundle for it."""
        self.brought(config)
        return Engine(self.folder)

    def brought(self, config: Config) -> None:
        """The bundle for that config in the place of another: machines of another architecture come."""
        wanted = plan(load(config, read_keys=False))
        self._manifest.write_text(json.dumps({"files": _sums(wanted), "images": _digests(wanted)}))

    def settled(self, config: Config) -> tuple[Engine, Run]:
        """A stack of that config after one update, and this update."""
        key = json.dumps(config, sort_keys=True)
        if key not in self._made:
            engine = self.new(config)
            self._made[key] = (engine, engine.up(config))
        engine, run = self._made[key]
        return engine.fork(), run


def _digests(wanted: Plan) -> dict[str, str]:
    """By reference, for every set of versions."""
    refs = {
        image.ref
        for sets in _all_versions()
        for image in artifacts.images(dataclasses.replace(wanted, versions=sets)).values()
    }
    return {ref: f"sha256:{hashlib.sha256(ref.encode()).hexdigest()}" for ref in sorted(refs)}


def _sums(wanted: Plan) -> dict[str, dict[str, object]]:
    """By address, for every set of versions and every choice beside one: an edit may name another."""
    upstream = dataclasses.replace(wanted, mirror=None)
    urls = {
        file.upstream
        for sets in _all_versions()
        for arch in {node.arch for node in (*wanted.nodes, *wanted.away)}
        for file in artifacts.files(dataclasses.replace(upstream, versions=sets), arch).values()
    }
    return {
        url: {"sha256": hashlib.sha256(url.encode()).hexdigest(), "size": 1} for url in sorted(urls)
    }


def _all_versions() -> Iterator[Versions]:
    for kubernetes in versions.known():
        yield versions.for_kubernetes(kubernetes)
        for etcd in versions.choices("etcd"):
            yield versions.for_kubernetes(kubernetes, etcd=etcd)
        for containerd in versions.choices("containerd"):
            yield versions.for_kubernetes(kubernetes, containerd=containerd)


def assert_changes(stacks: Stacks, before: Config, after: Config, expected: Collection[str]) -> Run:
    """The edit changes exactly the expected resources (`~ dev-gate`), and an update after it nothing."""
    engine, _ = stacks.settled(before)
    run = engine.up(after)
    assert_exactly(run, expected)
    assert_exactly(engine.up(after), [])
    return run


def assert_exactly(run: Run, expected: Collection[str]) -> None:
    """The run changed these resources, in any order, and no others."""
    found = {str(change): change for change in run.changes}
    lines = [f"  missing   {name}" for name in sorted(set(expected) - set(found))]
    for name in sorted(set(found) - set(expected)):
        lines.append(f"  unwanted  {name}   {', '.join(found[name].paths)}")
        lines += [f"            {line}" for line in _lines(found[name])]
    assert not lines, "the edit does not change what it should:\n" + "\n".join(lines)


def _lines(change: Change) -> list[str]:
    """The lines of stdin that differ, the first few."""
    if change.before is None or change.after is None:
        return []
    old, new = (resource.text("stdin").splitlines() for resource in (change.before, change.after))
    differing = difflib.unified_diff(old, new, lineterm="", n=0)
    return [line for line in differing if not line.startswith(("---", "+++", "@@"))][:8]
