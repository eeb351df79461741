"""What a config does not say, by the level of defaults: that of the day when the cluster was made.

A new cluster gets the newest level. One that exists keeps the level that its memory tells, until
the config says another one by `cluster.defaults`; so a newer version of this program changes none
of these settings by itself. Fields whose default is a matter of levels are None as long as nobody
has said them, and get their values here, before anything is planned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from stacks.config.control_plane import AdmissionPlugin, ControlPlaneSpec, PodSecuritySpec
from stacks.config.fields import DefaultsLevel
from stacks.config.problems import Problem
from stacks.config.spec import Spec

PATH = "cluster.defaults"
OLDEST: DefaultsLevel = 1  # of clusters that remember none: there was no choice yet
NEWEST: DefaultsLevel = max(get_args(DefaultsLevel))
# Processes of one pod: thousands of threads fit, and a fork bomb ends before the node does.
_PIDS = 4096


def settled(spec: Spec, remembered: DefaultsLevel | None = None) -> Spec:
    """The config with its level, and all that follows from it.

    `remembered` is the level of the cluster that exists; None: there is none.
    """
    level = spec.cluster.defaults or remembered or NEWEST
    hardened = level >= 2
    control_plane, etcd, kubelet = spec.control_plane, spec.etcd, spec.kubelet
    ciphers = "strong" if hardened else "all"
    pids = kubelet.pod_pids_limit or (_PIDS if hardened else None)
    seccomp = kubelet.seccomp_default
    return spec.model_copy(
        update={
            "cluster": spec.cluster.model_copy(update={"defaults": level}),
            "control_plane": _control_plane(control_plane, hardened=hardened),
            "etcd": etcd.model_copy(update={"tls_ciphers": etcd.tls_ciphers or ciphers}),
            "kubelet": kubelet.model_copy(
                update={
                    "tls_ciphers": kubelet.tls_ciphers or ciphers,
                    "seccomp_default": hardened if seccomp is None else seccomp,
                    "pod_pids_limit": pids,
                }
            ),
        }
    )


def _control_plane(said: ControlPlaneSpec, *, hardened: bool) -> ControlPlaneSpec:
    plugins: tuple[AdmissionPlugin, ...] = ("NodeRestriction",)
    if hardened:
        plugins = ("DenyServiceExternalIPs", *plugins)
    warn = PodSecuritySpec(audit="baseline", warn="baseline")
    extend = said.extend_token_expiration
    # An issuer's signingAlgs exist as a flag alone, which the API server does not take beside
    # the file that narrows anonymous requests.
    by_flags = bool(said.oidc and said.oidc.signing_algs) and not said.oidc_issuers
    audit = said.audit
    if audit.enabled and audit.policy is None and audit.detail is None:
        audit = audit.model_copy(update={"detail": "bodies" if hardened else "metadata"})
    return said.model_copy(
        update={
            "admission_plugins": plugins
            if said.admission_plugins is None
            else said.admission_plugins,
            "anonymous": said.anonymous or ("health" if hardened and not by_flags else "all"),
            "extend_token_expiration": (not hardened) if extend is None else extend,
            "tls_ciphers": said.tls_ciphers or ("strong" if hardened else "all"),
            "pod_security": said.pod_security or (warn if hardened else None),
            "audit": audit,
        }
    )


def hints(spec: Spec, remembered: DefaultsLevel | None) -> list[Problem]:
    """What a new cluster would get and this one does not, as long as nobody has chosen a level."""
    if spec.cluster.defaults is not None or remembered in (None, NEWEST):
        return []
    now, new = (_values(settled(spec, level)) for level in (remembered, NEWEST))
    other = [f"{path}: {_word(value)}" for path, value in new.items() if now.get(path) != value]
    text = (
        f"this cluster keeps level {remembered}, with which it was made; a new one gets {NEWEST}: "
        f"{'; '.join(other)} (docs/reference/cis.md). Set it to {NEWEST} to take them, or to "
        f"{remembered} to hear no more of it"
    )
    return [Problem(PATH, text)]


def _values(spec: Spec) -> dict[str, object]:
    """By config path, those that are another than the model's own."""
    return dict(_flat(spec.model_dump(mode="json", by_alias=True, exclude_defaults=True), ""))


def _flat(value: object, path: str) -> Iterator[tuple[str, object]]:
    if not isinstance(value, Mapping):
        yield path, value
        return
    for key, inner in value.items():
        if (path, key) != ("cluster", "defaults"):
            yield from _flat(inner, f"{path}.{key}" if path else key)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
