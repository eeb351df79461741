"""A script reads exactly the variables that it is sent."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from stacks.order.steps import steps
from stacks.phases import scripts
from tests.plan.lock_cases import CASES, FILES
from tests.unit.configs import adopted, aws, edited, gcp, lab, with_store
from tests.unit.order.test_steps import scene

# Every command has them (components/ssh/commands.py), or run.sh sets them, or the shell does.
EVERYWHERE = {
    "NODE",
    "CLUSTER",
    "CLUSTER_ID",
    "CONTAINER",
    "INCARNATION",
    "SCRIPT_SUM",
    "VALUES",
    "SESSION",
    "KEEP",
}
SHELL = {
    "BASHPID",
    "EUID",
    "ID",
    "VERSION_ID",
    "BASH_REMATCH",
    "BASH_SOURCE",
    "BASH_SUBSHELL",
    "BASH_COMMAND",
    "LINENO",
    "SECONDS",
    "PATH",
    "RUNTIME_DIRECTORY",
    "CREDENTIALS_DIRECTORY",
    "INVOCATION_ID",
    "SERVICE_RESULT",
    "LONG_S",
}
# Sent so that another value runs the command again; no script looks at them.
TRIGGERS = {
    "addon": {"GENERATION"},
    "etcd-member": {"ETCD_CA", "GENERATION", "OS_PACKAGES"},
    "gate": {"PLAN"},
    "ingress": {"GENERATION", "CERTIFICATES", "GIVEN", "HOSTS"},
    "manifests": {"GENERATION"},
    "master": {"APPROVER_CERTIFICATE"},
    "node": {"GENERATION", "KUBELET_SETTINGS", "KUBERNETES_CA"},
    "nodes": {"PLAN"},
    "pki": {"GENERATION"},
    "rotation": {"GENERATION"},
    "snapshot": {"WANTED"},
    "vip": {"GENERATION"},
    "vip-away": {"GENERATION"},
}
# Read by run.sh, before any phase.
RUN = {"UNTIL"}
# By `make preflight`, `make backup`, `make restore` alone.
OPERATIONS = {"REPORT"}
FUNCTION = r"(?m)^([a-z_]+)\(\) ([{(][^\n]*[})]$|[{(]$(?:\n(?![})]).*)*\n[})])"
ASSIGNED = r"(?<![\w$])([A-Z][A-Z0-9_]*)\+?="
_COUNTED = re.compile(r"^(PKI_(?:MODE|OWNER|PATH|TEXT))_[0-9]+$")


_PRIVATE = {
    "frontDoors": {"dns": "managed", "zone": {"domain": "k8s.internal", "private": True}},
    "cluster.endpoint": "api.k8s.internal",
    "machines.aws.cloudController": "external",
}
_VIP = {
    "frontDoors.vip": {"address": "10.92.0.5"},
    "pools.edge": {"roles": ["loadbalancer"], "count": 2},
}
_SECRET = {"namespaces": ["default"], "data": {"key": "token"}}
_EVERYWHERE = {
    **_SECRET,
    "namespaces": [f"{'n' * 60}{number}" for number in range(150)],
}  # more than fit
_BRINGING = {
    "addons": {"team": {"secrets": {"own": _SECRET}}},
    "addonSecrets": {"token": {"secure": "v1:x"}},
}
_PULLED_WITH = {
    "namespaces": ["kube-system"],
    "type": "kubernetes.io/dockerconfigjson",
    "data": {".dockerconfigjson": "token"},
}
_LOGIN = {"hosts": ["registry.example.com"], "secrets": {"registry-login": _PULLED_WITH}}
_FIREWALL = {"networks": ["192.0.2.0/24"], "sshFrom": ["192.0.2.0/24"], "apiFrom": []}
_STORED = adopted(with_store())
# What no locked edit brings.
MORE = (
    (None, aws(_PRIVATE)),
    (None, adopted({"network.plugin": "cilium"})),
    (None, adopted({"network.plugin": "calico", "network.backend": "bgp"})),
    (None, lab({"hooks": {"url": "https://hooks.example.com/nodes"}})),
    (None, lab({"nodes": {"worker-1": {"state": "maintenance", "drain": True}}})),
    (None, lab({"nodes": {"worker-1": {"state": "maintenance", "keepPodsS": 3600}}})),
    (None, lab({**_VIP, "nodes/edge-1": {"state": "maintenance"}})),
    (None, adopted({"frontDoors.vip": {"address": "192.0.2.5"}, "addons": {"prometheus": {}}})),
    (None, adopted({"addons": {"logs": {"reconcile": True}}})),
    (None, adopted({"machines.firewall": _FIREWALL})),
    (None, adopted(_BRINGING)),
    (None, adopted({**_BRINGING, "addons": {"registry-login": _LOGIN}})),
    (None, adopted({**_BRINGING, "addons": {"team": {"secrets": {"own": _EVERYWHERE}}}})),
    (None, gcp({"pools.worker.spot": True})),
    (None, aws({"pools.worker.spot": True})),
    (_STORED, edited(_STORED, {"etcd.quotaBackendGib": 4})),
)


@cache
def sent() -> Mapping[str, frozenset[str]]:
    """Names by phase, in all steps of all locked configs and edits."""
    found: dict[str, set[str]] = defaultdict(set)
    pairs: list[tuple[Mapping[str, object] | None, Mapping[str, object]]] = []
    for name, case in CASES.items():
        if name == "lab of the version before":
            continue  # of which no bundle is kept
        start = case.make(case.start)
        pairs += [(None, start), (start, start)]
        for edits in case.edits.values():
            before = start
            for edit in edits:
                after = case.make({**case.start, **edit} if case.on_top else {**edit})
                pairs.append((before, after))
                before = after
    for previous, config in [*pairs, *MORE]:
        for step in steps(scene(config, previous)):
            found[step.phase] |= {_COUNTED.sub(r"\1", key) for key in step.values}
    return {phase: frozenset(names) for phase, names in found.items() if phase}


def plain(text: str) -> str:
    """Without comments and what other shells are told; PREFIX_{A,B} written out."""
    text = re.sub(r"(?m)(^|\s)# .*$", "", text)
    text = re.sub(r"bash -c '[^']*'", "", text)
    return re.sub(
        r"\b([A-Z_]+_)\{([A-Z_,]+)\}",
        lambda m: " ".join(m[1] + name for name in m[2].split(",")),
        text,
    )


def code(phase: str) -> str:
    """All that a phase may run: what stands outside of functions, and functions that `main` can reach."""
    text = plain("".join((scripts.FOLDER / name).read_text() for name in scripts.parts(phase)))
    bodies = dict(re.findall(FUNCTION, text))
    run = re.sub(FUNCTION, "", text)
    left = {"main", "on_error"}
    while left:
        run += "".join(f"\n{bodies.pop(name)}" for name in sorted(left))
        left = {name for name in bodies if re.search(rf"(?<![\w-]){name}(?![\w-])", run)}
    return run


def read(text: str) -> set[str]:
    """Names that a text takes from outside: expanded there, and set nowhere.

    One that is always expanded with a default may be another phase's, or a script's that sources the same file.
    """
    assigned = set(re.findall(ASSIGNED, text)) | set(
        re.findall(r"\bfor ([A-Z][A-Z0-9_]*) in", text)
    )
    expanded = set(re.findall(r"\$\{?[!#]?([A-Z][A-Z0-9_]*)", text)) - assigned - SHELL - EVERYWHERE
    bare = set(re.findall(r"\$\{?[!#]?([A-Z][A-Z0-9_]*)(?![A-Z0-9_]|:?[-+])", text))
    anywhere = OPERATIONS.union(*sent().values())
    assigned |= {
        name for names in re.findall(r"\bread (?:-\w+ )*([\w ]+)", text) for name in names.split()
    }
    expanded -= assigned
    for file in scripts.FOLDER.glob("*.sh"):
        anywhere |= set(re.findall(ASSIGNED, file.read_text()))
    return {name for name in expanded if name in bare or name not in anywhere}


@pytest.fixture(autouse=True)
def addon_files(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.getbasetemp() / "files"
    folder.mkdir(exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text)
    if not (folder / ".local").exists():
        (folder / ".local").symlink_to(Path(".local").resolve())
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("phase", [*scripts.NODE_PHASES, *scripts.CLUSTER_PHASES])
def test_a_script_reads_exactly_what_it_is_sent(phase: str) -> None:
    text = code(phase)
    named = {name for name in sent()[phase] if re.search(rf"\b{name}(_\$|\b)", text)}
    assert sent()[phase] - named - RUN == TRIGGERS.get(phase, set()), "sent, and not read"
    assert read(text) - sent()[phase] == set(), "read, and never sent"


@pytest.mark.parametrize("phase", [*scripts.NODE_PHASES, *scripts.CLUSTER_PHASES])
def test_a_script_puts_nothing_in_the_place_of_what_it_is_sent(phase: str) -> None:
    """run.sh sets the values first: what a script sets as it is sourced, its own or another's, comes after them."""
    text = plain("".join((scripts.FOLDER / name).read_text() for name in scripts.parts(phase)))
    set_later = set(re.findall(r"(?m)^([A-Z][A-Z0-9_]*)=(?!\"?\$\{\1)", re.sub(FUNCTION, "", text)))
    assert set_later, "lib.sh sets some"
    assert set_later & sent()[phase] == set()


@pytest.mark.parametrize("phase", [*scripts.NODE_PHASES, *scripts.CLUSTER_PHASES])
def test_the_head_of_a_script_names_what_it_is_sent(phase: str) -> None:
    texts = [(scripts.FOLDER / name).read_text() for name in scripts.parts(phase)]
    heads = "".join(re.match(r"(?:#.*\n)*", text)[0] for text in texts)  # type: ignore[index]
    heads = re.sub(r"([A-Z_]+_)<n>", r"\1", heads.replace("OS_*", "OS_HOLD OS_PACKAGES OS_REBOOT"))
    needed = {name for name in sent()[phase] - EVERYWHERE - RUN - TRIGGERS.get(phase, set())}
    assert {name for name in needed if not re.search(rf"\b{name}(_|\b)", heads)} == set()
