"""Config section of the PKI: lifetimes of certificates, and rotations of keys."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import Section

Subject = Literal["kubernetes", "etcd", "front-proxy", "service-account", "encryption", "seed"]
Step = Literal["trust", "issue", "drop"]
LAST_GENERATION = 1000  # of a key: more than anybody replaces


class RotationSpec(Section):
    """Where one kind of key stands: which generation of it is the newest, and what it does yet."""

    generation: Annotated[int, Field(ge=1, le=LAST_GENERATION)] = Field(
        1, description="the newest one of its kind; 1 is what the cluster is born with"
    )
    step: Step = Field(
        "drop",
        description="trust: the newest is known everywhere beside the one before; issue: it signs "
        "or encrypts; drop: the one before is gone. One step per update, in this order",
    )


class PkiRotationSpec(Section):
    kubernetes: RotationSpec = Field(
        RotationSpec(), description="CA of API servers, kubelets, controllers and administrators"
    )
    etcd: RotationSpec = Field(RotationSpec(), description="CA of etcd's members and clients")
    front_proxy: RotationSpec = Field(
        RotationSpec(), description="CA by which extension API servers know the API server"
    )
    service_account: RotationSpec = Field(
        RotationSpec(), description="key that signs the tokens of service accounts"
    )
    seed: RotationSpec = Field(
        RotationSpec(),
        description="what keys of Secrets, of etcd's snapshots and tokens of joining nodes are "
        "derived from",
    )


class PkiSpec(Section):
    ca_validity_hours: Annotated[int, Field(ge=24, le=876000)] = Field(
        87600, description="lifetime of the CAs; fixed when the cluster is made"
    )
    leaf_validity_hours: Annotated[int, Field(ge=2, le=87600)] = Field(
        8760, description="lifetime of every other certificate"
    )
    leaf_renewal_hours: Annotated[int, Field(ge=1, le=87600)] = Field(
        2160,
        description="an update that runs within this time before the end renews the certificate",
    )
    admin_generation: Annotated[int, Field(ge=1, le=LAST_GENERATION)] | None = Field(
        None,
        description="the output kubeconfig is in a group of this number, the only one that may do "
        "everything; raise it and every kubeconfig of before may do nothing. It only rises. "
        "Default: kubeadm's group, which a rotation of the CA ends",
    )
    rotation: PkiRotationSpec = Field(
        PkiRotationSpec(), description="CAs and signing keys that are replaced, step by step"
    )
