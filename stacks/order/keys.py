"""Keys and certificates of each role: which files, and of what they are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stacks.cluster.certificates import (
    APPROVER_FILE,
    ETCD_PKI,
    INGRESS,
    KUBERNETES_PKI,
    LOAD_BALANCER_FILE,
)
from stacks.cluster.plan import Node, Plan
from stacks.order.scene import Scene, attempted
from stacks.order.step import From, Said, Source, Step, ca
from stacks.phases.pki import KeyFile, of_pki
from stacks.render import apiserver, ingress, keepalived, kubeadm
from stacks.render.kubeadm import ENCRYPTION


class Key(NamedTuple):
    """A file, and of what its text is made."""

    file: KeyFile
    text: From


def of_member(plan: Plan, node: Node) -> list[Key]:
    """What an etcd member needs: its own leafs, the CA's certificate, the keys of backups."""
    files = [_open(f"{ETCD_PKI}/ca.crt", Source("bundle", "etcd"))]
    for kind in ("server", "peer"):
        files += _pair(f"{node.name}-etcd-{kind}", f"{ETCD_PKI}/{kind}", owner="etcd:etcd")
    files += _pair(f"{node.name}-etcd-client", f"{ETCD_PKI}/client")
    if plan.spec.etcd.backup.encrypt:
        files.append(_secret(f"{ETCD_PKI}/backup.key", Source("backup key")))
    store = plan.spec.etcd.backup.object_store
    if store is not None and store.access_key is not None:
        files.append(_secret(f"{ETCD_PKI}/store.key", Source("store secret")))
    if store is not None and store.ca is not None:
        files.append(_open(f"{ETCD_PKI}/store-ca.crt", Source("text", store.ca)))
    return files


def of_control_plane(plan: Plan) -> list[Key]:
    """What every master shares, with the Kubernetes CA's key, which masters sign with."""
    files = [
        _open(f"{KUBERNETES_PKI}/ca.crt", ca()),
        _secret(f"{KUBERNETES_PKI}/ca.key", Source("signer key", "kubernetes")),
        _open(f"{KUBERNETES_PKI}/front-proxy-ca.crt", Source("bundle", "front-proxy")),
        _open(f"{KUBERNETES_PKI}/etcd/ca.crt", Source("bundle", "etcd")),
        _open(f"{KUBERNETES_PKI}/sa.pub", Source("service account public")),
        _secret(f"{KUBERNETES_PKI}/sa.key", Source("service account key")),
    ]
    if plan.spec.control_plane.encrypt_secrets:
        text = From((Source("encryption keys"),), apiserver.encryption_config)
        files.append(Key(KeyFile(path=ENCRYPTION, secret=True), text))
    if kubeadm.has_own_signer(plan):
        files.append(_open(kubeadm.SIGNER, Source("signer cert", "kubernetes")))
    return files


def of_master(plan: Plan, node: Node) -> list[Key]:
    """A master's own leafs, and the password of VRRP where it can hold the VIP."""
    files = [*_of_holder(plan, node), *_pair(f"{node.name}-approver", APPROVER_FILE)]
    for kind in (
        *("apiserver", "apiserver-kubelet-client", "front-proxy-client"),
        "apiserver-etcd-client",
    ):
        files += _pair(f"{node.name}-{kind}", f"{KUBERNETES_PKI}/{kind}")
    return files


def of_load_balancer(plan: Plan, node: Node) -> list[Key]:
    """What it asks the cluster with, and the password of VRRP where it can hold the VIP."""
    own = _pair(f"{node.name}-load-balancer", LOAD_BALANCER_FILE)
    return [*_of_holder(plan, node), *own]


def of_ingress(plan: Plan) -> list[Key]:
    """Certificates of the ingress tier, each in one file with its key, as HAProxy takes them."""
    wanted = plan.spec.front_doors.ingress
    files: list[Key] = []
    if wanted is None:
        return files
    if wanted.hosts:
        both = (Source("leaf cert", INGRESS), Source("leaf key", INGRESS))
        text = From(both, lambda cert, key: f"{cert}{key}")
        path = f"{ingress.CERTIFICATES}/own.pem"
        files.append(Key(KeyFile(path=path, secret=True), text))
    for number, _ in enumerate(wanted.certificates, start=1):
        path = f"{ingress.CERTIFICATES}/given-{number}.pem"
        files.append(_secret(path, Source("given", str(number))))
    return files


def _of_holder(plan: Plan, node: Node) -> list[Key]:
    if node not in plan.holders:
        return []
    text = From((Source("vrrp"),), "auth_pass {}".format)
    return [Key(KeyFile(path=keepalived.VRRP_FILE, secret=True), text)]


def _pair(leaf: str, path: str, *, owner: str = "") -> list[Key]:
    key = From((Source("leaf key", leaf),), str)
    return [
        _open(f"{path}.crt", Source("leaf cert", leaf)),
        Key(KeyFile(path=f"{path}.key", secret=True, owner=owner), key),
    ]


def _open(path: str, source: Source) -> Key:
    return Key(KeyFile(path=path, secret=False), From((source,), str))


def _secret(path: str, source: Source) -> Key:
    return Key(KeyFile(path=path, secret=True), From((source,), str))


def placed(
    scene: Scene,
    name: str,
    node: Node,
    files: Sequence[Key],
    *,
    after: tuple[str, ...],
    parent: str = "",
    keys: str = "",
    os_packages: str = "",
    is_patient: bool = True,
) -> tuple[Step, Step]:
    """Puts the files on the machine. The one step whose values are secret as a whole.

    `keys` tells which generations are among them, where no public file does. `os_packages`: it runs
    too when that word changes, and waits until the machine is through with what follows from it.
    """
    told = of_pki([key.file for key in files], scene.generation, os_packages)
    values: dict[str, Said] = {**told}
    for number, key in enumerate(files, start=1):
        values[f"PKI_TEXT_{number}"] = _stripped(key.text)
    # Certificates change whenever their keys do, and are public: a hash of secrets would be one
    # itself.
    public = [key.text for key in files if not key.file.secret]
    step = Step(
        name=name,
        kind="phase",
        node=node,
        phase="pki",
        parent=parent,
        after=after,
        values=values,
        is_secret=True,
        is_patient=is_patient,
    )
    words = filter(None, (keys, os_packages))
    return attempted(step, (str(scene.generation), *words, *public))


def _stripped(text: From) -> From:
    return From(text.sources, lambda *known: text.make(*known).rstrip("\n"))
