"""A pod network that the user brings, as the config describes it (`network.own`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from stacks.config import ports
from stacks.config.network import NetworkSpec
from stacks.config.own_network import OwnNetworkSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.documents.kubernetes_objects import Document
from stacks.networks.network import (
    Backend,
    Marks,
    Member,
    Tunnel,
    Wanted,
    never_smooth,
    no_marks,
)

_PATH = "network.own"


@dataclass(slots=True, kw_only=True)
class UsersOwn:
    """It fulfils Network. Its objects come as an add-on of the user's, its images with that."""

    PROVED: bool
    OPEN: bool
    POLICIES: bool
    DEVIATES: Mapping[str, str]
    SETTINGS: tuple[str, ...]
    BACKENDS: Mapping[str, Backend]
    CUTS: Mapping[str, str]
    TUNNELS: tuple[Tunnel, ...]
    LOCAL_PORTS: Mapping[int, str]
    MASTER_LOCAL_PORTS: Mapping[int, str]
    SYSCTLS: Mapping[str, str]
    FILESYSTEMS: tuple[str, ...]
    NAMESPACES: tuple[str, ...]
    IMAGES: tuple[str, ...]
    REGISTRIES: tuple[str, ...]
    MASTER_IMAGES: tuple[str, ...]
    ROLLOUTS: tuple[str, ...]
    ADDONS: tuple[str, ...]
    PRUNED: Mapping[str, str]
    DEFINED_BY: Mapping[str, str]

    def manifests(self, wanted: Wanted) -> Mapping[str, str]:
        """Nothing: they are in the user's add-on."""
        del wanted
        return {}

    def problems(self, spec: Spec) -> Iterable[Problem]:
        """Ports that stand twice, or belong to programs of every cluster."""
        return _problems(spec)

    def marks(self, spec: Spec, members: Iterable[Member]) -> Mapping[str, Marks]:
        """Nothing: its programs mark Nodes by themselves."""
        return no_marks(spec, members)

    def is_smooth(self, key: str, before: NetworkSpec, now: NetworkSpec) -> bool:
        """It has no key of CUTS."""
        return never_smooth(key, before, now)

    def policies(self) -> Iterable[tuple[Document, Document]]:
        """Nothing: what its accounts have to write is not known."""
        return ()


def described(said: OwnNetworkSpec) -> UsersOwn:
    """What the config says of it, as the rest asks for it."""
    backend = Backend(overhead=said.mtu_overhead, modules=said.kernel_modules)
    default = str(NetworkSpec.model_fields["backend"].default)  # no other is accepted with it
    return UsersOwn(
        PROVED=bool(said.rollouts),
        OPEN=said.ports is None,
        POLICIES=said.policies,
        DEVIATES={},
        SETTINGS=("own", "mtu"),
        BACKENDS={default: backend},
        CUTS={},
        TUNNELS=tuple(
            Tunnel(
                f"own-{one.protocol}-{one.port}",
                one.protocol,
                one.port,
                "your own pod network",
                to=one.to,
            )
            for one in said.ports or ()
        ),
        LOCAL_PORTS={},
        MASTER_LOCAL_PORTS={},
        SYSCTLS=said.sysctls,
        FILESYSTEMS=(),
        NAMESPACES=(),
        IMAGES=(),
        REGISTRIES=(),
        MASTER_IMAGES=(),
        ROLLOUTS=said.rollouts,
        ADDONS=(),
        PRUNED={},
        DEFINED_BY={},
    )


def _problems(spec: Spec) -> Iterator[Problem]:
    said = spec.network.own
    listed = [] if said is None or said.ports is None else [*said.ports]
    taken = {**ports.of_roles(("etcd", "master", "worker")), 22: "sshd"}
    seen = set()
    for place, one in enumerate(listed):
        path = f"{_PATH}.ports[{place}]"
        if one.protocol == "tcp" and one.port in taken:
            yield Problem(path, f"{one.port} belongs to {taken[one.port]}; take another one")
        if (one.protocol, one.port) in seen:
            text = f"{one.protocol} {one.port} is there twice; leave one out"
            yield Problem(path, text)
        seen.add((one.protocol, one.port))
    if said is not None and len(set(said.rollouts)) != len(said.rollouts):
        yield Problem(f"{_PATH}.rollouts", "names one twice; leave it out")
    if said is not None and spec.network.mtu is None and said.mtu_overhead:
        text = "does nothing without network.mtu; say what your manifest says there"
        yield Problem(f"{_PATH}.mtuOverhead", text)
