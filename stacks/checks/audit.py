"""Checks of the audit log: a policy that the API server refuses, or that keeps secrets."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.config.control_plane import AuditSpec
from stacks.config.problems import Problem, shown

_PATH = "controlPlane.audit.policy"
_KIND = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
_LEVELS = ("None", "Metadata", "Request", "RequestResponse")
_WHO = ("users", "userGroups", "verbs", "namespaces")


def problems(audit: AuditSpec) -> list[Problem]:
    """What says nothing, and levels; which fields there are: check_audit_policy."""
    policy, out = audit.policy, []
    if not audit.enabled:
        idle = {"policy": policy, "detail": audit.detail, "webhook": audit.webhook}
        text = "does nothing while controlPlane.audit.enabled is false"
        return [
            Problem(f"controlPlane.audit.{key}", text)
            for key, said in idle.items()
            if said is not None
        ]
    if policy is None:
        return []
    if audit.detail is not None:
        text = "does nothing beside controlPlane.audit.policy; leave one of them out"
        out.append(Problem("controlPlane.audit.detail", text))
    for key, value in _KIND.items():
        if policy.get(key) != value:
            out.append(Problem(f"{_PATH}.{key}", f"must be {value!r}"))
    rules = policy.get("rules")
    if not isinstance(rules, list) or not rules:
        out.append(Problem(f"{_PATH}.rules", "is missing; list at least one rule with a level"))
        return out
    for index, rule in enumerate(rules):
        out += _rule(f"{_PATH}.rules[{index}]", rule)
    return out


def _rule(at: str, rule: object) -> list[Problem]:
    if not isinstance(rule, dict):
        text = f"{shown(rule)} is not a mapping; write `level: Metadata` and what it is for"
        return [Problem(at, text)]
    out = []
    if rule.get("level") not in _LEVELS:
        out.append(Problem(f"{at}.level", f"must be one of {', '.join(_LEVELS)}"))
    return out


def warnings(audit: AuditSpec) -> list[Problem]:
    """Secrets that would be in the log, in plain text."""
    rules = (audit.policy or {}).get("rules")
    for index, rule in enumerate(rules if isinstance(rules, list) else []):
        covered = _covers_secrets(rule) if isinstance(rule, dict) else ""
        if covered and rule.get("level") in ("Request", "RequestResponse"):
            text = (
                f"logs the content of Secrets ({rule['level']}): whoever reads the log has them; "
                "put a rule with level Metadata for secrets before it"
            )
            return [Problem(f"{_PATH}.rules[{index}]", text)]
        if covered == "all":
            return []  # decides before those that come after it
    return []


def _covers_secrets(rule: Mapping[str, object]) -> str:
    """all: every request for a Secret; some: of certain users, say; empty: none."""
    groups = rule.get("resources")
    if "nonResourceURLs" in rule and not groups:
        return ""
    some = "some" if any(rule.get(key) for key in _WHO) else "all"
    if not groups:
        return some
    found = ""
    for group in groups if isinstance(groups, list) else []:
        if not isinstance(group, dict) or group.get("group", "") != "":
            continue
        names = group.get("resources") or ["*"]
        if isinstance(names, list) and {"*", "secrets"} & {str(name) for name in names}:
            found = "some" if group.get("resourceNames") and found != "all" else some
    return found
