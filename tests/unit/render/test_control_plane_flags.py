"""Flags and files of API server, controller manager and scheduler."""

from __future__ import annotations

from stacks.cluster.plan import Plan
from tests.unit.certificate import certificate
from tests.unit.render.examples import lab
from tests.unit.render.kubeadm_documents import arguments, at, init_of, server_flags, volumes

CLUSTER = {"name": "dev", "kubernetes": "1.36.3"}


def test_api_server_drains_audits_and_encrypts() -> None:
    server = at(init_of(lab())["ClusterConfiguration"], "apiServer")
    flags = arguments(at(server, "extraArgs"))
    assert flags["shutdown-delay-duration"] == "15s"
    assert flags["profiling"] == "false"
    assert flags["enable-admission-plugins"] == "DenyServiceExternalIPs,NodeRestriction"
    assert flags["service-account-extend-token-expiration"] == "false"
    volumes = at(server, "extraVolumes")
    assert isinstance(volumes, list)
    mounted = {at(each, "mountPath") for each in volumes}
    files = ("audit-policy-file", "encryption-provider-config")
    assert {flags[name] for name in files} <= mounted
    assert flags["audit-log-path"].rpartition("/")[0] in mounted


def test_what_is_off_leaves_no_trace() -> None:
    plan = lab(
        cluster={**CLUSTER, "defaults": 1},
        controlPlane={"audit": {"enabled": False}, "encryptSecrets": False},
    )
    server = at(init_of(plan)["ClusterConfiguration"], "apiServer")
    assert at(server, "extraVolumes") == []
    assert not {name for name in arguments(at(server, "extraArgs")) if "audit" in name}


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
    cluster = init_of(plan)["ClusterConfiguration"]
    server = arguments(at(cluster, "apiServer", "extraArgs"))
    manager = arguments(at(cluster, "controllerManager", "extraArgs"))
    scheduler = arguments(at(cluster, "scheduler", "extraArgs"))
    assert server["enable-admission-plugins"] == "AlwaysPullImages,NodeRestriction"
    assert server["goaway-chance"] == "0.001"
    assert manager["node-monitor-grace-period"] == "20s"
    assert manager["terminated-pod-gc-threshold"] == "50"
    assert (
        manager["leader-elect-lease-duration"] == scheduler["leader-elect-lease-duration"] == "60s"
    )
    assert scheduler["v"] == "4"


def test_feature_gates_are_those_of_the_whole_control_plane() -> None:
    plan = lab(
        controlPlane={
            "featureGates": {"ContextualLogging": True, "AllBeta": False, "AllAlpha": False}
        }
    )
    cluster = init_of(plan)["ClusterConfiguration"]
    for part in ("apiServer", "controllerManager", "scheduler"):
        flags = arguments(at(cluster, part, "extraArgs"))
        assert flags["feature-gates"] == "AllAlpha=false,AllBeta=false,ContextualLogging=true"


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
    plan = lab(controlPlane={"oidc": oidc})
    flags = [pair for pair in server_flags(plan) if "oidc" in pair[0]]
    assert "authentication-config" not in dict(server_flags(plan))
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


def test_the_first_issuer_stays_the_first_whatever_its_name() -> None:
    """kubeadm 1.35 and 1.36 keep the order of what is said, and sort their own flags alone."""
    for issuers in (
        ["https://b.example.com", "https://a.example.com"],
        ["https://a.example.com/x/"],
    ):
        flags = server_flags(lab(controlPlane={"serviceAccountIssuers": issuers}))
        assert [value for name, value in flags if name == "service-account-issuer"] == issuers
        keys = dict(flags)["service-account-jwks-uri"]
        assert keys == f"{issuers[0].removesuffix('/')}/openid/v1/jwks"
    assert not [name for name, _ in server_flags(lab()) if name.startswith("service-account-") and name.endswith(("issuer", "uri"))]  # fmt: skip


def test_what_a_provider_need_not_say_is_left_to_the_api_server() -> None:
    oidc = {"issuerUrl": "https://id.example.com", "clientId": "kube"}
    plan = lab(cluster={**CLUSTER, "defaults": 1}, controlPlane={"oidc": oidc})
    assert [pair for pair in server_flags(plan) if "oidc" in pair[0]] == [
        ("oidc-client-id", "kube"),
        ("oidc-issuer-url", "https://id.example.com"),
        ("oidc-username-claim", "sub"),
    ]
    assert volumes(plan) == {"audit-policy", "audit-log", "encryption"}


def test_files_of_the_api_server_are_mounted_where_its_flags_look() -> None:
    oidc = {"issuerUrl": "https://id.example.com", "clientId": "kube", "ca": certificate()}
    wanted = {"oidc": oidc, "podSecurity": {"enforce": "baseline"}, "anonymous": "all"}
    plan = lab(controlPlane=wanted)
    assert ("admission-control-config-file", "/etc/kubernetes/admission.yaml") in server_flags(plan)
    assert volumes(plan) == {"audit-policy", "audit-log", "encryption", "admission", "oidc-ca"}
    mounts = at(init_of(plan)["ClusterConfiguration"], "apiServer", "extraVolumes")
    assert isinstance(mounts, list)
    assert {"/etc/kubernetes/admission.yaml", "/etc/kubernetes/oidc-ca.crt"} <= {
        at(each, "mountPath") for each in mounts if at(each, "hostPath") == at(each, "mountPath")
    }


def test_the_size_of_a_nodes_part_of_the_pod_network_is_the_controller_managers() -> None:
    def flags(plan: Plan) -> dict[str, str]:
        cluster = init_of(plan)["ClusterConfiguration"]
        return arguments(at(cluster, "controllerManager", "extraArgs"))

    assert not {name for name in flags(lab()) if "mask" in name}
    assert flags(lab(network={"nodeCidrMask": 22}))["node-cidr-mask-size-ipv4"] == "22"
