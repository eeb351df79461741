"""Audit policy and encryption at rest."""

from __future__ import annotations

import yaml

from stacks.files import apiserver
from stacks.plan import Plan
from tests.unit.files_examples import assert_snapshot, lab

Rule = dict[str, object]


def _rules(plan: Plan) -> list[Rule]:
    rules: list[Rule] = yaml.safe_load(apiserver.audit_policy(plan))["rules"]
    return rules


def _level(rules: list[Rule], verb: str, group: str, resource: str, user_group: str) -> object:
    """The level that the API server would log a request at: that of the first rule that fits."""
    for rule in rules:
        verbs, groups, resources = (rule.get(key) for key in ("verbs", "userGroups", "resources"))
        if isinstance(verbs, list) and verb not in verbs:
            continue
        if isinstance(groups, list) and user_group not in groups:
            continue
        if isinstance(resources, list) and not any(
            each["group"] == group and resource in each["resources"] for each in resources
        ):
            continue
        return rule["level"]
    return "None"


def test_snapshot() -> None:
    assert_snapshot("audit-policy.yaml", apiserver.audit_policy(lab()))


def test_writes_are_logged_and_noise_is_not() -> None:
    rules = _rules(lab())
    admin, node = "system:masters", "system:nodes"
    assert _level(rules, "patch", "apps", "deployments", admin) == "Metadata"
    assert _level(rules, "delete", "", "pods", node) == "Metadata"
    assert _level(rules, "list", "", "pods", admin) == "None"
    assert _level(rules, "create", "", "events", admin) == "None"
    assert _level(rules, "update", "coordination.k8s.io", "leases", node) == "None"
    assert _level(rules, "patch", "", "nodes/status", node) == "None"
    assert _level(rules, "patch", "", "nodes/status", admin) == "Metadata"


def test_reading_secrets_and_entering_pods_is_logged() -> None:
    rules = _rules(lab())
    assert _level(rules, "get", "", "secrets", "developers") == "Metadata"
    assert _level(rules, "get", "", "pods/exec", "developers") == "Metadata"


def test_no_body_is_ever_logged() -> None:
    assert {rule["level"] for rule in _rules(lab())} == {"None", "Metadata"}


def test_the_users_policy_is_taken_whole() -> None:
    mine = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Request"}]}
    plan = lab(controlPlane={"audit": {"policy": mine}})
    assert yaml.safe_load(apiserver.audit_policy(plan)) == mine


def test_secrets_are_encrypted_and_older_ones_still_readable() -> None:
    parsed = yaml.safe_load(apiserver.encryption_config("a2V5"))
    assert parsed["resources"] == [
        {
            "resources": ["secrets"],
            "providers": [
                {"secretbox": {"keys": [{"name": "key-1", "secret": "a2V5"}]}},
                {"identity": {}},
            ],
        }
    ]
