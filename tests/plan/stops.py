"""Which API servers and etcd members an update stops, and who is left meanwhile: by its commands alone.

What a changed value does is read off the scripts: lines of components/scripts that decide are named beside each rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tests.plan.commands import Command, by_name, downloads, expand, files, members, wanted

Program = Literal["kube-apiserver", "etcd"]
# master.sh, control_plane_sum: the files of API_FILES, the keys' generations, kubeadm.yaml up to the kubelet's part.
_API_FILES = (
    "AUDIT_POLICY",
    "ADMISSION_CONFIG",
    "OIDC_CA",
    "AUDIT_WEBHOOK",
    "AUTHENTICATION",
    "KEYS",
)
_ENCRYPTION = "/etc/kubernetes/encryption.yaml"
# etcd-member.sh, main: etcd.env, etcd.service, ca.crt and the binaries.
_ETCD_FILES = ("ETCD_ENV", "ETCD_UNIT")
_ETCD_CA = "/etc/kube-ha/etcd/ca.crt"
_ROLE = "node-role.kubernetes.io/control-plane="


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One program that stops for a while on one node."""

    program: Program
    node: str
    left: int  # how many of its kind answer meanwhile
    of: int  # of so many, itself among them


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A member that has joined or left; after it so many of the voters are up."""

    member: str
    joins: bool
    up: int
    voters: int

    @property
    def spare(self) -> int:
        """How many may fail besides."""
        return self.up - (self.voters // 2 + 1)


@dataclass
class Stops:
    """All of one update, in its order."""

    commands: Sequence[Command]
    stops: list[Stop] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    spare_before: int = 0
    serving: set[str] = field(default_factory=set)  # API servers that answer
    voters: list[str] = field(default_factory=list)
    down: set[str] = field(default_factory=set)  # voters that do not answer

    def __post_init__(self) -> None:
        listed = next((one for one in self.commands if one.phase == "nodes"), None)
        if listed is None or listed.before is None:
            return
        self.voters = members(listed.was("MEMBERS"))
        self.serving = {one.node for one in self.commands if one.phase == "master" and one.before}
        there = {one.node for one in self.commands if one.phase == "etcd-member" and one.before}
        # Of Nodes; a member that is none has no command any more, and is wanted all the same.
        absent = {*expand(listed.now("ABSENT"))}
        told = {one.node for one in self.commands if one.phase == "etcd-member" and one.after}
        absent |= (there - told) & {*members(listed.now("MEMBERS"))}
        self.serving -= absent
        self.down = {*self.voters} - (there - absent)
        self.spare_before = len(there) - (len(self.voters) // 2 + 1)
        for command in self.commands:
            if command.runs:
                self._run(command)

    def of(self, program: Program) -> list[Stop]:
        return [stop for stop in self.stops if stop.program == program]

    def _run(self, command: Command) -> None:
        match command.phase:
            case "retire":
                self._taken_out(command)
            case "node" if command.is_again:
                self._of_packages(command)
            case "etcd-member" if "UNTIL" not in (command.after or {}):
                self._member(command)
            case "master":
                self._master(command)
            case "nodes":
                self._listed(command)

    def _taken_out(self, command: Command) -> None:
        going = [word.partition("=")[0] for word in command.now("INCARNATIONS").split()]
        self.serving -= {*going}
        self.down |= {*going} & {*self.voters}
        for name in [one for one in self.voters if one in going]:
            self._leaves(name)

    def _leaves(self, name: str) -> None:
        self.voters.remove(name)
        self.down.discard(name)
        self._moved(name, joins=False)

    def _moved(self, name: str, *, joins: bool) -> None:
        up = len(self.voters) - len({*self.down} & {*self.voters})
        self.moves.append(Move(member=name, joins=joins, up=up, voters=len(self.voters)))

    def _of_packages(self, command: Command) -> None:
        """os.sh: for another word the machine steps aside (step_aside); reboot_now where it reboots."""
        if "OS_PACKAGES" not in command.changed or not command.now("OS_PACKAGES"):
            return
        self._stops_api(command.node)
        if command.now("OS_REBOOT") != "never":
            self._stops_etcd(command.node)

    def _member(self, command: Command) -> None:
        self.down.discard(command.node)  # it was absent, and runs again
        if command.node not in self.voters:
            self.voters.append(command.node)
            self._moved(command.node, joins=True)
        elif self._restarts_etcd(command):
            # before_restart: its API server drains first where others serve.
            if len(self.serving) > 1:
                self._stops_api(command.node)
            self._stops_etcd(command.node)

    def _restarts_etcd(self, command: Command) -> bool:
        sums = [
            downloads(values).get("etcd", ("", ""))[1] for values in (command.before, command.after)
        ]
        return (
            command.before is not None
            and bool(command.changed & {*_ETCD_FILES} or sums[0] != sums[1])
        ) or self._placed_otherwise(command.node, _ETCD_CA)

    def _master(self, command: Command) -> None:
        if command.node not in self.serving:
            self.serving.add(command.node)
            return
        configs = [
            _control_plane(text)
            for text in (command.was("KUBEADM_CONFIG"), command.now("KUBEADM_CONFIG"))
        ]
        if (
            command.changed & {*_API_FILES}
            or configs[0] != configs[1]
            or self._placed_otherwise(command.node, _ENCRYPTION)
            or self._has_another_kubelet(command.node)
        ):
            self._stops_api(command.node)

    def _has_another_kubelet(self, node: str) -> bool:
        """node.sh stages it (stage_kubelet), and master.sh puts it in place (kubelet_staged)."""
        return any(
            downloads(one.before).get("kubelet", ("", ""))[1]
            != downloads(one.after).get("kubelet", ("", ""))[1]
            for one in self.commands
            if one.phase == "node" and one.node == node and one.is_again
        )

    def _placed_otherwise(self, node: str, path: str) -> bool:
        return any(
            files(one.before).get(path) != files(one.after)[path]
            for one in self.commands
            if one.phase == "pki" and one.node == node and one.is_again and path in files(one.after)
        )

    def _listed(self, command: Command) -> None:
        """nodes.sh: whoever is wanted no more is drained, then members leave one at a time."""
        self.serving &= _masters(command.after) | (self.serving - _masters(command.before))
        stay = members(command.now("MEMBERS"))
        for name in [one for one in self.voters if one not in stay]:
            self._leaves(name)

    def _stops_api(self, node: str) -> None:
        if node in self.serving:
            left = len(self.serving - {node})
            self._add(Stop(program="kube-apiserver", node=node, left=left, of=len(self.serving)))

    def _stops_etcd(self, node: str) -> None:
        if node in self.voters:
            left = len({*self.voters} - self.down - {node})
            self._add(Stop(program="etcd", node=node, left=left, of=len(self.voters)))

    def _add(self, stop: Stop) -> None:
        self.stops.append(stop)


def _masters(values: object) -> set[str]:
    known = values if isinstance(values, dict) else {}
    labels = by_name(known.get("LABELS", ""))
    return {name for name, words in labels.items() if _ROLE in words} & wanted(known)


def _control_plane(kubeadm: str) -> str:
    return re.split(r"^apiVersion: kubelet\.config", kubeadm, flags=re.MULTILINE)[0]


def nodes_of(stops: Iterable[Stop]) -> list[str]:
    return list(dict.fromkeys(stop.node for stop in stops))
