"""What differs between a plan and what a probe found, each with what fixes it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from operations.observe import backups, disks, etcd_store, expiry, membership
from operations.observe.expected import FIREWALL, Expected
from operations.observe.facts import MISSING, Machine
from operations.observe.hints import AGAIN, RAISE, UP, Difference
from operations.observe.probe import Findings, Found
from stacks.cluster.plan import Node, Plan

_SKEW_S = 10  # as `make preflight`: certificates break from minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    nodes: Mapping[str, tuple[Difference, ...]]  # every node of the plan
    cluster: tuple[Difference, ...]  # what belongs to no node of the plan

    @property
    def count(self) -> int:
        return len(self.cluster) + sum(len(found) for found in self.nodes.values())


def compare(plan: Plan, findings: Findings, *, now: datetime) -> Report:
    """Every difference, node by node in plan order."""
    renewal = timedelta(hours=plan.spec.pki.leaf_renewal_hours)
    skews = [found.skew_s for found in findings.machines.values() if found.machine]
    usual = median(skews) if skews else 0.0
    reports = {}
    for node in plan.nodes:
        found = findings.machines[node.name]
        wanted = findings.expected[node.name]
        told = [*_reached(found), *_own(node, found, wanted)]
        if found.machine and not told:
            told += _machine(found.machine, wanted)
            told += expiry.differences(found.machine, wanted, renewal=renewal, now=now)
            told += _clock(found.skew_s - usual)
            told += membership.of_member(plan, node, findings)
            told += etcd_store.of_member(plan, node, findings)
            told += disks.of_machine(found.machine)
            told += membership.of_balancer(plan, node, findings)
            told += backups.of_node(plan, node, findings, now)
        if found.is_made and not found.is_absent:
            told += membership.of_node(node, wanted, findings)
        reports[node.name] = tuple(told)
    cluster = (
        *membership.of_cluster(plan, findings),
        *etcd_store.of_cluster(plan, findings),
        *backups.of_cluster(plan, findings, now),
        *findings.addons,
        *expiry.administrator(findings.administrator, renewal=renewal, now=now),
    )
    return Report(nodes=reports, cluster=cluster)


def _reached(found: Found) -> Iterator[Difference]:
    if found.is_absent:
        return
    if not found.is_made:
        yield Difference(kind="not-made", subject="machine", text="is not made yet", do=UP)
    elif not found.is_reached:
        yield Difference(
            kind="unreachable",
            subject="ssh",
            text=f"cannot be reached over SSH: {found.trouble}",
            do="start the machine, or see that this computer reaches its SSH port",
        )
    elif found.machine is None:
        yield Difference(
            kind="unreadable",
            subject="probe",
            text=f"was reached, and did not answer: {found.trouble}",
            do="log in: does sudo work, does the disk?",
        )


def _own(node: Node, found: Found, wanted: Expected) -> Iterator[Difference]:
    """Of a machine that is another's, nothing else is worth telling."""
    if found.machine is None:
        return
    if wanted.owns(found.machine.owner):
        if found.machine.incarnation != wanted.incarnation:
            text = f"is incarnation {found.machine.incarnation} of the node"
            text += f", planned is {wanted.incarnation}"
            yield Difference(kind="owner", subject="incarnation", text=text, do=UP)
        return
    owner = found.machine.owner
    text = f'belongs to "{owner}" (cluster, id, node)' if owner else "is not a machine of a cluster"
    recreate = f"{UP}; if it was recreated, raise nodes.{node.name}.generation and run it again"
    do = f"release it there, or give {node.name} another machine" if owner else recreate
    yield Difference(kind="owner", subject="owner", text=text, do=do)


def _machine(found: Machine, wanted: Expected) -> Iterator[Difference]:
    if found.is_busy:
        text = "a phase runs on it right now: what is told below may be on its way"
        yield Difference(kind="busy", subject="lock", text=text, do="let it end, then look again")
    yield from _files(found, wanted)
    yield from _keys(found, wanted)
    yield from _units(found, wanted)
    yield from _marks(found, wanted)
    yield from _programs(found, wanted)
    yield from _artefacts(found, wanted)
    yield from _scripts(found, wanted)
    if found.firewall in ("changed", "missing"):
        how = "are gone" if found.firewall == "missing" else "are not those of its files"
        text = f"the firewall's rules in the kernel {how}"
        do = f"systemctl reload {FIREWALL} there loads them again"
        yield Difference(kind="unit", subject=FIREWALL, text=text, do=do)


def _files(found: Machine, wanted: Expected) -> Iterator[Difference]:
    for path, sum_ in wanted.files.items():
        is_ = found.files.get(path, MISSING)
        if is_ != sum_:
            how = "is missing" if is_ == MISSING else "differs from the plan"
            yield Difference(kind="file", subject=path, text=f"{path} {how}", do=RAISE)
    for path, how in found.changed.get("static-pods", {}).items():
        text = f"{path} {_how(how)}"
        do = f"{RAISE} (its API server restarts in order)"
        yield Difference(kind="file", subject=path, text=text, do=do)


def _keys(found: Machine, wanted: Expected) -> Iterator[Difference]:
    if "up" not in wanted.certificates.values():
        return  # holds no keys of the stack
    if "pki" not in found.sums:
        text = "sums of its keys are not kept: whether they were changed cannot be told"
        yield Difference(kind="secret", subject="pki", text=text, do=AGAIN)
    for path, how in found.changed.get("pki", {}).items():
        yield Difference(kind="secret", subject=path, text=f"{path} {_how(how)}", do=RAISE)


def _how(how: str) -> str:
    if how == MISSING:
        return "was removed"
    if how.startswith("mode"):
        return f"can be read by others ({how})"
    return "was changed by hand"


def _units(found: Machine, wanted: Expected) -> Iterator[Difference]:
    for name in wanted.units:
        unit = found.units.get(name)
        if unit is None or unit.enabled == MISSING:
            yield Difference(kind="unit", subject=name, text=f"unit {name} is missing", do=RAISE)
            continue
        if unit.active != "active":
            do = f"journalctl -u {name} there tells why; {RAISE}"
            yield Difference(kind="unit", subject=name, text=f"unit {name} is {unit.active}", do=do)
        if unit.enabled != "enabled":
            text = f"unit {name} is {unit.enabled}: it does not start with the machine"
            unmask = f"systemctl unmask {name}; " if unit.enabled.startswith("masked") else ""
            yield Difference(kind="unit", subject=name, text=text, do=f"{unmask}{RAISE}")
        yield from _started_with(name, found, wanted)


def _started_with(name: str, found: Machine, wanted: Expected) -> Iterator[Difference]:
    """Files of a unit that are no longer those it was started with."""
    record = f"{name}.service"
    if record not in found.sums:
        text = f"the last change of {record} was never finished"
        yield Difference(kind="unfinished", subject=name, text=text, do=AGAIN)
    for path, how in found.changed.get(record, {}).items():
        # Where the file itself differs it has been told, and where it does not the unit is behind.
        if path not in wanted.files:
            yield Difference(kind="file", subject=path, text=f"{path} {_how(how)}", do=RAISE)
        elif found.files.get(path) == wanted.files[path]:
            text = f"unit {name} was started with another {path}"
            yield Difference(kind="unit", subject=name, text=text, do=RAISE)


_WORK = {
    "master": "a change of its control plane",
    "kubeadm": "storing its settings in the cluster",
    "certificates": "renewing certificates in its kubeconfigs",
}


def _marks(found: Machine, wanted: Expected) -> Iterator[Difference]:
    for name in wanted.settled:
        if found.marks.get(name) != "settled":
            text = f"{_WORK[name]} was never finished"
            yield Difference(kind="unfinished", subject=name, text=text, do=AGAIN)


def _programs(found: Machine, wanted: Expected) -> Iterator[Difference]:
    running = found.etcd.version if found.etcd else ""
    for name, version in wanted.programs.items():
        says = found.programs.get(name, MISSING)
        is_ = re.search(r"\d+\.\d+\.\d+\S*", says)
        # What does not tell its version is told in its own words.
        seen = is_[0] if is_ else says
        if seen != version:
            text = f"{name} is {seen}, planned is {version}"
            yield Difference(kind="version", subject=name, text=text, do=RAISE)
        elif name == "etcd" and running not in ("", version):
            text = f"the etcd that runs is {running}, planned is {version}"
            yield Difference(kind="version", subject=name, text=text, do=RAISE)


def _artefacts(found: Machine, wanted: Expected) -> Iterator[Difference]:
    for name, sum_ in wanted.artefacts.items():
        if found.artefacts.get(name) != sum_:
            text = f"download {name} is another one than planned"
            yield Difference(kind="artefact", subject=name, text=text, do=AGAIN)
        elif name in found.touched:
            text = f"files of download {name} were changed by hand"
            yield Difference(kind="artefact", subject=name, text=text, do=RAISE)


def _scripts(found: Machine, wanted: Expected) -> Iterator[Difference]:
    for name, sum_ in wanted.scripts.items():
        if found.scripts.get(name) != sum_:
            text = f"its copy of the script {name} is another one than this program's"
            yield Difference(kind="script", subject=name, text=text, do=AGAIN)


def _clock(skew_s: float) -> Iterator[Difference]:
    if abs(skew_s) > _SKEW_S:
        text = f"clock is {skew_s:+.0f} s off the other machines"
        do = "run a time service (chrony)"
        yield Difference(kind="clock", subject="clock", text=text, do=do)
