"""The bill of materials of the tool in a bundle, as CycloneDX JSON: engine, plugins, wheels.

What nodes and mirror get is in a document of its own (artifacts/sbom.py). The same files give the
same bytes: there is no time in it.
"""

from __future__ import annotations

import email
import hashlib
import json
import re
import uuid
import zipfile
from collections.abc import Iterator
from email.message import Message
from pathlib import Path

NAME = "sbom.cdx.json"  # beside the list of the tool's files

_SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
_SPACE = uuid.UUID("0b7f0c1e-52a7-5d0c-8a4d-9d7c1f6f6a20")  # of serial numbers made here
_ENGINE = re.compile(r"(?P<way>download|build)-(?P<version>[0-9.]+)-.*")
_PLUGIN = re.compile(r"pulumi-resource-(?P<name>[a-z]+)-v(?P<version>[0-9.]+)-.*\.tar\.gz")
_ORIGINS = {"download": "downloaded", "build": "built"}
_MAKERS = "Apache-2.0"  # of Pulumi's engine and plugins
_LICENCE = "License :: "

Component = dict[str, object]


def document(tool: Path) -> str:
    """Of a folder as `toolchain.pack` makes it; the text ends with a line feed."""
    found = [*_programs(tool / "engine"), *map(_package, sorted((tool / "wheels").glob("*.whl")))]
    components = sorted(found, key=lambda one: str(one["bom-ref"]))
    (engine,) = [one for one in components if one["name"] == "pulumi" and "properties" in one]
    whole = {
        "type": "application",
        "bom-ref": "tool",
        "name": "kube-ha-tool",
        "version": engine["version"],
    }
    references = [one["bom-ref"] for one in components]
    body = {
        "metadata": {"component": whole},
        "components": components,
        "dependencies": [{"ref": "tool", "dependsOn": references}],
    }
    serial = uuid.uuid5(_SPACE, json.dumps(body, sort_keys=True))
    head = {"$schema": _SCHEMA, "bomFormat": "CycloneDX", "specVersion": "1.6"}
    numbered = {**head, "serialNumber": f"urn:uuid:{serial}", "version": 1, **body}
    return json.dumps(numbered, indent=2) + "\n"


def _programs(folder: Path) -> Iterator[Component]:
    """The engine, and plugins; a stand-in of the lab is a file of the checkout and is not here."""
    for entry in sorted(folder.iterdir()):
        if told := _ENGINE.fullmatch(entry.name):
            origin = _ORIGINS[told["way"]]
            purl = f"pkg:github/pulumi/pulumi@v{told['version']}"
            made = _component("application", "pulumi", told["version"], purl, entry / "pulumi")
            properties = [{"name": "kube-ha:origin", "value": origin}]
            yield {**made, **_by_id(_MAKERS), "properties": properties}
        elif told := _PLUGIN.fullmatch(entry.name):
            name = f"pulumi-{told['name']}"
            purl = f"pkg:github/pulumi/{name}@v{told['version']}"
            made = _component("application", f"{name} plugin", told["version"], purl, entry)
            yield {**made, **_by_id(_MAKERS)}


def _package(wheel: Path) -> Component:
    """A Python package, by what its wheel says of itself."""
    with zipfile.ZipFile(wheel) as packed:
        (about,) = [
            name for name in packed.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)
        ]
        told = email.message_from_bytes(packed.read(about))
    name, version = str(told["Name"]), str(told["Version"])
    plain = re.sub(r"[-_.]+", "-", name).lower()
    purl = f"pkg:pypi/{plain}@{version}"
    return {**_component("library", name, version, purl, wheel), **_licences(told)}


def _licences(told: Message) -> Component:
    """An SPDX expression where it gives one, else the names that it gives; none, if so."""
    if expression := told["License-Expression"]:
        return {"licenses": [{"expression": str(expression)}]}
    classified = [str(text) for text in told.get_all("Classifier", [])]
    names = {text.rpartition(" :: ")[2] for text in classified if text.startswith(_LICENCE)}
    names.discard("OSI Approved")  # by itself it names none
    short = str(told["License"] or "").strip()
    if not names and short and "\n" not in short:
        names = {short}
    return {"licenses": [{"license": {"name": name}} for name in sorted(names)]} if names else {}


def _component(kind: str, name: str, version: str, purl: str, file: Path) -> Component:
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {
        "type": kind,
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": digest}],
    }


def _by_id(licence: str) -> Component:
    return {"licenses": [{"license": {"id": licence}}]}
