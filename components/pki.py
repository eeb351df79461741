"""The cluster's PKI, made by pulumi-tls.

Three CAs, the service-account key, every leaf of stacks.certificates.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass

import pulumi_tls as tls
from pulumi import ComponentResource, Output, ResourceOptions

from stacks.certificates import Ca, Leaf, table
from stacks.plan import Plan

_CA_USES = ["cert_signing", "crl_signing", "digital_signature"]
_SUBJECTS: dict[Ca, str] = {
    "kubernetes": "kubernetes",
    "etcd": "etcd-ca",
    "front-proxy": "front-proxy-ca",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A private key and its certificate, both PEM."""

    key: Output[str]
    cert: Output[str]


class Pki(ComponentResource):
    """Everything secret that a cluster is born with.

    CA keys of etcd and front-proxy never leave the state.
    """

    def __init__(self, name: str, plan: Plan, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Pki", name, None, opts)
        self._name = name
        self._plan = plan
        own = ResourceOptions(parent=self)
        self.ca: dict[Ca, Pair] = {ca: self._authority(ca) for ca in _SUBJECTS}
        service_account = tls.PrivateKey(
            f"{name}-service-account", algorithm="RSA", rsa_bits=2048, opts=own
        )
        self.service_account_key = service_account.private_key_pem
        self.service_account_public = service_account.public_key_pem
        # The one source of every other secret, so that none of them needs a resource or a long
        # life of its own.
        self._seed = tls.PrivateKey(f"{name}-seed", algorithm="ED25519", opts=own)
        self.cluster_id: Output[str] = self._seed.public_key_openssh.apply(
            lambda key: hashlib.sha256(key.encode()).hexdigest()[:12]
        )
        self.leafs: dict[str, Pair] = {leaf.name: self._leaf(leaf) for leaf in table(plan)}
        self.register_outputs({})

    def derived(self, purpose: str) -> Output[bytes]:
        """32 secret bytes for one purpose, the same for the life of the cluster."""
        return self._seed.private_key_pem.apply(
            lambda pem: hashlib.sha256(f"{purpose}\n{pem}".encode()).digest()
        )

    def encryption_key(self) -> Output[str]:
        """Key of secretbox, base64 of 32 bytes."""
        return self.derived("encryption at rest").apply(lambda key: base64.b64encode(key).decode())

    def _authority(self, ca: Ca) -> Pair:
        own = ResourceOptions(parent=self)
        key = tls.PrivateKey(
            f"{self._name}-{ca}-ca-key", algorithm="ECDSA", ecdsa_curve="P256", opts=own
        )
        cert = tls.SelfSignedCert(
            f"{self._name}-{ca}-ca",
            private_key_pem=key.private_key_pem,
            is_ca_certificate=True,
            set_subject_key_id=True,
            allowed_uses=_CA_USES,
            validity_period_hours=self._plan.spec.pki.ca_validity_hours,
            subject=tls.SelfSignedCertSubjectArgs(common_name=_SUBJECTS[ca]),
            opts=own,
        )
        return Pair(key=key.private_key_pem, cert=cert.cert_pem)

    def _leaf(self, leaf: Leaf) -> Pair:
        own = ResourceOptions(parent=self)
        name = f"{self._name}-{leaf.name}"
        key = tls.PrivateKey(f"{name}-key", algorithm="ECDSA", ecdsa_curve="P256", opts=own)
        request = tls.CertRequest(
            f"{name}-request",
            private_key_pem=key.private_key_pem,
            subject=tls.CertRequestSubjectArgs(
                common_name=leaf.common_name,
                organization=leaf.organizations[0] if leaf.organizations else None,
            ),
            dns_names=list(leaf.dns_names) or None,
            ip_addresses=list(leaf.ip_addresses) or None,
            opts=own,
        )
        cert = tls.LocallySignedCert(
            name,
            cert_request_pem=request.cert_request_pem,
            ca_private_key_pem=self.ca[leaf.ca].key,
            ca_cert_pem=self.ca[leaf.ca].cert,
            allowed_uses=list(leaf.usages),
            validity_period_hours=self._plan.spec.pki.leaf_validity_hours,
            early_renewal_hours=self._plan.spec.pki.leaf_renewal_hours,
            opts=own,
        )
        return Pair(key=key.private_key_pem, cert=cert.cert_pem)
