"""Every add-on of the catalogue, whatever it is; and what is particular of each."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from artifacts import lock
from stacks.catalogue import registry
from stacks.cluster import artifacts, user_addons
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.config.problems import SpecError
from stacks.edits import memory
from stacks.explain import changes
from stacks.load import load
from stacks.phases import gate, manifests
from stacks.phases.scripts import STDIN_LIMIT
from stacks.releases import versions
from stacks.render import containerd
from tests.unit.configs import adopted, lab

NAMES = sorted(registry.ENTRIES)
RUNNING = [name for name in NAMES if registry.ENTRIES[name].ROLLOUTS]
# What an add-on has to be told, and what a cluster has to have for it.
NEEDED: dict[str, dict[str, object]] = {
    "default-deny": {"namespaces": ["shop", "bank"]},
    "metallb": {"addresses": ["10.92.0.240-10.92.0.250"]},
    "registry-login": {
        "hosts": ["registry.example.com"],
        "secrets": {
            "registry-login": {
                "namespaces": ["kube-system"],
                "type": "kubernetes.io/dockerconfigjson",
                "data": {".dockerconfigjson": "login"},
            }
        },
    },
}
# What a pod has to be more than nobody for, by name of the container: answering ARP takes raw sockets, and these root.
RAW = {"speaker": {"add": ["NET_RAW"], "drop": ["ALL"]}}
# What stays for people to delete: what others have put into it would go along.
KEPT: dict[str, set[str]] = {
    "local-path": {"StorageClass.storage.k8s.io"},
    "metallb": {"CustomResourceDefinition.apiextensions.k8s.io", "Namespace"},
    "traefik": {"Namespace"},
}
BESIDE: dict[str, dict[str, object]] = {
    "default-deny": {"network.plugin": "cilium"},
    "registry-login": {"addonSecrets": {"login": {"secure": "v1:x"}}},
    "traefik": {
        "frontDoors": {"vip": {"address": "10.92.0.5"}, "ingress": {"hosts": ["shop.example.com"]}}
    },
}
# By add-on, whose containers are root, without a capability: logs are files of root's alone.
ROOT = {"logs": {"logs-collector-control-plane", "logs-collector-worker"}}


def made(name: str, **said: object) -> Plan:
    beside = BESIDE.get(name, {})
    return plan(load(lab({"addons": {name: NEEDED.get(name, {})}, **beside, **said})))


def images(name: str, one: Plan) -> set[str]:
    (addon,) = one.addons
    return set(re.findall(r'^ *(?:- )?image: "(\S+)"$', addon.text, re.MULTILINE))


@pytest.mark.parametrize("name", RUNNING)
def test_no_pod_starts_before_the_password_that_is_made_for_it(name: str) -> None:
    """What a Secret gets after it is made is waited for by its keys alone."""
    (addon,) = made(name).addons
    listed = [one for one in yaml.safe_load_all(addon.text) if one]
    later = {
        one["metadata"]["name"]
        for one in listed
        if one["kind"] == "Secret"
        and "kube-ha.io/basic-auth" in one["metadata"].get("annotations", {})
    }
    assert bool(later) == (name in ("logs", "prometheus"))
    pods = [one["spec"]["template"]["spec"] for one in listed if "template" in one.get("spec", {})]
    volumes = [
        volume["secret"] for pod in pods for volume in pod.get("volumes", []) if "secret" in volume
    ]
    mounted = [volume for volume in volumes if volume["secretName"] in later]
    assert {volume["secretName"] for volume in mounted} == later
    assert all(volume.get("items") for volume in mounted)


@pytest.mark.parametrize("name", RUNNING)
@pytest.mark.parametrize("kubernetes", versions.known())
def test_its_images_are_those_of_the_lock_and_of_a_bundle_that_is_made_for_it(
    name: str, kubernetes: str
) -> None:
    found = images(name, made(name, **{"cluster.kubernetes": kubernetes}))
    bare = {image.ref for image in lock.read(kubernetes, "amd64").images}
    also = {image.ref for image in lock.read(kubernetes, "amd64", also=[("addon", name)]).images}
    with_it = artifacts.images(made(name, **{"cluster.kubernetes": kubernetes})).values()
    without = artifacts.images(plan(load(lab({"cluster.kubernetes": kubernetes})))).values()
    assert found
    assert found == also - bare
    assert found == {image.ref for image in with_it} - {image.ref for image in without}


@pytest.mark.parametrize("name", NAMES)
def test_no_pod_of_it_may_more_than_it_has_to(name: str) -> None:
    for document in yaml.safe_load_all(made(name).addons[0].text):
        if document["kind"] not in ("Deployment", "DaemonSet", "StatefulSet"):
            continue
        pod = document["spec"]["template"]["spec"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        reads = document["metadata"]["name"] in ROOT.get(name, set())
        is_root = reads or any(container["name"] in RAW for container in pod["containers"])
        assert pod["securityContext"].get("runAsNonRoot", False) is not is_root
        assert not reads or pod["securityContext"]["runAsUser"] == 0
        for container in pod["containers"]:
            own = container["securityContext"]
            assert own["allowPrivilegeEscalation"] is False
            assert own["capabilities"] == RAW.get(container["name"], {"drop": ["ALL"]})
            assert own["readOnlyRootFilesystem"] is True
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}


@pytest.mark.parametrize("name", RUNNING)
def test_the_gate_waits_for_what_it_runs(name: str) -> None:
    one = made(name)
    own = {
        f"{o.namespace}/{o.kind.partition('.')[0].lower()}/{o.name}"
        for o in one.addons[0].objects
        if o.kind in ("Deployment.apps", "DaemonSet.apps", "StatefulSet.apps")
    }
    waited = set(gate.of_gate(one)["DEPLOYMENTS"].split())
    assert own
    assert own <= waited
    assert not own & set(gate.of_gate(plan(load(lab())))["DEPLOYMENTS"].split())


@pytest.mark.parametrize("name", NAMES)
def test_all_that_it_makes_goes_with_it_and_fits_into_a_command(name: str) -> None:
    one = made(name)
    kept = {each.kind for each in user_addons.kept(one.addons[0].objects)}
    assert kept == KEPT.get(name, set())
    assert sum(map(len, manifests.manifests(one, one.addons[0]).values())) < STDIN_LIMIT / 2


@pytest.mark.parametrize("name", NAMES)
def test_a_stack_that_remembers_it_has_nothing_to_do(name: str) -> None:
    before = memory.read(json.loads(json.dumps(memory.of(made(name)))))
    assert changes.changes(before, made(name)).addons == ()
    # One more worker is nothing to it.
    grown = changes.changes(before, made(name, **{"pools.worker.count": 5})).addons
    assert name not in dict(grown)


@pytest.mark.parametrize("name", NAMES)
def test_that_a_timer_puts_it_back_is_told_and_changes_nothing_else(name: str) -> None:
    kept = {name: {**NEEDED.get(name, {}), "reconcile": True}}
    without, with_it = made(name), made(name, addons=kept)
    assert without.addons == with_it.addons
    for was, now, words in (
        (without, with_it, "put back every 5 minutes from now on"),
        (with_it, without, "no longer put back between updates"),
    ):
        before = memory.read(json.loads(json.dumps(memory.of(was))))
        found = changes.changes(before, now)
        assert found.addons == ((name, words),)
        assert found.nodes == ()


@pytest.mark.parametrize("name", NAMES)
def test_manifests_under_its_name_are_the_users_own(name: str) -> None:
    said = {"addons": {name: {"manifests": ["examples/addons/defaults.yaml"]}}}
    one = plan(load(lab(said)))
    assert one.addons[0].text == ""
    assert artifacts.images(one) == artifacts.images(plan(load(lab())))


def test_an_add_on_that_runs_nothing_has_no_workload_and_no_image() -> None:
    bare = {
        "default-deny": {"NetworkPolicy.networking.k8s.io"},
        "registry-login": {
            "Secret",
            *(f"{kind}.rbac.authorization.k8s.io" for kind in ("Role", "RoleBinding")),
        },
    }
    for name in {*NAMES} - {*RUNNING}:
        one = made(name)
        assert {each.kind for each in one.addons[0].objects} == bare[name]
        assert images(name, one) == set()


def test_a_name_that_is_not_in_it_needs_files() -> None:
    with pytest.raises(SpecError) as refused:
        load(lab({"addons": {"nobody": {}}}))
    ((path, text),) = refused.value.problems
    assert path == "addons.nobody.manifests"
    assert ", ".join(registry.ENTRIES) in text


def test_objects_of_it_in_a_file_of_the_users_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    name = "metadata: {name: metrics-server, namespace: kube-system}"
    file.write_text(f"apiVersion: v1\nkind: Service\n{name}\n")
    with pytest.raises(SpecError) as refused:
        load(lab({"addons": {"metrics-server": {}, "mine": {"manifests": [str(file)]}}}))
    assert [problem.path for problem in refused.value.problems] == ["addons.mine"]


def test_metrics_server_is_refused_where_kubelets_sign_themselves() -> None:
    with pytest.raises(SpecError) as refused:
        load(lab({"addons": {"metrics-server": {}}, "kubelet.servingCertificates": "self-signed"}))
    assert [problem.path for problem in refused.value.problems] == ["addons.metrics-server"]
    assert "kubelet.servingCertificates" in refused.value.problems[0].text


@pytest.mark.parametrize(("masters", "replicas"), [(1, 1), (3, 2), (5, 2)])
def test_metrics_server_runs_twice_where_there_is_more_than_one_control_plane_node(
    masters: int, replicas: int
) -> None:
    text = made("metrics-server", **{"pools.master.count": masters}).addons[0].text
    (deployment,) = (one for one in yaml.safe_load_all(text) if one["kind"] == "Deployment")
    assert deployment["spec"]["replicas"] == replicas


def test_a_setting_of_another_add_on_is_refused_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    wanted = {
        "local-path": {"default": True, "path": "/var/volumes"},
        "metrics-server": {"default": True},
        "mine": {"manifests": [str(file)], "path": "/var/volumes"},
    }
    with pytest.raises(SpecError) as refused:
        load(lab({"addons": wanted}))
    assert [problem.path for problem in refused.value.problems] == [
        "addons.metrics-server.default",
        "addons.mine.path",
    ]


@pytest.mark.parametrize("path", ["/", "/etc", "volumes", "/var/../etc", "/var//x", "/var/$(x)"])
def test_local_path_writes_into_a_folder_of_its_own(path: str) -> None:
    with pytest.raises(SpecError, match=r"addons\.local-path\.path"):
        load(lab({"addons": {"local-path": {"path": path}}}))


def local_path(**said: object) -> dict[str, Any]:
    """Its objects by kind, of those that are there once."""
    text = plan(load(lab({"addons": {"local-path": said}}))).addons[0].text
    return {one["kind"]: one for one in yaml.safe_load_all(text)}


def test_local_path_is_the_default_class_where_the_config_says_so() -> None:
    mark = "storageclass.kubernetes.io/is-default-class"

    def marked(**said: object) -> object:
        return local_path(**said)["StorageClass"]["metadata"]["annotations"][mark]

    assert (marked(), marked(default=True)) == ("false", "true")


def test_local_path_starts_again_with_another_folder() -> None:
    def template(**said: object) -> str:
        return str(local_path(**said)["Deployment"]["spec"])

    assert template() == template(default=True)
    assert template() != template(path="/var/volumes")
    data = local_path(path="/var/volumes")["ConfigMap"]["data"]
    assert json.loads(data["config.json"])["nodePathMap"][0]["paths"] == ["/var/volumes"]


def test_a_mirror_is_asked_first_for_what_is_of_a_registry_of_everybodys() -> None:
    """And by no means alone: users have images of their own there."""
    said: dict[str, object] = {"addons": {"local-path": {}}}
    hosts = containerd.hosts(plan(load(lab(said))))
    mirror = plan(load(lab())).mirror
    assert mirror
    assert hosts["docker.io"].startswith(f'[host."{mirror.registry}"]')
    assert "server" not in hosts["docker.io"]
    assert "docker.io" not in containerd.hosts(plan(load(lab())))
    said |= {"runtime.registryMirrors": {"docker.io": ["http://10.0.0.9:5000"]}}
    both = containerd.hosts(plan(load(lab(said))))["docker.io"]
    assert both.index(mirror.registry) < both.index("http://10.0.0.9:5000")
    said |= {"runtime.registryMirrors": {"docker.io": [mirror.registry]}}
    once = tomllib.loads(containerd.hosts(plan(load(lab(said))))["docker.io"])
    assert [*once["host"]] == [mirror.registry]
    assert "docker.io" not in containerd.hosts(plan(load(adopted({"addons": {"local-path": {}}}))))


def test_toolbox_is_kept_on_all_nodes_or_on_those_of_its_labels() -> None:
    def pod(said: dict[str, object]) -> dict[str, Any]:
        text = plan(load(lab({"addons": {"toolbox": said}}))).addons[0].text
        return dict(yaml.safe_load(text)["spec"]["template"]["spec"])

    assert "nodeSelector" not in pod({})
    assert pod({"nodes": {"tier": "edge"}})["nodeSelector"] == {"tier": "edge"}
    # Whatever keeps others from a node: that is where it will be asked for.
    assert pod({})["tolerations"] == [{"operator": "Exists"}]
    assert pod({})["automountServiceAccountToken"] is False
    with pytest.raises(SpecError, match=r"addons\.local-path\.nodes"):
        load(lab({"addons": {"local-path": {"nodes": {"tier": "edge"}}}}))
