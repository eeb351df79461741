"""Checks of the control plane's settings: what its components would not take, or not together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stacks import versions
from stacks.problems import Problem, shown

if TYPE_CHECKING:
    from stacks.control_plane_settings import AuditSpec
    from stacks.spec import Spec


def problems(spec: Spec) -> list[Problem]:
    """Settings that an API server, controller manager or scheduler refuses to start with."""
    return [
        *_leader_election(spec),
        *_admission(spec),
        *_audit(spec.control_plane.audit),
        *_oidc(spec),
        *_pod_security(spec),
    ]


def warnings(spec: Spec) -> list[Problem]:
    """Names that an identity provider could give, and the cluster gives rights to."""
    oidc, out = spec.control_plane.oidc, []
    if oidc is None:
        return []
    if oidc.groups_claim and oidc.groups_prefix is None:
        text = "is missing: a group the provider calls system:masters may do everything; set one"
        out.append(Problem("controlPlane.oidc.groupsPrefix", text))
    if oidc.username_prefix == "-":
        text = "'-' lets the provider name users as the cluster's own (system:...); set a prefix"
        out.append(Problem("controlPlane.oidc.usernamePrefix", text))
    return out


def _leader_election(spec: Spec) -> list[Problem]:
    """client-go refuses to start unless lease > renew > 1.2 x retry."""
    path, timing = "controlPlane.leaderElection", spec.control_plane.leader_election
    out = []
    if timing.lease_duration_s <= timing.renew_deadline_s:
        text = f"{timing.lease_duration_s} is not above renewDeadlineS {timing.renew_deadline_s}"
        out.append(Problem(f"{path}.leaseDurationS", f"{text}; a leader must give up first"))
    if 5 * timing.renew_deadline_s <= 6 * timing.retry_period_s:
        text = f"{timing.renew_deadline_s} is not above 1.2 x retryPeriodS {timing.retry_period_s}"
        out.append(Problem(f"{path}.renewDeadlineS", f"{text}; leave time for a second try"))
    return out


def _admission(spec: Spec) -> list[Problem]:
    path, plugins = "controlPlane.admissionPlugins", spec.control_plane.admission_plugins
    out = []
    if "NodeRestriction" not in plugins:
        text = "NodeRestriction is missing; without it one worker's kubelet can act on other nodes"
        out.append(Problem(path, text))
    if len(set(plugins)) != len(plugins):
        out.append(Problem(path, f"[{', '.join(plugins)}] names a plugin twice"))
    return out


def _audit(audit: AuditSpec) -> list[Problem]:
    path, policy = "controlPlane.audit.policy", audit.policy
    if policy is None:
        return []
    if not audit.enabled:
        return [Problem(path, "does nothing while controlPlane.audit.enabled is false")]
    out = []
    wanted = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy"}
    for key, value in wanted.items():
        if policy.get(key) != value:
            out.append(Problem(f"{path}.{key}", f"must be {value!r}"))
    rules = policy.get("rules")
    levels = ("None", "Metadata", "Request", "RequestResponse")
    if not isinstance(rules, list) or not rules:
        out.append(Problem(f"{path}.rules", "is missing; list at least one rule with a level"))
        return out
    for index, rule in enumerate(rules):
        at = f"{path}.rules[{index}]"
        if not isinstance(rule, dict):
            text = f"{shown(rule)} is no mapping; write `level: Metadata` and what it is for"
            out.append(Problem(at, text))
        elif rule.get("level") not in levels:
            out.append(Problem(f"{at}.level", f"must be one of {', '.join(levels)}"))
    return out


def _oidc(spec: Spec) -> list[Problem]:
    path, oidc = "controlPlane.oidc", spec.control_plane.oidc
    if oidc is None:
        return []
    out = []
    own = f"https://kubernetes.default.svc.{spec.cluster.dns_domain}"
    if oidc.issuer_url == own:
        text = f"{own} is the cluster's own issuer, of service accounts; name the provider's"
        out.append(Problem(f"{path}.issuerUrl", text))
    if oidc.groups_prefix is not None and oidc.groups_claim is None:
        out.append(Problem(f"{path}.groupsPrefix", "does nothing without groupsClaim"))
    for key, prefix in (
        ("usernamePrefix", oidc.username_prefix),
        ("groupsPrefix", oidc.groups_prefix),
    ):
        if prefix is not None and prefix.startswith("system:"):
            text = f"{prefix!r} is where the cluster's own names begin; use another, as 'oidc:'"
            out.append(Problem(f"{path}.{key}", text))
    return out


def _pod_security(spec: Spec) -> list[Problem]:
    path, wanted = "controlPlane.podSecurity", spec.control_plane.pod_security
    if wanted is None:
        return []
    out = []
    if {wanted.enforce, wanted.audit, wanted.warn} == {"privileged"}:
        text = "does nothing: enforce, audit and warn are all privileged; raise one, as to baseline"
        out.append(Problem(path, text))
    if wanted.version != "latest":
        said, cluster = wanted.version[1:], spec.cluster.kubernetes
        if (1, int(said.partition(".")[2])) > versions.minor(cluster):
            text = f"{wanted.version} is newer than cluster.kubernetes {cluster}; use latest"
            out.append(Problem(f"{path}.version", text))
    return out
