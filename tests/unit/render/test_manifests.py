"""Manifests of flannel, kube-proxy, CoreDNS and the acceptance check."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import yaml

from stacks.cluster.plan import Plan
from stacks.render.acceptance import acceptance
from stacks.render.admission_policies import admission_policies
from stacks.render.coredns import coredns
from stacks.render.kube_proxy import kube_proxy
from stacks.render.lost_nodes import lost_nodes
from tests.unit import configs
from tests.unit.configs import planned
from tests.unit.render.examples import adopted, assert_snapshot, lab
from tests.unit.render.manifests import at, data, flannel, one, pod_of

Renderer = Callable[[Plan], str]
ALL = {"flannel": flannel, "coredns": coredns, "kube-proxy": kube_proxy, "acceptance": acceptance}
each_manifest = pytest.mark.parametrize("render", ALL.values(), ids=ALL.keys())


@pytest.mark.parametrize("name", ["flannel", "coredns", "kube-proxy"])
def test_snapshots(name: str) -> None:
    assert_snapshot(f"{name}.yaml", ALL[name](lab()))


@each_manifest
def test_sizes_fit_into_one_command(render: Renderer) -> None:
    limit = 2500 if render is acceptance else 6000
    assert len(render(lab())) <= limit


@each_manifest
def test_growing_by_a_worker_changes_nothing(render: Renderer) -> None:
    assert render(lab(3, 2)) == render(lab(3, 3))


@each_manifest
def test_every_object_but_cluster_wide_ones_names_its_namespace(render: Renderer) -> None:
    wide = {"Namespace", "ClusterRole", "ClusterRoleBinding"}
    for each in yaml.safe_load_all(render(lab())):
        assert ("namespace" in each["metadata"]) == (each["kind"] not in wide), each["kind"]


@pytest.mark.parametrize("render", [flannel, kube_proxy, acceptance])
def test_pods_of_every_node_tolerate_everything_and_avoid_fake_nodes(render: Renderer) -> None:
    pod = pod_of(render(lab()))
    assert at(pod, "tolerations") == [{"operator": "Exists"}]
    assert "kwok" in json.dumps(at(pod, "affinity"))


def test_pods_restart_when_their_config_changes() -> None:
    path = ("spec", "template", "metadata", "annotations", "kube-ha/config")
    plain = at(one(kube_proxy(lab()), "DaemonSet"), *path)
    other = at(one(kube_proxy(lab(network={"proxyMode": "iptables"})), "DaemonSet"), *path)
    assert plain != other


def test_what_makes_the_service_network_does_not_need_it() -> None:
    environment = at(pod_of(flannel(lab())), "containers", 0, "env")
    assert isinstance(environment, list)
    values = {at(each, "name"): each for each in environment}
    assert at(values["KUBERNETES_SERVICE_HOST"], "value") == "127.0.0.1"
    assert at(values["KUBERNETES_SERVICE_PORT"], "value") == "3446"
    assert "https://127.0.0.1:3446" in data(kube_proxy(lab()), "kubeconfig.conf")


@pytest.mark.parametrize(
    ("network", "config"),
    [
        ({}, {"EnableNFTables": True, "Backend": {"Type": "vxlan"}}),
        ({"proxyMode": "iptables"}, {"EnableNFTables": False, "Backend": {"Type": "vxlan"}}),
        ({"backend": "host-gw"}, {"EnableNFTables": True, "Backend": {"Type": "host-gw"}}),
    ],
)
def test_flannel_has_the_network_of_the_config(
    network: dict[str, str], config: dict[str, object]
) -> None:
    parsed = json.loads(data(flannel(lab(network=network)), "net-conf.json"))
    assert parsed == {"Network": "10.244.0.0/16", **config}


def test_only_containers_leave_the_kernels_tables_alone() -> None:
    inside = yaml.safe_load(data(kube_proxy(lab()), "config.conf"))
    assert inside["conntrack"] == {"maxPerCore": 0, "min": 0}
    assert inside["oomScoreAdj"] == 0
    outside = yaml.safe_load(data(kube_proxy(adopted()), "config.conf"))
    assert not {"conntrack", "oomScoreAdj"} & outside.keys()


def test_dns_is_where_kubelets_look_for_it() -> None:
    plan = lab(
        cluster={
            "name": "dev",
            "kubernetes": "1.36.3",
            "serviceCidr": "10.97.0.0/20",
            "dnsDomain": "example.internal",
        }
    )
    text = coredns(plan)
    assert at(one(text, "Service"), "spec", "clusterIP") == "10.97.0.10"
    corefile = data(text, "Corefile")
    assert "kubernetes example.internal in-addr.arpa" in corefile
    assert corefile.count("{") == corefile.count("}")


@pytest.mark.parametrize(("masters", "workers", "replicas"), [(1, 0, 1), (1, 1, 2), (3, 2, 2)])
def test_dns_has_two_replicas_on_two_nodes_where_there_are_two(
    masters: int, workers: int, replicas: int
) -> None:
    deployment = one(coredns(lab(masters, workers)), "Deployment")
    assert at(deployment, "spec", "replicas") == replicas
    apart = at(pod_of(coredns(lab()), "Deployment"), "affinity", "podAntiAffinity")
    assert "requiredDuringSchedulingIgnoredDuringExecution" in json.dumps(apart)


@pytest.mark.parametrize(
    ("workers", "replicas", "unavailable"), [(2, 5, 1), (17, 20, 2), (97, 20, 2)]
)
def test_dns_has_a_pod_for_16_nodes_of_its_size_and_a_tenth_may_be_down(
    workers: int, replicas: int, unavailable: int
) -> None:
    text = coredns(
        lab(
            workers=workers,
            sizing={"nodes": 300},
            cluster={"name": "dev", "kubernetes": "1.36.3", "podCidr": "10.128.0.0/12"},
        )
    )
    spec = at(one(text, "Deployment"), "spec")
    assert at(spec, "replicas") == replicas
    assert at(spec, "strategy", "rollingUpdate", "maxUnavailable") == unavailable
    assert at(one(text, "PodDisruptionBudget"), "spec", "maxUnavailable") == unavailable


def test_dns_is_spread_over_zones_where_there_are_some() -> None:
    assert "topologySpreadConstraints" not in coredns(lab())
    pools = {
        "master": {"roles": ["etcd", "master"], "count": 3},
        "worker": {"roles": ["worker"], "count": 2, "zones": ["a", "b"]},
    }
    pod = pod_of(coredns(lab(pools=pools)), "Deployment")
    constraint = at(pod, "topologySpreadConstraints", 0)
    assert at(constraint, "topologyKey") == "topology.kubernetes.io/zone"
    # Two in one zone are better than one.
    assert at(constraint, "whenUnsatisfiable") == "ScheduleAnyway"
    assert at(constraint, "labelSelector") == at(
        one(coredns(lab(pools=pools)), "Deployment"), "spec", "selector"
    )
    etcd_alone = {"roles": ["etcd"], "count": 1, "zones": ["a"]}
    assert "topologySpread" not in coredns(lab(pools={**pools, "worker": etcd_alone}))


def test_etcd_machines_are_no_place_for_dns() -> None:
    only_master = {
        "etcd": {"roles": ["etcd"], "count": 3},
        "master": {"roles": ["master"], "count": 1},
    }
    assert at(one(coredns(lab(pools=only_master)), "Deployment"), "spec", "replicas") == 1


def test_acceptance_pods_become_ready_and_are_restricted() -> None:
    container = at(pod_of(acceptance(lab())), "containers", 0)
    # netexec answers 412 on /healthz forever when told to open no UDP port.
    assert at(container, "args") == ["netexec", "--http-port=8080"]
    assert at(container, "securityContext", "allowPrivilegeEscalation") is False
    assert at(pod_of(acceptance(lab())), "securityContext", "runAsNonRoot") is True


def test_what_nodes_may_write() -> None:
    text = admission_policies(lab())
    assert_snapshot("admission-policies.yaml", text)
    assert len(text) < 7500
    assert admission_policies(lab(3, 5)) == text
    # Where flannel is not ours, its account is not either.
    other = admission_policies(lab(network={"plugin": "none"}))
    assert text.startswith(other.rstrip("\n"))
    assert "flannel" not in other
    for each in yaml.safe_load_all(text):
        spec = each["spec"]
        if each["kind"].endswith("Binding"):
            assert spec["validationActions"] == ["Deny"]
        else:
            # An error in one of them refuses those alone whom it is about.
            assert (spec["failurePolicy"], len(spec["matchConditions"])) == ("Fail", 1)


def test_lost_nodes_may_write_nothing() -> None:
    def condition(edit: dict[str, object]) -> str:
        policy, binding, *_ = yaml.safe_load_all(lost_nodes(planned(configs.lab(edit))))
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
        assert policy["spec"]["validations"][0]["expression"] == "false"
        expression: str = policy["spec"]["matchConditions"][0]["expression"]
        return expression

    assert condition({}) == "false"
    dead: dict[str, object] = {
        "nodes/worker-1": {"state": "lost"},
        "nodes/worker-2": {"state": "decommissioned"},
    }
    assert condition(dead) == 'request.userInfo.username in ["system:node:worker-1"]'


@pytest.mark.parametrize("name", ["flannel", "coredns", "kube-proxy"])
def test_own_pods_have_no_more_rights_than_they_use(name: str) -> None:
    pod = pod_of(ALL[name](lab()), "Deployment" if name == "coredns" else "DaemonSet")
    assert at(pod, "securityContext", "seccompProfile", "type") == "RuntimeDefault"
    assert isinstance(pod, dict)
    groups = (pod.get(key, []) for key in ("initContainers", "containers"))
    for container in (each for group in groups if isinstance(group, list) for each in group):
        context = at(container, "securityContext")
        if context == {"privileged": True}:
            assert name == "kube-proxy"  # it writes settings of the machine's kernel
            continue
        assert at(context, "allowPrivilegeEscalation") is False
        assert at(context, "capabilities", "drop") == ["ALL"]
