"""Secrets that add-ons bring: which there are, and the names of their values.

The values themselves are encrypted in the stack file under a key of their own, so that plans and
previews, which show the config, never hold them.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stacks.config.fields import DnsLabel, SecretKey, Section
from stacks.config.translation import ADDON_SECRETS

SecretType = Literal[
    "Opaque",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/tls",
    "kubernetes.io/basic-auth",
    "kubernetes.io/ssh-auth",
]


class AddonSecretSpec(Section):
    namespaces: tuple[DnsLabel, ...] = Field(
        description="where it is made, the same in each of them"
    )
    type: SecretType = Field("Opaque", description="type of the Secret, which never changes")
    data: dict[SecretKey, DnsLabel] = Field(
        description=f"by key, the name of its value below kube-ha:{ADDON_SECRETS} "
        f"(pulumi config set --secret --path kube-ha:{ADDON_SECRETS}.NAME)",
    )
