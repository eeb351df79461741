"""Configs and edits whose registrations are locked: every provider, every kind of edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tests.unit.configs import adopted, aws, behind_tunnel, gcp, hcloud, host_key, lab, with_store

Edits = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A stack after its first up, a second one without an edit, and one for each edit from there."""

    make: Callable[[Edits], dict[str, object]]
    start: Edits = field(default_factory=dict)
    like: str = ""  # a case that came before, of which most resources are the same
    edits: Mapping[str, Sequence[Edits]] = field(default_factory=dict)
    on_top: bool = True  # each edit is one of the start; else of the plain config


# What add-ons of the user's bring; names of files below the checkout.
FILES = {
    f"{name}.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
    for name in ("one", "two")
}

_SEPARATE = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
_VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
_EDGES = {**_VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}
_TLS = {"frontDoors.ingress": {"hosts": ["shop.example.com"]}}
_NAMED = {"cluster.endpoint": "api.example.com"}
_FIVE = {"pools.master.count": 1, "pools.worker.count": 5, "rollout": {"parallel": 2}}
_KEYS = ("pki.rotation.kubernetes", "pki.rotation.etcd", "pki.rotation.seed")
_SETTING = {"loadBalancing.maxConnections": 5000}


def _state(name: str, said: str, **more: object) -> Edits:
    return {f"nodes/{name}": {"state": said, **more}}


def _anew(name: str) -> Edits:
    return {f"nodes/{name}": {"generation": 2}}


def _rotated(step: str) -> Edits:
    paths = (*_KEYS, "pki.rotation.frontProxy", "controlPlane.encryptionKey")
    return {path: {"generation": 2, "step": step} for path in paths}


def _addon(*names: str) -> Edits:
    return {"addons": {"team": {"manifests": [f"{name}.yaml" for name in names]}}}


def _record(zone: str) -> Edits:
    return {
        **_NAMED,
        "frontDoors": {"dns": "managed", "zone": {"domain": "example.com", "id": zone}},
    }


CASES: Mapping[str, Case] = {
    "lab": Case(
        make=lab,
        edits={
            "worker added, one in maintenance": [{"pools.worker.count": 3, **_state("worker-2", "maintenance")}],
            "worker emptied, another one's pods kept": [{**_state("worker-1", "maintenance", drain=True), **_state("worker-2", "maintenance", keepPodsS=3600)}],
            "worker and first master absent, and back": [{**_state("worker-1", "absent"), **_state("master-1", "absent")}, {}],
            "worker and master made anew": [{**_anew("worker-1"), **_anew("master-1")}],
            "master lost": [{**_state("master-2", "lost"), "pools.master.count": 4}],
            "worker compromised, worker decommissioned": [{**_state("worker-1", "compromised"), **_state("worker-2", "decommissioned")}],
            "one master": [{"pools.master.count": 1}],
            "etcd on machines of its own and back": [_SEPARATE, {}],
            "virtual IP and TLS": [{**_VIP, **_TLS}],
            "rotation": [_rotated("trust"), _rotated("issue")],
            "add-on, another file": [_addon("one"), _addon("two", "one")],
            "operating system, everything again": [{"os/packages": "june", "converge.generation": 2}],
            "webhook": [{"hooks": {"url": "https://hooks.example.com/nodes"}}],
        },
    ),
    "lab with load balancers": Case(
        make=lab,
        start={**_EDGES, **_TLS},
        like="lab",
        edits={"one made anew": [_anew("edge-1")], "packages": [{"os/packages": "june"}]},
    ),
    "lab with a virtual IP": Case(
        make=lab,
        start=_VIP,
        like="lab",
        on_top=False,
        edits={"to load balancers and back": [_EDGES, _VIP]},
    ),
    "lab with a virtual IP of the user's": Case(
        make=lab,
        start={**_EDGES, "frontDoors.vip": {"address": "10.92.0.5", "failover": "own"}},
        like="lab with load balancers",
    ),
    "lab of the version before": Case(
        make=lab,
        start={"cluster.kubernetes": "1.35.4"},
        like="lab",
        edits={"upgrade": [{"cluster.kubernetes": "1.36.3"}]},
    ),
    "lab of five workers": Case(
        make=lab,
        start=_FIVE,
        like="lab",
        edits={
            "waves": [{"rollout.drain": {"when": "always"}, **_SETTING}],
            "three masters": [{"pools.master.count": 3}],
        },
    ),
    "lab without a network": Case(make=lab, start={"network.plugin": "none"}, like="lab"),
    "adopted": Case(
        make=adopted,
        edits={
            "worker lost, and made anew": [_state("worker-2", "lost"), _anew("worker-2")],
            "master lost": [_state("master-2", "lost")],
            "worker decommissioned": [_state("worker-2", "decommissioned")],
            "object store, other way of login": [
                {**with_store(), "machines.ssh.user": "ops", "machines.ssh.port": 2222}
            ],
        },
    ),
    "adopted, doors of the user's": Case(
        make=adopted,
        start={
            **_NAMED,
            "frontDoors.verify": "here",
            "machines.onRelease": "keep",
            "machines.ssh.bastion": {"address": "192.0.2.250", "hostKey": host_key(901)},
            "etcd.backup": {"encrypt": False},
        },
        like="adopted",
    ),
    "gcp": Case(
        make=gcp,
        edits={
            "worker added": [{"pools.worker.count": 3}],
            "cloud controller, name of the API": [
                {"machines.gcp.cloudController": "external", **_record("my-zone")}
            ],
        },
    ),
    "gcp behind a tunnel": Case(make=gcp, start=behind_tunnel("gcp"), like="gcp"),
    "gcp with a record, balancer outside": Case(
        make=gcp,
        start={**_record("my-zone"), "machines.gcp.apiLoadBalancer": "external"},
        like="gcp",
    ),
    "aws": Case(
        make=aws,
        edits={
            "worker added": [{"pools.worker.count": 3}],
            "name of the API": [_record("Z0123456789")],
        },
    ),
    "aws behind a tunnel": Case(make=aws, start=behind_tunnel("aws"), like="aws"),
    "aws with a record, balancer outside": Case(
        make=aws,
        start={**_record("Z0123456789"), "machines.aws.apiLoadBalancer": "external"},
        like="aws",
    ),
    "hcloud": Case(
        make=hcloud,
        start={"machines.hcloud.deletionProtection": False},
        edits={
            "worker added, master made anew": [{"pools.worker.count": 3, **_anew("master-2")}],
            "ingress": [{"frontDoors.ingress": {}}],
        },
    ),
}  # fmt: skip
