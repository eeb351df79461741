"""The bill of materials of a bundle, as CycloneDX JSON: names, versions, where from, checksums.

    python -m artifacts.sbom [--kubernetes V] [--arch amd64]

prints that of the lock, with the checksums that are pinned; each bundle holds its own, with those
of its manifest. The same input gives the same bytes: there is no time in it. Of an image it names
the image, not what upstream has put in.
"""

from __future__ import annotations

import argparse
import json
import sys
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from artifacts import pins
from artifacts.lock import ARCHITECTURES, File, Image, Lock, LockError, licenses, read

NAME = "sbom.cdx.json"  # beside the manifest of a bundle
_SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
_GITHUB = "github.com"
_SPACE = uuid.UUID("6f1d2a54-9a0f-5d0e-9b8e-3a8f7f5c2d11")  # of serial numbers made here

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What is known of the content of a bundle."""

    files: Mapping[str, str] = field(default_factory=dict)  # SHA-256 by upstream URL
    images: Mapping[str, str] = field(default_factory=dict)  # digest by reference
    origin: Mapping[str, str] = field(default_factory=dict)  # downloaded or built, by name


def of_manifest(manifest: Path) -> Sums:
    """Of a bundle that was made."""
    found = json.loads(manifest.read_bytes())
    files = {str(url): str(entry["sha256"]) for url, entry in found["files"].items()}
    return Sums(files=files, images=found["images"], origin=found["origin"])


def pinned(lock: Lock) -> Sums:
    """Of what upstream gave when it was first fetched."""
    known = pins.read()
    return Sums(files=known.files, images=known.images.get(lock.arch, {}))


def document(lock: Lock, sums: Sums) -> str:
    """The text of the document, ending with a line feed."""
    known = licenses()
    components = sorted(
        [
            *(_file(file, sums, known) for file in lock.files),
            *(_image(image, lock.arch, sums, known) for image in lock.images),
        ],
        key=lambda one: str(one["bom-ref"]),
    )
    whole = {
        "type": "application",
        "bom-ref": "bundle",
        "name": "kube-ha-bundle",
        "version": f"{lock.kubernetes}-{lock.arch}",
    }
    body = {
        "metadata": {"component": whole},
        "components": components,
        "dependencies": [
            {"ref": "bundle", "dependsOn": [one["bom-ref"] for one in components]},
        ],
    }
    serial = uuid.uuid5(_SPACE, json.dumps(body, sort_keys=True))
    head = {"$schema": _SCHEMA, "bomFormat": "CycloneDX", "specVersion": "1.6"}
    return (
        json.dumps({**head, "serialNumber": f"urn:uuid:{serial}", "version": 1, **body}, indent=2)
        + "\n"
    )


def _file(file: File, sums: Sums, known: Mapping[str, str]) -> dict[str, object]:
    sha256 = sums.files.get(file.url)
    url = urlsplit(file.url)
    if url.hostname == _GITHUB:
        owner, project = url.path.split("/")[1:3]
        purl = f"pkg:github/{owner}/{project}@v{file.version}"
    else:
        purl = f"pkg:generic/{file.name}@{file.version}?download_url={quote(file.url, safe='')}"
    own = {"hashes": [{"alg": "SHA-256", "content": sha256}]} if sha256 else {}
    made = _component("application", file, purl, sums, known)
    return {**made, **own, "externalReferences": [{"type": "distribution", "url": file.url}]}


def _image(image: Image, arch: str, sums: Sums, known: Mapping[str, str]) -> dict[str, object]:
    repository, _, tag = image.ref.rpartition(":")
    digest = sums.images.get(image.ref, "")
    at = f"@{quote(digest, safe='')}" if digest else ""
    where = quote(repository, safe="")
    purl = (
        f"pkg:oci/{repository.rpartition('/')[2]}{at}?arch={arch}&repository_url={where}&tag={tag}"
    )
    own = {"hashes": [{"alg": "SHA-256", "content": digest.partition(":")[2]}]} if digest else {}
    return {**_component("container", image, purl, sums, known), **own}


def _component(
    kind: str, made: File | Image, purl: str, sums: Sums, known: Mapping[str, str]
) -> dict[str, object]:
    origin = sums.origin.get(made.name)
    licence = known.get(made.module.name) if made.module else None
    return {
        "type": kind,
        "bom-ref": purl,
        "name": made.name,
        "version": made.version,
        "purl": purl,
        **({"licenses": [{"license": {"id": licence}}]} if licence else {}),
        **({"properties": [{"name": "kube-ha:origin", "value": origin}]} if origin else {}),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the document; 1 after an error, which is on stderr."""
    parser = argparse.ArgumentParser(
        prog="python -m artifacts.sbom",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kubernetes", help="a version of artifacts/lock.yaml (its default)")
    parser.add_argument("--arch", choices=ARCHITECTURES, default="amd64")
    given = parser.parse_args(argv)
    try:
        lock = read(given.kubernetes, given.arch)
        sums = pinned(lock)
    except (LockError, pins.PinError) as error:
        sys.stderr.write(f"ERROR sbom: {error}\n")
        return 1
    sys.stdout.write(document(lock, sums))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
