"""The bill of materials: everything of a bundle, once, by the published schema, and the same bytes each time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artifacts import sbom
from artifacts.lock import ARCHITECTURES, HERE, Lock, licenses, read
from artifacts.sbom import Sums
from tests.cyclonedx import validator

SET = read(None, "amd64")


def sums(lock: Lock) -> Sums:
    return Sums(
        files={file.url: f"{number:064x}" for number, file in enumerate(lock.files)},
        images={image.ref: f"sha256:{number:064x}" for number, image in enumerate(lock.images)},
        origin={artefact.name: "built" for artefact in lock.artefacts},
    )


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("known", [True, False], ids=["of a bundle", "of the lock"])
def test_it_is_valid_and_lists_everything_once(arch: str, *, known: bool) -> None:
    lock = read(None, arch, also=[("kubernetes", "1.35.4"), ("etcd", "3.5.35")])
    found = json.loads(sbom.document(lock, sums(lock) if known else Sums()))
    assert [error.message for error in validator().iter_errors(found)] == []
    listed = [(one["name"], one["version"]) for one in found["components"]]
    assert sorted(listed) == sorted((one.name, one.version) for one in lock.artefacts)
    references = [one["bom-ref"] for one in found["components"]]
    assert len(set(references)) == len(references)
    assert found["dependencies"] == [{"ref": "bundle", "dependsOn": references}]
    assert all(("hashes" in one) == known for one in found["components"])


def test_the_schema_refuses_what_is_not_one() -> None:
    found = json.loads(sbom.document(SET, sums(SET)))
    found["components"][0]["hashes"] = [{"alg": "SHA-256", "content": "short"}]
    assert [*validator().iter_errors(found)]


def test_checksums_are_those_of_the_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.json"
    of = sums(SET)
    files = {url: {"sha256": sha256, "size": 1} for url, sha256 in of.files.items()}
    manifest.write_text(json.dumps({"files": files, "images": of.images, "origin": of.origin}))
    found = {
        one["name"]: one
        for one in json.loads(sbom.document(SET, sbom.of_manifest(manifest)))["components"]
    }
    for file in SET.files:
        assert found[file.name]["hashes"] == [{"alg": "SHA-256", "content": of.files[file.url]}]
    for image in SET.images:
        digest = of.images[image.ref]
        assert found[image.name]["hashes"][0]["content"] == digest.partition(":")[2]
        assert digest.replace(":", "%3A") in found[image.name]["purl"]


def test_the_same_input_gives_the_same_bytes_and_another_one_another_serial() -> None:
    once = sbom.document(SET, sums(SET))
    assert sbom.document(read(None, "amd64"), sums(SET)) == once
    assert (
        json.loads(sbom.document(SET, Sums()))["serialNumber"] != json.loads(once)["serialNumber"]
    )


def test_every_module_has_a_license() -> None:
    lock = read(None, "amd64")
    assert {artefact.module.name for artefact in lock.artefacts if artefact.module} <= licenses(
        HERE / "lock.yaml"
    ).keys()
    found = json.loads(sbom.document(lock, Sums()))
    assert all(one["licenses"] for one in found["components"])


def test_the_command_prints_it_or_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert sbom.main(["--kubernetes", "1.36.1"]) == 0
    assert json.loads(capsys.readouterr().out)["metadata"]["component"]["version"] == "1.36.1-amd64"
    assert sbom.main(["--kubernetes", "1.2.3"]) == 1
    assert "no set for Kubernetes 1.2.3" in capsys.readouterr().err
