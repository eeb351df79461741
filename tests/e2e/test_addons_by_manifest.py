"""Story: an add-on of the user's, by files beside the stack: made with the cluster, changed, an object taken out, and all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import yaml

from stacks.releases import versions
from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import ROOT, LabError
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update
from tests.e2e.harness.waiting import wait_for

NAME = "test-manifests"
SPACE = "gadgets"
KIND = "widgets.example.com"
ADDON = f"{NAME}-addon-gadgets"
AT_THE_END = {f"{NAME}-acceptance-attempt", f"{NAME}-nodes", f"{NAME}-gate"}
# Its one file is copied under the name of its content, then applied.
ALL_OF_IT = {ADDON, f"{ADDON}-file-1"} | AT_THE_END


def wanted() -> config.Config:
    return config.lab(NAME, "10.93.86.0/24", masters=1, workers=1)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.config["addons"] = {"gadgets": {"manifests": [_write(stack, _documents())]}}
    stack.write()
    return stack


def test_the_cluster_is_made_with_it(stack: Stack) -> None:
    update = stack.up()
    stack.took("up of 1 master and 1 worker with an add-on", update.seconds)
    assert _get(stack, KIND, "first")["spec"] == {"size": 1}
    assert _get(stack, "configmap", "settings")["data"] == {"colour": "blue"}
    wait_for("pod of the add-on", lambda: _unready(stack), limit_s=60)
    assert _list(stack) == [
        f"Widget.example.com {SPACE} first",
        f"ConfigMap {SPACE} settings",
        f"Deployment.apps {SPACE} gadget",
        f"Namespace default {SPACE}",
        f"CustomResourceDefinition.apiextensions.k8s.io default {KIND}",
    ]
    assert_up_changes_nothing(stack)


def test_a_change_of_the_file_is_shown_and_applied(stack: Stack) -> None:
    pods = _pods(stack)
    _write(stack, _documents(colour="red"))
    words = " ".join(stack.preview().output.split())
    assert "gadgets: applied from " in words, words
    update = _up(stack, touches=ALL_OF_IT)
    stack.took("up with one object changed", update.seconds)
    assert _get(stack, "configmap", "settings")["data"] == {"colour": "red"}
    assert _pods(stack) == pods


def test_what_is_taken_out_of_the_file_is_deleted(stack: Stack) -> None:
    pods = _pods(stack)
    # What somebody else made beside it is none of the add-on's.
    stack.kubectl("-n", SPACE, "create", "configmap", "of-somebody-else")
    _write(stack, _documents(without=("settings", "first")))
    words = " ".join(stack.preview().output.split())
    assert f"deleted at the end: Widget {SPACE}/first, ConfigMap {SPACE}/settings" in words, words
    _up(stack, touches=ALL_OF_IT)
    assert not _is_there(stack, KIND, "first")
    assert not _is_there(stack, "configmap", "settings")
    assert _is_there(stack, "configmap", "of-somebody-else")
    assert _pods(stack) == pods


def test_an_add_on_that_leaves_is_deleted_but_for_what_others_may_need(stack: Stack) -> None:
    stack.config["addons"] = {}
    stack.write()
    words = " ".join(stack.preview().output.split())
    assert f"gadgets: leaves; deleted at the end: Deployment {SPACE}/gadget" in words, words
    kept = f"kept, for you to delete: Namespace {SPACE}, CustomResourceDefinition {KIND}"
    assert kept in words, words
    _up(stack, touches=ALL_OF_IT)
    assert not _is_there(stack, "deployment", "gadget")
    assert _is_there(stack, "namespace", SPACE)
    assert _is_there(stack, "crd", KIND)
    assert _is_there(stack, "configmap", "of-somebody-else")
    assert "configmaps" not in stack.kubectl(
        "-n", "kube-system", "get", "configmaps", "-l", "kube-ha.io/addon", "-o", "name"
    )


def _up(stack: Stack, *, touches: set[str]) -> Update:
    """An update that changes these resources, and one more that changes nothing."""
    update = stack.up()
    assert set(update.changes) == touches
    assert stack.up().changes == {}
    return update


def _write(stack: Stack, documents: Sequence[object]) -> str:
    """The add-on's file, as the config names it: relative to the project."""
    file = stack.folder / "gadgets.yaml"
    file.write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return str(file.relative_to(ROOT))


def _documents(*, colour: str = "blue", without: Sequence[str] = ()) -> list[dict[str, Any]]:
    """What needs something stands before it: an object of a kind that is defined last."""
    image = f"registry.k8s.io/pause:{versions.for_kubernetes(config.kubernetes()).pause}"
    labels = {"app": "gadget"}
    every = [
        _object("example.com/v1", "Widget", "first", SPACE, spec={"size": 1}),
        _object("v1", "ConfigMap", "settings", SPACE, data={"colour": colour}),
        _object(
            "apps/v1",
            "Deployment",
            "gadget",
            SPACE,
            spec={
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "terminationGracePeriodSeconds": 1,
                        "containers": [{"name": "gadget", "image": image}],
                    },
                },
            },
        ),
        _object("v1", "Namespace", SPACE, ""),
        _object(
            "apiextensions.k8s.io/v1", "CustomResourceDefinition", KIND, "", spec=_definition()
        ),
    ]
    return [one for one in every if one["metadata"]["name"] not in without]


def _object(api: str, kind: str, name: str, namespace: str, **rest: object) -> dict[str, Any]:
    where = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **where}, **rest}


def _definition() -> dict[str, object]:
    size = {"type": "object", "properties": {"size": {"type": "integer"}}}
    schema = {"type": "object", "properties": {"spec": size}}
    return {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        ],
    }


def _get(stack: Stack, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.kubectl("-n", SPACE, "get", kind, name, "-o", "json"))
    return found


def _is_there(stack: Stack, kind: str, name: str) -> bool:
    return bool(stack.kubectl("-n", SPACE, "get", kind, name, "--ignore-not-found", "-o", "name"))


def _pods(stack: Stack) -> list[str]:
    path = "jsonpath={.items[*].metadata.uid}"
    return sorted(stack.kubectl("-n", SPACE, "get", "pods", "-o", path).split())


def _unready(stack: Stack) -> str:
    try:
        status = _get(stack, "deployment", "gadget").get("status", {})
    except LabError as error:
        return str(error)
    return "" if status.get("readyReplicas") == 1 else str(status)


def _list(stack: Stack) -> list[str]:
    """What the cluster knows to be of the add-on."""
    path = "jsonpath={.data.objects}"
    words = ("-n", "kube-system", "get", "configmap", "kube-ha-addon-gadgets", "-o", path)
    return stack.kubectl(*words).splitlines()
