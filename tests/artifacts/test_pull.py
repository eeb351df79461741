"""Images by Python alone: what a registry gives again has the very digests, and nothing else is taken for it."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from artifacts import oci, registry
from artifacts.pull import PullError, Source, Storage
from tests.artifacts.upstream import Upstream

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)


@dataclass(frozen=True)
class Image:
    """`app:1` of the stand-in for upstream, for amd64 and arm64."""

    upstream: Upstream
    digests: dict[str, str]  # of manifests, by architecture
    layers: dict[str, str]

    @property
    def source(self) -> Source:
        return Source(url=self.upstream.url, repository="team/app")

    def path(self, digest: str) -> str:
        return f"v2/team/app/blobs/{digest}"


def publish(upstream: Upstream, kind: str, name: str, found: object) -> str:
    text = json.dumps(found).encode()
    digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
    for reference in (name, digest):
        upstream.publish(f"v2/team/app/manifests/{reference}", text)
        upstream.kinds[f"v2/team/app/manifests/{reference}"] = kind
    return digest


def blob(upstream: Upstream, content: bytes) -> str:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    upstream.publish(f"v2/team/app/blobs/{digest}", content)
    return digest


@pytest.fixture
def image(upstream: Upstream) -> Image:
    digests, layers = {}, {}
    for arch in ("amd64", "arm64"):
        layers[arch] = blob(upstream, f"layer of {arch}".encode() * 1000)
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": {"digest": blob(upstream, arch.encode())},
            "layers": [{"digest": layers[arch]}, {"digest": layers[arch]}],
        }
        digests[arch] = publish(upstream, MANIFEST, arch, manifest)
    listed = [
        {"digest": digest, "platform": {"os": "linux", "architecture": arch}}
        for arch, digest in digests.items()
    ]
    publish(upstream, INDEX, "1", {"schemaVersion": 2, "manifests": listed})
    return Image(upstream, digests, layers)


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
def test_the_image_of_the_architecture_is_taken(image: Image, tmp_path: Path, arch: str) -> None:
    storage = Storage(tmp_path)
    assert image.source.copy("1", arch, storage, ("team/app", "1")) == image.digests[arch]
    assert storage.blob(image.layers[arch]).read_bytes() == f"layer of {arch}".encode() * 1000
    assert len([*tmp_path.rglob("data")]) == 3
    assert not [*tmp_path.rglob("*.part")]


def test_a_registry_serves_what_was_pulled(image: Image, tmp_path: Path) -> None:
    if shutil.which("docker-registry") is None:
        pytest.skip("docker-registry is not installed")
    digest = image.source.copy("1", "amd64", Storage(tmp_path), ("here/app", "2"))
    with registry.serve(tmp_path) as server:
        again = Source(url=f"http://{server.endpoint}", repository="here/app")
        for reference in ("2", digest):
            assert again.copy(reference, "amd64", Storage(tmp_path / "copy"), ("a", "1")) == digest
    assert Storage(tmp_path / "copy").blob(image.layers["amd64"]).exists()


def test_upstreams_images_need_neither_registry_nor_skopeo(
    image: Image, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    host = image.upstream.url.removeprefix("http://")
    with registry.serve(tmp_path / "registry") as server:
        source = f"docker://{host}/team/app:1"
        assert (
            server.copy(source, "x.io/team/app:1", "amd64", plain_http=True)
            == image.digests["amd64"]
        )
        with pytest.raises(registry.RegistryError, match="skopeo is not installed"):
            server.copy("oci:layout", "x.io/team/app:1", "amd64")


def test_what_is_cut_off_is_tried_again(image: Image, tmp_path: Path) -> None:
    image.upstream.cut_after = 5
    assert image.source.copy("amd64", "amd64", Storage(tmp_path), ("a", "1"))


def test_content_that_is_not_its_digest_is_refused(image: Image, tmp_path: Path) -> None:
    image.upstream.files[image.path(image.layers["amd64"])] = b"another"
    with pytest.raises(PullError, match=r"its content is sha256:.*\n  do: "):
        image.source.copy("1", "amd64", Storage(tmp_path), ("a", "1"))
    assert not [*tmp_path.rglob("current")], "what failed has no tag"
    image.upstream.files[f"v2/team/app/manifests/{image.digests['arm64']}"] += b" "
    with pytest.raises(PullError, match="its content is"):
        image.source.copy("1", "arm64", Storage(tmp_path), ("a", "1"))


@pytest.mark.parametrize(
    ("kind", "found", "said"),
    [
        (INDEX, {"manifests": []}, "has no image for linux/amd64"),
        (INDEX, {"manifests": 7}, "its index cannot be read"),
        (MANIFEST, {"config": {"digest": "sha256:../../x"}, "layers": []}, "is not a digest"),
        (MANIFEST, {"config": {}}, "its manifest cannot be read"),
        ("text/html", {}, "is of an unknown kind, text/html"),
    ],
)
def test_what_is_not_an_image_is_told(
    image: Image, tmp_path: Path, kind: str, found: object, said: str
) -> None:
    publish(image.upstream, kind, "odd", found)
    with pytest.raises(PullError, match=said):
        image.source.copy("odd", "amd64", Storage(tmp_path), ("a", "1"))


def test_what_is_not_there_is_told_at_once(image: Image, tmp_path: Path) -> None:
    with pytest.raises(PullError, match="/v2/team/app, none: HTTP 404"):
        image.source.copy("none", "amd64", Storage(tmp_path), ("a", "1"))
    assert len(image.upstream.asked_for("v2/team/app/manifests/none")) == 1


def test_a_registry_with_tokens_is_asked_with_one(image: Image, tmp_path: Path) -> None:
    image.upstream.token = "t0ken"
    assert image.source.copy("1", "amd64", Storage(tmp_path), ("a", "1")) == image.digests["amd64"]
    (asked,) = [path for path, _ in image.upstream.requests if path.startswith("token?")]
    assert asked == "token?service=here&scope=repository%3Ateam%2Fapp%3Apull"


def test_a_layout_of_this_computer_still_goes_through_the_registry(tmp_path: Path) -> None:
    if shutil.which("docker-registry") is None or shutil.which("skopeo") is None:
        pytest.skip("docker-registry and skopeo are not installed")
    (tmp_path / "program").write_text("x")
    oci.write_layer(tmp_path / "layer.tar", {"program": tmp_path / "program"})
    digest = oci.write_image(
        tmp_path / "layout",
        oci.Config(arch="amd64", entrypoint=("/program",)),
        (tmp_path / "layer.tar",),
    )
    with registry.serve(tmp_path / "registry") as server:
        assert server.copy(f"oci:{tmp_path / 'layout'}", "x.io/a:1", "amd64") == digest
