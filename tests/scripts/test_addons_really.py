"""Add-ons against a real API server: whose an object is when it leaves, and what differs from its manifest."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import pytest

from stacks.cluster import addon_secrets
from stacks.cluster.user_addons import Addon
from stacks.config.spec import AddonSpec
from tests.scripts.real_api import RealApi
from tests.scripts.shell import Shell
from tests.scripts.test_manifests import ACCOUNT, SPACE, addon_of, apply, config_map, sweep
from tests.unit.charts import WIDGETS

ROLE = (
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
    "metadata: {name: 'team:looks', namespace: toys}\n"
    "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"
)
ACCOUNTS = "/api/v1/namespaces/toys/serviceaccounts"


@pytest.fixture
def master(tmp_path: Path, api: RealApi) -> Shell:
    return api.master(Shell(tmp_path))


def differing(master: Shell, configured: str, *, secrets: str = "") -> list[str]:
    values = {"OWN": "", "CONFIGURED": configured, **({"SECRETS": secrets} if secrets else {})}
    out = master.run("main", phase="addons", values=values).splitlines()
    assert out[-1] == "end"
    assert not [line for line in out if line.startswith("trouble")]
    return [line for line in out if "\t" in line]


def test_an_object_that_says_no_more_than_its_name_goes_with_its_add_on(
    master: Shell, api: RealApi
) -> None:
    apply(master, addon_of(master, "toys", [SPACE, ACCOUNT, ROLE]))
    assert api.ask("boss", "GET", f"{ACCOUNTS}/account").taken
    apply(master, addon_of(master, "toys", [SPACE]))
    sweep(master, "toys")
    assert api.ask("boss", "GET", f"{ACCOUNTS}/account").status == 404
    assert api.ask("boss", "GET", "/api/v1/namespaces/toys").taken


def test_one_that_somebody_else_has_made_again_stays(master: Shell, api: RealApi) -> None:
    apply(master, addon_of(master, "toys", [SPACE, ACCOUNT]))
    assert api.ask("boss", "DELETE", f"{ACCOUNTS}/account").taken
    bare = {"metadata": {"name": "account"}}
    assert api.ask("boss", "POST", ACCOUNTS, bare).taken
    sweep(master)
    assert api.ask("boss", "GET", f"{ACCOUNTS}/account").taken


def test_what_is_gone_or_was_changed_is_named_and_nothing_is_changed_by_looking(
    master: Shell, api: RealApi
) -> None:
    text = "---\n".join([SPACE, ROLE])
    apply(master, addon_of(master, "toys", [SPACE, ROLE]))
    assert differing(master, text) == []
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/toys/roles/team:looks"
    # What others add beside it is theirs.
    assert api.ask("boss", "PATCH", role, {"metadata": {"labels": {"a": "b"}}}).taken
    assert differing(master, text) == []
    assert api.ask("boss", "PATCH", role, {"rules": []}).taken
    named = "rbac.authorization.k8s.io.v1.Role.toys.team:looks"
    assert differing(master, text) == [f"differs\t{named}"]
    assert api.ask("boss", "DELETE", role).taken
    assert differing(master, text) == [f"missing\t{named}"]
    assert api.ask("boss", "GET", role).status == 404
    assert json.dumps(api.ask("boss", "GET", "/api/v1/namespaces/toys").body).count("toys")


def test_a_secret_that_says_for_whom_gets_a_password_once_and_no_other_secret_does(
    master: Shell, api: RealApi
) -> None:
    def secret(name: str, mark: str) -> str:
        return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, namespace: toys{mark}}}\n"

    marked = secret("access", ", annotations: {kube-ha.io/basic-auth: reader}")
    addon = addon_of(master, "toys", [SPACE, marked, secret("empty", "")])
    apply(master, addon)
    path = "/api/v1/namespaces/toys/secrets"
    made = _data(api, f"{path}/access")
    assert made.keys() == {"password", "username", "web.yaml"}
    user, hashed = _of_web(made["web.yaml"])
    assert user == "reader"
    password = base64.b64decode(made["password"]).decode()
    assert len(password) == 48
    # As the C library of this computer has it, which knows bcrypt.
    check = subprocess.run(
        ["perl", "-e", "print crypt($ENV{PASSWORD}, $ENV{HASH})"],
        env={"PASSWORD": password, "HASH": hashed, "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    assert check.stdout == hashed
    assert password not in "\n".join(master.calls)
    assert _data(api, f"{path}/empty") == {}
    apply(master, addon)
    assert _data(api, f"{path}/access") == made
    assert differing(master, "---\n".join([SPACE, marked])) == []


def test_an_object_in_no_namespace_may_say_one(master: Shell, api: RealApi) -> None:
    """As it is put into what helm makes of a chart, of a kind that nobody knows before."""
    kind = (
        WIDGETS.replace("scope: Namespaced", "scope: Cluster")
        .replace("widget", "gadget")
        .replace("Widget", "Gadget")
    )
    gadget = "apiVersion: example.com/v1\nkind: Gadget\nmetadata: {namespace: default, name: a}\nspec: {b: c}\n"
    for _ in "12":
        apply(master, addon_of(master, "toys", [kind, gadget]), limit_s=60)
        assert differing(master, gadget) == []
    path = "/apis/example.com/v1/gadgets/a"
    assert api.ask("boss", "GET", path).taken
    apply(master, addon_of(master, "toys", [kind]))
    sweep(master, "toys")
    assert api.ask("boss", "GET", path).status == 404


def test_names_of_many_objects_are_read_from_a_file(master: Shell, api: RealApi) -> None:
    addon = addon_of(master, "toys", [config_map(f"{'n' * 100}-{number}") for number in range(90)])
    apply(master, addon)
    listed = api.ask(
        "boss", "GET", "/api/v1/namespaces/kube-system/configmaps/kube-ha-addon-toys"
    ).body["data"]
    assert isinstance(listed, dict)
    assert len(listed["objects"].splitlines()) == 90
    (copy,) = (master.folder / "copies").glob("addon.toys.*.objects")
    copy.write_text("ConfigMap default another")
    assert "is not the list of objects of this plan" in apply(master, addon, fails=True)
    apply(master, addon_of(master, "toys", [SPACE]))
    assert not [*(master.folder / "copies").glob("addon.toys.*.objects")]
    sweep(master, "toys")


def bringing(shell: Shell, *manifests: str, **data: str) -> Addon:
    """An add-on that brings a Secret of these values, each by its own name, and applies the manifests."""
    secret = {"namespaces": ["toys"], "data": {key: key for key in data}}
    addon = addon_of(shell, "toys", [*manifests], secrets={"own": secret})
    said = addon_secrets.manifest(AddonSpec.model_validate({"secrets": {"own": secret}}), data)
    apply(shell, addon, more={"SECRETS": said})
    return addon


def test_a_secret_of_an_add_on_is_as_it_was_applied_or_is_named(
    master: Shell, api: RealApi
) -> None:
    path = "/api/v1/namespaces/toys/secrets/own"
    bringing(master, SPACE, key="topsecret", more="other")
    assert _data(api, path) == {"key": "dG9wc2VjcmV0", "more": "b3RoZXI="}
    wanted = "toys own Opaque key more"
    assert differing(master, "", secrets=wanted) == []
    assert api.ask("boss", "PATCH", path, {"data": {"beside": "eA=="}}).taken
    assert differing(master, "", secrets=wanted) == []
    assert api.ask("boss", "PATCH", path, {"data": {"key": "eA=="}}).taken
    assert differing(master, "", secrets=wanted) == ["differs\tv1.Secret.toys.own"]
    bringing(master, SPACE, key="rotated")
    assert _data(api, path) == {"key": "cm90YXRlZA==", "beside": "eA=="}
    assert differing(master, "", secrets="toys own Opaque key") == []
    assert api.ask("boss", "DELETE", path).taken
    assert differing(master, "", secrets=wanted) == ["missing\tv1.Secret.toys.own"]
    said = "\n".join([*master.calls, *(file.read_text() for file in master.folder.rglob("*.log"))])
    assert "topsecret" not in said
    assert "dG9wc2VjcmV0" not in said


def test_a_secret_goes_with_its_add_on(master: Shell, api: RealApi) -> None:
    bringing(master, SPACE, key="x")
    apply(master, addon_of(master, "toys", [SPACE]))
    sweep(master, "toys")
    assert api.ask("boss", "GET", "/api/v1/namespaces/toys/secrets/own").status == 404


def test_an_add_on_of_secrets_alone_needs_no_file(master: Shell, api: RealApi) -> None:
    apply(master, addon_of(master, "space", [SPACE]))
    said = {"namespaces": ["toys"], "data": {"key": "key"}}
    addon = addon_of(master, "toys", secrets={"alone": said})
    text = addon_secrets.manifest(
        AddonSpec.model_validate({"secrets": {"alone": said}}), {"key": "x"}
    )
    apply(master, addon, more={"SECRETS": text})
    assert _data(api, "/api/v1/namespaces/toys/secrets/alone") == {"key": "eA=="}


def _data(api: RealApi, path: str) -> dict[str, str]:
    found = api.ask("boss", "GET", path).body.get("data", {})
    assert isinstance(found, dict)
    return found


def _of_web(text: str) -> tuple[str, str]:
    ((user, hashed),) = json.loads(base64.b64decode(text))["basic_auth_users"].items()
    return user, hashed
