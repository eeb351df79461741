"""What nodes fetch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from artifacts import pins
from stacks.cluster.artifacts import ArtifactError, files, images
from stacks.cluster.plan import Plan
from stacks.phases import downloads
from tests.unit.configs import adopted, lab, planned

MIRROR = {
    "url": "http://mirror:8080",
    "registry": "http://mirror:5000",
    "manifest": "bundle/manifest.json",
}
KUBELET = "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kubelet"


def bundle(root: Path, plan: Plan, *, without: str = "") -> None:
    """A manifest that gives each file its own name as checksum, and each image as digest."""
    upstream = {file.upstream: name for name, file in files(planned(adopted()), "amd64").items()}
    manifest = {
        "arch": "amd64",
        "kubernetes": plan.versions.kubernetes,
        "files": {
            url: {"sha256": f"sum of {name}", "size": 1}
            for url, name in upstream.items()
            if name != without
        },
        "images": {
            image.ref: f"digest of {name}"
            for name, image in images(plan).items()
            if f"image/{name}" != without
        },
    }
    (root / "bundle").mkdir()
    (root / "bundle" / "manifest.json").write_text(json.dumps(manifest))


def test_upstream_files_are_compared_with_the_published_checksum() -> None:
    kubelet = files(planned(adopted()), "arm64")["kubelet"]
    assert kubelet.url == kubelet.upstream == KUBELET
    assert kubelet.sha256 is None
    assert kubelet.published == f"{KUBELET}.sha256"
    assert kubelet.version == "1.36.3"


def test_every_file_of_the_lock_is_there_with_the_version_of_its_set() -> None:
    found = files(planned(adopted()), "amd64")
    assert list(found) == [
        "cni-plugins",
        "containerd",
        "etcd",
        "kubeadm",
        "kubectl",
        "kubelet",
        "runc",
    ]
    assert "{" not in "".join(file.url + file.published for file in found.values())


def test_a_mirror_serves_upstreams_layout_with_the_bundles_checksums(tmp_path: Path) -> None:
    made = planned(adopted({"mirror": MIRROR}))
    bundle(tmp_path, made)
    kubelet = files(made, "amd64", root=tmp_path)["kubelet"]
    assert kubelet.url == ("http://mirror:8080/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet")
    assert kubelet.sha256 == "sum of kubelet"


def test_a_bundle_for_another_architecture_is_refused(tmp_path: Path) -> None:
    made = planned(adopted({"mirror": MIRROR}))
    bundle(tmp_path, made)
    with pytest.raises(ArtifactError, match=r"lacks 7 files or images.*on arm64: `make bundle`"):
        files(made, "arm64", root=tmp_path)


def test_a_bundle_that_lacks_a_file_is_refused(tmp_path: Path) -> None:
    made = planned(adopted({"mirror": MIRROR}))
    bundle(tmp_path, made, without="runc")
    with pytest.raises(
        ArtifactError, match=r"lacks 1 files or images, the first is .*/runc\.amd64"
    ):
        files(made, "amd64", root=tmp_path)


def test_images_have_the_digests_of_the_bundle_and_each_node_hears_its_own(tmp_path: Path) -> None:
    made = planned(adopted({"mirror": MIRROR}))
    bundle(tmp_path, made)
    found = files(made, "amd64", root=tmp_path)
    master, worker = (
        dict(line.split()[:2] for line in text.splitlines() if line.startswith("image/"))
        for text in (
            downloads.node_artefacts(made, made.node(name), found)
            for name in ("master-1", "worker-1")
        )
    )
    assert found["image/pause"].sha256 == "digest of pause"
    assert worker["image/kube-proxy"] == "registry.k8s.io/kube-proxy:v1.36.3"
    assert set(master) - set(worker) == {
        f"image/kube-{name}" for name in ("apiserver", "controller-manager", "scheduler")
    }


def test_a_manifest_without_the_digest_of_an_image_is_refused(tmp_path: Path) -> None:
    """Its tag would decide, and with it the registry and whoever is on the way to it."""
    made = planned(adopted({"mirror": MIRROR}))
    bundle(tmp_path, made, without="image/coredns")
    with pytest.raises(ArtifactError, match=r"lacks 1 files or images, the first is .*coredns"):
        files(made, "amd64", root=tmp_path)


def _pinned(monkeypatch: pytest.MonkeyPatch, found: pins.Pins) -> None:
    monkeypatch.setattr(pins, "read", lambda: found)


def test_without_a_mirror_nodes_compare_with_the_pins_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = planned(adopted())
    pause = images(made)["pause"].ref
    url = files(made, "amd64")["kubelet"].upstream
    _pinned(monkeypatch, pins.Pins(files={url: "p1"}, images={"amd64": {pause: "sha256:p2"}}))
    found = files(made, "amd64")
    lines = downloads.node_artefacts(made, made.node("worker-1"), found).splitlines()
    assert f"kubelet {url} p1" in lines
    assert f"image/pause {pause} sha256:p2" in lines
    assert [line for line in lines if line.startswith("image/")] == [
        f"image/pause {pause} sha256:p2"
    ]
    assert f"runc {found['runc'].url} published:{found['runc'].published}" in lines
    assert "image/pause" not in files(made, "arm64"), "a digest is that of one architecture"


def test_a_bundle_with_another_release_than_the_pinned_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = planned(adopted({"mirror": MIRROR}))
    bundle(tmp_path, made)
    url = files(planned(adopted()), "amd64")["runc"].upstream
    pause = images(made)["pause"].ref
    wrong = pins.Pins(files={url: "other"}, images={"amd64": {pause: "sha256:other"}})
    _pinned(monkeypatch, wrong)
    files(made, "amd64", root=tmp_path)  # it was built, says its manifest
    path = tmp_path / "bundle" / "manifest.json"
    manifest = json.loads(path.read_text()) | {
        "origin": {"runc": "downloaded", "pause": "downloaded"}
    }
    path.write_text(json.dumps(manifest))
    with pytest.raises(ArtifactError, match=r"runc.* is sum of runc, pinned is other; .*pause"):
        files(made, "amd64", root=tmp_path)


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"files": {"a": {}}}'])
def test_what_is_no_manifest_is_refused_with_the_way_to_make_one(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / ".local" / "bundle" / "manifest.json"
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_text(content)
    with pytest.raises(ArtifactError, match=r"is not a manifest of a bundle .*`make bundle`"):
        files(planned(lab()), "amd64", root=tmp_path)


def test_images_have_the_versions_that_belong_together() -> None:
    old = images(planned(lab({"cluster.kubernetes": "1.35.4"})))
    new = images(planned(lab()))
    assert old["pause"].ref == "registry.k8s.io/pause:3.10.1"
    assert new["pause"].ref == "registry.k8s.io/pause:3.10.2"
    assert new["coredns"].ref == "registry.k8s.io/coredns/coredns:v1.14.2"
    assert new["kube-proxy"].ref == "registry.k8s.io/kube-proxy:v1.36.3"
    assert new["kube-proxy"].version == "1.36.3"
