"""The API as a node's own kubelet identity sees it: one Node, its pods, and budgets that let some of them go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tests.scripts.machine import WHOLE_CERTIFICATE, WHOLE_KUBECONFIG
from tests.scripts.shell import Shell

# State in node.json, pods.json (by name), blocked (names whose budget is used up) and down (how many calls find no API).
# An evicted pod is listed `lasts` more times. One that moves refuses evictions, and leaves once it has refused one; dry
# ones too, as a webhook with side effects does. Each call is a line in `calls`: method, path, body.
_CURL = r"""#!/usr/bin/env python3
import json, pathlib, sys
here = pathlib.Path(__file__).parents[1]
words = sys.argv[1:]
def option(name, otherwise=""):
    return words[words.index(name) + 1] if name in words else otherwise
method, body = option("-X", "GET"), option("--data-binary") or option("-d")
path = words[-1].removeprefix("https://127.0.0.1:3446")
with open(here / "calls", "a") as log:
    log.write(f"{method} {path} {body}\n")
read = lambda name: json.loads((here / name).read_text())
write = lambda name, value: (here / name).write_text(json.dumps(value))
def answer(status, value):
    if "-f" in "".join(word for word in words if word.startswith("-f")) and status >= 400:
        sys.exit(22)
    end = "\n" if "-w" in words else ""
    print(json.dumps(value) + end + (f"{status:03d}" if end else ""), end="")
    sys.exit(0)
def merge(old, new):
    for key, value in new.items():
        if value is None:
            old.pop(key, None)
        elif isinstance(value, dict):
            merge(old.setdefault(key, {}), value)
        else:
            old[key] = value
down = read("down")
if down:
    write("down", down - 1)
    print("\n000", end="")
    sys.exit(7)
node, pods = read("node.json"), read("pods.json")
if path.startswith("/api/v1/nodes/"):
    if not node:
        answer(404, {"message": "no such node"})
    if method == "PATCH":
        merge(node, json.loads(body))
        write("node.json", node)
    answer(200, node)
if path.startswith("/api/v1/pods?"):
    ending = [name for name, pod in pods.items() if "deletionTimestamp" in pod["metadata"]]
    for name in ending:
        pods[name]["lasts"] -= 1
        if pods[name]["lasts"] < 0:
            del pods[name]
    if ending:
        write("pods.json", pods)
    answer(200, {"items": list(pods.values())})
name = path.split("/")[6]
blocked = read("blocked")
if blocked.get(name, 0):
    blocked[name] -= 1
    write("blocked", blocked)
    answer(429, {"message": "Cannot evict pod.", "details": {"causes": [{"message": "The disruption budget web needs 2 healthy pods"}]}})
if pods[name]["moves"] and "dryRun=All" in path:
    answer(400, {"message": "admission webhook does not support dry run"})
if "dryRun=All" not in path:
    pods[name]["metadata"]["deletionTimestamp"] = "now"
    write("pods.json", pods)
if pods[name]["moves"]:
    answer(429, {"message": "Eviction triggered evacuation of VMI"})
answer(201, {})
"""

FOR_EVER = 10_000


@dataclass(frozen=True, slots=True)
class NodeApi:
    """Stands in for curl in a shell whose machine has joined."""

    shell: Shell

    @classmethod
    def of(cls, shell: Shell, *, drain: str = "", **annotations: str) -> NodeApi:
        api = cls(shell)
        curl = shell.folder / "bin/curl"
        curl.parent.mkdir(exist_ok=True)
        curl.write_text(_CURL)
        curl.chmod(0o755)
        shell.stub("systemctl", "echo 'Sat 2026-01-03 10:00:00 UTC'")
        said = {f"kube-ha.io/{key}": value for key, value in annotations.items()}
        said |= {"kube-ha.io/drain": drain} if drain else {}
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-03T10:00:05Z"}
        api.write(
            "node.json",
            {
                "metadata": {"name": "master-1", "annotations": said},
                "spec": {},
                "status": {"conditions": [ready]},
            },
        )
        api.write("pods.json", {})
        api.write("blocked", {})
        api.write("down", 0)
        shell.identity.parent.mkdir(parents=True, exist_ok=True)
        shell.identity.write_text(WHOLE_CERTIFICATE)
        kubeconfig = shell.root / "etc/kubernetes/kubelet.conf"
        kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        kubeconfig.write_text(WHOLE_KUBECONFIG)
        (shell.folder / "ca").touch()
        return api

    def write(self, name: str, value: object) -> None:
        (self.shell.folder / name).write_text(json.dumps(value))

    def pod(
        self,
        name: str,
        *,
        owner: str = "ReplicaSet",
        phase: str = "Running",
        static: bool = False,
        grace_s: int = 30,
        ending: bool = False,
        moves: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """One more pod; `ending`: it was evicted before, and takes forever to end.

        `moves`: metadata of one whose controller moves it because an eviction was refused.
        """
        mirror = {"annotations": {"kubernetes.io/config.mirror": "x"}} if static else {}
        metadata = {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "ownerReferences": [{"kind": owner, "controller": True}] if owner else [],
            **({"deletionTimestamp": "now"} if ending else {}),
            **mirror,
            **(moves or {}),
        }
        more = {
            "metadata": metadata,
            "spec": {"terminationGracePeriodSeconds": grace_s},
            "status": {"phase": phase},
            "lasts": FOR_EVER if ending else 1,
            "moves": moves is not None,
        }
        self.write("pods.json", {**self._read("pods.json"), name: more})

    def block(self, **times: int) -> None:
        """How many evictions of a pod are refused by its budget, dry runs included."""
        self.write("blocked", times)

    def cordon(self) -> None:
        self.write("node.json", {**self._read("node.json"), "spec": {"unschedulable": True}})

    def unready(self) -> None:
        self.write("node.json", {**self._read("node.json"), "status": {"conditions": []}})

    @property
    def cordoned(self) -> bool:
        return self._read("node.json")["spec"] == {"unschedulable": True}

    @property
    def annotations(self) -> dict[str, str]:
        """Ours, without their prefix."""
        metadata = self._read("node.json")["metadata"]
        assert isinstance(metadata, dict)
        return {
            key.removeprefix("kube-ha.io/"): value for key, value in metadata["annotations"].items()
        }

    @property
    def pods(self) -> set[str]:
        return set(self._read("pods.json"))

    @property
    def steps(self) -> list[str]:
        """What was asked for besides looking: cordon, uncordon, mark, dry NAME, evict NAME."""
        return [word for call in self.shell.calls if (word := _word(call))]

    def evictions(self) -> list[dict[str, object]]:
        """Bodies of the evictions that were not dry runs."""
        calls = [call for call in self.shell.calls if call.split()[1].endswith("/eviction")]
        return [json.loads(call.split(" ", 2)[2]) for call in calls]

    def _read(self, name: str) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.shell.folder / name).read_text())
        return found


def _word(call: str) -> str:
    method, path, *rest = call.split(" ", 2)
    if method == "PATCH":
        spec = json.loads(rest[0]).get("spec")
        return "mark" if spec is None else "cordon" if spec["unschedulable"] else "uncordon"
    if method == "POST":
        name = path.split("/")[6]
        return f"dry {name}" if path.endswith("?dryRun=All") else f"evict {name}"
    return ""
