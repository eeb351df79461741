"""What steps are made of that is secret, or known to an update alone, by its source."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from pulumi import Input, Output

from components.pki.authority import Pki
from stacks.cluster.certificates import Ca
from stacks.cluster.plan import Plan
from stacks.config.front_doors import GivenCertificateSpec
from stacks.order.step import Source
from stacks.phases import join
from stacks.render import ingress_certificates


@dataclass(frozen=True, slots=True, kw_only=True)
class Secrets:
    pki: Pki
    plan: Plan
    store_secret: Output[str] | None  # of the object store that snapshots of etcd go to
    addon_secrets: Mapping[str, Output[str]]  # values of Secrets of add-ons, by name

    def of(self, source: Source) -> Input[object]:
        """Raises KeyError for a source that is none."""
        match source.kind:
            case "bundle":
                return self.pki.bundle(_ca(source))
            case "signer key":
                return self.pki.signer(_ca(source)).key
            case "signer cert":
                return self.pki.signer(_ca(source)).cert
            case "leaf cert":
                return self.pki.leafs[source.name].cert
            case "leaf key":
                return self.pki.leafs[source.name].key
            case "join token":
                return self.pki.derived(source.name).apply(join.token)
            case "text":
                return source.name
            case "addon secret":
                return self.addon_secrets[source.name]
            case "addon mark":
                return self._mark(source.name)
        return self._of_stack(source)

    def _of_stack(self, source: Source) -> Input[object]:
        match source.kind:
            case "service account public":
                return self.pki.service_account_public
            case "service account key":
                return self.pki.service_account_key
            case "encryption keys":
                return self.pki.encryption_keys()
            case "backup key":
                return self.pki.backup_key()
            case "vrrp":
                return self.pki.vrrp_password()
            case "store secret" if self.store_secret is not None:
                return self.store_secret
            case "given":
                return Output.secret(ingress_certificates.pem(self._given(source)))
            case "given chain":
                return ingress_certificates.chain(self._given(source))
        raise KeyError(source.kind)

    def _mark(self, name: str) -> Output[str]:
        """A text that is another one when the value is, and no help to who guesses it.

        It is made with a key that the state alone holds, so it need not be secret itself.
        """
        both = Output.all(self.pki.derived("values of add-ons"), self.addon_secrets[name])
        return Output.unsecret(
            both.apply(lambda known: hmac.digest(known[0], known[1].encode(), "sha256")[:8].hex())
        )

    def _given(self, source: Source) -> GivenCertificateSpec:
        wanted = self.plan.spec.front_doors.ingress
        if wanted is None:
            raise KeyError(source.name)
        return wanted.certificates[int(source.name) - 1]


def _ca(source: Source) -> Ca:
    known: dict[str, Ca] = {
        "kubernetes": "kubernetes",
        "etcd": "etcd",
        "front-proxy": "front-proxy",
    }
    return known[source.name]
