"""kubeadm's config, and the kubelet's that is part of it."""

from __future__ import annotations

import dataclasses
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import pytest
import yaml

from stacks.files import kubeadm, kubelet
from stacks.plan import Plan
from tests.unit.certificate import certificate
from tests.unit.files_examples import adopted, assert_snapshot, lab, program

Yaml: TypeAlias = "dict[str, Yaml] | list[Yaml] | str | int | bool | None"


def _documents(text: str) -> dict[str, dict[str, Yaml]]:
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


def _init(plan: Plan, name: str = "master-1") -> dict[str, dict[str, Yaml]]:
    return _documents(kubeadm.init(plan, plan.node(name)))


def _at(value: Yaml, *path: str) -> Yaml:
    for key in path:
        assert isinstance(value, dict), f"{key} of {value!r}"
        value = value[key]
    return value


def _arguments(value: Yaml) -> dict[str, str]:
    """kubeadm's [{name, value}] as a mapping; names are unique and sorted."""
    assert isinstance(value, list)
    pairs = [(str(_at(each, "name")), _at(each, "value")) for each in value]
    assert [name for name, _ in pairs] == sorted({name for name, _ in pairs})
    assert all(isinstance(text, str) for _, text in pairs)
    return {name: str(text) for name, text in pairs}


@pytest.mark.parametrize(("name", "plan"), [("lab", lab()), ("adopted", adopted())])
def test_snapshots(name: str, plan: Plan) -> None:
    worker = plan.workers[0]
    assert_snapshot(f"kubeadm-init-{name}.yaml", kubeadm.init(plan, plan.masters[0]))
    assert_snapshot(f"kubeadm-join-{name}.yaml", kubeadm.join_worker(plan, worker))


def test_masters_differ_in_name_and_address_alone() -> None:
    plan = lab()
    texts = {
        kubeadm.init(plan, node).replace(node.address, "ADDRESS").replace(node.name, "NAME")
        for node in plan.masters
    }
    assert len(texts) == 1


def test_growing_changes_no_master_that_is_there() -> None:
    one, three = lab(1), lab(3)
    assert kubeadm.init(one, one.masters[0]) == kubeadm.init(three, three.masters[0])


def test_the_cluster_is_reached_by_the_nodes_own_door() -> None:
    assert _at(_init(lab())["ClusterConfiguration"], "controlPlaneEndpoint") == "127.0.0.1:3446"


def test_masters_with_a_member_use_only_it() -> None:
    stacked = _init(lab())["ClusterConfiguration"]
    assert _at(stacked, "etcd", "external", "endpoints") == ["https://127.0.0.1:2379"]
    separate = _init(adopted())["ClusterConfiguration"]
    assert _at(separate, "etcd", "external", "endpoints") == [
        f"https://192.0.2.{last}:2379" for last in (11, 12, 13)
    ]


def test_add_ons_are_not_kubeadms() -> None:
    cluster = _init(lab())["ClusterConfiguration"]
    assert _at(cluster, "dns", "disabled") is True
    assert _at(cluster, "proxy", "disabled") is True


def test_api_server_drains_audits_and_encrypts() -> None:
    server = _at(_init(lab())["ClusterConfiguration"], "apiServer")
    flags = _arguments(_at(server, "extraArgs"))
    assert flags["shutdown-delay-duration"] == "15s"
    assert flags["profiling"] == "false"
    assert flags["enable-admission-plugins"] == "NodeRestriction"
    volumes = _at(server, "extraVolumes")
    assert isinstance(volumes, list)
    mounted = {_at(each, "mountPath") for each in volumes}
    files = ("audit-policy-file", "encryption-provider-config")
    assert {flags[name] for name in files} <= mounted
    assert flags["audit-log-path"].rpartition("/")[0] in mounted


def test_what_is_off_leaves_no_trace() -> None:
    plan = lab(controlPlane={"audit": {"enabled": False}, "encryptSecrets": False})
    server = _at(_init(plan)["ClusterConfiguration"], "apiServer")
    assert _at(server, "extraVolumes") == []
    assert not {name for name in _arguments(_at(server, "extraArgs")) if "audit" in name}


def test_flags_of_the_user_join_ours() -> None:
    plan = lab(
        controlPlane={
            "admissionPlugins": ["NodeRestriction", "AlwaysPullImages"],
            "apiServerArgs": {"goaway-chance": "0.001"},
            "schedulerArgs": {"v": "4"},
            "controllerManagerArgs": {"node-monitor-grace-period": "20s"},
            "terminatedPodGcThreshold": 50,
            "leaderElection": {"leaseDurationS": 60, "renewDeadlineS": 40, "retryPeriodS": 5},
        }
    )
    cluster = _init(plan)["ClusterConfiguration"]
    server = _arguments(_at(cluster, "apiServer", "extraArgs"))
    manager = _arguments(_at(cluster, "controllerManager", "extraArgs"))
    scheduler = _arguments(_at(cluster, "scheduler", "extraArgs"))
    assert server["enable-admission-plugins"] == "AlwaysPullImages,NodeRestriction"
    assert server["goaway-chance"] == "0.001"
    assert manager["node-monitor-grace-period"] == "20s"
    assert manager["terminated-pod-gc-threshold"] == "50"
    assert (
        manager["leader-elect-lease-duration"] == scheduler["leader-elect-lease-duration"] == "60s"
    )
    assert scheduler["v"] == "4"


def _server_flags(plan: Plan) -> list[tuple[str, str]]:
    """Flags of the API server as they are given; one may be there more than once."""
    found = _at(_init(plan)["ClusterConfiguration"], "apiServer", "extraArgs")
    assert isinstance(found, list)
    return [(str(_at(each, "name")), str(_at(each, "value"))) for each in found]


def test_feature_gates_are_those_of_the_whole_control_plane() -> None:
    plan = lab(controlPlane={"featureGates": {"Beta": True, "A2": False, "AllAlpha": False}})
    cluster = _init(plan)["ClusterConfiguration"]
    for part in ("apiServer", "controllerManager", "scheduler"):
        flags = _arguments(_at(cluster, part, "extraArgs"))
        assert flags["feature-gates"] == "A2=false,AllAlpha=false,Beta=true"


def test_a_provider_of_identities_becomes_flags() -> None:
    oidc = {
        "issuerUrl": "https://id.example.com/realms/x/",
        "clientId": "kube",
        "usernameClaim": "email",
        "usernamePrefix": "oidc:",
        "groupsClaim": "https://example.com/groups",
        "groupsPrefix": "oidc:",
        "requiredClaims": {"hd": "example.com,example.org", "amr": "mfa"},
        "signingAlgs": ["RS256", "ES256"],
        "ca": certificate(),
    }
    flags = [pair for pair in _server_flags(lab(controlPlane={"oidc": oidc})) if "oidc" in pair[0]]
    assert flags == [
        ("oidc-ca-file", "/etc/kubernetes/oidc-ca.crt"),
        ("oidc-client-id", "kube"),
        ("oidc-groups-claim", "https://example.com/groups"),
        ("oidc-groups-prefix", "oidc:"),
        ("oidc-issuer-url", "https://id.example.com/realms/x/"),
        ("oidc-required-claim", "amr=mfa"),
        ("oidc-required-claim", "hd=example.com,example.org"),
        ("oidc-signing-algs", "RS256,ES256"),
        ("oidc-username-claim", "email"),
        ("oidc-username-prefix", "oidc:"),
    ]


def test_what_a_provider_need_not_say_is_left_to_the_api_server() -> None:
    oidc = {"issuerUrl": "https://id.example.com", "clientId": "kube"}
    plan = lab(controlPlane={"oidc": oidc})
    assert [pair for pair in _server_flags(plan) if "oidc" in pair[0]] == [
        ("oidc-client-id", "kube"),
        ("oidc-issuer-url", "https://id.example.com"),
        ("oidc-username-claim", "sub"),
    ]
    assert _volumes(plan) == {"audit-policy", "audit-log", "encryption"}


def test_files_of_the_api_server_are_mounted_where_its_flags_look() -> None:
    oidc = {"issuerUrl": "https://id.example.com", "clientId": "kube", "ca": certificate()}
    plan = lab(controlPlane={"oidc": oidc, "podSecurity": {"enforce": "baseline"}})
    assert ("admission-control-config-file", "/etc/kubernetes/admission.yaml") in _server_flags(
        plan
    )
    assert _volumes(plan) == {"audit-policy", "audit-log", "encryption", "admission", "oidc-ca"}
    mounts = _at(_init(plan)["ClusterConfiguration"], "apiServer", "extraVolumes")
    assert isinstance(mounts, list)
    assert {"/etc/kubernetes/admission.yaml", "/etc/kubernetes/oidc-ca.crt"} <= {
        _at(each, "mountPath") for each in mounts if _at(each, "hostPath") == _at(each, "mountPath")
    }


def _volumes(plan: Plan) -> set[object]:
    found = _at(_init(plan)["ClusterConfiguration"], "apiServer", "extraVolumes")
    assert isinstance(found, list)
    return {_at(each, "name") for each in found}


def test_the_size_of_a_nodes_part_of_the_pod_network_is_the_controller_managers() -> None:
    def flags(plan: Plan) -> dict[str, str]:
        cluster = _init(plan)["ClusterConfiguration"]
        return _arguments(_at(cluster, "controllerManager", "extraArgs"))

    assert not {name for name in flags(lab()) if "mask" in name}
    assert flags(lab(network={"nodeCidrMask": 22}))["node-cidr-mask-size-ipv4"] == "22"


def test_names_by_which_the_api_is_called_are_in_its_certificate() -> None:
    names = _at(_init(adopted(controlPlane={"certSans": ["10.1.2.3"]}))["ClusterConfiguration"],
                "apiServer", "certSANs")  # fmt: skip
    assert names == ["10.1.2.3", "127.0.0.1", "api.prod.example.com", "localhost"]


def test_masters_are_for_masters_unless_they_are_workers_too() -> None:
    taints = _at(_init(lab())["InitConfiguration"], "nodeRegistration", "taints")
    assert taints == [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    both = {"all": {"roles": ["etcd", "master", "worker"], "count": 1}}
    mixed = _init(lab(pools=both), "all-1")["InitConfiguration"]
    # An empty list, not none: without the key kubeadm sets its own taint.
    assert _at(mixed, "nodeRegistration", "taints") == []


def test_a_worker_joins_with_its_labels_and_taints() -> None:
    plan = adopted()
    join = _documents(kubeadm.join_worker(plan, plan.workers[0]))["JoinConfiguration"]
    assert _at(join, "discovery") == {"file": {"kubeConfigPath": "/etc/kubernetes/discovery.conf"}}
    assert _at(join, "nodeRegistration", "taints") == [
        {"key": "example.com/gpu", "effect": "NoSchedule"}
    ]
    flags = _arguments(_at(join, "nodeRegistration", "kubeletExtraArgs"))
    assert flags == {
        "hostname-override": "worker-1",
        "node-ip": "192.0.2.31",
        "node-labels": "example.com/disk=ssd,topology.kubernetes.io/zone=b",
    }


def test_no_token_is_in_either_config() -> None:
    for text in (_text(lab()), _text(adopted())):
        assert "token" not in text.lower()


def _text(plan: Plan) -> str:
    return kubeadm.init(plan, plan.masters[0]) + kubeadm.join_worker(plan, plan.workers[0])


@pytest.mark.parametrize(
    ("key", "may"),
    [
        ("disk", True),
        ("example.com/disk", True),
        ("topology.kubernetes.io/zone", True),
        ("node.kubernetes.io/pool", True),
        ("my.node.kubernetes.io/pool", True),
        ("kubelet.kubernetes.io/pool", True),
        ("myk8s.io/x", True),
        ("node-role.kubernetes.io/edge", False),
        ("node-restriction.kubernetes.io/tenant", False),
        ("notnode.kubernetes.io/x", False),
        ("k8s.io/x", False),
    ],
)
def test_labels_that_a_kubelet_may_not_set_are_left_to_an_administrator(
    key: str, *, may: bool
) -> None:
    """With a label that is not allowed, the kubelet would not even start."""
    node = dataclasses.replace(lab().node("worker-1"), labels=((key, "x"),))
    assert kubelet.own_labels(node) == (((key, "x"),) if may else ())


def test_a_label_or_taint_restarts_no_master() -> None:
    marked = {
        "roles": ["etcd", "master"],
        "count": 3,
        "labels": {"example.com/rack": "a"},
        "taints": [{"key": "example.com/x", "effect": "NoSchedule"}],
    }
    plan = lab(pools={"master": marked, "worker": {"roles": ["worker"], "count": 2}})
    plain = lab()
    assert kubeadm.init(plan, plan.masters[0]) == kubeadm.init(plain, plain.masters[0])


def test_only_containers_relax_the_kubelet() -> None:
    relaxed = {"failCgroupV1", "failSwapOn", "oomScoreAdj"}
    assert relaxed <= kubelet.configuration(lab()).keys()
    assert not relaxed & kubelet.configuration(adopted()).keys()
    assert "shutdownGracePeriod" in kubelet.configuration(adopted())
    registration = _at(_init(adopted())["InitConfiguration"], "nodeRegistration")
    assert isinstance(registration, Mapping)
    assert "ignorePreflightErrors" not in registration


def test_kubelet_starts_as_kubeadm_expects() -> None:
    """Names are those of kubeadm's own packages: kubeadm writes and reads these files."""
    drop_in = kubelet.drop_in()
    for text in (
        "--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf",
        "--kubeconfig=/etc/kubernetes/kubelet.conf",
        "--config=/var/lib/kubelet/config.yaml",
        "EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env",
        "ExecStart=\nExecStart=/usr/local/bin/kubelet ",
        "$KUBELET_KUBEADM_ARGS",
    ):
        assert text in drop_in


@pytest.mark.parametrize("plan", [lab(), lab(1, 0), adopted()], ids=["lab", "single", "adopted"])
def test_kubeadm_accepts_it(plan: Plan, tmp_path: Path) -> None:
    tool = program("kubeadm", tmp_path)
    discovery = tmp_path / "discovery.conf"
    discovery.touch()
    texts = [kubeadm.init(plan, plan.masters[0])]
    texts += [kubeadm.join_worker(plan, node) for node in plan.workers[:1]]
    for text in texts:
        path = tmp_path / "kubeadm.yaml"
        path.write_text(text.replace("/etc/kubernetes/discovery.conf", str(discovery)))
        done = subprocess.run(
            [tool, "config", "validate", "--config", path],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert "unknown field" not in done.stderr
        assert not done.stderr.strip(), done.stderr
