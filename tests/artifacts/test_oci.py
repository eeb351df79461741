"""Images are valid OCI layouts, and the same input gives the same digest."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from artifacts import oci
from artifacts.layers import rewrite
from artifacts.lock import Layer

CONFIG = oci.Config(
    arch="arm64", entrypoint=("/opt/bin/flanneld",), command=("--version",), user="65535:65535"
)


def image(folder: Path, *, program: bytes = b"#!program") -> tuple[Path, str]:
    folder.mkdir()
    (folder / "program").write_bytes(program)
    oci.write_layer(folder / "layer.tar", {"opt/bin/flanneld": folder / "program"})
    digest = oci.write_image(folder / "layout", CONFIG, (folder / "layer.tar",))
    return folder / "layout", digest


def blob(layout: Path, digest: object) -> bytes:
    return (layout / "blobs" / "sha256" / str(digest).removeprefix("sha256:")).read_bytes()


def test_every_blob_has_the_digest_it_is_called_by(tmp_path: Path) -> None:
    layout, _ = image(tmp_path / "a")
    blobs = list((layout / "blobs" / "sha256").iterdir())
    assert len(blobs) == 3
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == path.name for path in blobs)


def test_index_manifest_and_config_lead_to_the_layer(tmp_path: Path) -> None:
    layout, digest = image(tmp_path / "a")
    entry = json.loads((layout / "index.json").read_text())["manifests"][0]
    manifest = json.loads(blob(layout, digest))
    config = json.loads(blob(layout, manifest["config"]["digest"]))
    layer = blob(layout, manifest["layers"][0]["digest"])
    assert entry["digest"] == digest
    assert entry["size"] == len(blob(layout, digest))
    assert (config["architecture"], config["os"]) == ("arm64", "linux")
    assert config["config"]["Entrypoint"] == ["/opt/bin/flanneld"]
    assert config["config"]["Cmd"] == ["--version"]
    assert config["config"]["User"] == "65535:65535"
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]


def test_a_layer_holds_executables_of_root_and_their_folders(tmp_path: Path) -> None:
    layout, _ = image(tmp_path / "a")
    with tarfile.open(layout.parent / "layer.tar") as tar:
        members = {member.name: member for member in tar}
        content = tar.extractfile("opt/bin/flanneld")
        assert content is not None
        assert content.read() == b"#!program"
    assert list(members) == ["opt", "opt/bin", "opt/bin/flanneld"]
    assert all((m.uid, m.gid, m.mtime, m.mode) == (0, 0, 0, 0o755) for m in members.values())


def test_the_same_input_gives_the_same_digest_and_another_one_does_not(tmp_path: Path) -> None:
    _, first = image(tmp_path / "a")
    _, second = image(tmp_path / "b")
    _, other = image(tmp_path / "c", program=b"other")
    assert first == second != other


def test_skopeo_reads_what_was_written(tmp_path: Path) -> None:
    if shutil.which("skopeo") is None:
        pytest.skip("skopeo is not installed")
    layout, digest = image(tmp_path / "a")
    command = [
        "skopeo",
        "--override-arch=arm64",
        "inspect",
        "--format={{.Digest}}",
        f"oci:{layout}",
    ]
    seen = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert seen.stdout.strip() == digest


def test_a_debian_layer_loses_manuals_and_devices_and_gains_links(tmp_path: Path) -> None:
    source, target = tmp_path / "unpacked.tar", tmp_path / "layer.tar"
    with tarfile.open(source, "w") as tar:
        names = [".", "./bin/busybox", "./bin/ip", "./usr/share/doc/ip/copyright", "./dev/null"]
        for name in names:
            tar.addfile(tarfile.TarInfo(name))
        hard = tarfile.TarInfo("./bin/ss")
        hard.type, hard.linkname = tarfile.LNKTYPE, "./bin/ip"
        tar.addfile(hard)
    wanted = Layer(
        name="tools", packages=(), links={"iptables": "xtables-nft-multi"}, busybox=("ip", "sh")
    )
    rewrite(source, target, wanted)
    with tarfile.open(target) as tar:
        links = {member.name: member.linkname for member in tar}
    assert links == {
        "bin/busybox": "",
        "bin/ip": "",  # the package's own, no applet
        "bin/ss": "bin/ip",
        "bin/sh": "busybox",
        "usr/sbin/iptables": "xtables-nft-multi",
    }
