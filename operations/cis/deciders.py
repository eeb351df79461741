"""How controls of the CIS benchmark are decided from what a machine tells. Small, and pure.

A decider says what is wrong, empty where nothing is; None: there is nothing here to judge.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from operations.cis.facts import KUBELET_CONFIG, Facts, Flags, shown
from stacks.render import kubeadm
from stacks.render.authentication import HEALTH_PATHS

Decider: TypeAlias = Callable[[Facts], str | None]

# Those that the benchmark names, of which any selection will do.
_GOOD_CIPHERS = frozenset(
    f"TLS_{exchange}_WITH_{cipher}"
    for exchange in ("ECDHE_ECDSA", "ECDHE_RSA")
    for cipher in (
        *("AES_128_GCM_SHA256", "AES_256_GCM_SHA384"),
        *("CHACHA20_POLY1305", "CHACHA20_POLY1305_SHA256"),
    )
) | {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}


def mode(*patterns: str, most: int = 0o600) -> Decider:
    """Files have no rights but these."""

    def decide(facts: Facts) -> str | None:
        found = {path: m for pattern in patterns for path, m in facts.matching(pattern).items()}
        bad = [f"{path} is {m.bits:o}" for path, m in sorted(found.items()) if m.bits & ~most]
        return ", ".join(bad) if found else None

    return decide


def owner(*patterns: str, wanted: str = "root:root") -> Decider:
    """Files belong to that account."""

    def decide(facts: Facts) -> str | None:
        found = {path: m for pattern in patterns for path, m in facts.matching(pattern).items()}
        bad = [f"{p} is {m.owner}'s" for p, m in sorted(found.items()) if m.owner != wanted]
        return ", ".join(bad) if found else None

    return decide


def _running(program: str, judge: Callable[[Flags], str]) -> Decider:
    def decide(facts: Facts) -> str | None:
        flags = facts.flags.get(program)
        return f"{program} does not run" if flags is None else judge(flags)

    return decide


def flag(program: str, name: str, wanted: str) -> Decider:
    """The flag is set, to that value."""
    return _running(program, lambda f: "" if f.get(name) == wanted else shown(f, name))


def flag_not(program: str, name: str, bad: str | None = None) -> Decider:
    """The flag is not set at all, or not to that value."""
    return _running(
        program,
        lambda f: shown(f, name) if name in f and bad in (None, f[name]) else "",
    )


def flags_set(program: str, *names: str) -> Decider:
    """Flags that have to be there, whatever they say."""
    return _running(program, lambda f: ", ".join(shown(f, n) for n in names if not f.get(n)))


def listed(program: str, name: str, *, has: str = "", lacks: str = "") -> Decider:
    """A flag that is a list with commas holds a word, or does not."""

    def judge(flags: Flags) -> str:
        words = flags.get(name, "").split(",")
        good = (not has or has in words) and (not lacks or lacks not in words)
        return "" if good else shown(flags, name)

    return _running(program, judge)


def at_least(program: str, name: str, least: int) -> Decider:
    """A flag that is a number; 0 of retention means forever."""

    def judge(flags: Flags) -> str:
        value = flags.get(name, "")
        return "" if value.isdigit() and int(value) >= least else shown(flags, name)

    return _running(program, judge)


def request_timeout(facts: Facts) -> str | None:
    """The default is a minute; some minutes are still no invitation to hold connections."""
    flags = facts.flags.get("kube-apiserver")
    if flags is None:
        return "kube-apiserver does not run"
    value = flags.get("request-timeout", "1m0s")
    return "" if value in ("60s", "1m", "1m0s", "2m", "2m0s", "5m", "5m0s", "300s") else value


def gate_not_off(program: str, gate: str) -> Decider:
    """A feature gate that is on by itself was not switched off."""
    return listed(program, "feature-gates", lacks=f"{gate}=false")


def cipher_flags(program: str, name: str) -> Decider:
    """The flag lists strong ciphers alone."""

    def judge(flags: Flags) -> str:
        given = flags.get(name, "")
        weak = [word for word in given.split(",") if word not in _GOOD_CIPHERS]
        return "" if given and not weak else shown(flags, name)

    return _running(program, judge)


def anonymous(facts: Facts) -> str | None:
    """Nobody gets in without a credential."""
    flags = facts.flags.get("kube-apiserver")
    if flags is None:
        return "kube-apiserver does not run"
    if flags.get("anonymous-auth") == "false":
        return ""
    paths = anonymous_paths(facts)
    return f"anonymous requests at {', '.join(paths)}" if paths else "anonymous requests everywhere"


def anonymous_paths(facts: Facts) -> tuple[str, ...]:
    """Where anonymous requests are taken; empty: everywhere."""
    if "authentication-config" not in facts.flags.get("kube-apiserver", {}):
        return ()
    said = _at(facts.documents.get(kubeadm.AUTHENTICATION, {}), "anonymous")
    conditions = _at(said, "conditions")
    found = conditions if isinstance(conditions, list) else []
    return tuple(str(_at(each, "path")) for each in found)


def only_health(facts: Facts) -> bool:
    """Whether anonymous requests are those of health checks alone."""
    paths = anonymous_paths(facts)
    return bool(paths) and set(paths) <= set(HEALTH_PATHS)


def encrypted(facts: Facts) -> str | None:
    """The first provider is one that encrypts."""
    first = facts.providers[0] if facts.providers else "none"
    return "" if first in ("aescbc", "secretbox", "kms") else f"the first provider is {first}"


def audit_concerns(facts: Facts) -> str | None:
    """What was written of rights is logged with its body, and no Secret is."""
    rules = facts.documents.get(kubeadm.AUDIT_POLICY, {}).get("rules")
    if not isinstance(rules, list):
        return "there is no audit policy"
    bodies = [each for each in rules if _at(each, "level") in ("Request", "RequestResponse")]
    groups = {str(_at(r, "group") or "") for each in bodies for r in _list(_at(each, "resources"))}
    if "rbac.authorization.k8s.io" not in groups:
        return "changes of rights are logged without what they are"
    return ""


def pod_security(facts: Facts) -> str | None:
    """A standard above privileged is asked of namespaces that have no label for one."""
    plugins = _list(_at(facts.documents.get(kubeadm.ADMISSION, {}), "plugins"))
    for plugin in plugins:
        found = _at(_at(plugin, "configuration"), "defaults")
        if {_at(found, key) for key in ("enforce", "audit", "warn")} - {"privileged", None}:
            return ""
    return "namespaces without labels may run any pod"


def enforced(facts: Facts) -> str | None:
    """Pods under baseline are refused, not only warned of."""
    plugins = _list(_at(facts.documents.get(kubeadm.ADMISSION, {}), "plugins"))
    levels = {_at(_at(_at(each, "configuration"), "defaults"), "enforce") for each in plugins}
    if levels & {"baseline", "restricted"}:
        return ""
    return "namespaces without labels enforce nothing"


def kubelet(flag_name: str, *path: str, good: Collection[object], default: object) -> Decider:
    """A setting of the kubelet: its flag counts before its file, the file before the default."""

    def decide(facts: Facts) -> str | None:
        flags = facts.flags.get("kubelet")
        if flags is None:
            return "kubelet does not run"
        value: object = facts.documents.get(KUBELET_CONFIG, {})
        for key in path:
            value = _at(value, key)
        value = default if value is None else value
        if flag_name in flags:
            value = {"true": True, "false": False}.get(flags[flag_name], flags[flag_name])
        return "" if value in good else f"{'.'.join(path) or flag_name}: {value}"

    return decide


def kubelet_number(key: str, *, least: int, default: int) -> Decider:
    """A number of the kubelet's settings."""

    def decide(facts: Facts) -> str | None:
        if "kubelet" not in facts.flags:
            return "kubelet does not run"
        value = facts.documents.get(KUBELET_CONFIG, {}).get(key, default)
        return "" if isinstance(value, int) and value >= least else f"{key}: {value}"

    return decide


def kubelet_ciphers(facts: Facts) -> str | None:
    """As cipher_flags."""
    if "kubelet" not in facts.flags:
        return "kubelet does not run"
    found = _list(facts.documents.get(KUBELET_CONFIG, {}).get("tlsCipherSuites"))
    weak = [str(word) for word in found if word not in _GOOD_CIPHERS]
    return "" if found and not weak else f"tlsCipherSuites: {', '.join(weak) or 'not set'}"


def serves_with_the_clusters(facts: Facts) -> str | None:
    """The kubelet's certificate is one that somebody else signed."""
    flags = facts.flags.get("kubelet")
    if flags is None:
        return "kubelet does not run"
    said = facts.documents.get(KUBELET_CONFIG, {})
    if said.get("serverTLSBootstrap") is True or said.get("tlsCertFile"):
        return ""
    return "" if "tls-cert-file" in flags else "the kubelet signs its own certificate"


def proxy_metrics(facts: Facts) -> str | None:
    """kube-proxy's are for the machine alone."""
    bad = [each for each in facts.proxy_metrics if not each.startswith(("127.", "[::1]"))]
    if bad:
        return f"served at {', '.join(bad)}"
    return "" if facts.proxy_metrics else None


def own_authority(facts: Facts) -> str | None:
    """etcd trusts another CA than the API server does."""
    etcd, server = facts.flags.get("etcd"), facts.flags.get("kube-apiserver", {})
    if etcd is None:
        return "etcd does not run"
    mine, other = etcd.get("trusted-ca-file"), server.get("client-ca-file")
    return "" if mine and mine != other else shown(etcd, "trusted-ca-file")


def absent(pattern: str, why: str) -> Decider:
    """No such file is there."""

    def decide(facts: Facts) -> str | None:
        return why if facts.matching(pattern) else ""

    return decide


def _at(value: object, key: str) -> object:
    return value.get(key) if isinstance(value, Mapping) else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
