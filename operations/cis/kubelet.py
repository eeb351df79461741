"""4: machines that run pods."""

from __future__ import annotations

from operations.cis import deciders as by
from operations.cis.control import ETC, PKI, UNITS, manual, scored
from operations.cis.facts import KUBELET_CONFIG

KUBELET = (
    scored("4.1.1", "the kubelet's units are for root's eyes alone", "nodes", by.mode(*UNITS)),
    scored("4.1.2", "the kubelet's units are root's", "nodes", by.owner(*UNITS)),
    manual(
        "4.1.3",
        "kube-proxy's kubeconfig is for root's eyes alone",
        "nodes",
        by.mode("/var/lib/kube-proxy/kubeconfig.conf"),
    ),
    manual(
        "4.1.4",
        "kube-proxy's kubeconfig is root's",
        "nodes",
        by.owner("/var/lib/kube-proxy/kubeconfig.conf"),
    ),
    scored(
        "4.1.5",
        "the kubelet's kubeconfig is for root's eyes alone",
        "nodes",
        by.mode(f"{ETC}/kubelet.conf"),
    ),
    scored("4.1.6", "the kubelet's kubeconfig is root's", "nodes", by.owner(f"{ETC}/kubelet.conf")),
    manual(
        "4.1.7",
        "nobody but root writes the CA that it trusts",
        "nodes",
        by.mode(f"{PKI}/ca.crt", most=0o644),
    ),
    manual("4.1.8", "that CA is root's", "nodes", by.owner(f"{PKI}/ca.crt")),
    scored(
        "4.1.9",
        "the kubelet's settings are for root's eyes alone",
        "nodes",
        by.mode(KUBELET_CONFIG, "/var/lib/kubelet/kubeadm-flags.env"),
    ),
    scored(
        "4.1.10",
        "the kubelet's settings are root's",
        "nodes",
        by.owner(KUBELET_CONFIG, "/var/lib/kubelet/kubeadm-flags.env"),
    ),
    scored(
        "4.2.1",
        "kubelets serve nobody without a credential",
        "nodes",
        by.kubelet(
            "anonymous-auth", "authentication", "anonymous", "enabled", good=[False], default=False
        ),
    ),
    scored(
        "4.2.2",
        "kubelets do not allow everything",
        "nodes",
        by.kubelet(
            "authorization-mode", "authorization", "mode", good=["Webhook"], default="Webhook"
        ),
    ),
    scored(
        "4.2.3",
        "kubelets know clients by a CA",
        "nodes",
        by.kubelet(
            "client-ca-file",
            "authentication",
            "x509",
            "clientCAFile",
            good=[f"{PKI}/ca.crt"],
            default="",
        ),
    ),
    manual(
        "4.2.4",
        "no port without credentials",
        "nodes",
        by.kubelet("read-only-port", "readOnlyPort", good=[0, "0"], default=0),
    ),
    manual(
        "4.2.5",
        "idle sessions into pods end",
        "nodes",
        by.kubelet(
            "streaming-connection-idle-timeout",
            "streamingConnectionIdleTimeout",
            good=["0s", "4h0m0s", "5m0s", "5m", "1h0m0s"],
            default="4h0m0s",
        ),
    ),
    scored(
        "4.2.6",
        "kubelets make the chains of iptables that others count on",
        "nodes",
        by.kubelet(
            "make-iptables-util-chains", "makeIPTablesUtilChains", good=[True], default=True
        ),
    ),
    manual(
        "4.2.7",
        "no other name than the machine's",
        "nodes",
        by.kubelet("hostname-override", good=[None], default=None),
        "a node keeps its name when its machine is renamed; what it may do goes by the name in its "
        "certificate, which the flag does not change",
    ),
    manual(
        "4.2.8",
        "events of a node are limited, and not lost",
        "nodes",
        by.kubelet_number("eventRecordQPS", least=1, default=50),
    ),
    manual(
        "4.2.9",
        "kubelets serve with certificates that they did not make up",
        "nodes",
        by.serves_with_the_clusters,
    ),
    scored(
        "4.2.10",
        "certificates of kubelets rotate",
        "nodes",
        by.kubelet("rotate-certificates", "rotateCertificates", good=[True], default=False),
    ),
    manual(
        "4.2.11",
        "their serving certificates rotate",
        "nodes",
        by.kubelet(
            "rotate-server-certificates",
            "featureGates",
            "RotateKubeletServerCertificate",
            good=[True],
            default=True,
        ),
    ),
    manual("4.2.12", "kubelets take strong ciphers alone", "nodes", by.kubelet_ciphers),
    manual(
        "4.2.13",
        "processes of a pod are limited",
        "nodes",
        by.kubelet_number("podPidsLimit", least=1, default=-1),
    ),
    manual(
        "4.2.14",
        "containers have a seccomp profile by default",
        "nodes",
        by.kubelet("seccomp-default", "seccompDefault", good=[True], default=False),
    ),
    manual("4.3.1", "kube-proxy's metrics are for its machine alone", "nodes", by.proxy_metrics),
)
