"""Who signs tokens of service accounts: the name in a token, by which others find its keys."""

from __future__ import annotations

from stacks.config.spec import Spec

JWKS = "openid/v1/jwks"  # where API servers, and documents of issuers, have the keys


def own(spec: Spec) -> str:
    """The one that kubeadm gives API servers, which nobody outside can ask for keys."""
    return f"https://kubernetes.default.svc.{spec.cluster.dns_domain}"


def listed(spec: Spec) -> tuple[str, ...]:
    """Those whose tokens API servers take. The first is in the tokens that they sign."""
    return spec.control_plane.service_account_issuers or (own(spec),)
