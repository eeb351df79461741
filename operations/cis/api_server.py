"""1.2: the API server."""

from __future__ import annotations

from operations.cis import deciders as by
from operations.cis.control import API, manual, scored

API_SERVER = (
    manual(
        "1.2.1",
        "nobody is served without a credential",
        "masters",
        by.anonymous,
        "load balancers and probes ask for health (/healthz, /livez, /readyz) before they have a "
        "credential; at any other path a request without one is refused (controlPlane.anonymous)",
        by.only_health,
    ),
    scored(
        "1.2.2",
        "no file of passwords in plain text",
        "masters",
        by.flag_not(API, "token-auth-file"),
    ),
    manual(
        "1.2.3",
        "Services cannot take other machines' addresses",
        "masters",
        by.listed(API, "enable-admission-plugins", has="DenyServiceExternalIPs"),
    ),
    scored(
        "1.2.4",
        "kubelets know the API server by its certificate",
        "masters",
        by.flags_set(API, "kubelet-client-certificate", "kubelet-client-key"),
    ),
    scored(
        "1.2.5",
        "the API server checks kubelets' certificates",
        "masters",
        by.flags_set(API, "kubelet-certificate-authority"),
    ),
    scored(
        "1.2.6",
        "not everything is allowed",
        "masters",
        by.listed(API, "authorization-mode", lacks="AlwaysAllow"),
    ),
    scored(
        "1.2.7",
        "kubelets read what is theirs alone (Node)",
        "masters",
        by.listed(API, "authorization-mode", has="Node"),
    ),
    scored(
        "1.2.8", "rights are RBAC's", "masters", by.listed(API, "authorization-mode", has="RBAC")
    ),
    manual(
        "1.2.9",
        "events are limited at admission (EventRateLimit)",
        "masters",
        by.listed(API, "enable-admission-plugins", has="EventRateLimit"),
        "an alpha plugin; API Priority and Fairness, which is on, lets no client fill the API",
    ),
    scored(
        "1.2.10",
        "not everything is admitted",
        "masters",
        by.listed(API, "enable-admission-plugins", lacks="AlwaysAdmit"),
    ),
    manual(
        "1.2.11",
        "images are pulled again for every pod (AlwaysPullImages)",
        "masters",
        by.listed(API, "enable-admission-plugins", has="AlwaysPullImages"),
        "no pod would start while the registry is unavailable; kubelets ask for credentials "
        "of private "
        "images themselves since 1.35. controlPlane.admissionPlugins has it for who wants it",
    ),
    *(
        scored(
            number,
            f"admission plugin {plugin} was not switched off",
            "masters",
            by.listed(API, "disable-admission-plugins", lacks=plugin),
        )
        for number, plugin in (("1.2.12", "ServiceAccount"), ("1.2.13", "NamespaceLifecycle"))
    ),
    scored(
        "1.2.14",
        "kubelets write what is theirs alone (NodeRestriction)",
        "masters",
        by.listed(API, "enable-admission-plugins", has="NodeRestriction"),
    ),
    scored(
        "1.2.15", "no profiles of the API server", "masters", by.flag(API, "profiling", "false")
    ),
    scored("1.2.16", "there is an audit log", "masters", by.flags_set(API, "audit-log-path")),
    scored(
        "1.2.17",
        "it is kept for 30 days",
        "masters",
        by.at_least(API, "audit-log-maxage", 30),
    ),
    scored("1.2.18", "ten files of it", "masters", by.at_least(API, "audit-log-maxbackup", 10)),
    scored("1.2.19", "of 100 MB each", "masters", by.at_least(API, "audit-log-maxsize", 100)),
    manual("1.2.20", "requests end by themselves", "masters", by.request_timeout),
    scored(
        "1.2.21",
        "tokens of deleted accounts are refused",
        "masters",
        by.flag_not(API, "service-account-lookup", "false"),
    ),
    scored(
        "1.2.22",
        "tokens are checked by a key of their own",
        "masters",
        by.flags_set(API, "service-account-key-file"),
    ),
    scored(
        "1.2.23",
        "etcd knows the API server by its certificate",
        "masters",
        by.flags_set(API, "etcd-certfile", "etcd-keyfile"),
    ),
    scored(
        "1.2.24",
        "the API is served by TLS",
        "masters",
        by.flags_set(API, "tls-cert-file", "tls-private-key-file"),
    ),
    scored(
        "1.2.25",
        "clients are known by certificates of a CA",
        "masters",
        by.flags_set(API, "client-ca-file"),
    ),
    scored("1.2.26", "etcd is known by its CA", "masters", by.flags_set(API, "etcd-cafile")),
    manual(
        "1.2.27",
        "Secrets are encrypted in etcd",
        "masters",
        by.flags_set(API, "encryption-provider-config"),
    ),
    manual("1.2.28", "by a provider that encrypts", "masters", by.encrypted),
    manual(
        "1.2.29",
        "the API server takes strong ciphers alone",
        "masters",
        by.cipher_flags(API, "tls-cipher-suites"),
    ),
    scored(
        "1.2.30",
        "tokens of pods end within the hour",
        "masters",
        by.flag(API, "service-account-extend-token-expiration", "false"),
    ),
)
