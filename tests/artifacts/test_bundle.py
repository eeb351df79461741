"""A bundle by download, from a server with upstream's layout and a registry: complete, checked,
found again, and never half there."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from artifacts import bundle, oci, pins, registry, sources
from artifacts.build import host_arch
from artifacts.download import Upstream as Where
from artifacts.lock import HERE, Lock, read
from tests.artifacts.upstream import Upstream

ARCH = host_arch()
LOCK = read(None, ARCH)
Run = Callable[..., int]


def etcd_archive() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        info = tarfile.TarInfo("etcd/etcdctl")
        info.size = 4
        tar.addfile(info, io.BytesIO(b"ctl!"))
    return out.getvalue()


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a registry that has every image of the lock."""
    if shutil.which("docker-registry") is None or shutil.which("skopeo") is None:
        pytest.skip("docker-registry and skopeo are not installed")
    folder = tmp_path_factory.mktemp("images")
    with registry.serve(folder / "storage") as server:
        for image in LOCK.images:
            program, layout = folder / image.name, folder / f"{image.name}.layout"
            program.write_text(image.name)
            oci.write_layer(folder / "layer.tar", {image.path: program})
            config = oci.Config(arch=ARCH, entrypoint=(f"/{image.path}",))
            oci.write_image(layout, config, (folder / "layer.tar",))
            server.copy(f"oci:{layout}", image.ref, ARCH)
        yield f"http://{server.endpoint}"


@pytest.fixture
def releases(upstream: Upstream) -> Upstream:
    """Upstream with every file of the lock."""
    for file in LOCK.files:
        content = etcd_archive() if file.name == "etcd" else file.name.encode()
        path, sums = (url.removeprefix("https://") for url in (file.url, file.published))
        upstream.publish(path, content, checksum_at=sums, lists=path.rpartition("/")[2])
    return upstream


@pytest.fixture
def run(releases: Upstream, images: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """python -m artifacts.bundle with a cache of its own; gives the exit code."""
    monkeypatch.setenv("KUBE_HA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(pins, "FILE", tmp_path / "pins.json")

    def main(*arguments: str) -> int:
        where = ("--mirror", releases.url, "--registry", images, "--source", "download")
        return bundle.main([*where, *arguments])

    return main


def at(root: Path, url: str) -> Path:
    return root / "files" / url.removeprefix("https://")


def test_the_manifest_names_every_file_and_image(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    made = Path(capsys.readouterr().out.strip())
    manifest = json.loads((made / "manifest.json").read_text())
    assert (manifest["kubernetes"], manifest["arch"]) == (LOCK.kubernetes, ARCH)
    assert manifest["files"].keys() == {file.url for file in LOCK.files}
    for url, entry in manifest["files"].items():
        content = at(made, url).read_bytes()
        assert entry == {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    assert manifest["images"].keys() == {image.ref for image in LOCK.images}
    assert all(digest.startswith("sha256:") for digest in manifest["images"].values())
    assert set(manifest["origin"].values()) == {"downloaded"}
    assert manifest["origin"].keys() == {artefact.name for artefact in LOCK.artefacts}


def test_the_registry_of_the_bundle_gives_the_digests_of_the_manifest(
    run: Run, tmp_path: Path
) -> None:
    assert run("--out", str(tmp_path / "out")) == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    with registry.serve(tmp_path / "out" / "registry") as server:
        for ref, digest in manifest["images"].items():
            source = f"docker://{server.endpoint}/{ref.partition('/')[2]}"
            assert server.copy(source, f"x/copy/{ref}", ARCH, plain_http=True) == digest


def test_tools_for_this_computer_are_executable(run: Run, tmp_path: Path) -> None:
    assert run("--out", str(tmp_path / "out")) == 0
    tools = sorted((tmp_path / "out" / "bin").iterdir())
    assert [(t.name, t.read_bytes()) for t in tools] == [
        ("etcdctl", b"ctl!"),
        ("kubectl", b"kubectl"),
    ]
    assert all(tool.stat().st_mode & 0o777 == 0o755 for tool in tools)


def test_a_bundle_is_upstream_for_another_bundle(
    run: Run, releases: Upstream, images: str, tmp_path: Path
) -> None:
    assert run("--out", str(tmp_path / "out")) == 0
    root = tmp_path / "out" / "files"
    releases.files = {
        str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()
    }
    assert run("--out", str(tmp_path / "second")) == 0
    first, second = ((tmp_path / name / "manifest.json").read_text() for name in ("out", "second"))
    assert first == second


def test_a_second_run_asks_nobody_and_moves_the_link(
    run: Run, releases: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    first = capsys.readouterr().out
    releases.requests.clear()
    assert run("--link", str(tmp_path / "local" / "bundle")) == 0
    assert capsys.readouterr().out == first
    assert releases.requests == []
    assert (tmp_path / "local" / "bundle").resolve() == Path(first.strip())


def test_a_wrong_checksum_is_an_error_and_no_bundle(
    run: Run, releases: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubelet = next(file.url for file in LOCK.files if file.name == "kubelet")
    releases.files[kubelet.removeprefix("https://")] = b"not the kubelet"
    assert run("--out", str(tmp_path / "out"), "--link", str(tmp_path / "link")) == 1
    assert "kubelet: has checksum" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "link").exists()


def test_a_run_after_a_failed_one_fetches_only_what_is_missing(
    run: Run, releases: Upstream, tmp_path: Path
) -> None:
    runc = next(file.url for file in LOCK.files if file.name == "runc").removeprefix("https://")
    content = releases.files.pop(runc)
    assert run("--out", str(tmp_path / "out")) == 1
    releases.files[runc] = content
    releases.requests.clear()
    assert run("--out", str(tmp_path / "out")) == 0
    published = {file.published.removeprefix("https://") for file in LOCK.files}
    fetched = [path for path, _ in releases.requests if path not in published]
    after_runc = [f.url.removeprefix("https://") for f in LOCK.files[-2:]]
    assert fetched == after_runc


def test_the_rest_of_a_killed_run_is_replaced(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".out.new" / "files").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "half").touch()
    assert run("--out", str(tmp_path / "out")) == 0
    assert not (tmp_path / ".out.new").exists()
    assert not (tmp_path / "out" / "half").exists()


def test_an_unknown_version_is_one_line_on_stderr(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--kubernetes", "1.0.0") == 1
    assert capsys.readouterr().err.startswith("ERROR bundle: ")


def order(lock: Lock, source: sources.Source = "auto") -> bundle.Order:
    return bundle.Order(lock=lock, source=source, upstream=Where(), cache=Path())


def test_the_key_follows_what_is_in_the_bundle() -> None:
    keys = {
        bundle.key(order(read(version, arch)))
        for version in (None, "1.35.4")
        for arch in ("amd64", "arm64")
    }
    assert len(keys) == 4
    assert bundle.key(order(read("1.36.3", ARCH))) == bundle.key(order(LOCK))


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        pytest.param("runc: 1.4.3", "runc: 1.4.4", False, id="version"),
        pytest.param("https://dl.k8s.io", "https://dl.example.org", False, id="url"),
        pytest.param("tags: seccomp,", "tags: ", False, id="build flags"),
        pytest.param("conntrack, ethtool", "conntrack", False, id="packages of a layer"),
        pytest.param("# Every artefact", "# Each artefact", True, id="comment"),
        pytest.param("coredns: 1.13.1", "coredns: 1.13.2", True, id="another set"),
    ],
)
def test_an_edit_of_the_lock_changes_the_key_if_it_concerns_the_set(
    tmp_path: Path, old: str, new: str, *, same: bool
) -> None:
    text = (HERE / "lock.yaml").read_text()
    assert old in text
    (tmp_path / "lock.yaml").write_text(text.replace(old, new))
    after = read("1.36.3", ARCH, path=tmp_path / "lock.yaml")
    assert (bundle.key(order(after)) == bundle.key(order(LOCK))) is same


def test_hosts_that_do_not_answer_are_built_and_others_downloaded(
    releases: Upstream, images: str
) -> None:
    releases.files = {p: c for p, c in releases.files.items() if p.startswith("dl.k8s.io/")}
    where = Where(mirror=releases.url, registry=images)
    origins = sources.origins(LOCK, "auto", where)
    built = {name for name, origin in origins.items() if origin == "built"}
    assert built == {"etcd", "containerd", "runc", "cni-plugins"}
    assert set(sources.origins(LOCK, "build", where).values()) == {"built"}


def test_what_upstream_gave_is_pinned_once_and_another_release_of_that_name_is_refused(
    run: Run, releases: Upstream, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pins.json"
    assert run() == 0
    assert not file.exists(), "only where it was asked for"
    assert run("--record") == 0
    capsys.readouterr()
    manifest = json.loads((Path(_made(run, capsys)) / "manifest.json").read_text())
    kept = pins.read(file)
    assert dict(kept.files) == {url: entry["sha256"] for url, entry in manifest["files"].items()}
    assert {arch: dict(listed) for arch, listed in kept.images.items()} == {
        ARCH: manifest["images"]
    }
    before = file.read_bytes()
    assert run("--record") == 0
    assert file.read_bytes() == before

    shutil.rmtree(tmp_path / "cache")  # another computer, later; the tag was moved meanwhile
    kubelet = next(file for file in LOCK.files if file.name == "kubelet")
    path, sums = (url.removeprefix("https://") for url in (kubelet.url, kubelet.published))
    del releases.files[sums]
    releases.publish(path, b"another kubelet", checksum_at=sums, lists="kubelet")
    capsys.readouterr()
    for words in ((), ("--record",), ("--link", str(tmp_path / "link"))):
        assert run(*words) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert f"{kubelet.url} is {hashlib.sha256(b'another kubelet').hexdigest()}" in said.err
        assert "find out who published what" in said.err
    assert file.read_bytes() == before
    assert not (tmp_path / "link").exists()


def _made(run: Run, capsys: pytest.CaptureFixture[str]) -> str:
    assert run() == 0
    return capsys.readouterr().out.strip()


def test_an_image_of_another_digest_is_refused_and_what_was_built_here_is_no_pin() -> None:
    names = {"registry.k8s.io/pause:3": "pause", "https://x/etcd": "etcd", "https://x/runc": "runc"}
    manifest = {
        "arch": "arm64",
        "files": {"https://x/etcd": {"sha256": "e1"}, "https://x/runc": {"sha256": "r1"}},
        "images": {"registry.k8s.io/pause:3": "sha256:p1"},
        "origin": {"pause": "downloaded", "etcd": "built", "runc": "downloaded"},
    }
    found = pins.of_bundle(manifest, names)
    assert dict(found.files) == {"https://x/runc": "r1"}
    assert found.images == {"arm64": {"registry.k8s.io/pause:3": "sha256:p1"}}
    old = pins.Pins(
        files={"https://x/etcd": "other"},
        images={"arm64": {"registry.k8s.io/pause:3": "sha256:p0"}},
    )
    assert pins.differences(old, found) == [
        "registry.k8s.io/pause:3 (arm64) is sha256:p1, pinned is sha256:p0"
    ]
    assert pins.differences(pins.Pins(images={"amd64": old.images["arm64"]}), found) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": [], "images": {}}', "<<<<<<< ours"])
def test_pins_that_cannot_be_read_are_an_error_and_not_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "pins.json"
    file.write_text(text)
    with pytest.raises(pins.PinError, match=r"cannot be read .* git checkout"):
        pins.read(file)
    with pytest.raises(pins.PinError):
        pins.record(pins.Pins(), file)
    assert file.read_text() == text
