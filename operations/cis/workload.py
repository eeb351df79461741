"""5: what runs in the cluster, as far as machines tell."""

from __future__ import annotations

from operations.cis import deciders as by
from operations.cis.control import API, ETC, manual

_LOOK = "it is about what runs in the cluster: look there"
_BY_PSS = (
    "namespaces without labels warn of pods under baseline and refuse none, for what runs already "
    "would not start again; enforce it by label, or by controlPlane.podSecurity.enforce"
)
WORKLOAD = (
    *(
        manual(f"5.1.{number}", title, "masters", reason=_LOOK)
        for number, title in (
            (1, "cluster-admin is for who needs it"),
            (2, "few may read Secrets"),
            (3, "few roles have wildcards"),
            (4, "few may create pods"),
            (5, "default accounts are not used"),
            (6, "tokens are mounted where they are needed"),
        )
    ),
    manual(
        "5.1.7",
        "nobody is in system:masters",
        "masters",
        by.absent(f"{ETC}/super-admin.conf", "super-admin.conf is on the machine"),
    ),
    *(
        manual(f"5.1.{number}", title, "masters", reason=_LOOK)
        for number, title in (
            (8, "few may bind, impersonate or escalate"),
            (9, "few may create volumes of machines"),
            (10, "few may reach kubelets by way of nodes"),
            (11, "few may approve certificates"),
            (12, "few may write webhooks"),
            (13, "few may ask for tokens of accounts"),
        )
    ),
    manual("5.2.1", "something judges pods", "masters", by.pod_security),
    *(
        manual(f"5.2.{number}", f"few pods {what}", "masters", by.enforced, _BY_PSS)
        for number, what in (
            (2, "are privileged"),
            (3, "share processes with their machine"),
            (4, "share IPC with their machine"),
            (5, "share the network of their machine"),
        )
    ),
    *(
        manual(f"5.2.{number}", f"few pods {what}", "masters", reason=_LOOK)
        for number, what in (
            (6, "may gain rights"),
            (7, "run as root"),
            (8, "send raw packets"),
            (9, "have capabilities added"),
            (10, "keep capabilities that they do not use"),
            (11, "are Windows host processes"),
            (12, "mount folders of their machine"),
        )
    ),
    manual(
        "5.3.1",
        "the network plugin knows NetworkPolicies",
        "masters",
        reason="network.plugin decides: Cilium and Calico enforce them, flannel does not",
    ),
    manual("5.3.2", "every namespace has NetworkPolicies", "masters", reason=_LOOK),
    manual("5.4.1", "Secrets are files and no variables", "masters", reason=_LOOK),
    manual("5.4.2", "Secrets may lie elsewhere", "masters", reason="a choice of your own"),
    manual(
        "5.5.1",
        "images are judged before they run (ImagePolicyWebhook)",
        "masters",
        by.listed(API, "enable-admission-plugins", has="ImagePolicyWebhook"),
        "a ValidatingAdmissionPolicy, or a webhook of your own, says it without the API server's "
        "restart",
    ),
    manual("5.6.1", "namespaces part what does not belong together", "masters", reason=_LOOK),
    manual("5.6.2", "pods have a seccomp profile", "masters", reason="see 4.2.14, and: " + _LOOK),
    manual("5.6.3", "pods have a security context", "masters", reason=_LOOK),
    manual("5.6.4", "nothing runs in namespace default", "masters", reason=_LOOK),
)
