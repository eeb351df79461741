"""Who users are: issuers of tokens, and what may be asked without any credential."""

from __future__ import annotations

from stacks.cluster.plan import Plan
from stacks.config.control_plane import OidcSpec
from stacks.documents.yaml_text import documents

# Load balancers, kubelets' probes and the node scripts ask these before they have a credential.
# Not /version: it tells who scans which release runs here.
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")


def in_file(plan: Plan) -> bool:
    """Whether the API server reads it from a file; it takes either that or flags."""
    said = plan.spec.control_plane
    return said.anonymous == "health" or bool(said.oidc_issuers)


def issuer_of_flags(plan: Plan) -> OidcSpec | None:
    """The issuer that the API server knows by its flags."""
    return None if in_file(plan) else plan.spec.control_plane.oidc


def oidc_ca(plan: Plan) -> str:
    """/etc/kubernetes/oidc-ca.crt; empty where no flag names it."""
    oidc = issuer_of_flags(plan)
    return (oidc.ca if oidc else None) or ""


def configuration(plan: Plan) -> str:
    """/etc/kubernetes/authentication.yaml; empty where flags say it all."""
    if not in_file(plan):
        return ""
    said = plan.spec.control_plane
    issuers = [*([said.oidc] if said.oidc else []), *said.oidc_issuers]
    found: dict[str, object] = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
    }
    if issuers:
        found["jwt"] = [_authenticator(issuer) for issuer in issuers]
    if said.anonymous == "health":
        paths = [{"path": path} for path in HEALTH_PATHS]
        found["anonymous"] = {"enabled": True, "conditions": paths}
    return documents(found)


def _authenticator(said: OidcSpec) -> dict[str, object]:
    """As the API server takes the flags of one issuer (its options.ToAuthenticationConfig)."""
    issuer: dict[str, object] = {"url": said.issuer_url, "audiences": [said.client_id]}
    if said.ca:
        issuer["certificateAuthority"] = said.ca
    username = {"claim": said.username_claim, "prefix": _username_prefix(said)}
    mappings: dict[str, object] = {"username": username}
    if said.groups_claim:
        mappings["groups"] = {"claim": said.groups_claim, "prefix": said.groups_prefix or ""}
    found: dict[str, object] = {"issuer": issuer, "claimMappings": mappings}
    if said.required_claims:
        found["claimValidationRules"] = [
            {"claim": claim, "requiredValue": wanted}
            for claim, wanted in sorted(said.required_claims.items())
        ]
    return found


def _username_prefix(said: OidcSpec) -> str:
    if said.username_prefix == "-":
        return ""
    if said.username_prefix:
        return said.username_prefix
    return "" if said.username_claim == "email" else f"{said.issuer_url}#"
