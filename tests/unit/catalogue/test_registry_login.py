"""registry-login: who may read the login, which kubelets ask for it, and what a reviewer is told."""

from __future__ import annotations

import json

import pytest
import yaml

from stacks.checks import addon_secrets
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.load import load
from stacks.phases import effects
from stacks.phases.node import of_node
from tests.unit.configs import GONE, lab, problems
from tests.unit.explain.reports import made

TYPE = "kubernetes.io/dockerconfigjson"
SECRET = {"namespaces": ["kube-system"], "type": TYPE, "data": {".dockerconfigjson": "login"}}
HOSTS = ("registry.example.com", "192.0.2.7:5000")
VARIABLE = "CREDENTIAL_PROVIDERS"
WRITE = f"write registry-login: {{namespaces: [kube-system], type: {TYPE}, data: {{.dockerconfigjson: NAME}}}}"


def config(*hosts: str, **said: object) -> dict[str, object]:
    addon = {"hosts": [*hosts], "secrets": {"registry-login": SECRET}}
    addons = {"addons": {"registry-login": addon}} if hosts else {}
    return lab({**addons, "addonSecrets": {"login": {"secure": "v1:x"}}, **said})


def planned(raw: dict[str, object]) -> Plan:
    return plan(load(raw))


def test_nodes_may_get_this_one_secret_and_nothing_else() -> None:
    role, binding = yaml.safe_load_all(planned(config(*HOSTS)).addons[0].text)
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "resourceNames": ["registry-login"],
            "verbs": ["get"],
        }
    ]
    assert [one["name"] for one in binding["subjects"]] == ["system:nodes"]
    assert {one["metadata"]["namespace"] for one in (role, binding)} == {"kube-system"}


def test_every_kubelet_asks_for_it_for_images_of_these_registries_alone() -> None:
    own = {"pools.etcd": {"roles": ["etcd"], "count": 3}, "pools.master.roles": ["master"]}
    one = planned(config(*HOSTS, **own))
    for node in one.nodes:
        values = of_node(one, node)
        if not node.in_kubernetes:
            assert VARIABLE not in values
            continue
        (provider,) = json.loads(values[VARIABLE])["providers"]
        assert provider["matchImages"] == sorted(HOSTS)
        assert "--image-credential-provider-config=" in values["KUBELET_DROPIN"]
        # The kubelet looks for a program of that name in this folder.
        assert provider["name"] == "kube-ha-registry-login"


def test_without_it_no_kubelet_is_told_anything() -> None:
    one = planned(config())
    for node in one.nodes:
        values = of_node(one, node)
        assert VARIABLE not in values
        assert "credential-provider" not in values["KUBELET_DROPIN"]


@pytest.mark.parametrize(
    ("edit", "path", "text"),
    [
        ({"hosts": []}, ".hosts", "is empty; name the registries, or leave the add-on out"),
        ({"hosts": ["a.example.com", "a.example.com"]}, ".hosts[1]", "a.example.com is there twice; leave one out"),
        ({"secrets": GONE}, ".secrets", f"nodes read one Secret alone; {WRITE}"),
        ({"secrets": {"login": SECRET}}, ".secrets", f"nodes read one Secret alone; {WRITE}"),
        ({"secrets": {"registry-login": SECRET, "more": SECRET}}, ".secrets", f"nodes read one Secret alone; {WRITE}"),
        ({"secrets": {"registry-login": {**SECRET, "namespaces": ["a"]}}}, ".secrets.registry-login", f"is not what nodes read; {WRITE}"),
        ({"secrets": {"registry-login": {**SECRET, "type": "Opaque"}}}, ".secrets.registry-login", f"is not what nodes read; {WRITE}"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(edit: dict[str, object], path: str, text: str) -> None:
    edits = {f"addons.registry-login.{key}": value for key, value in edit.items()}
    said = config(*HOSTS)
    assert isinstance(said["addons"], dict)
    whole = lab({"addons": said["addons"], "addonSecrets": said["addonSecrets"]} | edits)
    assert problems(whole) == [(f"addons.registry-login{path}", text)]


def test_a_registry_that_its_login_does_not_know_is_refused_before_anything_is_touched() -> None:
    """As far as the value is known: a preview without the key of secrets does not know it."""
    login = {"username": "ops", "password": "hunter2"}
    keys = ("https://registry.example.com/v2/", "192.0.2.7:5000", "https://index.docker.io/v1/")
    value = {"login": json.dumps({"auths": dict.fromkeys(keys, login)})}
    assert addon_secrets.unusable(planned(config(*HOSTS, "docker.io")), value) == []
    assert addon_secrets.unusable(planned(config("b.example.com")), {}) == []
    ((path, text),) = addon_secrets.unusable(planned(config(*HOSTS, "b.example.com")), value)
    assert path == "addonSecrets.login"
    assert text.startswith("has no login at b.example.com, which hosts of its add-on names; ")
    assert "hunter2" not in text


def test_a_reviewer_is_told_of_registries_that_nodes_leave() -> None:
    def pods(before: dict[str, object], after: dict[str, object]) -> tuple[str, ...]:
        said = made(before, after).headline.disruption
        return next(one.notices for one in said if one.audience == "pods")

    left = "images of {} are pulled without the nodes' login"
    assert pods(config(), config(*HOSTS)) == ()
    assert pods(config(*HOSTS), config(HOSTS[0])) == (left.format(HOSTS[1]),)
    assert pods(config(*HOSTS), config()) == (left.format(f"{HOSTS[1]}, {HOSTS[0]}"),)
    assert effects.OF_VALUE["node", VARIABLE].then == "kubelet restarts, pods keep running"
