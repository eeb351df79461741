"""What becomes of the pods of nodes in maintenance: evicted, or kept while the node is down."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

import pytest

from tests.scripts import node_list
from tests.scripts.node_api import FOR_EVER, NodeApi
from tests.scripts.shell import Shell
from tests.scripts.test_nodes import VALUES, changing

# Nodes in nodes, pods in pods-of-it.json. `conflicts` patches are refused, as of pods that have just changed.
_KUBECTL = f"""#!{sys.executable}
import json, pathlib, sys
here = pathlib.Path(__file__).parents[1]
words = sys.argv[1:]
with open(here / "calls", "a") as log:
    log.write(" ".join(["kubectl", *words]) + "\\n")
def merge(old, new):
    for key, value in new.items():
        if value is None:
            old.pop(key, None)
        elif isinstance(value, dict):
            merge(old.setdefault(key, {{}}), value)
        else:
            old[key] = value
pods = here / "pods-of-it.json"
if "nodes" in words or words[-1] == "worker-1" and "get" in words:
    print((here / "nodes").read_text())
elif "view" in words:
    print("a2V5", end="")
elif "pods" in words:
    print(pods.read_text())
elif "patch" in words:
    conflicts = here / "conflicts"
    left = int(conflicts.read_text()) if conflicts.exists() else 0
    if left:
        conflicts.write_text(str(left - 1))
        sys.exit("Operation cannot be fulfilled on pods: the object has been modified")
    listed = json.loads(pods.read_text())
    [one] = [p for p in listed["items"] if [p["metadata"]["namespace"], p["metadata"]["name"]] == [words[words.index("-n") + 1], words[-1]]]
    patch = json.loads(words[words.index("-p") + 1])
    assert patch["metadata"].pop("resourceVersion") == one["metadata"]["resourceVersion"]
    merge(one, patch)
    pods.write_text(json.dumps(listed))
"""
DRAIN = {"MAINTENANCE": "worker-[1-1]", "EMPTIED": "worker-[1-1]", "DRAIN": "always 300 -"}
KEPT = {"MAINTENANCE": "worker-[1-1]", "KEPT": "worker-[1-1]\t3600"}
CORDON = ["annotate -- node worker-1 kube-ha.io/maintenance=true", "cordon -- worker-1"]


def maintain(
    shell: Shell,
    wanted: Mapping[str, str],
    *,
    worker: Mapping[str, str] | None = None,
    fails: bool = False,
    soon: bool = False,
) -> str:
    """What the list of nodes says; `worker` is what its Node says; `soon`: what is refused once is refused for good."""
    one = node_list.one("worker-1", **{"ready": "True", **(worker or {})})
    (shell.folder / "nodes").write_text(node_list.listed(one))
    kubectl = shell.folder / "bin/kubectl"
    kubectl.parent.mkdir(exist_ok=True)
    kubectl.write_text(_KUBECTL)
    kubectl.chmod(0o755)
    code = f"KEYS={shell.folder}/keys; "
    if soon:
        code += "eval \"$(declare -f try_evictions | sed 's/SECONDS + 60/SECONDS/')\"; "
    out = shell.run(
        code + "maintain_nodes", phase="nodes", values={**VALUES, **wanted}, fails=fails
    )
    assert not (shell.folder / "keys").exists()
    return out


def toleration(key: str, seconds: int | None, effect: str = "NoExecute") -> dict[str, object]:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect, **limit}


BOTH = (toleration("not-ready", 300), toleration("unreachable", 300))


def pod(name: str, *tolerations: object, **metadata: object) -> dict[str, object]:
    own = {"namespace": "shop", "name": name, "resourceVersion": "7", "annotations": {}, **metadata}
    return {"metadata": own, "spec": {"tolerations": list(tolerations)}}


def held(shell: Shell, *pods: dict[str, object]) -> None:
    (shell.folder / "pods-of-it.json").write_text(json.dumps({"items": pods}))


def seconds(shell: Shell) -> dict[str, Sequence[object]]:
    """How long each pod tolerates what, in the order of its tolerations."""
    found = json.loads((shell.folder / "pods-of-it.json").read_text())["items"]
    return {
        one["metadata"]["name"]: [t.get("tolerationSeconds") for t in one["spec"]["tolerations"]]
        for one in found
    }


def test_pods_are_evicted_once_the_node_takes_no_new_ones(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    api.pod("agent", owner="DaemonSet")
    maintain(shell, DRAIN)
    assert api.steps == ["dry web-1", "evict web-1"]
    assert api.pods == {"agent"}
    tried, cordoned, evicted = (
        next(number for number, call in enumerate(shell.calls) if word in call)
        for word in ("dryRun=All", "cordon --", "web-1/eviction {")
    )
    assert tried < cordoned < evicted


def test_a_node_whose_pods_would_not_go_is_not_cordoned(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    api.block(**{"web-1": FOR_EVER})
    out = maintain(shell, DRAIN, fails=True, soon=True)
    assert "no node was touched: on worker-1 default/web-1 (HTTP 429" in out
    assert "or take out nodes.NAME.drain; then run pulumi up again" in out
    assert changing(shell) == []


def test_pods_that_stay_are_named_and_the_node_stays_cordoned(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1", ending=True)
    out = maintain(shell, {**DRAIN, "DRAIN": "always 1 -"}, fails=True)
    assert (
        "pods are still on worker-1 after 1 s, it stays cordoned: default/web-1 (is ending)" in out
    )
    assert changing(shell) == CORDON


def test_a_node_that_is_down_is_cordoned_and_nobody_waits_for_its_pods(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1", ending=True)
    out = maintain(shell, DRAIN, worker={"ready": "Unknown"})
    assert "WARNING unresponsive, so their pods are not evicted: worker-1" in out
    assert api.steps == []
    assert changing(shell) == CORDON


def test_an_empty_node_needs_nothing_more(shell: Shell) -> None:
    NodeApi.of(shell)
    maintain(shell, DRAIN, worker={"maintenance": "true", "cordoned": "true"})
    assert changing(shell) == []


def test_pods_stay_as_long_as_the_config_says_and_tolerate_as_before_afterwards(
    shell: Shell,
) -> None:
    other = {"key": "gpu", "operator": "Equal", "value": 'a"\\b', "effect": "NoSchedule"}
    pods = (
        pod("web", other, *BOTH),
        pod("short", toleration("unreachable", 5), toleration("not-ready", 9000)),
        pod("patient", toleration("unreachable", None), toleration("not-ready", 7200)),
        pod("agent", {"operator": "Exists"}),
        pod("none"),
    )
    held(shell, *pods)
    maintain(shell, KEPT)
    assert seconds(shell) == {
        "web": [None, 3600, 3600], "short": [3600, 9000], "patient": [None, 7200], "agent": [None], "none": []
    }  # fmt: skip
    assert changing(shell) == [
        *CORDON,
        "annotate --overwrite -- node worker-1 kube-ha.io/kept=3600",
    ]
    shell.forget()
    during = {"maintenance": "true", "cordoned": "true", "kept": "3600"}
    maintain(shell, KEPT, worker=during)
    assert changing(shell) == [call for call in shell.calls if " patch " in call] == []
    maintain(shell, {**KEPT, "KEPT": "worker-[1-1]\t600"}, worker=during)
    assert seconds(shell)["web"] == [None, 600, 600]
    assert seconds(shell)["short"] == [600, 9000], "what it was before is known"
    maintain(shell, {}, worker=during)
    assert json.loads((shell.folder / "pods-of-it.json").read_text())["items"] == list(pods)
    assert changing(shell)[-1] == "annotate -- node worker-1 kube-ha.io/kept-"


def test_a_run_that_was_cut_off_is_repeated(shell: Shell) -> None:
    """The mark on the Node is there before the first pod changes, and until the last one is as it was."""
    held(
        shell,
        pod("web", *BOTH),
        pod("api", *BOTH, annotations={"kube-ha.io/tolerated": "not-ready=30,unreachable=40"}),
    )
    maintain(shell, {}, worker={"kept": "3600"})
    assert seconds(shell) == {"web": [300, 300], "api": [30, 40]}


def test_a_pod_that_has_just_changed_is_read_again(shell: Shell) -> None:
    held(shell, pod("web", *BOTH))
    (shell.folder / "conflicts").write_text("1")
    maintain(shell, KEPT)
    assert seconds(shell) == {"web": [3600, 3600]}


@pytest.mark.parametrize(
    "one",
    [
        pod("leaving", *BOTH, deletionTimestamp="now"),
        pod("static", *BOTH, annotations={"kubernetes.io/config.mirror": "x"}),
        pod("twice", *BOTH, {**BOTH[0], "operator": "Equal", "tolerationSeconds": 7}),
        pod("--all", *BOTH),
        pod("x", *BOTH, namespace="a\tb"),
    ],
    ids=lambda one: str(one["metadata"]["name"]),
)
def test_other_pods_are_left_alone(shell: Shell, one: dict[str, object]) -> None:
    held(shell, one)
    maintain(shell, KEPT)
    assert not [call for call in shell.calls if " patch " in call]


@pytest.mark.parametrize(
    "said",
    [
        "unreachable=1e9",
        "unreachable=-1",
        "unreachable=5\nnot-ready=5",
        "x",
        ["unreachable=5"],
        7,
        None,
    ],
)
def test_what_others_wrote_where_we_note_is_not_taken(shell: Shell, said: object) -> None:
    held(shell, pod("web", *BOTH, annotations={"kube-ha.io/tolerated": said}))
    maintain(shell, {}, worker={"kept": "3600"})
    assert seconds(shell) == {"web": [300, 300]}
