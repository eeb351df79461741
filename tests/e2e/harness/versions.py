"""What the bundle of set-up does not hold: the bundle that does, and what runs on the machines of a stack."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from artifacts import bundle
from artifacts.build import host_arch
from artifacts.download import Upstream
from artifacts.lock import read
from tests.e2e.harness import lab
from tests.e2e.harness.config import Config
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.stack import Stack


class Bundle(NamedTuple):
    """One beside that of set-up, built once for all stories that ask for it, and kept in the cache."""

    call: str  # in the file of such a story
    also: tuple[str, ...]
    link: str


_OLDER = Bundle(
    call="with_older_ones(",
    also=(
        "kubernetes=1.36.1",
        "kubernetes=1.35.4",
        "etcd=3.6.15",
        "etcd=3.5.35",
        "containerd=2.3.6",
    ),
    link=".local/bundle-upgrades",
)
_NETWORKS = Bundle(call="with_network(", also=("network=cilium",), link=".local/bundle-networks")
# One story upgrades with a network; others that want either need not wait for both.
_NETWORKS_TOO = Bundle(
    call="with_network_and_older_ones(",
    also=("network=cilium", "kubernetes=1.36.1"),
    link=".local/bundle-networks-upgrades",
)
_NETWORKS_AND_TOOLS = Bundle(
    call="with_networks_and_tools(",
    also=("network=cilium", "addon=toolbox"),
    link=".local/bundle-networks-tools",
)
_ADDONS = Bundle(
    call="with_addons(",
    also=("addon=local-path", "addon=metrics-server", "addon=prometheus", "addon=toolbox"),
    link=".local/bundle-addons",
)
_LOAD_BALANCERS = Bundle(
    call="with_load_balancers(",
    also=("addon=metallb", "addon=traefik"),
    link=".local/bundle-load-balancers",
)
# Apart from the others: Loki takes as long to build as all of them.
_LOGS = Bundle(call="with_logs(", also=("addon=logs",), link=".local/bundle-logs")
# As lab/bundle.sh makes it in a clone, out of a stack file with all of them.
_EVERY_ADDON = Bundle(
    call="with_every_addon(", also=(*_ADDONS.also, *_LOGS.also), link=".local/bundle-every-addon"
)
# With the network too: one story needs both, and each bundle is another gigabyte.
_TESTS = Bundle(
    call="with_upstreams_tests(",
    also=("network=cilium", "tests=conformance"),
    link=".local/bundle-conformance",
)
_COLD_S = 3600


def needed_by(story: Path) -> set[Bundle]:
    """What the file of a story asks for, beside the bundle of set-up."""
    text = story.read_text()
    known = (
        _OLDER,
        _NETWORKS,
        _NETWORKS_TOO,
        _NETWORKS_AND_TOOLS,
        _ADDONS,
        _LOAD_BALANCERS,
        _LOGS,
        _EVERY_ADDON,
        _TESTS,
    )
    return {bundle for bundle in known if bundle.call in text}


def is_made(wanted: Bundle) -> bool:
    """Whether that bundle is in the cache."""
    also = [(name, version) for name, _, version in (word.partition("=") for word in wanted.also)]
    order = bundle.Order(
        lock=read(None, host_arch(), also=also),
        source="auto",
        upstream=Upstream(),
        cache=bundle.cache_folder(),
    )
    return (order.cache / "bundle" / bundle.key(order) / "manifest.json").exists()


def make(wanted: Bundle) -> None:
    """Make it and link it; seconds where it is in the cache, half an hour where all has to be built."""
    words = [word for version in wanted.also for word in ("--also", version)]
    command = [sys.executable, "-m", "artifacts.bundle", *words, "--link", wanted.link]
    lab.shell(command, timeout_s=_COLD_S)


def with_older_ones(config: Config, subnet: str) -> Config:
    """The config with a mirror that has older versions too."""
    return _by(_OLDER, config, subnet)


def with_network(config: Config, subnet: str, plugin: str) -> Config:
    """The config with a pod network that the bundle of set-up does not hold, and a mirror that has it."""
    config["network"] = {**config.get("network", {}), "plugin": plugin}
    return _by(_NETWORKS, config, subnet)


def with_network_and_older_ones(config: Config, subnet: str, plugin: str) -> Config:
    """The config with such a pod network, and a mirror that has an older Kubernetes too."""
    config["network"] = {**config.get("network", {}), "plugin": plugin}
    return _by(_NETWORKS_TOO, config, subnet)


def with_networks_and_tools(config: Config, subnet: str) -> Config:
    """The config with a mirror that has every pod network, and the tools of the catalogue's toolbox."""
    return _by(_NETWORKS_AND_TOOLS, config, subnet)


def with_addons(config: Config, subnet: str) -> Config:
    """The config with a mirror that has the images of the catalogue too."""
    return _by(_ADDONS, config, subnet)


def with_load_balancers(config: Config, subnet: str) -> Config:
    """The config with a mirror that has the images of add-ons metallb and traefik too."""
    return _by(_LOAD_BALANCERS, config, subnet)


def with_logs(config: Config, subnet: str) -> Config:
    """The config with a mirror that has the images of add-on logs too."""
    return _by(_LOGS, config, subnet)


def with_every_addon() -> None:
    """The bundle is in the cache that `make dev ADDONS=all` takes."""
    make(_EVERY_ADDON)


def with_upstreams_tests(config: Config, subnet: str) -> Config:
    """The config with a mirror that has the images of upstream's tests, and those of every pod network."""
    return _by(_TESTS, config, subnet)


def _by(wanted: Bundle, config: Config, subnet: str) -> Config:
    make(wanted)
    assert (ROOT / wanted.link / "manifest.json").exists()
    mirror = f"{subnet.rpartition('.')[0]}.2"
    config["mirror"] = {
        "url": f"http://{mirror}:8080",
        "registry": f"http://{mirror}:5000",
        "manifest": f"{wanted.link}/manifest.json",
    }
    return config


def of_the_set(kubernetes: str, component: str) -> str:
    """The version of a component of the lock's set for that Kubernetes version."""
    lock = yaml.safe_load((ROOT / "artifacts/lock.yaml").read_text())
    return str(lock["sets"][kubernetes][component])


def of_kubelets(stack: Stack) -> dict[str, str]:
    """By node, as the cluster knows it."""
    items = json.loads(stack.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        item["metadata"]["name"]: item["status"]["nodeInfo"]["kubeletVersion"] for item in items
    }


def of_runtimes(stack: Stack) -> dict[str, str]:
    """By node, containerd's version."""
    items = json.loads(stack.kubectl("get", "nodes", "-o", "json"))["items"]
    return {
        item["metadata"]["name"]: item["status"]["nodeInfo"]["containerRuntimeVersion"]
        for item in items
    }


def of_images(stack: Stack, component: str) -> dict[str, str]:
    """By pod of a component of kube-system, the tag of its image."""
    label = f"component={component}" if component.startswith("kube-api") else f"k8s-app={component}"
    if component in ("kube-controller-manager", "kube-scheduler"):
        label = f"component={component}"
    text = stack.kubectl("-n", "kube-system", "get", "pods", "-l", label, "-o", "json")
    return {
        item["metadata"]["name"]: item["spec"]["containers"][0]["image"].rpartition(":")[2]
        for item in json.loads(text)["items"]
    }


def of_etcd(stack: Stack) -> Mapping[str, str]:
    """By machine, what its member says of itself."""
    out = {}
    for node in stack.members():
        (status,) = json.loads(node.etcdctl("endpoint status -w json"))
        out[node.name] = status["Status"]["version"]
    return out


def published(stack: Stack) -> str:
    """The Kubernetes version that kubeadm's settings in the cluster name."""
    text = stack.kubectl(
        "-n", "kube-system", "get", "configmap", "kubeadm-config",
        "-o", "jsonpath={.data.ClusterConfiguration}",
    )  # fmt: skip
    (line,) = [line for line in text.splitlines() if line.startswith("kubernetesVersion:")]
    return line.split()[1]
