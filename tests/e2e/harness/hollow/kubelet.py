"""A kubelet without containers, and the part of the phases that it sees: a worker that is hollow.

It joins by the token that it is told, with a request of its own that the cluster's approver judges;
it registers its Node, renews its lease, watches its pods, says that they run, and announces what it
has applied, all as the node that it is. So the API servers have the work of a real one, and decide
as they do of a real one. No container runs: nobody can reach its pods, and nothing is probed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import aiohttp
import yaml

from stacks.releases import versions
from tests.e2e.harness.hollow.api import CONNECT_S, JOIN_S, REQUEST_S, Api, Object, identity
from tests.e2e.harness.hollow.machines import PhaseError

LEASE_S = 40  # as kubelets have it by default, renewed four times
RENEWALS = 5  # tries of one renewal, one after the other (k8s.io/component-helpers)
WATCH_S = 600
CAPACITY = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


@dataclass(slots=True)
class Kubelet:
    """One hollow worker. `number` spreads these over the API servers."""

    number: int
    address: str
    api: Api
    name: str = ""
    version: str = ""  # of Kubernetes
    applied: str = ""
    pods: int = 0  # told to run, ever
    beats: int = 0  # renewals of the lease
    missed: int = 0  # those of them that no server took at any try
    _trust: ssl.SSLContext | None = None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def phase(self, phase: str, values: Mapping[str, str]) -> str:
        """Do what this phase does that others see. Raises PhaseError."""
        if phase == "node":
            self.name, self.applied = values["NODE"], values["APPLIED"]
            self.version = values["KUBERNETES"]
            if self._trust:
                await self._annotate({"kube-ha.io/begun": self.applied, "kube-ha.io/failed": None})
                await self._announce()
        elif phase == "join":
            if not self._trust:
                await self._join(values)
                self.live()
            await self._announce()
        elif phase == "leave":
            self.die()
            self._trust = None
        return f"{phase}: done, changes=1"

    def live(self) -> None:
        """Renew the lease and run pods from now on."""
        if self._trust and not self._tasks:
            self._tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._run_pods())]

    def die(self) -> None:
        """Say nothing any more; `live` again is the same machine that was switched on."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        form: str = "application/json",
        limit_s: float = REQUEST_S,
    ) -> tuple[int, Object]:
        return await self.api.ask(
            method,
            path,
            body,
            trust=self._identity(),
            form=form,
            first=self.number,
            limit_s=limit_s,
        )

    def _identity(self) -> ssl.SSLContext:
        if not self._trust:
            raise PhaseError(f"{self.name}: has no identity yet")
        return self._trust

    async def _announce(self) -> None:
        await self._annotate(
            {
                "kube-ha.io/applied": self.applied,
                "kube-ha.io/begun": None,
                "kube-ha.io/failed": None,
            }
        )

    async def _annotate(self, annotations: Mapping[str, str | None]) -> None:
        await self._must(
            "PATCH",
            f"/api/v1/nodes/{self.name}",
            {"metadata": {"annotations": annotations}},
            form="application/merge-patch+json",
        )

    async def _must(
        self, method: str, path: str, body: object, *, form: str = "application/json"
    ) -> None:
        """Ask until it is done, or there already. Raises PhaseError after JOIN_S."""
        end = asyncio.get_running_loop().time() + JOIN_S
        while True:
            status, answer = await self._ask(method, path, body, form=form)
            if status in {200, 201, 409}:
                return
            if asyncio.get_running_loop().time() > end:
                said = answer.get("message")
                raise PhaseError(f"{self.name}: {method} {path}: HTTP {status} {said}")
            await asyncio.sleep(1)

    async def _join(self, values: Mapping[str, str]) -> None:
        """An identity for the token of DISCOVERY, and the Node of KUBEADM_CONFIG."""
        discovery = yaml.safe_load(values["DISCOVERY"])
        (cluster,), (user,) = discovery["clusters"], discovery["users"]
        authority = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
        token = user["user"]["token"]
        self._trust = await identity(self.api, self.name, authority, token, first=self.number)
        config = yaml.safe_load(values["KUBEADM_CONFIG"])
        await self._must("POST", "/api/v1/nodes", self._node(config["nodeRegistration"]))
        lease = {"holderIdentity": self.name, "leaseDurationSeconds": LEASE_S, "renewTime": _now()}
        meta = {"name": self.name, "namespace": "kube-node-lease"}
        await self._must(
            "POST",
            _LEASES,
            {"metadata": meta, "spec": lease, **_kind("coordination.k8s.io/v1", "Lease")},
        )

    def _node(self, registration: Mapping[str, object]) -> Object:
        said = registration.get("kubeletExtraArgs")
        flags = {one["name"]: one["value"] for one in said} if isinstance(said, list) else {}
        labels = dict(
            pair.split("=", 1) for pair in flags.get("node-labels", "").split(",") if pair
        )
        fixed = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux"}
        status = {
            "addresses": [
                {"type": "InternalIP", "address": self.address},
                {"type": "Hostname", "address": self.name},
            ],
            "capacity": CAPACITY,
            "allocatable": CAPACITY,
            "conditions": [_ready()],
            "nodeInfo": dict.fromkeys(_INFO, "hollow") | self._versions(),
        }
        return {
            **_kind("v1", "Node"),
            "metadata": {"name": self.name, "labels": labels | fixed},
            "spec": {"taints": registration.get("taints") or []},
            "status": status,
        }

    def _versions(self) -> Object:
        """Of another minor version a wave would drain it."""
        runtime = versions.for_kubernetes(self.version).containerd
        return {
            "kubeletVersion": f"v{self.version}",
            "containerRuntimeVersion": f"containerd://{runtime}",
        }

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(LEASE_S / 4)
            self.beats += 1
            self.missed += not await self._renewed()
            await self._stay_ready()

    async def _renewed(self) -> bool:
        """Whether a server took the lease, tried as often as kubelets do."""
        for _ in range(RENEWALS):
            status, _ = await self._ask(
                "PATCH",
                f"{_LEASES}/{self.name}",
                {"spec": {"renewTime": _now()}},
                form="application/merge-patch+json",
                limit_s=LEASE_S / 4,  # kubelet.go, the client of heartbeats
            )
            if status == 200:
                return True
        return False

    async def _stay_ready(self) -> None:
        """Look at its Node as kubelets do; a controller has called one that was away unknown."""
        path = f"/api/v1/nodes/{self.name}"
        _, node = await self._ask("GET", f"{path}?resourceVersion=0")
        status = node.get("status")  # a text, where the API refuses
        conditions = status["conditions"] if isinstance(status, dict) else []
        if any(one["type"] == "Ready" and one["status"] != "True" for one in conditions):
            await self._ask(
                "PATCH",
                f"{path}/status",
                {"status": {"conditions": [_ready()]}},
                form="application/strategic-merge-patch+json",
            )

    async def _run_pods(self) -> None:
        """Watch this node's pods as a kubelet does, from the beginning whenever the watch ends."""
        query = f"?fieldSelector=spec.nodeName%3D{self.name}&watch=true&timeoutSeconds={WATCH_S}"
        turn = self.number
        while True:
            server = self.api.order(turn)[0]
            turn += 1
            try:
                async with self.api.http.get(
                    f"https://{server}/api/v1/pods{query}",
                    ssl=self._identity(),
                    timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
                ) as events:
                    async for line in events.content:
                        await self._see(json.loads(line))
            except (OSError, aiohttp.ClientError, TimeoutError):
                self.api.failed(server)
            await asyncio.sleep(1)

    async def _see(self, event: Mapping[str, object]) -> None:
        pod = event.get("object")
        if event.get("type") not in {"ADDED", "MODIFIED"} or not isinstance(pod, dict):
            return
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        if meta.get("deletionTimestamp"):
            await self._ask("DELETE", path, {"gracePeriodSeconds": 0})
        elif pod.get("status", {}).get("phase") == "Pending":
            self.pods += 1
            await self._ask(
                "PATCH",
                f"{path}/status",
                {"status": self._running(pod["spec"]["containers"])},
                form="application/strategic-merge-patch+json",
            )

    def _running(self, containers: Sequence[Mapping[str, str]]) -> Object:
        now = _now()
        inner = f"10.255.{self.pods // 250 % 250}.{1 + self.pods % 250}"  # nobody is there
        return {
            "phase": "Running",
            "hostIP": self.address,
            "podIP": inner,
            "podIPs": [{"ip": inner}],
            "startTime": now,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": now}
                for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [
                {
                    "name": one["name"],
                    "image": one["image"],
                    "imageID": "",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": now}},
                }
                for one in containers
            ],
        }


_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


def _kind(version: str, kind: str) -> dict[str, str]:
    return {"apiVersion": version, "kind": kind}


def _ready() -> Object:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "hollow: no container runs here",
        "lastHeartbeatTime": _now(),
        "lastTransitionTime": _now(),
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
