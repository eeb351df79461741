"""Add-ons of the user's: manifests that lie beside the stack, as files on the computer that plans.

Only names and hashes of them go into the plan; the files travel to a master as they are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from stacks.problems import Problem

if TYPE_CHECKING:
    from stacks.spec import Spec

# Add-ons of the product's own: a resource of the stack is called after each.
OWN = ("coredns", "flannel", "kube-proxy", "lost-nodes", "serving-certificates")
# Deleting one of these deletes what others keep in it, or what nobody can bring back.
KEPT = (
    "CustomResourceDefinition.apiextensions.k8s.io",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "StorageClass.storage.k8s.io",
)

# The widest of all names, those of roles: system:node@x. Nothing that would be more than a word.
_WORD = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.:@/+-]*)?")


_HERE = Path()  # the project's folder, in which all of this runs


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
    objects: tuple[KubernetesObject, ...]  # in the order of the files


def read(spec: Spec, root: Path = _HERE) -> tuple[Addon, ...]:
    """The add-ons of a config, sorted by name; what cannot be read counts as empty.

    `root`: what relative paths start from.
    """
    return tuple(
        Addon(
            name=name,
            files=tuple((path, _sum(root, path)) for path in said.manifests),
            objects=tuple(one for path in said.manifests for one in _objects(root, path)),
        )
        for name, said in sorted(spec.addons.items())
    )


def said_problems(spec: Spec) -> list[Problem]:
    """What can be known to be wrong without the files."""
    out = []
    for name, said in sorted(spec.addons.items()):
        path = f"addons.{name}"
        if name in OWN:
            out.append(Problem(path, "is the name of an add-on that the stack makes; take another"))
        if not said.manifests:
            out.append(
                Problem(f"{path}.manifests", "is empty; name a file, or leave the add-on out")
            )
        for index, file in enumerate(said.manifests):
            if file in said.manifests[:index]:
                text = f"{file!r} stands here twice; leave one of them out"
                out.append(Problem(f"{path}.manifests[{index}]", text))
    return out


def problems(spec: Spec) -> list[Problem]:
    """Files that are missing or hold what cannot be applied, and objects that stand twice."""
    out: list[Problem] = []
    owners: dict[KubernetesObject, str] = {}
    for name, said in sorted(spec.addons.items()):
        for index, path in enumerate(said.manifests):
            where = f"addons.{name}.manifests[{index}]"
            found = list(_unusable(path))
            for one in [] if found else _objects(_HERE, path):
                first = owners.setdefault(one, where)
                if first != where:
                    found.append(f"{path!r} holds {one}, as {first} does; take it out of one")
            out += [Problem(where, text) for text in dict.fromkeys(found)]
    return out


def taken(addons: Iterable[Addon], manifests: Mapping[str, str]) -> list[Problem]:
    """Objects that are also those of the product's own add-ons, by name and manifest."""
    return [
        Problem(f"addons.{addon.name}", f"{one} is of add-on {name}, which the stack makes")
        for addon in addons
        for name, text in manifests.items()
        for one in addon.objects
        # Reading YAML takes its time, and hardly any name stands there.
        if one.name in text and one in {_identity(document) for document in _documents(text)}
    ]


def kept(objects: Iterable[KubernetesObject]) -> list[KubernetesObject]:
    """Those that stay in the cluster when they leave their add-on."""
    return [one for one in objects if one.kind in KEPT]


def _bytes(root: Path, path: str) -> bytes:
    return (root / Path(path).expanduser()).read_bytes()


def _sum(root: Path, path: str) -> str:
    try:
        return hashlib.sha256(_bytes(root, path)).hexdigest()
    except OSError:
        return ""


def _objects(root: Path, path: str) -> tuple[KubernetesObject, ...]:
    try:
        text = _bytes(root, path).decode()
        return tuple(_identity(one) for one in _documents(text) if _is_named(one))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return ()


@cache
def _documents(text: str) -> tuple[object, ...]:
    """Documents that are not empty. Every scalar is a text: a manifest's `=` is one too.

    Raises yaml.YAMLError.
    """
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # ten times faster, where it is built
    return tuple(one for one in yaml.load_all(text, Loader=loader) if one not in (None, ""))


def _text(document: object, *keys: str) -> str:
    for key in keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document if isinstance(document, str) else ""


def _is_named(document: object) -> bool:
    wanted = (("apiVersion",), ("kind",), ("metadata", "name"))
    return all(_text(document, *keys) for keys in wanted)


def _identity(document: object) -> KubernetesObject:
    group, slash, _ = _text(document, "apiVersion").partition("/")
    kind = _text(document, "kind")
    return KubernetesObject(
        kind=f"{kind}.{group}" if slash else kind,
        namespace=_text(document, "metadata", "namespace") or "default",
        name=_text(document, "metadata", "name"),
    )


def _unusable(path: str) -> Iterator[str]:
    """What is wrong with one file."""
    try:
        documents = _documents(_bytes(_HERE, path).decode())
    except OSError as error:
        yield f"{path!r} cannot be read ({(error.strerror or str(error)).lower()})"
        return
    except UnicodeDecodeError:
        yield f"{path!r} is no text in UTF-8"
        return
    except yaml.YAMLError as error:
        yield f"{path!r} is no YAML ({_line(error)})"
        return
    if not documents:
        yield f"{path!r} holds no object"
    seen: set[KubernetesObject] = set()
    for number, document in enumerate(documents, start=1):
        yield from (f"{path!r}: document {number} {text}" for text in _wrong(document))
        if _is_named(document):
            one = _identity(document)
            if one in seen:
                yield f"{path!r} holds {one} twice"
            seen.add(one)


def _wrong(document: object) -> Iterator[str]:
    if not isinstance(document, Mapping):
        yield "is no mapping"
        return
    kind = _text(document, "kind")
    if kind.endswith("List") and "items" in document:
        yield f"is a {kind}; write its items as documents, with --- between them"
        return
    for keys in (("apiVersion",), ("kind",), ("metadata", "name")):
        if not _text(document, *keys):
            yield f"has no {'.'.join(keys)}"
    if kind == "Secret" and (document.get("data") or document.get("stringData")):
        yield (
            "is a Secret with its content, which would lie in the repository for everybody to "
            "read; make it in the cluster, and let the manifest only name it"
        )
    for keys in (("metadata", "name"), ("metadata", "namespace"), ("kind",), ("apiVersion",)):
        if not _WORD.fullmatch(_text(document, *keys)):
            yield f"has a {'.'.join(keys)} that no object can have"


def _line(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    what = str(getattr(error, "problem", None) or error).splitlines()[0]
    return f"line {mark.line + 1}: {what}" if mark else what
