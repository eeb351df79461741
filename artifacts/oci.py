"""Write container images as OCI layouts, with nothing but the standard library.

Layers are not compressed: every node would spend processor time on unpacking what comes over a
local network anyway. The same input gives the same digest.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How a container of the image starts."""

    arch: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...] = ()
    user: str = ""  # uid or uid:gid; empty is root


def write_layer(target: Path, files: Mapping[str, Path]) -> None:
    """A layer of files, path in the image -> file here, with the folders above them."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        folders = {
            str(parent)
            for path in files
            for parent in PurePosixPath(path).parents
            if str(parent) != "."
        }
        for folder in sorted(folders):
            info = tarfile.TarInfo(folder)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        for path, source in sorted(files.items()):
            info = tarfile.TarInfo(path)  # owner root, time 0
            info.size, info.mode = source.stat().st_size, 0o755
            with source.open("rb") as content:
                tar.addfile(info, content)


def write_image(layout: Path, config: Config, layers: tuple[Path, ...]) -> str:
    """Make `layout` an OCI layout of one image, lowest layer first; gives the manifest's digest."""
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True)
    described = [_add_file(blobs, layer) for layer in layers]
    start = {"Entrypoint": list(config.entrypoint), "Env": [_PATH], "WorkingDir": "/"}
    if config.command:
        start["Cmd"] = list(config.command)
    document = {
        "architecture": config.arch,
        "os": "linux",
        "config": start | ({"User": config.user} if config.user else {}),
        # Not compressed: the digest of the content is that of the blob.
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in described]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": _MANIFEST,
        "config": _add_json(blobs, _CONFIG, document),
        "layers": described,
    }
    descriptor = _add_json(blobs, _MANIFEST, manifest)
    platform = {"architecture": config.arch, "os": "linux"}
    index = {"schemaVersion": 2, "manifests": [descriptor | {"platform": platform}]}
    (layout / "index.json").write_text(json.dumps(index))
    (layout / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))
    return str(descriptor["digest"])


def _add_file(blobs: Path, source: Path) -> dict[str, object]:
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    shutil.copyfile(source, blobs / digest)
    return {"mediaType": _LAYER, "digest": f"sha256:{digest}", "size": source.stat().st_size}


def _add_json(blobs: Path, media_type: str, document: Mapping[str, object]) -> dict[str, object]:
    data = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    digest = hashlib.sha256(data).hexdigest()
    (blobs / digest).write_bytes(data)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}
