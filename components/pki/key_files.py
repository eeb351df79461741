"""Keys and certificates as files on a node.

Which ones a role needs, and the secret command that puts them there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import Input, Output, ResourceOptions
from pulumi_command import remote

from components.pki.authority import Pki
from components.ssh.commands import Identity, Machine, attempted
from stacks.cluster.certificates import (
    APPROVER_FILE,
    ETCD_PKI,
    INGRESS,
    KUBERNETES_PKI,
    LOAD_BALANCER_FILE,
)
from stacks.cluster.plan import Node, Plan
from stacks.phases.pki import KeyFile as Place
from stacks.phases.pki import of_pki
from stacks.render import apiserver, ingress, ingress_certificates, keepalived, kubeadm
from stacks.render.kubeadm import ENCRYPTION


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFile:
    """A file of phase pki with its text."""

    path: str
    text: Input[str]
    secret: bool
    owner: str = ""  # user:group; default: root

    @property
    def place(self) -> Place:
        """All but the text."""
        return Place(path=self.path, secret=self.secret, owner=self.owner)

    @property
    def name(self) -> str:
        """Of the file, without folder and ending."""
        return self.place.name


def of_member(pki: Pki, plan: Plan, node: Node, store_secret: Output[str] | None) -> list[KeyFile]:
    """What an etcd member needs: its own leafs, the CA's certificate, the keys of backups.

    `store_secret` opens the object store of the plan; None where there is none.
    """
    files = [KeyFile(path=f"{ETCD_PKI}/ca.crt", text=pki.bundle("etcd"), secret=False)]
    for kind in ("server", "peer"):
        files += _pair(pki, f"{node.name}-etcd-{kind}", f"{ETCD_PKI}/{kind}", owner="etcd:etcd")
    files += _pair(pki, f"{node.name}-etcd-client", f"{ETCD_PKI}/client")
    if plan.spec.etcd.backup.encrypt:
        files.append(KeyFile(path=f"{ETCD_PKI}/backup.key", text=pki.backup_key(), secret=True))
    store = plan.spec.etcd.backup.object_store
    if store is not None and store_secret is not None:
        files.append(KeyFile(path=f"{ETCD_PKI}/store.key", text=store_secret, secret=True))
        if store.ca is not None:
            files.append(KeyFile(path=f"{ETCD_PKI}/store-ca.crt", text=store.ca, secret=False))
    return files


def of_control_plane(pki: Pki, plan: Plan) -> list[KeyFile]:
    """What every master shares, with the Kubernetes CA's key, which masters sign with."""
    signer = pki.signer("kubernetes")
    files = [
        KeyFile(path=f"{KUBERNETES_PKI}/ca.crt", text=pki.bundle("kubernetes"), secret=False),
        KeyFile(path=f"{KUBERNETES_PKI}/ca.key", text=signer.key, secret=True),
        KeyFile(
            path=f"{KUBERNETES_PKI}/front-proxy-ca.crt",
            text=pki.bundle("front-proxy"),
            secret=False,
        ),
        KeyFile(path=f"{KUBERNETES_PKI}/etcd/ca.crt", text=pki.bundle("etcd"), secret=False),
        KeyFile(path=f"{KUBERNETES_PKI}/sa.pub", text=pki.service_account_public, secret=False),
        KeyFile(path=f"{KUBERNETES_PKI}/sa.key", text=pki.service_account_key, secret=True),
    ]
    if plan.spec.control_plane.encrypt_secrets:
        text = pki.encryption_keys().apply(apiserver.encryption_config)
        files.append(KeyFile(path=ENCRYPTION, text=text, secret=True))
    if kubeadm.has_own_signer(plan):
        files.append(KeyFile(path=kubeadm.SIGNER, text=signer.cert, secret=False))
    return files


def of_master(pki: Pki, plan: Plan, node: Node) -> list[KeyFile]:
    """A master's own leafs, and the password of VRRP where it can hold the VIP."""
    files = _of_holder(pki, plan, node)
    files += _pair(pki, f"{node.name}-approver", APPROVER_FILE)
    for kind in (
        "apiserver",
        "apiserver-kubelet-client",
        "front-proxy-client",
        "apiserver-etcd-client",
    ):
        files += _pair(pki, f"{node.name}-{kind}", f"{KUBERNETES_PKI}/{kind}")
    return files


def of_load_balancer(pki: Pki, plan: Plan, node: Node) -> list[KeyFile]:
    """What it asks the cluster with, and the password of VRRP where it can hold the VIP."""
    own = _pair(pki, f"{node.name}-load-balancer", LOAD_BALANCER_FILE)
    return [*_of_holder(pki, plan, node), *own]


def _of_holder(pki: Pki, plan: Plan, node: Node) -> list[KeyFile]:
    if node not in plan.holders:
        return []
    text = pki.vrrp_password().apply("auth_pass {}".format)
    return [KeyFile(path=keepalived.VRRP_FILE, text=text, secret=True)]


def of_ingress(pki: Pki, plan: Plan) -> list[KeyFile]:
    """Certificates of the ingress tier, each in one file with its key, as HAProxy takes them."""
    wanted = plan.spec.front_doors.ingress
    files: list[KeyFile] = []
    if wanted is None:
        return files
    if wanted.hosts:
        pair = pki.leafs[INGRESS]
        text = Output.all(pair.cert, pair.key).apply("".join)
        files.append(KeyFile(path=f"{ingress.CERTIFICATES}/own.pem", text=text, secret=True))
    for number, given in enumerate(wanted.certificates, start=1):
        text = Output.secret(ingress_certificates.pem(given))
        files.append(
            KeyFile(path=f"{ingress.CERTIFICATES}/given-{number}.pem", text=text, secret=True)
        )
    return files


def _pair(pki: Pki, leaf: str, path: str, *, owner: str = "") -> list[KeyFile]:
    pair = pki.leafs[leaf]
    return [
        KeyFile(path=f"{path}.crt", text=pair.cert, secret=False),
        KeyFile(path=f"{path}.key", text=pair.key, secret=True, owner=owner),
    ]


def place(
    name: str,
    machine: Machine,
    files: Sequence[KeyFile],
    *,
    generation: int,
    identity: Identity,
    opts: ResourceOptions,
    keys: str = "",
    os_packages: str = "",
) -> remote.Command:
    """Put the files on the machine. The one command whose values are secret as a whole.

    `keys` tells which generations are among them, where no public file does. `os_packages`: it runs
    too when that word changes, and waits until the machine is through with what follows from it.
    """
    told = of_pki([file.place for file in files], generation, os_packages)
    texts = {
        f"PKI_TEXT_{number}": Output.from_input(file.text).apply(lambda text: text.rstrip("\n"))
        for number, file in enumerate(files, start=1)
    }
    values: dict[str, Input[str]] = {**told, **texts}
    # Certificates change whenever their keys do, and are public: a hash of secrets would be one
    # itself.
    public = [file.text for file in files if not file.secret]
    parts = [str(generation), *filter(None, (keys, os_packages)), *public]
    return attempted(
        name, machine, "pki", values, identity=identity, parts=parts, secret=True, opts=opts
    )
