"""Two hundred drawn configs, the same ones every time: every file is read back by what reads it.

That what comes back is what was meant, and no more, is the proof that no text of a config leaves
its place.
"""

from __future__ import annotations

import base64
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from components.ssh import script
from stacks.catalogue import registry as catalogue
from stacks.cluster import artifacts
from stacks.cluster.plan import Node, Plan
from stacks.config.sizing import SMALLEST
from stacks.documents import yaml_text
from stacks.networks import registry
from stacks.phases import desired, preflight, system_addons
from stacks.render import acceptance, apiserver, join, kubeadm, kubeconfig
from tests.fuzz import clusters, read_back
from tests.fuzz.read_back import Data
from tests.unit.certificate import certificate
from tests.unit.render.examples import lab, program

CONFIGS = 200


class Case(NamedTuple):
    """One node of a drawn plan, and what its phases get."""

    plan: Plan
    node: Node
    phases: dict[str, dict[str, str]]

    def text(self, name: str) -> str:
        """A value of any phase; empty where the node has none."""
        return next((values[name] for values in self.phases.values() if name in values), "")


class Rendered(NamedTuple):
    plans: list[Plan]
    cases: list[Case]  # the first node of each pool: others of it differ in name and address alone
    others: list[dict[str, str]]  # values of phases that belong to no node
    yaml: list[tuple[list[object], str]]  # every YAML text there was, and the data it was made of

    def texts(self, name: str) -> Iterator[tuple[Case, str]]:
        """The cases that have a value, each with it."""
        return ((case, text) for case in self.cases if (text := case.text(name)))


@pytest.fixture(scope="module")
def rendered() -> Rendered:
    plans = [*islice(clusters.sample(seed=200), CONFIGS)]
    found = Rendered(plans, [], [], [])
    real = yaml.dump_all

    def spy(documents: Iterator[object], **options: object) -> str:
        listed = [*documents]
        text: str = real(listed, **options)  # type: ignore[call-overload]
        found.yaml.append((listed, text))
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "dump_all", spy)
        patch.setattr(yaml_text, "written", yaml_text.written.__wrapped__)  # every time
        for plan in plans:
            for node in {node.pool: node for node in reversed(plan.nodes)}.values():
                found.cases.append(Case(plan, node, _phases(plan, node)))
            for name, text in system_addons.addons(plan).items():
                found.others.append({"NAME": name, "MANIFEST": text})
            found.others.append({"MANIFEST": acceptance.acceptance(plan)})
        apiserver.encryption_config({"key-1": "a2V5"})
        kubeconfig.admin(plans[0], "ca", "cert", "key")
        join.bootstrap_token(plans[0], plans[0].masters[0], "abcdef.0123456789abcdef", joining=1)
        join.discovery("ca", "abcdef.0123456789abcdef")
    return found


def _phases(plan: Plan, node: Node) -> dict[str, dict[str, str]]:
    found = desired.of_phases(plan, node)
    sources = artifacts.files(replace(plan, mirror=None), node.arch)
    found["preflight"] = preflight.preflight(plan, node, sources)
    if node.is_worker:
        found["join"] = {"KUBEADM_CONFIG": kubeadm.join_worker(plan, node)}
    return found


REFERENCE = lab()
KNOWN = Case(REFERENCE, REFERENCE.nodes[0], _phases(REFERENCE, REFERENCE.nodes[0]))


def test_haproxy_takes_every_config_and_lists_the_masters_only(
    rendered: Rendered, tmp_path: Path
) -> None:
    haproxy, ca, config = program("haproxy", tmp_path), tmp_path / "ca.crt", tmp_path / "cfg"
    ca.write_text(certificate())
    for text in {text: None for _, text in rendered.texts("HAPROXY_CFG")}:
        config.write_text(text.replace("/etc/kube-ha/ca.crt", str(ca)) + "\n")
        done = _run(haproxy, "-c", "-f", config)
        assert done.returncode == 0, done.stderr
        assert not re.search(r"warning|alert", done.stderr, re.IGNORECASE), done.stderr
    known, _ = _parts(KNOWN.text("HAPROXY_CFG"))
    frame = [(section, words) for section, words in known if words[:1] != ["use-server"]]
    for case, text in rendered.texts("HAPROXY_CFG"):
        lines, servers = _parts(text)
        doors, node = case.plan.spec.front_doors, case.node
        has_vip = doors.vip is not None and (node.is_master or node.is_load_balancer)
        has_etcd = doors.etcd is not None and node.pool in doors.etcd.pools
        own_first = node.is_master and len(case.plan.masters) > 1
        observes = case.plan.spec.sizing.nodes != SMALLEST
        # The same directives in the same places: only servers, numbers and the doors asked for differ.
        after = frame.index(("listen kubernetes-api", ["bind"])) + 1
        last = frame.index(("listen kubernetes-api", ["option", "allbackups"]))
        *between, (section, checks) = frame[after:last]
        assert lines == [
            *frame[:after],
            *([("listen kubernetes-api", ["bind", "transparent"])] if has_vip else ()),
            *between,
            (section, [*checks, *(_OBSERVE if observes else ())]),
            *(
                [("listen kubernetes-api", ["use-server", node.name, *_LOCALLY])]
                if own_first
                else ()
            ),
            *frame[last:],
            *(_ETCD_DOOR if has_etcd else ()),
        ]
        if has_vip and doors.vip is not None:
            assert f"  bind {doors.vip.address}:{doors.vip.port} transparent\n" in text
        at = [(node.name, f"{node.address}:6443") for node in case.plan.masters]
        etcd = [(node.name, f"{node.address}:2379") for node in case.plan.etcd if has_etcd]
        assert servers == [
            *([name, place, "check", "tcp-ut", "20s"] for name, place in at),
            *([f"{name}-unchecked", place, "backup", "tcp-ut", "20s"] for name, place in at),
            *([name, place, "check", "tcp-ut", "20s"] for name, place in etcd),
        ]


_LOCALLY = ["if", "{", "dst", "}"]
_OBSERVE = ["observe", "layer4", "error-limit", "on-error", "fastinter"]
_ETCD_DOOR = [
    ("listen etcd", []),
    ("listen etcd", ["bind"]),
    ("listen etcd", ["balance", "random"]),
    (
        "listen etcd",
        [
            "default-server",
            "inter",
            "fastinter",
            "fall",
            "rise",
            "on-marked-down",
            "shutdown-sessions",
        ],
    ),
]


def _parts(text: str) -> tuple[list[tuple[str, list[str]]], list[list[str]]]:
    """The lines of haproxy.cfg without numbers, and its servers."""
    lines = [*read_back.haproxy(text)]
    servers = [words[1:] for _, words in lines if words[:1] == ["server"]]
    others = [(section, words) for section, words in lines if words[:1] != ["server"]]
    return [
        (section, [w for w in words if not w[0].isdigit()]) for section, words in others
    ], servers


def _run(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_yaml_comes_back_as_the_data_it_was_made_of(rendered: Rendered) -> None:
    """Every YAML that is rendered at all, those within others too."""
    assert len(rendered.yaml) > 10 * CONFIGS
    for documents, text in rendered.yaml:
        assert read_back.documents(text) == documents


def _of_masters(rendered: Rendered) -> Iterator[tuple[Case, str]]:
    return ((case, text) for case, text in rendered.texts("KUBEADM_CONFIG") if case.node.is_master)


def test_kubeadms_config_says_what_the_config_says(rendered: Rendered) -> None:
    for case, text in _of_masters(rendered):
        node, spec = case.node, case.plan.spec
        init, cluster, kubelet = read_back.documents(text)
        assert [each["kind"] for each in (init, cluster, kubelet)] == [
            "InitConfiguration",
            "ClusterConfiguration",
            "KubeletConfiguration",
        ]
        registration = _at(init, "nodeRegistration")
        assert _at(registration, "name") == node.name
        assert _at(init, "localAPIEndpoint", "advertiseAddress") == node.address
        assert _flags(_at(registration, "kubeletExtraArgs")) == {
            "hostname-override": node.name,
            "node-ip": node.address,
        }
        assert _at(cluster, "networking") == {
            "podSubnet": spec.cluster.pod_cidr,
            "serviceSubnet": spec.cluster.service_cidr,
            "dnsDomain": spec.cluster.dns_domain,
        }
        names = _at(cluster, "apiServer", "certSANs")
        assert isinstance(names, list)
        assert {*spec.control_plane.cert_sans} <= {*map(str, names)}
        assert len(names) <= 3 + len({*spec.control_plane.cert_sans})
        assert _at(kubelet, "maxPods") == spec.kubelet.max_pods


def test_flags_of_the_user_are_flags_and_nothing_else(rendered: Rendered) -> None:
    parts = {
        "apiServer": "api_server_args",
        "controllerManager": "controller_manager_args",
        "scheduler": "scheduler_args",
    }
    for case, text in _of_masters(rendered):
        given = case.plan.spec.control_plane
        bare = given.model_copy(update={field: {} for field in parts.values()})
        plain = case.plan.spec.model_copy(update={"control_plane": bare})
        without = kubeadm.init(replace(case.plan, spec=plain), case.node)
        for part, field in parts.items():
            with_them = _pairs(_at(read_back.documents(text)[1], part, "extraArgs"))
            others = _pairs(_at(read_back.documents(without)[1], part, "extraArgs"))
            said: dict[str, str] = getattr(given, field)
            expected = [(name, value) for name, value in others if name not in said]
            # By name; of one that is there several times, as issuers of tokens, the order counts.
            assert with_them == sorted([*expected, *said.items()], key=lambda pair: pair[0])


def _at(value: Data, *path: str) -> Data:
    for key in path:
        assert isinstance(value, dict)
        value = value[key]
    return value


def _pairs(value: Data) -> list[tuple[str, str]]:
    assert isinstance(value, list)
    assert all(isinstance(each, dict) and each.keys() == {"name", "value"} for each in value)
    return [(str(_at(each, "name")), str(_at(each, "value"))) for each in value]


def _flags(value: Data) -> dict[str, str]:
    return dict(_pairs(value))


def test_a_worker_joins_with_its_own_labels_and_taints(rendered: Rendered) -> None:
    for case in rendered.cases:
        if not case.node.is_worker:
            continue
        [document] = read_back.documents(case.phases["join"]["KUBEADM_CONFIG"])
        registration = _at(document, "nodeRegistration")
        listed = dict(_pairs(_at(registration, "kubeletExtraArgs"))).get("node-labels", "")
        labels = [tuple(word.split("=", 1)) for word in listed.split(",") if word]
        # Of Kubernetes' own domains a kubelet may set few.
        assert {*labels} <= {*case.node.labels}
        assert {
            key
            for key, _ in case.node.labels
            if "k8s.io" not in key.partition("/")[0] and "kubernetes.io" not in key
        } <= {key for key, _ in labels}
        taints = _at(registration, "taints")
        assert isinstance(taints, list)
        expected = [{"key": t.key, "value": t.value, "effect": t.effect} for t in case.node.taints]
        assert [{"value": "", **each} for each in taints if isinstance(each, dict)] == expected


def test_kubeadm_takes_every_config(rendered: Rendered, tmp_path: Path) -> None:
    tool, config = program("kubeadm", tmp_path), tmp_path / "kubeadm.yaml"
    discovery = tmp_path / "discovery.conf"
    discovery.touch()
    different = {
        text.replace(case.node.name, "NAME").replace(case.node.address, "ADDRESS"): text
        for case, text in rendered.texts("KUBEADM_CONFIG")
    }
    for text in different.values():
        config.write_text(text.replace("/etc/kubernetes/discovery.conf", str(discovery)))
        done = _run(tool, "config", "validate", "--config", config)
        assert done.returncode == 0, done.stderr
        # A lifetime that is longer than kubeadm's own is the user's choice.
        said = [
            line for line in done.stderr.splitlines() if "certificateValidityPeriod" not in line
        ]
        assert said == []


def test_containerd_reads_what_was_meant(rendered: Rendered) -> None:
    known = tomllib.loads(
        desired.files(REFERENCE, REFERENCE.nodes[0])[desired.PATHS["CONTAINERD_CONFIG"]]
    )
    for case, text in rendered.texts("CONTAINERD_CONFIG"):
        wanted, found = case.plan.spec.runtime, tomllib.loads(text)
        log = {"level": wanted.log_level} if wanted.log_level else None
        assert found.pop("debug", None) == log
        assert found.keys() == known.keys()
        more = {*found["plugins"]} - {*known["plugins"]}
        assert len(more) == (1 if wanted.max_concurrent_downloads is not None else 0)


def test_every_registry_has_its_own_mirrors_and_no_other(rendered: Rendered) -> None:
    for case, lines in rendered.texts("REGISTRY_HOSTS"):
        found = {}
        for line in lines.splitlines():
            host, _, encoded = line.partition("\t")
            found[host] = tomllib.loads(base64.b64decode(encoded, validate=True).decode())
        assert len(found) == len(lines.splitlines())
        mirrors, mirror = dict(case.plan.spec.runtime.registry_mirrors), case.plan.mirror
        own = registry.registries(case.plan.spec) if mirror else ()
        for host in catalogue.registries(case.plan.spec) if mirror else ():
            first = [mirror.registry] if mirror else []
            mirrors[host] = tuple(dict.fromkeys([*first, *mirrors.get(host, ())]))
        assert found.keys() == mirrors.keys() | own
        for host, document in found.items():
            if host in mirrors:
                assert document.keys() == {"host"}
                assert [*document["host"]] == [*mirrors[host]]
            else:
                assert mirror is not None
                assert document == {"server": mirror.registry, "capabilities": ["pull", "resolve"]}


def test_systemd_knows_every_word_of_every_unit(
    rendered: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All units that differ, under names of their own, in one run."""
    seen: dict[tuple[str, ...], str] = {}
    for case in rendered.cases:
        for unit, parts in (
            ("containerd", ("CONTAINERD_UNIT", "CONTAINERD_PROXY")),
            ("kubelet", ("KUBELET_UNIT", "KUBELET_DROPIN")),
            ("etcd", ("ETCD_UNIT",)),
        ):
            found = tuple(case.text(part) for part in parts)
            if found[0]:
                seen.setdefault(found, f"{unit}-{len(seen)}.service")
    assert len(seen) > 10
    for found, name in seen.items():
        # The programs themselves are not on this computer.
        (tmp_path / name).write_text(found[0].replace("/usr/local/bin/", "/bin/true "))
        if len(found) > 1 and found[1]:
            (tmp_path / f"{name}.d").mkdir()
            (tmp_path / f"{name}.d" / "more.conf").write_text(
                found[1].replace("/usr/local/bin/", "/bin/true ")
            )
    monkeypatch.setenv("SYSTEMD_UNIT_PATH", f"{tmp_path}:")
    done = _run(program("systemd-analyze", tmp_path), "verify", *seen.values(), cwd=tmp_path)
    assert [line for line in done.stderr.splitlines() if str(tmp_path) in line] == []


def test_containerd_has_the_proxy_of_the_config_in_its_environment(rendered: Rendered) -> None:
    for case, text in rendered.texts("CONTAINERD_PROXY"):
        sections, wanted = read_back.unit(text), case.plan.spec.proxy
        assert sections.keys() == {"Service"}
        assert {name for name, _ in sections["Service"]} == {"Environment"}
        found = dict(read_back.assigned(value) for _, value in sections["Service"])
        direct = found.pop("NO_PROXY").split(",")
        said = {"HTTP_PROXY": wanted.http, "HTTPS_PROXY": wanted.https}
        assert found == {name: url for name, url in said.items() if url}
        cluster = case.plan.spec.cluster
        own = ["127.0.0.1", "localhost", cluster.pod_cidr, cluster.service_cidr]
        assert direct[:4] == own
        assert {*direct[4:]} - {*wanted.no_proxy} <= {_host(url) for url in _mirror(case.plan)}
        assert {*wanted.no_proxy} <= {*direct}


def _mirror(plan: Plan) -> list[str]:
    return [plan.mirror.url, plan.mirror.registry] if plan.mirror else []


def _host(url: str) -> str:
    return url.split("/")[2].partition(":")[0]


def test_etcd_and_the_kernel_get_one_value_for_each_name(rendered: Rendered) -> None:
    optional = {"ETCD_MAX_REQUEST_BYTES", "ETCD_METRICS", "ETCD_CIPHER_SUITES"}
    known = read_back.environment(KNOWN.text("ETCD_ENV")).keys() - optional
    for case, text in rendered.texts("ETCD_ENV"):
        found = read_back.environment(text)
        assert known <= found.keys() <= known | optional
        assert found["ETCD_NAME"] == case.node.name
        assert found["ETCD_ADVERTISE_CLIENT_URLS"] == f"https://{case.node.address}:2379"
        assert found["ETCD_HEARTBEAT_INTERVAL"] == str(case.plan.spec.etcd.heartbeat_interval_ms)
    for case, text in rendered.texts("SYSCTL"):
        found = read_back.sysctl(text)
        assert found["net.ipv4.ip_forward"] == "1"
        assert ("vm.overcommit_memory" in found) == (not case.plan.containers)


# Evaluates each file as run.sh does, and prints every variable that it has made or changed.
_EVALUATE = r"""
declare -A known
file= name= values=
for name in $(compgen -v) known; do known[$name]=1; done
for file in "$@"; do
  bash -n "$file" || exit 2
  (
    values=$(<"$file")
    [[ ${values##*$'\n'} == "# end" ]] || exit 3
    eval "$values"
    for name in $(compgen -v); do
      [[ -n ${known[$name]-} ]] || printf '%s=%s\0' "$name" "${!name}"
    done
    printf '\0'
  ) || exit 4
done
"""


def test_bash_gets_exactly_the_values(rendered: Rendered, tmp_path: Path) -> None:
    values = [phase for case in rendered.cases for phase in case.phases.values()]
    different = {script.render(each): each for each in (*values, *rendered.others)}
    files = [tmp_path / f"{number:05}" for number in range(len(different))]
    for file, text in zip(files, different, strict=True):
        file.write_text(text)
    command = ["bash", "-c", _EVALUATE, "bash", *map(str, files)]
    done = subprocess.run(command, capture_output=True, check=True)
    assert done.stderr == b""
    found = done.stdout.decode().split("\0\0")
    assert found.pop() == ""
    for printed, wanted in zip(found, different.values(), strict=True):
        assert dict(pair.split("=", 1) for pair in printed.split("\0")) == wanted
