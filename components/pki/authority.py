"""The cluster's PKI, made by pulumi-tls.

Three CAs, the service-account key, every leaf of stacks.cluster.certificates.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import pulumi_tls as tls
from pulumi import ComponentResource, Output, ResourceOptions

from stacks.cluster import rotation
from stacks.cluster.certificates import Ca, Leaf, table
from stacks.cluster.plan import Plan
from stacks.config import pki
from stacks.edits import endings

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
    ends: Output[str]  # RFC 3339


class Pki(ComponentResource):
    """Everything secret that a cluster is born with.

    CA keys of etcd and front-proxy never leave the state.
    """

    def __init__(self, name: str, plan: Plan, opts: ResourceOptions | None = None) -> None:
        super().__init__("kube-ha:index:Pki", name, None, opts)
        self._name = name
        self._plan = plan
        own = ResourceOptions(parent=self)
        self._rotations = rotation.of(plan.spec)
        # By generation, the one that signs first.
        self._authorities: dict[Ca, dict[int, Pair]] = {
            ca: {number: self._authority(ca, number) for number in self._generations(ca)}
            for ca in _SUBJECTS
        }
        accounts = [
            tls.PrivateKey(
                f"{name}-service-account{_suffix(number)}",
                algorithm="RSA",
                rsa_bits=2048,
                opts=own,
            )
            for number in self._generations("service-account")
        ]
        self.service_account_key = accounts[0].private_key_pem
        self.service_account_public = _joined(key.public_key_pem for key in accounts)
        # The source of every other secret, so that none of them needs a resource or a long life of
        # its own. None ever goes: the first names the cluster, and what another one has encrypted
        # may be on some disk still.
        self._seeds = {
            number: tls.PrivateKey(f"{name}-seed{_suffix(number)}", algorithm="ED25519", opts=own)
            for number in range(1, self._rotations["seed"].generation + 1)
        }
        self.cluster_id: Output[str] = self._seeds[1].public_key_openssh.apply(
            lambda key: hashlib.sha256(key.encode()).hexdigest()[:12]
        )
        self.leafs: dict[str, Pair] = {leaf.name: self._leaf(leaf) for leaf in table(plan)}
        self.register_outputs({})

    def derived(self, purpose: str, *, seed: int | None = None) -> Output[bytes]:
        """32 secret bytes for one purpose, the same as long as the seed is; default: today's."""
        number = seed or rotation.signing(self._rotations["seed"])
        return self._seeds[number].private_key_pem.apply(
            lambda pem: hashlib.sha256(f"{purpose}\n{pem}".encode()).digest()
        )

    def endings(self) -> Output[list[dict[str, str]]]:
        """The first leaf and the first CA that end, to be remembered."""
        leafs = {name: pair.ends for name, pair in self.leafs.items()}
        cas = {
            f"{ca}{_suffix(number)}": pair.ends
            for ca, known in self._authorities.items()
            for number, pair in known.items()
        }
        return Output.all(
            Output.all(**leafs).apply(lambda known: endings.first("leaf", known)),
            Output.all(**cas).apply(lambda known: endings.first("ca", known)),
        )

    def signer(self, ca: Ca) -> Pair:
        """The CA of that name which signs now."""
        return next(iter(self._authorities[ca].values()))

    def bundle(self, ca: Ca) -> Output[str]:
        """Certificates of all generations that are trusted, PEM."""
        known = self._authorities[ca]
        # kubeadm takes the first one for the signer. etcd has to restart to read its file, so there
        # the order stays when another one begins to sign.
        order = sorted(known) if ca == "etcd" else known
        return _joined(known[number].cert for number in order)

    def encryption_keys(self) -> Output[dict[str, str]]:
        """Keys of secretbox, base64 of 32 bytes, by name; the one that encrypts first."""
        keys = {
            name: self.derived(f"encryption at rest{_suffix(own, ' ')}", seed=seed).apply(
                lambda key: base64.b64encode(key).decode()
            )
            for name, (own, seed) in rotation.encryption_keys(self._plan.spec).items()
        }
        return Output.all(*keys.values()).apply(lambda known: dict(zip(keys, known, strict=True)))

    def backup_key(self, *, seed: int | None = None) -> Output[str]:
        """Passphrase of etcd snapshots: 128 random bits in hexadecimal digits."""
        return self.derived("etcd backup", seed=seed).apply(lambda key: key[:16].hex())

    def backup_keys(self) -> Output[dict[str, str]]:
        """The same of every seed there ever was, by its generation."""
        return Output.all(**{str(number): self.backup_key(seed=number) for number in self._seeds})

    def vrrp_password(self) -> Output[str]:
        """By which holders of the VIP know each other: 8 characters, all that VRRP takes.

        Always of the first seed: VRRP sends it in plain text, so it keeps no listener out, and
        holders with two of them would both take the address.
        """
        return self.derived("vrrp", seed=1).apply(lambda key: base64.b32encode(key).decode()[:8])

    def _generations(self, subject: pki.Subject) -> tuple[int, ...]:
        return rotation.generations(self._rotations[subject])

    def _authority(self, ca: Ca, generation: int) -> Pair:
        own = ResourceOptions(parent=self)
        name = f"{self._name}-{ca}-ca{_suffix(generation)}"
        key = tls.PrivateKey(f"{name}-key", algorithm="ECDSA", ecdsa_curve="P256", opts=own)
        cert = tls.SelfSignedCert(
            name,
            private_key_pem=key.private_key_pem,
            is_ca_certificate=True,
            set_subject_key_id=True,
            allowed_uses=_CA_USES,
            validity_period_hours=self._plan.spec.pki.ca_validity_hours,
            subject=tls.SelfSignedCertSubjectArgs(
                common_name=f"{_SUBJECTS[ca]}{_suffix(generation)}"
            ),
            opts=own,
        )
        return Pair(key=key.private_key_pem, cert=cert.cert_pem, ends=cert.validity_end_time)

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
            ca_private_key_pem=self.signer(leaf.ca).key,
            ca_cert_pem=self.signer(leaf.ca).cert,
            allowed_uses=list(leaf.usages),
            validity_period_hours=self._plan.spec.pki.leaf_validity_hours,
            early_renewal_hours=self._plan.spec.pki.leaf_renewal_hours,
            opts=own,
        )
        return Pair(key=key.private_key_pem, cert=cert.cert_pem, ends=cert.validity_end_time)


def _suffix(generation: int, sign: str = "-") -> str:
    """Of names: the first generation has none."""
    return f"{sign}{generation}" if generation > 1 else ""


def _joined(texts: Iterable[Output[str]]) -> Output[str]:
    """PEM texts in one file; a single one as it is."""
    return Output.all(*texts).apply(
        lambda known: (
            "".join(text if text.endswith("\n") else f"{text}\n" for text in known)
            if len(known) > 1
            else str(known[0])
        )
    )
