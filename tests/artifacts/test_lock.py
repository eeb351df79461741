"""The lock file names versions that fit together, and every build it may need is pinned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from artifacts import sources
from artifacts.download import Upstream
from artifacts.lock import ARCHITECTURES, HERE, TESTS, TOOLS, Image, LockError, read
from stacks.networks import calico
from stacks.networks import registry as networks

NETWORKS = [
    ("network", name)
    for name, network in networks.NETWORKS.items()
    if network.IMAGES and name != "flannel"
]
MORE = [*NETWORKS, TESTS, TOOLS]  # what is in no bundle unless it is asked for
SETS = sorted(yaml.safe_load((HERE / "lock.yaml").read_text())["sets"])


def edited(folder: Path, old: str, new: str) -> Path:
    text = (HERE / "lock.yaml").read_text()
    assert old in text
    path = folder / "lock.yaml"
    path.write_text(text.replace(old, new))
    return path


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("kubernetes", SETS)
def test_every_template_is_filled_in(kubernetes: str, arch: str) -> None:
    lock = read(kubernetes, arch, also=MORE)
    urls = [url for file in lock.files for url in (file.url, file.published)]
    texts = [*urls, *(image.ref for image in lock.images)]
    texts += [artefact.module.ldflags for artefact in lock.artefacts if artefact.module]
    texts += [path for file in lock.files for path in file.members.values()]
    assert not [text for text in texts if re.search(r"[{}]", text)]
    assert all(url.startswith("https://") for url in urls)
    assert {file.name for file in lock.files} == {
        "kubelet", "kubeadm", "kubectl", "etcd", "containerd", "runc", "cni-plugins", "kubernetes-tests",
        "helm",
    }  # fmt: skip


@pytest.mark.parametrize("kubernetes", SETS)
def test_every_build_is_pinned_to_the_version_of_the_set(kubernetes: str) -> None:
    for artefact in read(kubernetes, "amd64", also=MORE).artefacts:
        module = artefact.module
        if module is None:
            continue  # of packages alone
        assert (module.folder / "go.mod").is_file(), module.folder
        if module.folder.name == module.name:
            continue  # a program of this repository, without dependencies
        assert module.folder.name == module.version
        assert (module.folder / "go.sum").is_file(), module.folder
        assert f" v{module.version}" in (module.folder / "go.mod").read_text()


@pytest.mark.parametrize("kubernetes", SETS)
def test_every_artefact_comes_out_of_its_build(kubernetes: str) -> None:
    lock = read(kubernetes, "amd64", also=MORE)
    for artefact in lock.artefacts:
        module = artefact.module
        if module is None:
            assert isinstance(artefact, Image)
            if artefact.is_upstreams_alone:
                assert (artefact.binary, artefact.path, artefact.command) == ("", "", ())
                continue
            assert artefact.base, artefact.name
            assert artefact.command, artefact.name
            continue
        last = [
            p.removesuffix("/v3").removesuffix("/.").rpartition("/")[2] for p in module.packages
        ]
        made = {module.rename.get(name, name) for name in last if name != "."}
        made |= {module.rename.get(module.name, module.name)} if "." in last else set()
        made |= {*module.sources, *module.tests}
        wanted = {artefact.binary} if artefact.binary else set(getattr(artefact, "members", ()))
        wanted |= {*getattr(artefact, "more", ())}
        assert wanted <= made, artefact.name


def test_an_unquoted_version_is_refused(tmp_path: Path) -> None:
    path = edited(tmp_path, "agnhost: 2.63.0", "agnhost: 2.63")
    with pytest.raises(LockError, match=r"sets\.1\.36\.3\.agnhost: quote 2\.63"):
        read("1.36.3", "amd64", path=path)


def test_an_unquoted_word_that_yaml_takes_for_a_truth_is_refused(tmp_path: Path) -> None:
    path = edited(tmp_path, '"true"', "true")
    with pytest.raises(LockError, match="busybox: must be a list of strings"):
        read("1.36.3", "amd64", path=path)


def test_an_unknown_version_is_answered_with_those_there_are() -> None:
    with pytest.raises(LockError, match=r"no set for Kubernetes 1\.2\.3; there are 1\.36\.3"):
        read("1.2.3", "amd64")


def test_an_unknown_architecture_is_refused() -> None:
    with pytest.raises(LockError, match="riscv64: must be one of amd64, arm64"):
        read(None, "riscv64")


def test_a_set_without_a_version_that_is_needed_is_refused(tmp_path: Path) -> None:
    path = edited(tmp_path, "    runc: 1.4.3\n", "")
    with pytest.raises(LockError, match=r"sets\.1\.36\.3: has no version of runc"):
        read("1.36.3", "amd64", path=path)


CHOICES = yaml.safe_load((HERE / "lock.yaml").read_text())["choices"]


@pytest.mark.parametrize(
    ("name", "version"), [(name, version) for name in CHOICES for version in CHOICES[name]]
)
def test_every_choice_is_pinned(name: str, version: str) -> None:
    folder = HERE / "build" / name / version
    assert f" v{version}" in (folder / "go.mod").read_text()
    assert f" v{version} h1:" in (folder / "go.sum").read_text()


def test_what_is_wanted_beside_a_set_comes_before_it() -> None:
    """Tools of this computer are taken of the last of each name: that is the set's own."""
    alone = read("1.36.3", "amd64")
    both = read("1.36.3", "amd64", also=[("kubernetes", "1.35.4"), ("etcd", "3.6.15")])
    assert both.kubernetes == alone.kubernetes
    assert both.files[-len(alone.files) :] == alone.files
    assert both.images[-len(alone.images) :] == alone.images
    beside = sorted((file.name, file.version) for file in both.files[: -len(alone.files)])
    assert beside == [
        ("etcd", "3.6.15"), ("kubeadm", "1.35.4"), ("kubectl", "1.35.4"), ("kubelet", "1.35.4"),
    ]  # fmt: skip
    refs = [image.ref for image in both.images]
    assert len(refs) == len(set(refs))


def test_images_of_another_network_are_there_only_where_it_is_wanted() -> None:
    own = {image.name for image in read(None, "amd64").images}
    for also in NETWORKS:
        network = networks.NETWORKS[also[1]]
        found = {image.name for image in read(None, "amd64", also=[also]).images}
        assert found - own == {*network.IMAGES, *network.MASTER_IMAGES}
        old = [also, ("kubernetes", "1.35.4")]
        assert {image.name for image in read(None, "amd64", also=old).images} == found


def test_what_nothing_here_builds_is_upstreams_or_none() -> None:
    lock = read(None, "amd64", also=[("network", "calico")])
    alone = {image.name for image in lock.images if image.is_upstreams_alone}
    assert alone == {*calico.IMAGES, *calico.MASTER_IMAGES}
    assert set(sources.origins(lock, "download", Upstream()).values()) == {"downloaded"}
    with pytest.raises(LockError, match=r"calico-cni, .*: cannot be built, so quay\.io has to"):
        sources.origins(lock, "build", Upstream())


@pytest.mark.parametrize(
    ("also", "text"),
    [
        (("etcd", "3.4.1"), r"choices\.etcd: has no 3\.4\.1; there are 3\.6\.15, 3\.5\.35"),
        (
            ("network", "nobody"),
            r"network=nobody: no image is its own; those that have some: network=calico, network=cilium",
        ),
        (("runc", "1.0.0"), r"choices\.runc: has no 1\.0\.0; there are none"),
        (
            ("kubernetes", "1.1.1"),
            r"no set for Kubernetes 1\.1\.1; there are 1\.36\.3, 1\.36\.1, 1\.35\.4",
        ),
    ],
)
def test_what_the_lock_does_not_have_cannot_be_wanted_beside(
    also: tuple[str, str], text: str
) -> None:
    with pytest.raises(LockError, match=text):
        read(None, "amd64", also=[also])


def test_upstreams_tests_are_in_no_bundle_that_was_not_made_for_them() -> None:
    usual, asked = read(None, "amd64"), read(None, "amd64", also=[TESTS])
    assert {file.url for file in asked.files} > {file.url for file in usual.files}
    assert {image.ref for image in asked.images} > {image.ref for image in usual.images}
    assert "kubernetes-tests" not in {a.module.name for a in usual.artefacts if a.module}


def test_images_of_upstreams_tests_replace_those_of_the_same_reference() -> None:
    (usual,) = [image for image in read(None, "amd64").images if image.name == "agnhost"]
    (asked,) = [
        image for image in read(None, "amd64", also=[TESTS]).images if image.ref == usual.ref
    ]
    assert asked.base is not None
    assert usual.base is not None
    assert "curl" in {*asked.base.packages} - {*usual.base.packages}
