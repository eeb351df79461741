"""What a real API server lets a node write with the account of Cilium's agent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from stacks.phases import system_addons
from stacks.render.admission_policies import admission_policies
from tests.scripts.real_api import RealApi
from tests.scripts.test_admission_policies import token_of, until
from tests.unit.render.examples import lab

GROUP = "/apis/cilium.io/v2"
SYSTEM = "/api/v1/namespaces/kube-system"
NODES = f"{GROUP}/ciliumnodes"
IDENTITIES = f"{GROUP}/ciliumidentities"
FRIEND = {"k8s:kind": "friend"}
RBAC = "/apis/rbac.authorization.k8s.io/v1"
PATHS = {
    "ServiceAccount": f"{SYSTEM}/serviceaccounts",
    "ClusterRole": f"{RBAC}/clusterroles",
    "ClusterRoleBinding": f"{RBAC}/clusterrolebindings",
}
Json = dict[str, object]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    plan = lab(network={"plugin": "cilium"})
    server = RealApi(tmp_path_factory.mktemp("api"))
    try:
        server.start()
        for kind, name in (("CiliumNode", "ciliumnodes"), ("CiliumIdentity", "ciliumidentities")):
            defined(server, kind, name)
        server.apply("boss", admission_policies(plan))
        for one in yaml.safe_load_all(system_addons.addons(plan)["cilium-rights"]):
            assert server.ask("boss", "POST", PATHS[one["kind"]], one).taken
        for node in ("worker-1", "worker-2"):
            assert server.ask("boss", "POST", "/api/v1/nodes", {"metadata": {"name": node}}).taken
            container = {"name": "cilium-agent", "image": "cilium"}
            spec = {"nodeName": node, "serviceAccountName": "cilium", "containers": [container]}
            pod = {"metadata": {"name": f"cilium-{node}"}, "spec": spec}
            assert server.ask("boss", "POST", f"{SYSTEM}/pods", pod).taken
        until(server, ("boss", "GET", IDENTITIES, None), 200)
        made = {**an("CiliumIdentity", "1000"), "security-labels": {"k8s:kind": "stranger"}}
        assert server.ask("boss", "POST", IDENTITIES, made).taken
        # Read again within a second or two.
        other = (agent(server, "worker-1"), "POST", f"{NODES}?dryRun=All", a_node("worker-2"))
        until(server, other, 422)
        yield server
    finally:
        server.stop()


def defined(api: RealApi, kind: str, plural: str) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural}
    spec = {"group": "cilium.io", "scope": "Cluster", "names": names, "versions": [version]}
    body = {**an("", f"{plural}.cilium.io"), "spec": spec}
    body |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert api.ask("boss", "POST", crds, body).taken


def an(kind: str, name: str) -> Json:
    return {"apiVersion": "cilium.io/v2", "kind": kind, "metadata": {"name": name}}


def a_node(name: str) -> Json:
    return an("CiliumNode", name)


def agent(api: RealApi, node: str) -> str:
    """The token of its pod there, as that node's kubelet asks for it."""
    metadata = api.ask("boss", "GET", f"{SYSTEM}/pods/cilium-{node}").body["metadata"]
    assert isinstance(metadata, dict)
    bound = {"apiVersion": "v1", "kind": "Pod", "name": f"cilium-{node}", "uid": metadata["uid"]}
    body = {"spec": {"boundObjectRef": bound, "expirationSeconds": 3607, "audiences": []}}
    return token_of(api.ask(node, "POST", f"{SYSTEM}/serviceaccounts/cilium/token", body))


def test_of_nodes_it_writes_its_own(api: RealApi) -> None:
    own, other = agent(api, "worker-1"), agent(api, "worker-2")
    assert api.ask(own, "POST", NODES, a_node("worker-1")).taken
    found = api.ask(own, "GET", f"{NODES}/worker-1").body
    assert api.ask(own, "PUT", f"{NODES}/worker-1", {**found, "spec": {"a": "b"}}).taken
    found = api.ask(own, "GET", f"{NODES}/worker-1").body
    refused = api.ask(other, "PUT", f"{NODES}/worker-1", {**found, "spec": {}})
    assert refused.status == 422
    assert "writes the CiliumNode alone that its pod runs on" in str(refused.body)
    assert api.ask(own, "DELETE", f"{NODES}/worker-1").status == 403


def test_an_identity_stands_for_the_same_labels_for_ever(api: RealApi) -> None:
    own, path = agent(api, "worker-1"), f"{IDENTITIES}/1000"
    found = api.ask(own, "GET", path)
    # Its rights are to list and watch: it knows what is there.
    assert found.status == 403
    there = api.ask("boss", "GET", path).body
    metadata = there["metadata"]
    assert isinstance(metadata, dict)
    noted = {**there, "metadata": {**metadata, "annotations": {"io.cilium.heartbeat": "x"}}}
    assert api.ask(own, "PUT", path, noted).taken
    there = api.ask("boss", "GET", path).body
    refused = api.ask(own, "PUT", path, {**there, "security-labels": FRIEND})
    assert refused.status == 422
    assert "does not change which labels an identity stands for" in str(refused.body)


def test_it_writes_no_policy_and_reads_no_secret(api: RealApi) -> None:
    own = agent(api, "worker-1")
    policies = "/apis/networking.k8s.io/v1/namespaces/kube-system/networkpolicies"
    assert api.ask(own, "POST", policies, {"metadata": {"name": "x"}, "spec": {}}).status == 403
    assert api.ask(own, "GET", f"{SYSTEM}/secrets").status == 403


def test_everybody_else_is_bound_by_none_of_it(api: RealApi) -> None:
    assert api.ask("boss", "POST", NODES, a_node("worker-9")).taken
    texts = [
        one for one in yaml.safe_load_all(admission_policies(lab(network={"plugin": "cilium"})))
    ]
    ours = [one for one in texts if one["metadata"]["name"].startswith("kube-ha-cilium")]
    assert len(ours) == 4  # policies and bindings
