"""What nodes fetch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stacks.artifacts import ArtifactError, files, images
from stacks.plan import Plan
from tests.unit.configs import adopted, lab, planned

MIRROR = {
    "url": "http://mirror:8080",
    "registry": "http://mirror:5000",
    "manifest": "bundle/manifest.json",
}
KUBELET = "https://dl.k8s.io/release/v1.36.3/bin/linux/arm64/kubelet"


def bundle(root: Path, plan: Plan, *, without: str = "") -> None:
    """A manifest that gives each file its own name as checksum."""
    upstream = {file.upstream: name for name, file in files(planned(adopted()), "amd64").items()}
    manifest = {
        "arch": "amd64",
        "kubernetes": plan.versions.kubernetes,
        "files": {
            url: {"sha256": f"sum of {name}", "size": 1}
            for url, name in upstream.items()
            if name != without
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
    with pytest.raises(ArtifactError, match=r"lacks 7 files.*on arm64: `make bundle`"):
        files(made, "arm64", root=tmp_path)


def test_a_bundle_that_lacks_a_file_is_refused(tmp_path: Path) -> None:
    made = planned(adopted({"mirror": MIRROR}))
    bundle(tmp_path, made, without="runc")
    with pytest.raises(ArtifactError, match=r"lacks 1 files, the first is .*/runc\.amd64"):
        files(made, "amd64", root=tmp_path)


@pytest.mark.parametrize("content", [None, "{", "[]", "{}", '{"files": {"a": {}}}'])
def test_what_is_no_manifest_is_refused_with_the_way_to_make_one(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / ".local" / "bundle" / "manifest.json"
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_text(content)
    with pytest.raises(ArtifactError, match=r"is no manifest of a bundle .*`make bundle`"):
        files(planned(lab()), "amd64", root=tmp_path)


def test_images_have_the_versions_that_belong_together() -> None:
    old = images(planned(lab({"cluster.kubernetes": "1.35.4"})))
    new = images(planned(lab()))
    assert old["pause"].ref == "registry.k8s.io/pause:3.10.1"
    assert new["pause"].ref == "registry.k8s.io/pause:3.10.2"
    assert new["coredns"].ref == "registry.k8s.io/coredns/coredns:v1.14.2"
    assert new["kube-proxy"].ref == "registry.k8s.io/kube-proxy:v1.36.3"
    assert new["kube-proxy"].version == "1.36.3"
