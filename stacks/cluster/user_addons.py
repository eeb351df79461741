"""Add-ons that the config names: of the catalogue, or manifests of the user's beside the stack.

Only names and hashes go into the plan; the files travel to a master as they are, and what the
catalogue makes is a file, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from stacks.catalogue import registry as catalogue
from stacks.catalogue.entry import Entry, Wanted
from stacks.cluster import addon_secrets, charts
from stacks.cluster.charts import ChartError
from stacks.config import engine_yaml, local_file
from stacks.config.charts import ChartSpec
from stacks.config.engine_yaml import NoYamlError
from stacks.config.spec import AddonSpec, Spec
from stacks.documents import yaml_text
from stacks.networks import registry as networks

# Add-ons of the product's own in every cluster.
_OWN = ("admission-policies", "coredns", "kube-proxy", "lost-nodes", "serving-certificates")
# Deleting one of these deletes what others keep in it, or what nobody can bring back.
KEPT = (
    "CustomResourceDefinition.apiextensions.k8s.io",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass.storage.k8s.io",
)

_DEEPEST = 500  # levels; the schema of a CustomResourceDefinition has some sixty

HERE = Path()  # the project's folder, in which all of this runs


class KubernetesObject(NamedTuple):
    """What an object is known by, whatever version of its API is used."""

    kind: str  # with its API's group: Deployment.apps; ConfigMap
    namespace: str  # where none is said: default, as kubectl takes it; of cluster-wide ones too
    name: str

    def __str__(self) -> str:
        """For people."""
        where = "" if self.namespace == "default" else f"{self.namespace}/"
        return f"{self.kind.partition('.')[0]} {where}{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addon:
    name: str
    files: tuple[tuple[str, str], ...]  # (path as the config has it, SHA-256), in their order
    objects: tuple[KubernetesObject, ...]  # Secrets of the config, then in the order of the files
    # Of the catalogue, or of a chart: what its one file holds. A memory has the hash alone.
    text: str = field(default="", compare=False, repr=False)


def as_memory(addons: Iterable[Addon]) -> dict[str, object]:
    """What a stack remembers of them: plain JSON values, by name."""
    return {
        addon.name: {
            # Not by path: the engine sorts keys, and files are applied in their order.
            "files": [list(file) for file in addon.files],
            "objects": [" ".join(one) for one in addon.objects],
        }
        for addon in addons
    }


def own(spec: Spec) -> tuple[str, ...]:
    """Names of the product's own add-ons: a resource of the stack is called after each."""
    more = ("admin-generation",) if spec.pki.admin_generation else ()
    return (*_OWN, *more, *networks.of(spec).ADDONS)


def read(wanted: Wanted, root: Path = HERE) -> tuple[Addon, ...]:
    """The add-ons of a config, sorted by name; what cannot be read counts as empty.

    `root`: what relative paths start from.
    """
    chosen = catalogue.chosen(wanted.spec)
    return tuple(
        _made(name, chosen[name], wanted, said)
        if name in chosen
        else _of_chart(name, said, said.chart, wanted.spec.cluster.kubernetes, root)
        if said.chart
        else _of_files(name, said, root)
        for name, said in sorted(wanted.spec.addons.items())
    )


def _of_chart(name: str, said: AddonSpec, chart: ChartSpec, kubernetes: str, root: Path) -> Addon:
    try:
        text = charts.rendered(name, chart, kubernetes, root)
        found = tuple(identity(one) for one in documents(text) if is_named(one))
    except (ChartError, yaml.YAMLError, NoYamlError):
        text, found = "", ()
    total = hashlib.sha256(text.encode()).hexdigest() if text else ""
    return Addon(
        name=name,
        files=((chart.file, total),),
        objects=(*secrets(said), *found),
        text=text,
    )


def _of_files(name: str, said: AddonSpec, root: Path) -> Addon:
    return Addon(
        name=name,
        files=tuple((path, _sum(root, path)) for path in said.manifests),
        objects=(
            *secrets(said),
            *(one for path in said.manifests for one in objects(root, path)),
        ),
    )


def _made(name: str, entry: Entry, wanted: Wanted, said: AddonSpec) -> Addon:
    made = entry.objects(wanted, said)
    text = yaml_text.documents(*made)
    return Addon(
        name=name,
        files=(
            (f"{name}@{entry.version(wanted.versions)}", hashlib.sha256(text.encode()).hexdigest()),
        ),
        objects=(*secrets(said), *(identity(one) for one in made)),
        text=text,
    )


def secrets(said: AddonSpec) -> tuple[KubernetesObject, ...]:
    """Those that the config names; an update alone knows what is in them."""
    return tuple(KubernetesObject("Secret", *place) for place in addon_secrets.places(said))


def kept(objects: Iterable[KubernetesObject]) -> list[KubernetesObject]:
    """The remaining nodes in the cluster when they leave their add-on."""
    return [one for one in objects if one.kind in KEPT]


def content(root: Path, path: str) -> bytes:
    return local_file.read(local_file.place(path, root), local_file.MANIFEST_MOST)


def _sum(root: Path, path: str) -> str:
    try:
        return hashlib.sha256(content(root, path)).hexdigest()
    except OSError:
        return ""


def objects(root: Path, path: str) -> tuple[KubernetesObject, ...]:
    try:
        text = content(root, path).decode()
        return tuple(identity(one) for one in documents(text) if is_named(one))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, NoYamlError):
        return ()


@cache
def documents(text: str) -> tuple[object, ...]:
    """Documents that are not empty. Every scalar is a text: a manifest's `=` is one too.

    Raises yaml.YAMLError and NoYamlError.
    """
    engine_yaml.refuse_depth(text, _DEEPEST)
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # ten times faster, where it is built
    return tuple(one for one in yaml.load_all(text, Loader=loader) if one not in (None, ""))


def text(document: object, *keys: str) -> str:
    for key in keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document if isinstance(document, str) else ""


def is_named(document: object) -> bool:
    wanted = (("apiVersion",), ("kind",), ("metadata", "name"))
    return all(text(document, *keys) for keys in wanted)


def identity(document: object) -> KubernetesObject:
    group, slash, _ = text(document, "apiVersion").partition("/")
    kind = text(document, "kind")
    return KubernetesObject(
        kind=f"{kind}.{group}" if slash else kind,
        namespace=text(document, "metadata", "namespace") or "default",
        name=text(document, "metadata", "name"),
    )
