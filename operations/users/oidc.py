"""A kubeconfig's user for an identity provider of the control plane: kubelogin gets the tokens."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from operations.engine.engine import StackError
from stacks.config.control_plane import ControlPlaneSpec, OidcSpec

# Which scope brings a claim (OpenID Connect Core 1.0, 5.4); that of groups is the provider's own.
_SCOPES = {
    "email": ("email", "email_verified"),
    "profile": ("name", "given_name", "family_name", "nickname", "preferred_username"),
}
_ANY = "1"


def issuer(said: ControlPlaneSpec, which: str) -> OidcSpec:
    """The one with this URL, or with "1" the only one there is. Raises StackError."""
    known = [*([said.oidc] if said.oidc else []), *said.oidc_issuers]
    if which == _ANY and len(known) == 1:
        return known[0]
    for one in known:
        if one.issuer_url == which:
            return one
    if not known:
        raise StackError(
            "this cluster has no identity provider\n  do: set controlPlane.oidc and run up "
            "(docs/operate/users.md), or name a USER"
        )
    text = "there are several identity providers" if which == _ANY else f"{which} is none of them"
    urls = " or ".join(f"OIDC={one.issuer_url}" for one in known)
    raise StackError(f"{text}\n  do: {urls}")


def by_token(provider: OidcSpec, scopes: Sequence[str]) -> dict[str, object]:
    """Credentials without a secret: `kubectl oidc-login` (kubelogin) logs a person in."""
    claims = {provider.username_claim, provider.groups_claim}
    known = [scope for scope, brings in _SCOPES.items() if claims & {*brings}]
    words = [
        f"--oidc-issuer-url={provider.issuer_url}",
        f"--oidc-client-id={provider.client_id}",
        *(f"--oidc-extra-scope={scope}" for scope in dict.fromkeys([*known, *scopes])),
    ]
    if provider.ca:
        data = base64.b64encode(provider.ca.encode()).decode()
        words.append(f"--certificate-authority-data={data}")
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "kubectl",
            "args": ["oidc-login", "get-token", *words],
            "installHint": "https://github.com/int128/kubelogin: a plugin of kubectl",
            "interactiveMode": "IfAvailable",
        }
    }
