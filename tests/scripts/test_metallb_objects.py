"""A real API server takes all that makes metallb, keeps every field of it, and lets its accounts write no more than they have to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.cluster.user_addons import Addon
from stacks.load import load
from stacks.phases import manifests
from tests.scripts.real_api import RealApi
from tests.scripts.shell import Shell
from tests.scripts.test_admission_policies import token_of
from tests.scripts.test_calico_objects import lost
from tests.unit.configs import lab

SPACE = "metallb-system"
HERE = f"/api/v1/namespaces/{SPACE}"
OWN = f"/apis/metallb.io/v1beta1/namespaces/{SPACE}"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
    "ConfigMap": f"{HERE}/configmaps",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "DaemonSet": f"/apis/apps/v1/namespaces/{SPACE}/daemonsets",
    "Deployment": f"/apis/apps/v1/namespaces/{SPACE}/deployments",
    "IPAddressPool": f"{OWN}/ipaddresspools",
    "L2Advertisement": f"{OWN}/l2advertisements",
    "Namespace": "/api/v1/namespaces",
    "Role": f"{RBAC}/namespaces/{SPACE}/roles",
    "RoleBinding": f"{RBAC}/namespaces/{SPACE}/rolebindings",
    "ServiceAccount": f"{HERE}/serviceaccounts",
}


def wanted() -> Plan:
    return plan(load(lab({"addons": {"metallb": {"addresses": ["10.92.0.240-10.92.0.250"]}}})))


def applied(shell: Shell, addon: Addon) -> None:
    (shell.folder / "copies").mkdir(exist_ok=True)
    (shell.folder / "copies" / manifests.shipped(addon, 0)).write_text(addon.text)
    script = f"COPIES={shell.folder}/copies APPLY_S=60\nmain"
    shell.run(script, phase="manifests", values=manifests.manifests(wanted(), addon))


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    server = RealApi(tmp_path_factory.mktemp("api"))
    try:
        server.start()
        applied(server.master(Shell(tmp_path_factory.mktemp("master"))), wanted().addons[0])
        yield server
    finally:
        server.stop()


@pytest.fixture
def speaker(api: RealApi) -> str:
    return _token(api, "speaker")


def _token(api: RealApi, account: str) -> str:
    body = {"spec": {"expirationSeconds": 3607, "audiences": []}}
    return token_of(api.ask("boss", "POST", f"{HERE}/serviceaccounts/{account}/token", body))


def test_every_object_is_taken_and_every_field_is_kept(api: RealApi) -> None:
    found, kinds = [], set()
    for said in yaml.safe_load_all(wanted().addons[0].text):
        kinds.add(said["kind"])
        path = f"{PATHS[said['kind']]}/{said['metadata']['name']}"
        found += [f"{path}{one}" for one in lost(said, api.ask("boss", "GET", path).body)]
    assert found == []
    assert kinds == {*PATHS}


def test_two_parts_of_a_program_write_a_condition_each(api: RealApi, speaker: str) -> None:
    about = {"name": "speaker-worker-1", "namespace": SPACE}
    head = {"apiVersion": "metallb.io/v1beta1", "kind": "ConfigurationState", "metadata": about}
    assert api.ask(speaker, "POST", f"{OWN}/configurationstates", head).taken
    path = f"{OWN}/configurationstates/speaker-worker-1/status"
    for word in ("config", "nodes"):
        said = {"conditions": [{"type": word, "status": "True"}]}
        sent = api.ask(speaker, "PATCH", f"{path}?fieldManager={word}&force=true", {**head, "status": said}, patch="apply-patch+yaml")  # fmt: skip
        assert sent.taken, sent.why
    status = api.ask("boss", "GET", path).body["status"]
    assert isinstance(status, dict)
    assert {one["type"] for one in status["conditions"]} == {"config", "nodes"}


def test_a_speaker_moves_no_address_and_reads_no_secret_elsewhere(
    api: RealApi, speaker: str
) -> None:
    assert api.ask(speaker, "GET", f"{HERE}/secrets").taken
    pool = f"{OWN}/ipaddresspools/kube-ha"
    for method, path in (
        ("GET", "/api/v1/namespaces/kube-system/secrets"),
        ("PATCH", pool),
        ("DELETE", f"{OWN}/l2advertisements/kube-ha"),
        ("PATCH", "/api/v1/namespaces/default/services/kubernetes/status"),
        ("POST", f"{HERE}/secrets"),
    ):
        assert api.ask(speaker, method, path, {} if method != "GET" else None).status == 403, path


def test_the_controller_reads_the_one_secret_that_it_makes(api: RealApi) -> None:
    controller = _token(api, "controller")
    one = f"{HERE}/secrets?fieldSelector=metadata.name%3Dmemberlist"
    assert api.ask(controller, "GET", one).taken
    assert api.ask(controller, "GET", f"{HERE}/secrets").status == 403
    made = {"metadata": {"name": "memberlist"}, "data": {"secretkey": "eA=="}}
    assert api.ask(controller, "POST", f"{HERE}/secrets", made).taken
