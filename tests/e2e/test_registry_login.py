"""Story: nodes pull from a registry that asks who pulls; another password counts without a change of a node; without the login no pod starts."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Iterator

import pytest
import yaml

from stacks.releases import versions
from tests.e2e.harness import config, pods
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.closed_registry import ClosedRegistry
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

NAME = "test-login"
SUBNET = "10.93.152"
NODES = ("master-1", "worker-1")
PASSWORDS = ("a:first-password", "a:second-password")  # with what parts a user from one
SECRET = {
    "namespaces": ["kube-system"],
    "type": "kubernetes.io/dockerconfigjson",
    "data": {".dockerconfigjson": "login"},
}
SET = ("config", "set", "--secret", "--path", "kube-ha:addonSecrets.login")


def wanted() -> config.Config:
    return config.lab(NAME, f"{SUBNET}.0/24", masters=1, workers=1)


@pytest.fixture(scope="module")
def registry(cluster: Stack) -> Iterator[ClosedRegistry]:
    """At this computer's address in the lab, by HTTP, which containerd has to be told."""
    found = ClosedRegistry(f"{SUBNET}.1", f"{SUBNET}.2", f"ops:{PASSWORDS[0]}")
    cluster.edit("runtime.registryMirrors", {found.host: [f"http://{found.host}"]})
    with found.serving():
        yield found


def login(registry: ClosedRegistry, password: str) -> dict[str, object]:
    return {"auths": {registry.host: {"username": "ops", "password": password}}}


def set_login(stack: Stack, registry: ClosedRegistry, password: str) -> None:
    """As `pulumi config set` encrypts it."""
    stack.pulumi(*SET, json.dumps(login(registry, password)), "--stack", stack.name)
    given = yaml.safe_load(stack.file.read_text())["config"]
    stack.config["addonSecrets"] = given["kube-ha:addonSecrets"]
    stack.write()


def begin(stack: Stack, registry: ClosedRegistry, node: str, name: str) -> None:
    """A pod on that node that names no Secret, and pulls whatever is there."""
    image = f"{registry.host}/pause:{versions.for_kubernetes(config.kubernetes()).pause}"
    container = {"name": "pause", "image": image, "imagePullPolicy": "Always"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "containers": [container],
        },
    }
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(pod))


def end(stack: Stack, *names: str) -> None:
    stack.kubectl("delete", "pod", *names, "--wait=true", limit_s=60)


def waiting_for(stack: Stack, name: str) -> str:
    """Why its container does not run; empty: it runs."""
    path = "jsonpath={.status.containerStatuses[0].state}"
    state = json.loads(stack.kubectl("get", "pod", name, "-o", path) or "{}")
    return "" if "running" in state else str(state.get("waiting", {}).get("reason", "nothing"))


def test_without_a_login_no_pod_gets_the_image(cluster: Stack, registry: ClosedRegistry) -> None:
    cluster.up()
    begin(cluster, registry, "worker-1", "nobody")
    refused = ("ErrImagePull", "ImagePullBackOff")
    wait_for(
        "a pull that is refused",
        lambda: "" if waiting_for(cluster, "nobody") in refused else waiting_for(cluster, "nobody"),
        limit_s=60,
    )
    assert {*registry.seen} == {""}
    end(cluster, "nobody")


def test_a_login_that_lacks_a_registry_is_refused_before_anything_is_touched(
    cluster: Stack, registry: ClosedRegistry
) -> None:
    set_login(cluster, registry, PASSWORDS[0])
    said = {
        "hosts": [registry.host, "registry.example.com"],
        "secrets": {"registry-login": SECRET},
    }
    cluster.edit("addons.registry-login", said)
    with pods.untouched(cluster, NODES):
        failed = cluster.up(fails=True)
    assert "has no login at registry.example.com, which hosts of its add-on names" in failed.output
    assert PASSWORDS[0] not in failed.output
    cluster.edit("addons.registry-login.hosts", [registry.host])


def test_every_node_pulls_for_pods_that_name_no_secret(
    cluster: Stack, registry: ClosedRegistry
) -> None:
    words = " ".join(cluster.preview().output.split())
    assert "registries that the node logs in at (kubelet restarts, pods keep running)" in words
    update = cluster.up()
    cluster.took("up that lets 2 nodes log in at a registry", update.seconds)
    registry.seen.clear()
    for node in NODES:
        begin(cluster, registry, node, f"of-{node}")
    for node in NODES:
        waits = functools.partial(waiting_for, cluster, f"of-{node}")
        wait_for(f"the pod on {node}", waits, limit_s=60)
    assert {*registry.seen} == {"ops"}
    end(cluster, *(f"of-{node}" for node in NODES))
    assert_up_changes_nothing(cluster)


def test_another_password_counts_without_a_change_of_a_node(
    cluster: Stack, registry: ClosedRegistry
) -> None:
    registry.login = f"ops:{PASSWORDS[1]}"
    set_login(cluster, registry, PASSWORDS[1])
    with pods.untouched(cluster, NODES):
        update = cluster.up()
    addon = f"{NAME}-addon-registry-login"
    assert {*update.changes} == {addon, f"{addon}-file-1"}
    # A kubelet keeps an answer for ten minutes; one that starts has none.
    cluster.node("worker-1").run("systemctl restart kubelet")
    begin(cluster, registry, "worker-1", "again")
    wait_for("a pod by the other password", lambda: waiting_for(cluster, "again"), limit_s=90)
    end(cluster, "again")


def test_a_secret_that_somebody_deleted_is_named_in_the_journal_and_comes_back(
    cluster: Stack, registry: ClosedRegistry
) -> None:
    cluster.kubectl("-n", "kube-system", "delete", "secret", "registry-login")
    cluster.node("worker-1").run("systemctl restart kubelet")
    begin(cluster, registry, "worker-1", "without")

    def unsaid() -> str:
        told = cluster.node("worker-1").run(
            "journalctl -u kubelet --since -2min -g registry-login || true"
        )
        return "" if "HTTP 404" in told else told[-300:] or "nothing"

    wait_for("the reason in kubelet's journal", unsaid, limit_s=60)
    end(cluster, "without")
    cluster.edit("converge.generation", 2)
    cluster.up()
    begin(cluster, registry, "worker-1", "with")
    wait_for("a pod by the login that is back", lambda: waiting_for(cluster, "with"), limit_s=90)
    end(cluster, "with")


def test_no_password_is_on_a_node_or_in_what_was_said(
    cluster: Stack, registry: ClosedRegistry
) -> None:
    values = [json.dumps(login(registry, password)) for password in PASSWORDS]
    texts = [*PASSWORDS, *(base64.b64encode(one.encode()).decode() for one in values)]
    for node in cluster.nodes():
        for text in texts:
            places = "/root /home /etc /tmp /var/log /var/lib/kube-ha /var/lib/kubelet /run/kube-ha"
            found = node.run(f"grep -rlsF --exclude-dir=pods -- {text} {places} || true")
            assert found.strip() == "", f"{node}: {found}"
            said = node.run(f"journalctl --no-pager | grep -cF -- {text} || true")
            assert said.strip() == "0", node


def test_nothing_of_it_stays(cluster: Stack, registry: ClosedRegistry) -> None:
    cluster.edit("addons.registry-login", None)
    words = " ".join(cluster.preview().output.split())
    assert f"images of {registry.host} are pulled without the nodes' login" in words
    cluster.up()
    kinds = "secrets,roles,rolebindings"
    left = cluster.kubectl("-n", "kube-system", "get", kinds, "-o", "name").split()
    assert [one for one in left if one.endswith("/registry-login")] == []
    for name in NODES:
        folders = (
            "/etc/kube-ha/credential-providers.yaml /usr/local/lib/kube-ha/credential-providers"
        )
        assert cluster.node(name).run(f"ls -d {folders} 2>/dev/null || true").strip() == ""
    begin(cluster, registry, "worker-1", "nobody")
    wait_for(
        "a pull that is refused again",
        lambda: "" if waiting_for(cluster, "nobody") != "ContainerCreating" else "still pulling",
        limit_s=60,
    )
    assert waiting_for(cluster, "nobody") in ("ErrImagePull", "ImagePullBackOff")
