"""Checks of the control plane's settings: what its components would not take, or not together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stacks.checks import audit
from stacks.config import token_issuers
from stacks.config.control_plane import ControlPlaneSpec, OidcSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.releases import versions


def problems(spec: Spec) -> list[Problem]:
    """Settings that an API server, controller manager or scheduler refuses to start with."""
    return [
        *_leader_election(spec),
        *_admission(spec),
        *audit.problems(spec.control_plane.audit),
        *_oidc(spec),
        *_token_issuers(spec),
        *_pod_security(spec),
    ]


def warnings(spec: Spec) -> list[Problem]:
    """Names of an identity provider that the cluster gives rights to; secrets in the log."""
    out = audit.warnings(spec.control_plane.audit)
    for path, oidc in _issuers(spec.control_plane):
        if oidc.groups_claim and oidc.groups_prefix is None:
            text = "is missing: a group the provider calls system:masters may do everything"
            out.append(Problem(f"{path}.groupsPrefix", f"{text}; set one"))
        if oidc.username_prefix == "-":
            text = "'-' lets the provider name users as the cluster's own (system:...)"
            out.append(Problem(f"{path}.usernamePrefix", f"{text}; set a prefix"))
    return out


def _issuers(said: ControlPlaneSpec) -> Iterator[tuple[str, OidcSpec]]:
    if said.oidc is not None:
        yield "controlPlane.oidc", said.oidc
    for index, issuer in enumerate(said.oidc_issuers):
        yield f"controlPlane.oidcIssuers[{index}]", issuer


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
    if plugins is None:
        return []
    out = []
    if "NodeRestriction" not in plugins:
        text = "NodeRestriction is missing; without it one worker's kubelet can act on other nodes"
        out.append(Problem(path, text))
    if len(set(plugins)) != len(plugins):
        out.append(Problem(path, f"[{', '.join(plugins)}] names a plugin twice"))
    return out


def _oidc(spec: Spec) -> list[Problem]:
    out, seen = [], set()
    for path, issuer in _issuers(spec.control_plane):
        out += _issuer(path, issuer, [token_issuers.own(spec), *token_issuers.listed(spec)])
        if issuer.issuer_url in seen:
            out.append(Problem(f"{path}.issuerUrl", f"{issuer.issuer_url} is there twice"))
        seen.add(issuer.issuer_url)
        if issuer.signing_algs and _in_file(spec.control_plane):
            text = (
                "is a flag of the API server, which takes either flags or the file that "
                "controlPlane.anonymous: health and controlPlane.oidcIssuers are made of, by which "
                "any algorithm with a public key will do; leave it out"
            )
            out.append(Problem(f"{path}.signingAlgs", text))
    return out


def _token_issuers(spec: Spec) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, issuer in enumerate(spec.control_plane.service_account_issuers):
        if issuer in seen:
            path = f"controlPlane.serviceAccountIssuers[{index}]"
            yield Problem(path, f"{issuer} is there twice; leave one out")
        seen.add(issuer)


def _in_file(said: ControlPlaneSpec) -> bool:
    return said.anonymous == "health" or bool(said.oidc_issuers)


def _issuer(path: str, oidc: OidcSpec, own: Sequence[str]) -> list[Problem]:
    out = []
    if oidc.issuer_url in own:
        said = oidc.issuer_url
        text = f"{said} is the cluster's own issuer, of service accounts; name the provider's"
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
    # In words, against a default that warns, it says that nobody is warned.
    idle = spec.cluster.defaults == 1 or not wanted.model_fields_set & {"enforce", "audit", "warn"}
    if idle and {wanted.enforce, wanted.audit, wanted.warn} == {"privileged"}:
        text = "does nothing: enforce, audit and warn are all privileged; raise one, as to baseline"
        out.append(Problem(path, text))
    if wanted.version != "latest":
        said, cluster = wanted.version[1:], spec.cluster.kubernetes
        if (1, int(said.partition(".")[2])) > versions.minor(cluster):
            text = f"{wanted.version} is newer than cluster.kubernetes {cluster}; use latest"
            out.append(Problem(f"{path}.version", text))
    return out
