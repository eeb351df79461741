"""What a real API server lets a node write with its kubelet's identity and with flannel's account."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stacks.render.admission_policies import admission_policies
from tests.scripts.real_api import Answer, RealApi
from tests.scripts.shell import Shell
from tests.unit.render.examples import lab
from tests.unit.render.manifests import flannel

NODES = "/api/v1/nodes"
MAPS = "/api/v1/namespaces/kube-system/configmaps"
FLANNELS = "/api/v1/namespaces/kube-flannel"
HASH = "0123456789abcdef"
OURS = "kube-ha.io/"
OVERLAY = "flannel.alpha.coreos.com/"
Json = dict[str, object]
Question = tuple[str, str, str, object]  # token, method, path, body


def saying(**said: str | None) -> Json:
    return {"metadata": {"annotations": {f"{OURS}{word}": text for word, text in said.items()}}}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    server = RealApi(tmp_path_factory.mktemp("api"))
    try:
        server.start()
        grant(server, "kubeadm:cluster-admins", "cluster-admin")
        grant(server, "oidc:operators", "cluster-admin")
        # The role edit itself is put together by a controller.
        grant(server, "oidc:developers", "system:aggregate-to-edit")
        server.apply("admin", admission_policies(lab()))
        for name in ("worker-1", "worker-2"):
            body: Json = {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}}
            assert server.ask("boss", "POST", NODES, body).taken
        flannels_account(server)
        in_force(server)
        yield server
    finally:
        server.stop()


def in_force(api: RealApi) -> None:
    """API servers read policies again within a second or two: each of them refuses something now."""
    probes: list[Question] = [
        ("worker-1", "PATCH", f"{NODES}/worker-1", saying(drain="x")),
        ("bob", "POST", MAPS, {"metadata": {"name": "kube-ha-x"}}),
        (token_of(flannels_token(api, "worker-1")), "PATCH", f"{NODES}/worker-2/status", {}),
    ]
    for token, method, path, body in probes:
        until(api, (token, method, f"{path}?dryRun=All", body), 422)


def until(api: RealApi, question: Question, status: int) -> None:
    end = time.monotonic() + 30
    while (answer := api.ask(*question)).status != status:
        assert time.monotonic() < end, answer
        time.sleep(0.2)


def grant(api: RealApi, group: str, role: str) -> None:
    rbac = "rbac.authorization.k8s.io"
    binding = {
        "metadata": {"name": f"test-{group.replace(':', '-')}"},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": rbac, "kind": "Group", "name": group}],
    }
    answer = api.ask("boss", "POST", f"/apis/{rbac}/v1/clusterrolebindings", binding)
    assert answer.taken, answer


def flannels_account(api: RealApi) -> None:
    """Its namespace, account and rights, as the add-on makes them, and a pod on each node."""
    for one in yaml.safe_load_all(flannel(lab())):
        prefix = "/api/v1" if one["apiVersion"] == "v1" else f"/apis/{one['apiVersion']}"
        paths = {
            "Namespace": f"{prefix}/namespaces",
            "ServiceAccount": f"{prefix}/namespaces/kube-flannel/serviceaccounts",
            "ClusterRole": f"{prefix}/clusterroles",
            "ClusterRoleBinding": f"{prefix}/clusterrolebindings",
        }
        if one["kind"] in paths:
            assert api.ask("boss", "POST", paths[one["kind"]], one).taken
    for name in ("worker-1", "worker-2"):
        container = {"name": "flanneld", "image": "flannel"}
        spec = {"nodeName": name, "serviceAccountName": "flannel", "containers": [container]}
        pod = {"metadata": {"name": f"flannel-{name}"}, "spec": spec}
        answer = api.ask("boss", "POST", f"{FLANNELS}/pods", pod)
        assert answer.taken, answer


def flannels_token(api: RealApi, node: str, *, asked_by: str | None = None) -> Answer:
    """The token of flannel's pod on a node, as that node's kubelet asks for it."""
    pods = f"{FLANNELS}/pods/flannel-{node}"
    metadata = api.ask("boss", "GET", pods).body["metadata"]
    assert isinstance(metadata, dict)
    bound = {"apiVersion": "v1", "kind": "Pod", "name": f"flannel-{node}", "uid": metadata["uid"]}
    body = {"spec": {"boundObjectRef": bound, "expirationSeconds": 3607, "audiences": []}}
    path = f"{FLANNELS}/serviceaccounts/flannel/token"
    return api.ask(asked_by or node, "POST", path, body)


def token_of(answer: Answer) -> str:
    status = answer.body["status"]
    assert isinstance(status, dict)
    return str(status["token"])


@pytest.fixture
def flannels(api: RealApi) -> str:
    """The token of flannel on worker-1."""
    return token_of(flannels_token(api, "worker-1"))


@pytest.fixture
def masters_words(api: RealApi) -> Iterator[None]:
    """What a master has said of worker-1."""
    path = f"{NODES}/worker-1"
    said = saying(labels="a=b", drain="auto 300 -")
    assert api.ask("admin", "PATCH", path, said).taken
    yield
    nothing = saying(labels=None, drain=None, leaving=None, failed=None)
    assert api.ask("admin", "PATCH", path, nothing).taken


def phase(api: RealApi, folder: Path, code: str) -> list[str]:
    """Bodies that functions of the phases send about the node's own Node, each taken by the API."""
    shell = Shell(folder)
    shell.identity.parent.mkdir(parents=True, exist_ok=True)
    shell.identity.write_text("x")
    (folder / "ca").write_text("x")
    shell.stub(
        "curl", 'for word in "$@"; do if [[ $word == "{"* ]]; then echo "$word" >>bodies; fi; done'
    )
    shell.run(code, phase="update", values={"NODE": "worker-1"})
    return (folder / "bodies").read_text().splitlines()


def test_what_the_phases_say_of_their_own_node_is_taken(api: RealApi, tmp_path: Path) -> None:
    why = """kubeadm: '"|\\"' $(x) üé\x1b[31m https://u:p@h/ abcdef.0123456789abcdef"""
    longest = "y" * 400
    code = (
        f"echo 2026-11-21 >$STATE/os; begin {HASH}; tell_failure {shlex.quote(why)}; tell_failure {longest}\n"
        f"announce {HASH}; node_exists() {{ :; }}; see_node() {{ :; }}; drain_settings() {{ echo never; }}; joined() {{ :; }}\n"
        "begin_update 'kubelet 1.35.4 -> 1.36.3, containerd 2.3.6 -> 2.3.7' intrusive\n"
        f"begin_update 'configuration {HASH}'; begin_update 'packages 2026-11-21_a' intrusive"
    )
    bodies = phase(api, tmp_path, code)
    assert len(bodies) == 7
    for body in bodies:
        answer = api.ask("worker-1", "PATCH", f"{NODES}/worker-1", json.loads(body))
        assert answer.taken, (body, answer.why)
    cordon = saying(updating="x", cordoned="ready") | {"spec": {"unschedulable": True}}
    assert api.ask("worker-1", "PATCH", f"{NODES}/worker-1", cordon).taken
    back = saying(updating=None, cordoned=None) | {"spec": {"unschedulable": None}}
    assert api.ask("worker-1", "PATCH", f"{NODES}/worker-1", back).taken


FORGED = [
    *(saying(**{word: "x"}) for word in ("labels", "taints", "drain", "leaving", "maintenance", "kept", "new")),
    saying(labels=None),
    saying(drain=None),
    saying(applied="x"),
    saying(begun=f"{HASH}\n"),
    saying(cordoned="ready\nx"),
    saying(failed="x\n-lkubernetes.io/os|x|True||"),
    saying(failed=f"{HASH} 2026-01-01T00:00:00Z a|b"),
    saying(failed=f"{HASH} 2026-01-01T00:00:00Z \x1b[31m"),
    saying(failed=f"{HASH} 2026-01-01T00:00:00Z {'y' * 201}"),
    saying(os="$(reboot)"),
    saying(updating="SECONDS[$(reboot)]"),
    saying(updating="y" * 201),
    {"metadata": {"finalizers": ["example.com/never"]}},
]  # fmt: skip


@pytest.mark.usefixtures("masters_words")
@pytest.mark.parametrize("body", FORGED, ids=lambda body: json.dumps(body)[:70])
@pytest.mark.parametrize("part", ["", "/status"])
def test_what_a_master_says_of_a_node_its_kubelet_cannot(
    api: RealApi, body: Json, part: str
) -> None:
    before = api.ask("admin", "GET", f"{NODES}/worker-1").body["metadata"]
    answer = api.ask("worker-1", "PATCH", f"{NODES}/worker-1{part}", body)
    assert answer.status == 422, answer
    assert "kube-ha-kubelets" in answer.why
    assert api.ask("admin", "GET", f"{NODES}/worker-1").body["metadata"] == before
    # Who may do everything is not held up.
    if "finalizers" not in json.dumps(body):
        assert api.ask("admin", "PATCH", f"{NODES}/worker-1", body).taken
        words = body["metadata"]
        assert isinstance(words, dict)
        undone = dict.fromkeys(words["annotations"])
        undo = {
            "metadata": {
                "annotations": undone | {f"{OURS}labels": "a=b", f"{OURS}drain": "auto 300 -"}
            }
        }
        assert api.ask("admin", "PATCH", f"{NODES}/worker-1", undo).taken


@pytest.mark.usefixtures("masters_words")
def test_a_kubelet_goes_on_writing_its_status_and_whatever_else_it_wants(api: RealApi) -> None:
    path = f"{NODES}/worker-1"
    ready = {"type": "Ready", "status": "True"}
    assert api.ask("worker-1", "PATCH", f"{path}/status", {"status": {"conditions": [ready]}}).taken
    other = {"metadata": {"annotations": {"volumes.kubernetes.io/x": "true"}, "labels": {"a": "b"}}}
    assert api.ask("worker-1", "PATCH", path, other).taken


def test_a_node_registers_itself_without_a_masters_words(api: RealApi) -> None:
    assert api.ask("boss", "DELETE", f"{NODES}/worker-2").taken
    body: Json = {"metadata": {"name": "worker-2", "annotations": {f"{OURS}drain": "x"}}}
    assert api.ask("worker-2", "POST", NODES, body).status == 422
    body["metadata"] = {"name": "worker-2", "finalizers": ["example.com/never"]}
    assert api.ask("worker-2", "POST", NODES, body).status == 422
    body["metadata"] = {"name": "worker-2", "annotations": {f"{OURS}applied": HASH}}
    assert api.ask("worker-2", "POST", NODES, body).taken


@pytest.mark.parametrize("part", ["", "/status"])
def test_a_kubelet_writes_no_other_node(api: RealApi, part: str) -> None:
    bodies: list[Json] = [
        saying(applied=HASH),
        {"metadata": {"labels": {"a": "b"}}},
        {"status": {}},
    ]
    for body in bodies:
        answer = api.ask("worker-1", "PATCH", f"{NODES}/worker-2{part}", body)
        assert answer.status == 403, answer


def test_flannel_writes_what_it_has_to_on_its_own_node(api: RealApi, flannels: str) -> None:
    path = f"{NODES}/worker-1/status"
    lease = {f"{OVERLAY}public-ip": "10.0.0.1", f"{OVERLAY}backend-data": '{"VNI":1}'}
    assert api.ask(flannels, "PATCH", path, {"metadata": {"annotations": lease}}).taken
    lease = {f"{OVERLAY}public-ip": "10.0.0.2", f"{OVERLAY}backend-type": "vxlan"}
    assert api.ask(flannels, "PATCH", path, {"metadata": {"annotations": lease}}).taken
    ready = {"type": "Ready", "status": "True"}
    assert api.ask("worker-1", "PATCH", path, {"status": {"conditions": [ready]}}).taken
    network = {"type": "NetworkUnavailable", "status": "False"}
    assert api.ask(flannels, "PATCH", path, {"status": {"conditions": [network, ready]}}).taken


def test_flannel_writes_no_other_node(api: RealApi, flannels: str) -> None:
    bodies: list[Json] = [
        {"metadata": {"annotations": {f"{OVERLAY}public-ip": "10.0.0.1"}}},
        {"metadata": {"labels": {"a": "b"}}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"metadata": {"annotations": {}}},
    ]
    for body in bodies:
        answer = api.ask(flannels, "PATCH", f"{NODES}/worker-2/status", body)
        assert answer.status == 422, answer
        assert "flannel changes the Node alone that its pod runs on" in answer.why


@pytest.mark.usefixtures("masters_words")
@pytest.mark.parametrize(
    "body",
    [
        saying(applied=HASH),
        saying(drain=None),
        {"metadata": {"annotations": {"flannel.alpha.coreos.com": "x"}}},
        {"metadata": {"labels": {"a": "c"}}},
        {"metadata": {"labels": {"kubernetes.io/hostname": None}}},
        {"metadata": {"finalizers": ["example.com/never"]}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]}},
        {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"status": {"conditions": []}},
        {"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}},
        {"status": {"capacity": {"cpu": "64"}}},
        {"status": {"nodeInfo": {"kubeletVersion": "v1.0.0"}}},
        {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 22}}}},
    ],
    ids=lambda body: json.dumps(body)[:70],
)  # fmt: skip
def test_flannel_writes_nothing_else_of_its_own_node(
    api: RealApi, flannels: str, body: Json
) -> None:
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert api.ask("boss", "PATCH", f"{NODES}/worker-1/status", ready).taken
    answer = api.ask(flannels, "PATCH", f"{NODES}/worker-1/status", body)
    assert answer.status == 422, answer
    assert "kube-ha-flannel" in answer.why


def test_no_node_gets_a_token_that_acts_for_another(api: RealApi) -> None:
    assert flannels_token(api, "worker-2", asked_by="worker-1").status == 403
    # One that is bound to no pod names no node: an administrator made it, and it writes nothing.
    body = {"spec": {"audiences": [], "expirationSeconds": 3600}}
    path = f"{FLANNELS}/serviceaccounts/flannel/token"
    assert api.ask("worker-1", "POST", path, body).status == 403
    loose = token_of(api.ask("boss", "POST", path, body))
    lease = {"metadata": {"annotations": {f"{OVERLAY}public-ip": "10.0.0.1"}}}
    assert api.ask(loose, "PATCH", f"{NODES}/worker-1/status", lease).status == 422


@pytest.mark.parametrize("name", ["kube-ha-addresses", "kube-ha-joining", "kubeadm-config", "kubelet-config", "listed"])  # fmt: skip
def test_what_the_cluster_is_run_by_is_written_by_its_administrators(
    api: RealApi, name: str
) -> None:
    labels = {"kube-ha.io/addon": "x"} if name == "listed" else {}
    body: Json = {"metadata": {"name": name, "labels": labels}, "data": {"a": "b"}}
    refused = api.ask("bob", "POST", MAPS, body)
    assert (refused.status, "kube-ha-settings" in refused.why) == (422, True), refused
    for administrator in ("admin", "ann", "boss"):
        assert api.ask(administrator, "POST", MAPS, body).taken
        for method, change in (("PATCH", {"data": {"a": "c"}}), ("DELETE", None)):
            assert api.ask("bob", method, f"{MAPS}/{name}", change).status == 422
        assert (
            api.ask("bob", "PATCH", f"{MAPS}/{name}", {"metadata": {"labels": None}}).status == 422
        )
        assert api.ask(administrator, "DELETE", f"{MAPS}/{name}").taken


def test_other_config_maps_are_nobodys_business(api: RealApi) -> None:
    body: Json = {"metadata": {"name": "mine"}, "data": {"a": "b"}}
    assert api.ask("bob", "POST", MAPS, body).taken
    labelled: Json = {"metadata": {"labels": {"kube-ha.io/addon": "x"}}}
    assert api.ask("bob", "PATCH", f"{MAPS}/mine", labelled).status == 422
    assert api.ask("bob", "DELETE", f"{MAPS}/mine").taken
    elsewhere = "/api/v1/namespaces/default/configmaps"
    assert api.ask("bob", "POST", elsewhere, {"metadata": {"name": "kube-ha-mine"}}).taken


def test_a_policy_that_is_wrong_is_repaired_by_who_may_do_everything(api: RealApi) -> None:
    status: Question = ("worker-1", "PATCH", f"{NODES}/worker-1/status", {"status": {}})
    assert api.ask(*status).taken
    api.apply(
        "admin", admission_policies(lab()).replace("variables.now.all(", "variables.now.x.all(")
    )
    until(api, status, 422)
    assert api.ask("admin", "PATCH", f"{NODES}/worker-1", saying(leaving="true")).taken
    assert api.ask("admin", "PATCH", f"{NODES}/worker-1", saying(leaving=None)).taken
    api.apply("admin", admission_policies(lab()))
    until(api, status, 200)
    in_force(api)
