"""The administrator's kubeconfig with another user in it: the same ways to the API."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from operations.engine.engine import StackError


@dataclass(frozen=True, slots=True)
class Administrators:
    """What a stack's kubeconfig holds besides its user."""

    clusters: list[Mapping[str, object]]
    contexts: list[str]  # names; that of their cluster is the same
    current: str
    authorities: bytes  # PEM, one or more

    @classmethod
    def of(cls, text: str) -> Administrators:
        """Raises StackError."""
        try:
            found = yaml.safe_load(text)
            clusters = found["clusters"]
            data = clusters[0]["cluster"]["certificate-authority-data"]
            contexts = [str(one["name"]) for one in found["contexts"]]
            current = str(found["current-context"])
            return cls(clusters, contexts, current, base64.b64decode(data))
        except (yaml.YAMLError, LookupError, TypeError, ValueError):
            raise StackError(
                "the output kubeconfig of the stack cannot be read\n  do: run up again"
            ) from None

    def for_user(self, name: str, credentials: Mapping[str, object]) -> str:
        """A kubeconfig for somebody else, with every context that the administrator has."""
        return yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": self.clusters,
                "contexts": [
                    {"name": one, "context": {"cluster": one, "user": name}}
                    for one in self.contexts
                ],
                "current-context": self.current,
                "users": [{"name": name, "user": dict(credentials)}],
            },
            sort_keys=False,
        )


def by_certificate(certificate: bytes, key: bytes) -> dict[str, object]:
    """Credentials of a user, secret."""
    return {
        "client-certificate-data": base64.b64encode(certificate).decode(),
        "client-key-data": base64.b64encode(key).decode(),
    }
