"""Story: a Helm chart as an add-on, with a Secret beside it: made, changed by a value, upgraded, compared, and taken out."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from stacks.releases import versions
from tests.e2e.harness import config
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.update import Update
from tests.e2e.harness.waiting import wait_for
from tests.unit.charts import HOOK, WIDGETS, packed

NAME = "test-chart"
SPACE = "shop"
KIND = "widgets.example.com"
VALUES = "kube-ha:addonSecrets"
FIRST, SECOND = "first-secret-of-the-shop", "second-secret-of-the-shop"
ADDON = f"{NAME}-addon-web"
AT_THE_END = {f"{NAME}-acceptance-attempt", f"{NAME}-nodes", f"{NAME}-gate"}
ALL_OF_IT = {ADDON, f"{ADDON}-file-1"} | AT_THE_END
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, labels: {helm.sh/chart: web-{{ .Chart.Version }}}}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: web
          image: {{ .Values.image }}
          envFrom: [{secretRef: {name: {{ .Values.secret }}}}]
"""
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {colour: {{ .Values.colour }}}\n"
WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one}\nspec: {size: 1}\n"


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with Stack("chart", config.lab(NAME, "10.93.136.0/24", masters=1, workers=1)) as stack:
        _set(stack, FIRST)
        stack.edit("addons.web", {"chart": _chart(stack, "1.0.0"), "secrets": _secret()})
        yield stack


def test_a_chart_with_hooks_is_refused_until_they_are_given_up(stack: Stack) -> None:
    refused = " ".join(stack.preview(fails=True).output.split())
    assert (
        "addons.web.chart.hooks: has hooks, which nothing here runs: Job web-migrate (pre-upgrade)"
        in refused
    )
    stack.edit("addons.web.chart.hooks", "skip")


def test_the_cluster_is_made_with_it(stack: Stack) -> None:
    update = stack.up()
    stack.took("up of 1 master and 1 worker with a chart", update.seconds)
    wait_for("pod of the chart", lambda: _unready(stack, 1), limit_s=90)
    assert _get(stack, KIND, "one")["spec"] == {"size": 1}
    assert _get(stack, "configmap", "settings")["data"] == {"colour": "red"}
    assert _value(stack) == FIRST
    assert _jobs(stack) == ""
    assert stack.up().changes == {}
    assert _drift(stack) == []


def test_a_value_changes_what_it_is_for(stack: Stack) -> None:
    pods = _pods(stack)
    stack.edit("addons.web.chart.values.colour", "blue")
    words = " ".join(stack.preview().output.split())
    assert (
        "web: is applied as helm renders " in words or "web: applied as helm renders " in words
    ), words
    update = _up(stack, touches=ALL_OF_IT)
    stack.took("up with one value of the chart changed", update.seconds)
    assert _get(stack, "configmap", "settings")["data"] == {"colour": "blue"}
    assert _pods(stack) == pods


def test_another_value_of_the_secret_is_told_and_applied_and_restarts_nothing(stack: Stack) -> None:
    pods = _pods(stack)
    _set(stack, SECOND)
    stack.write()
    words = " ".join(stack.preview().output.split())
    assert "Change value key of addonSecrets" in words, words
    assert f"Secret {SPACE}/web-key changes" in words, words
    _up(stack, touches={ADDON, f"{ADDON}-file-1"})
    assert _value(stack) == SECOND
    assert _pods(stack) == pods
    assert _drift(stack) == []


def test_drift_names_what_somebody_deleted_or_wrote_over(stack: Stack) -> None:
    stack.kubectl("-n", SPACE, "delete", "configmap", "settings")
    other = json.dumps({"stringData": {"KEY": "of somebody else"}})
    stack.kubectl("-n", SPACE, "patch", "secret", "web-key", "-p", other)
    assert sorted(_drift(stack)) == [
        f"ConfigMap {SPACE}/settings of add-on web is missing",
        f"Secret {SPACE}/web-key of add-on web differs from the plan",
    ]


def test_another_version_puts_right_what_drifted_and_what_it_lacks_is_deleted(stack: Stack) -> None:
    chart = {**_chart(stack, "2.0.0"), "hooks": "skip"}
    chart["values"] = {**chart["values"], "replicas": 2, "colour": "blue"}
    stack.edit("addons.web.chart", chart)
    words = " ".join(stack.preview().output.split())
    assert f"deleted at the end: Widget {SPACE}/one" in words, words
    _up(stack, touches=ALL_OF_IT)
    wait_for("pods of the newer chart", lambda: _unready(stack, 2), limit_s=90)
    labels = _get(stack, "deployment", "web")["metadata"]["labels"]
    assert labels == {"helm.sh/chart": "web-2.0.0"}
    assert not _is_there(stack, KIND, "one")
    assert stack.up().changes == {}
    assert (_get(stack, "configmap", "settings")["data"], _value(stack)) == (
        {"colour": "blue"},
        SECOND,
    )
    assert _drift(stack) == []


def test_no_value_of_a_secret_is_where_it_does_not_belong(stack: Stack) -> None:
    texts = [
        form for one in (FIRST, SECOND) for form in (one, base64.b64encode(one.encode()).decode())
    ]
    here = [
        *stack.evidence.rglob("*"),
        stack.file,
        stack.state_file,
        *(ROOT / ".local/contents").glob("*"),
    ]
    for file in here:
        if file.is_file():
            found = file.read_text(errors="replace")
            assert not [text for text in texts if text in found], file
    # Nor on disks of the machines, where files of kube-ha are, and what its phases print. The container has its own.
    for node in stack.nodes():
        for text in texts:
            places = "/root /home /etc /tmp /var/log /var/lib/kube-ha /run/kube-ha"
            assert node.run(f"grep -rlsF -- {text} {places} || true").strip() == "", node
            assert node.run(f"journalctl --no-pager | grep -cF -- {text} || true").strip() == "0", (
                node
            )


def test_nothing_of_it_stays_but_what_others_may_need(stack: Stack) -> None:
    stack.edit("addons.web", None)
    words = " ".join(stack.preview().output.split())
    kept = f"kept, for you to delete: Namespace {SPACE}, CustomResourceDefinition {KIND}"
    assert kept in words, words
    _up(stack, touches=ALL_OF_IT)
    for kind, name in (("deployment", "web"), ("configmap", "settings"), ("secret", "web-key")):
        assert not _is_there(stack, kind, name)
    assert _is_there(stack, "namespace", SPACE)
    assert _is_there(stack, "crd", KIND)
    copies = stack.node("master-1").run("ls -a ~admin/.kube-ha ~root/.kube-ha 2>/dev/null || true")
    assert "addon.web." not in copies
    assert "configmaps" not in stack.kubectl(
        "-n", "kube-system", "get", "configmaps", "-l", "kube-ha.io/addon", "-o", "name"
    )


def _chart(stack: Stack, version: str) -> dict[str, Any]:
    """The second version has no widget any more; both have a hook that would fail."""
    older = {} if version == "2.0.0" else {"widget": WIDGET}
    templates = {"web": DEPLOYMENT, "settings": SETTINGS, "migrate": HOOK % "pre-upgrade", **older}
    file = stack.folder / f"web-{version}.tgz"
    said = packed(file, templates, version=version, crds={"widgets": WIDGETS})
    image = f"registry.k8s.io/pause:{versions.for_kubernetes(config.kubernetes()).pause}"
    return {
        **said,
        "file": str(file.relative_to(ROOT)),
        "namespace": SPACE,
        "createNamespace": True,
        "values": {"replicas": 1, "image": image, "secret": "web-key"},
    }


def _secret() -> dict[str, object]:
    return {"web-key": {"namespaces": [SPACE], "data": {"KEY": "key"}}}


def _set(stack: Stack, text: str) -> None:
    """As `pulumi config set` encrypts it."""
    stack.pulumi(
        "config", "set", "--secret", "--path", f"{VALUES}.key", text, "--stack", stack.name
    )
    given = yaml.safe_load(stack.file.read_text())["config"]
    stack.config["addonSecrets"] = given[VALUES]


def _up(stack: Stack, *, touches: set[str]) -> Update:
    """An update that changes these resources and no others."""
    update = stack.up()
    assert set(update.changes) == touches
    return update


def _drift(stack: Stack) -> list[str]:
    command = [sys.executable, "-m", "operations.drift", stack.name, "--json"]
    done = subprocess.run(
        command, cwd=ROOT, env=stack.environment, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert FIRST not in done.stdout
    assert SECOND not in done.stdout
    told = json.loads(done.stdout)
    assert told["notes"] == []
    return [one["text"] for one in told["clusterDifferences"]]


def _get(stack: Stack, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.kubectl("-n", SPACE, "get", kind, name, "-o", "json"))
    return found


def _is_there(stack: Stack, kind: str, name: str) -> bool:
    return bool(stack.kubectl("-n", SPACE, "get", kind, name, "--ignore-not-found", "-o", "name"))


def _value(stack: Stack) -> str:
    return base64.b64decode(_get(stack, "secret", "web-key")["data"]["KEY"]).decode()


def _pods(stack: Stack) -> list[str]:
    path = "jsonpath={.items[*].metadata.uid}"
    return sorted(stack.kubectl("-n", SPACE, "get", "pods", "-o", path).split())


def _jobs(stack: Stack) -> str:
    return stack.kubectl("-n", SPACE, "get", "jobs", "-o", "name").strip()


def _unready(stack: Stack, wanted: int) -> str:
    status = _get(stack, "deployment", "web").get("status", {})
    return "" if status.get("readyReplicas") == wanted else str(status)
