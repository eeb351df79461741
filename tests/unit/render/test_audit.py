"""The audit policies that come with a cluster, and the way to a collector."""

from __future__ import annotations

import base64
from fnmatch import fnmatch

import pytest
import yaml

from stacks.cluster.plan import Plan
from stacks.render import audit
from stacks.render.authentication import HEALTH_PATHS
from tests.unit.certificate import certificate
from tests.unit.render.examples import assert_snapshot, lab

Rule = dict[str, object]
CLUSTER = {"name": "dev", "kubernetes": "1.36.3"}
WRITES = ("create", "update", "patch", "delete", "deletecollection")
LOGGED_IN = ("developers", "system:authenticated")
NODE = ("system:nodes", "system:authenticated")
ANONYMOUS = ("system:unauthenticated",)
NOBODY: tuple[str, ...] = ()  # a credential that was refused


def metadata() -> Plan:
    return lab(cluster={**CLUSTER, "defaults": 1})


def _rules(plan: Plan) -> list[Rule]:
    rules: list[Rule] = yaml.safe_load(audit.policy(plan))["rules"]
    return rules


def _fits(rule: Rule, verb: str, group: str, resource: str, groups: tuple[str, ...]) -> bool:
    """As k8s.io/apiserver's audit/policy/checker decides; a resource with / at its front is a path."""
    verbs, of_whom, resources, paths = (
        rule.get(key) for key in ("verbs", "userGroups", "resources", "nonResourceURLs")
    )
    if isinstance(verbs, list) and verb not in verbs:
        return False
    if isinstance(of_whom, list) and not set(of_whom) & set(groups):
        return False
    if resource.startswith("/"):
        if isinstance(paths, list):
            return any(fnmatch(resource, path) for path in paths)
        return not resources
    if isinstance(resources, list):
        return any(
            each.get("group", "") == group and resource in each.get("resources", [resource])
            for each in resources
        )
    return not paths


def _level(plan: Plan, verb: str, group: str, resource: str, groups: tuple[str, ...]) -> object:
    """The level that the API server would log a request at: that of the first rule that fits."""
    for rule in _rules(plan):
        if _fits(rule, verb, group, resource, groups):
            return rule["level"]
    return "None"


def test_snapshots() -> None:
    assert_snapshot("audit-policy.yaml", audit.policy(lab()))
    assert_snapshot("audit-policy-metadata.yaml", audit.policy(metadata()))


@pytest.mark.parametrize("plan", [lab(), metadata()], ids=["bodies", "metadata"])
def test_writes_are_logged_and_noise_is_not(plan: Plan) -> None:
    assert _level(plan, "patch", "example.com", "things", LOGGED_IN) == "Metadata"
    assert _level(plan, "delete", "", "pods", NODE) in ("Metadata", "Request")
    assert _level(plan, "list", "", "pods", LOGGED_IN) == "None"
    assert _level(plan, "create", "", "events", LOGGED_IN) == "None"
    assert _level(plan, "update", "coordination.k8s.io", "leases", NODE) == "None"
    assert _level(plan, "patch", "", "nodes/status", NODE) == "None"
    assert _level(plan, "patch", "", "nodes/status", LOGGED_IN) == "Metadata"


@pytest.mark.parametrize("plan", [lab(), metadata()], ids=["bodies", "metadata"])
def test_reading_secrets_and_entering_pods_is_logged(plan: Plan) -> None:
    assert _level(plan, "get", "", "secrets", LOGGED_IN) == "Metadata"
    assert _level(plan, "get", "", "pods/exec", LOGGED_IN) == "Metadata"


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        *(("", name) for name in ("secrets", "configmaps", "serviceaccounts/token")),
        ("authentication.k8s.io", "tokenreviews"),
    ],
)
@pytest.mark.parametrize("who", [LOGGED_IN, NODE, ANONYMOUS, NOBODY])
@pytest.mark.parametrize("verb", [*WRITES, "get", "list", "watch"])
def test_what_is_secret_never_has_a_body_in_the_log(
    group: str, resource: str, who: tuple[str, ...], verb: str
) -> None:
    assert _level(lab(), verb, group, resource, who) in ("None", "Metadata")


@pytest.mark.parametrize(
    ("group", "resource"),
    [
        *(("rbac.authorization.k8s.io", name) for name in ("clusterrolebindings", "roles")),
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
        ("certificates.k8s.io", "certificatesigningrequests/approval"),
        *(("", "pods"), ("apps", "daemonsets"), ("batch", "cronjobs")),
    ],
)
def test_what_one_asks_after_a_break_in_has_its_body_in_the_log(group: str, resource: str) -> None:
    for verb in WRITES:
        assert _level(lab(), verb, group, resource, LOGGED_IN) == "Request", verb
    assert _level(lab(), "list", group, resource, LOGGED_IN) == "None"
    assert "omitManagedFields: true" in audit.policy(lab())


def test_a_container_put_into_a_running_pod_is_logged_with_what_came_of_it() -> None:
    assert _level(lab(), "patch", "", "pods/ephemeralcontainers", LOGGED_IN) == "RequestResponse"


@pytest.mark.parametrize(
    "resource",
    ["nodes/proxy", "pods/proxy", "services/proxy", "pods/log", "pods/ephemeralcontainers"],
)
def test_ways_into_pods_are_logged_when_they_are_read(resource: str) -> None:
    assert _level(lab(), "get", "", resource, LOGGED_IN) == "Metadata"


@pytest.mark.parametrize("who", [ANONYMOUS, NOBODY], ids=["anonymous", "refused"])
def test_who_probes_is_logged_and_health_checks_are_not(who: tuple[str, ...]) -> None:
    for path in ("/api", "/version", "/openapi/v2"):
        assert _level(lab(), "get", "", path, who) == "Metadata"
        assert _level(lab(), "get", "", path, LOGGED_IN) == "None"
    assert _level(lab(), "list", "", "secrets", who) == "Metadata"
    assert _level(lab(), "list", "", "pods", who) == "Metadata"
    for path in (*HEALTH_PATHS, "/readyz/etcd"):
        assert _level(lab(), "get", "", path, who) == "None"


def test_without_bodies_there_are_none() -> None:
    assert {rule["level"] for rule in _rules(metadata())} == {"None", "Metadata"}


def test_the_users_policy_is_taken_whole() -> None:
    mine = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Request"}]}
    plan = lab(controlPlane={"audit": {"policy": mine}})
    assert yaml.safe_load(audit.policy(plan)) == mine


def test_a_collector_is_a_kubeconfig_without_a_user() -> None:
    assert audit.webhook(lab()) == ""
    said = {"url": "https://logs.example.com/audit", "ca": certificate()}
    parsed = yaml.safe_load(audit.webhook(lab(controlPlane={"audit": {"webhook": said}})))
    [cluster] = parsed["clusters"]
    assert cluster["cluster"]["server"] == said["url"]
    trusted = base64.b64decode(cluster["cluster"]["certificate-authority-data"]).decode()
    assert trusted.strip() == said["ca"].strip()
    assert parsed["users"] == [{"name": "api-server", "user": {}}]
    assert parsed["contexts"][0]["name"] == parsed["current-context"]


POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
SECRETS = [{"group": "", "resources": ["secrets"]}]


def _warned(*rules: Rule) -> list[str]:
    plan = lab(controlPlane={"audit": {"policy": {**POLICY, "rules": list(rules)}}})
    return [path for path, _ in plan.warnings if "audit" in path]


@pytest.mark.parametrize(
    ("rules", "at"),
    [
        ([{"level": "Request"}], 0),
        ([{"level": "RequestResponse", "resources": SECRETS}], 0),
        ([{"level": "Request", "resources": [{"group": ""}]}], 0),
        ([{"level": "Request", "resources": [{"resources": ["*"]}]}], 0),
        ([{"level": "Metadata", "users": ["x"], "resources": SECRETS}, {"level": "Request"}], 1),
        ([{"level": "Metadata", "verbs": ["get"]}, {"level": "Request", "verbs": ["create"]}], 1),
        ([{"level": "None", "nonResourceURLs": ["/x"]}, {"level": "Request"}], 1),
    ],
)
def test_a_policy_that_keeps_secrets_in_clear_is_warned_of(rules: list[Rule], at: int) -> None:
    assert _warned(*rules) == [f"controlPlane.audit.policy.rules[{at}]"]


@pytest.mark.parametrize(
    "rules",
    [
        [{"level": "Metadata", "resources": SECRETS}, {"level": "Request"}],
        [{"level": "Metadata"}],
        [{"level": "Request", "resources": [{"group": "apps"}]}],
        [{"level": "Request", "resources": [{"resources": ["pods"]}]}, {"level": "Metadata"}],
    ],
)
def test_a_policy_that_does_not_is_not(rules: list[Rule]) -> None:
    assert _warned(*rules) == []
