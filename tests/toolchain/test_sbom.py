"""The bill of materials of the tool: everything that is packed, once, by the published schema."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from tests.cyclonedx import validator
from toolchain import sbom

PLUGIN = "pulumi-resource-tls-v5.6.2-linux-amd64.tar.gz"
WHEELS = {
    "One_Name": "License-Expression: MIT OR Apache-2.0\n",
    "two": "License: BSD\nClassifier: License :: OSI Approved\n",
    "three": "Classifier: License :: OSI Approved :: MIT License\nClassifier: Topic :: Other\n",
    "four": "License: Many words,\n        on lines.\n",
}


@pytest.fixture(params=["download", "build"])
def tool(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """As `toolchain.pack` fills it."""
    engine = tmp_path / "engine" / f"{request.param}-3.250.0-linux-x86_64-abc123"
    engine.mkdir(parents=True)
    (engine / "pulumi").write_text("engine")
    (engine / "pulumi-language-python-exec").write_text("runner")
    (tmp_path / "engine" / PLUGIN).write_text("plugin")
    (tmp_path / "wheels").mkdir()
    for name, licence in WHEELS.items():
        with zipfile.ZipFile(tmp_path / f"wheels/{name}-1.0-py3-none-any.whl", "w") as packed:
            about = (
                f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{licence}\nText of {name}\n"
            )
            packed.writestr(f"{name}-1.0.dist-info/METADATA", about)
    return tmp_path


def test_it_is_valid_and_lists_everything_once(tool: Path) -> None:
    found = json.loads(sbom.document(tool))
    assert [error.message for error in validator().iter_errors(found)] == []
    purls = [one["purl"] for one in found["components"]]
    assert purls == [
        "pkg:github/pulumi/pulumi-tls@v5.6.2",
        "pkg:github/pulumi/pulumi@v3.250.0",
        "pkg:pypi/four@1.0",
        "pkg:pypi/one-name@1.0",
        "pkg:pypi/three@1.0",
        "pkg:pypi/two@1.0",
    ]
    assert found["dependencies"] == [{"ref": "tool", "dependsOn": purls}]
    assert found["metadata"]["component"]["version"] == "3.250.0"


def test_checksums_licences_and_origin_are_those_of_the_files(tool: Path) -> None:
    parts = {one["purl"]: one for one in json.loads(sbom.document(tool))["components"]}
    engine, plugin = parts["pkg:github/pulumi/pulumi@v3.250.0"], tool / "engine" / PLUGIN
    (way,) = {path.name.partition("-")[0] for path in tool.glob("engine/*-3.250.0-*")}
    origin = {"download": "downloaded", "build": "built"}[way]
    assert engine["properties"] == [{"name": "kube-ha:origin", "value": origin}]
    assert engine["hashes"][0]["content"] == hashlib.sha256(b"engine").hexdigest()
    digest = hashlib.sha256(plugin.read_bytes()).hexdigest()
    assert parts["pkg:github/pulumi/pulumi-tls@v5.6.2"]["hashes"][0]["content"] == digest
    assert parts["pkg:pypi/one-name@1.0"]["licenses"] == [{"expression": "MIT OR Apache-2.0"}]
    assert parts["pkg:pypi/two@1.0"]["licenses"] == [{"license": {"name": "BSD"}}]
    assert parts["pkg:pypi/three@1.0"]["licenses"] == [{"license": {"name": "MIT License"}}]
    assert "licenses" not in parts["pkg:pypi/four@1.0"]


def test_the_same_files_give_the_same_bytes_and_other_ones_another_serial(tool: Path) -> None:
    once = sbom.document(tool)
    assert sbom.document(tool) == once
    (tool / "engine" / PLUGIN).write_text("another one")
    assert json.loads(sbom.document(tool))["serialNumber"] != json.loads(once)["serialNumber"]
