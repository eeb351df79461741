"""1.3 to 3: controllers, etcd, and who gets in."""

from __future__ import annotations

from operations.cis import deciders as by
from operations.cis.control import API, manual, scored

_MANAGER, _SCHEDULER = "kube-controller-manager", "kube-scheduler"

CONTROLLERS = (
    manual(
        "1.3.1",
        "finished pods are cleared away",
        "masters",
        by.at_least(_MANAGER, "terminated-pod-gc-threshold", 1),
    ),
    scored(
        "1.3.2",
        "no profiles of the controller manager",
        "masters",
        by.flag(_MANAGER, "profiling", "false"),
    ),
    scored(
        "1.3.3",
        "each controller has an account of its own",
        "masters",
        by.flag(_MANAGER, "use-service-account-credentials", "true"),
    ),
    scored(
        "1.3.4",
        "tokens are signed by a key of their own",
        "masters",
        by.flags_set(_MANAGER, "service-account-private-key-file"),
    ),
    scored(
        "1.3.5",
        "pods know the API server by its CA",
        "masters",
        by.flags_set(_MANAGER, "root-ca-file"),
    ),
    scored(
        "1.3.6",
        "serving certificates of kubelets rotate",
        "masters",
        by.gate_not_off(_MANAGER, "RotateKubeletServerCertificate"),
    ),
    scored(
        "1.3.7",
        "the controller manager serves its machine alone",
        "masters",
        by.flag(_MANAGER, "bind-address", "127.0.0.1"),
    ),
    scored(
        "1.4.1",
        "no profiles of the scheduler",
        "masters",
        by.flag(_SCHEDULER, "profiling", "false"),
    ),
    scored(
        "1.4.2",
        "the scheduler serves its machine alone",
        "masters",
        by.flag(_SCHEDULER, "bind-address", "127.0.0.1"),
    ),
)

ETCD = (
    scored("2.1", "etcd serves by TLS", "members", by.flags_set("etcd", "cert-file", "key-file")),
    scored(
        "2.2",
        "clients of etcd show a certificate",
        "members",
        by.flag("etcd", "client-cert-auth", "true"),
    ),
    scored(
        "2.3",
        "no certificates that etcd makes up for clients",
        "members",
        by.flag_not("etcd", "auto-tls", "true"),
    ),
    scored(
        "2.4",
        "members talk by TLS",
        "members",
        by.flags_set("etcd", "peer-cert-file", "peer-key-file"),
    ),
    scored(
        "2.5",
        "members show each other certificates",
        "members",
        by.flag("etcd", "peer-client-cert-auth", "true"),
    ),
    scored(
        "2.6",
        "no certificates that etcd makes up for members",
        "members",
        by.flag_not("etcd", "peer-auto-tls", "true"),
    ),
    manual("2.7", "etcd has a CA of its own", "members", by.own_authority),
)

POLICY = (
    manual(
        "3.1.1",
        "people do not use client certificates",
        "masters",
        reason="the stack's kubeconfig is a certificate, for who has the stack's state; give "
        "people an identity provider (controlPlane.oidc)",
    ),
    manual(
        "3.1.2",
        "people do not use tokens of service accounts",
        "masters",
        reason="none is made here for people",
    ),
    manual(
        "3.1.3",
        "people do not use bootstrap tokens",
        "masters",
        reason="they live two hours and make nodes, nothing else",
    ),
    manual("3.2.1", "there is an audit policy", "masters", by.flags_set(API, "audit-policy-file")),
    manual("3.2.2", "it covers what matters", "masters", by.audit_concerns),
)
