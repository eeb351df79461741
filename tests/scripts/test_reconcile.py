"""Add-ons that a timer puts back, against a real API server: what comes back, and when nothing may."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stacks.cluster import addon_secrets
from stacks.cluster.user_addons import Addon
from stacks.config.spec import AddonSpec
from stacks.phases import scripts
from tests.scripts.real_api import RealApi
from tests.scripts.shell import Shell
from tests.scripts.test_manifests import ACCOUNT, SPACE, addon_of, apply, sweep

ROLE = (
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
    "metadata: {name: looks, namespace: toys}\n"
    "rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"
)
ROLE_PATH = "/apis/rbac.authorization.k8s.io/v1/namespaces/toys/roles/looks"
ACCOUNT_PATH = "/api/v1/namespaces/toys/serviceaccounts/account"
SECRET_PATH = "/api/v1/namespaces/toys/secrets/own"
LIST = "/api/v1/namespaces/kube-system/configmaps/kube-ha-addon-toys"
SECRET = {"namespaces": ["toys"], "data": {"key": "key"}}
NOTHING = "nothing is put back"


@pytest.fixture
def master(tmp_path: Path, api: RealApi) -> Shell:
    return made(tmp_path, api)


def made(folder: Path, api: RealApi) -> Shell:
    shell = api.master(Shell(folder))
    shell.stub("systemctl")
    return shell


def kept(master: Shell, *documents: str, node: str = "master-1") -> Addon:
    """An add-on with a Secret, applied by this node and left to its timer."""
    addon = addon_of(master, "toys", [SPACE, *documents], secrets={"own": SECRET})
    said = AddonSpec.model_validate({"secrets": {"own": SECRET}})
    text = addon_secrets.manifest(said, {"key": "topsecret"})
    total = scripts.script_sum("manifests")
    told = {"RECONCILE": "1", "NODE": node, "SCRIPT_SUM": total, "SECRETS": text}
    apply(master, addon, more=told)
    return addon


def values(master: Shell) -> Path:
    return master.folder / "home/addons/toys.values"


def look(master: Shell, *, fails: bool = False) -> str:
    """What the timer runs."""
    code = f'eval "$(<{values(master)})"\nAPPLY_S=5\nmain'
    return master.run(code, phase="manifests", fails=fails)


def test_what_is_deleted_or_edited_comes_back_and_else_nothing_is_written(
    master: Shell, api: RealApi
) -> None:
    kept(master, ROLE, ACCOUNT)
    version = api.ask("boss", "GET", ROLE_PATH).body
    assert "put back" not in look(master)
    assert api.ask("boss", "GET", ROLE_PATH).body == version
    assert not [call for call in master.calls[-12:] if " apply " in call]
    assert api.ask("boss", "PATCH", ROLE_PATH, {"rules": []}).taken
    assert api.ask("boss", "DELETE", ACCOUNT_PATH).taken
    assert api.ask("boss", "DELETE", SECRET_PATH).taken
    said = look(master)
    assert "differs rbac.authorization.k8s.io.v1.Role.toys.looks" in said
    assert "missing v1.ServiceAccount.toys.account" in said
    assert "v1.Secret.toys.own" in said
    assert "topsecret" not in said
    assert "add-on toys was put back" in said
    assert api.ask("boss", "GET", ROLE_PATH).body["rules"] == version["rules"]
    assert api.ask("boss", "GET", ACCOUNT_PATH).taken
    assert api.ask("boss", "GET", SECRET_PATH).body["data"] == {"key": "dG9wc2VjcmV0"}
    assert (master.folder / "home/addons/toys.last").read_text().endswith(" good\n")
    assert values(master).stat().st_mode & 0o777 == 0o600


def test_what_it_runs_are_the_scripts_of_that_update(master: Shell) -> None:
    kept(master)
    folder = master.folder / "home/addons/scripts"
    wanted = {"run.sh", *scripts.parts("manifests")}
    assert {file.name for file in folder.iterdir()} == wanted
    assert all(
        (folder / name).read_bytes() == (scripts.FOLDER / name).read_bytes() for name in wanted
    )
    assert f"SCRIPT_SUM={scripts.script_sum('manifests')}" in values(master).read_text()


def test_while_an_update_holds_the_machine_it_does_nothing(master: Shell, api: RealApi) -> None:
    kept(master, ROLE)
    assert api.ask("boss", "DELETE", ROLE_PATH).taken
    lock = master.folder / "lock"
    with subprocess.Popen(["flock", str(lock), "sleep", "60"]) as held:
        try:
            while subprocess.run(["flock", "-n", lock, "true"], check=False).returncode == 0:
                pass
            assert "an update is under way" in look(master)
        finally:
            held.terminate()
    assert api.ask("boss", "GET", ROLE_PATH).status == 404


def test_a_change_that_was_cut_off_is_left_to_the_next_update(master: Shell, api: RealApi) -> None:
    kept(master, ROLE)
    other = addon_of(master, "toys", [SPACE], secrets={"own": SECRET})
    cut = "apply() { exit 1; }\nmain"
    apply(master, other, more={"RECONCILE": "1"}, code=cut, fails=True)
    assert api.ask("boss", "DELETE", ROLE_PATH).taken
    assert NOTHING in look(master)
    assert api.ask("boss", "GET", ROLE_PATH).status == 404


def test_a_master_that_no_longer_acts_does_nothing_and_forgets(
    master: Shell, api: RealApi, tmp_path: Path
) -> None:
    kept(master, ROLE)
    (tmp_path / "second").mkdir()
    second = made(tmp_path / "second", api)
    kept(second, node="master-2")
    assert api.ask("boss", "DELETE", ROLE_PATH).taken
    assert f"was applied by master-2 since: {NOTHING}" in look(master)
    assert api.ask("boss", "GET", ROLE_PATH).status == 404
    assert not values(master).exists()
    assert values(second).exists()


@pytest.mark.parametrize("owner", ["dev ffffffffffff master-1", "other 0123456789ab master-1"])
def test_a_machine_of_another_cluster_does_nothing(master: Shell, api: RealApi, owner: str) -> None:
    kept(master, ROLE)
    (master.state / "owner").write_text(f"{owner}\n")
    assert api.ask("boss", "DELETE", ROLE_PATH).taken
    assert "this machine belongs to" in look(master, fails=True)
    assert api.ask("boss", "GET", ROLE_PATH).status == 404


def test_in_a_cluster_that_knows_nothing_of_it_nothing_is_applied(
    master: Shell, api: RealApi
) -> None:
    """As in an etcd that has lost its data, or has that of another time."""
    kept(master, ROLE)
    mark = api.ask("boss", "GET", LIST).body["metadata"]["annotations"]["kube-ha.io/kept"]  # type: ignore[index]
    assert mark.startswith("master-1 ")
    assert api.ask("boss", "DELETE", ROLE_PATH).taken
    older = {"metadata": {"annotations": {"kube-ha.io/kept": "master-1 0123456789abcdef"}}}
    assert api.ask("boss", "PATCH", LIST, older).taken
    assert NOTHING in look(master)
    assert api.ask("boss", "DELETE", LIST).taken
    assert "the cluster has no list" in look(master, fails=True)
    assert api.ask("boss", "GET", ROLE_PATH).status == 404


def test_taken_out_of_the_config_nothing_of_it_stays(master: Shell, api: RealApi) -> None:
    units = master.root / "etc/systemd/system"
    addon = kept(master, ROLE)
    assert (units / "kube-ha-addons.timer").exists()
    apply(master, addon)
    assert not (master.folder / "home/addons").exists()
    assert [*units.iterdir()] == []
    assert "kept" not in str(api.ask("boss", "GET", LIST).body["metadata"])


def test_an_add_on_that_leaves_does_not_come_back_while_it_is_deleted(
    master: Shell, api: RealApi
) -> None:
    kept(master, ROLE)
    (master.folder / "copies").mkdir(exist_ok=True)
    master.run("keep_only others", phase="nodes")
    assert not (master.folder / "home/addons").exists()
    sweep(master)
    assert api.ask("boss", "GET", ROLE_PATH).status == 404


def test_drift_hears_of_it(master: Shell) -> None:
    kept(master)
    out = master.run("main", phase="addons", values={"OWN": "", "CONFIGURED": ""})
    (row,) = [line.split("\t") for line in out.splitlines() if line.startswith("kept")]
    assert row[1] == "toys"
    assert int(row[2]) < 60
    assert row[3] == "good"
    (master.folder / "home/addons/toys.last").unlink()
    assert "never looked" in master.run(
        "main", phase="addons", values={"OWN": "", "CONFIGURED": ""}
    )
