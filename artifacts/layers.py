"""Layers of Debian packages for images whose programs call other programs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from artifacts.lock import Layer
from artifacts.progress import step

SUITE = "bookworm"
# Nobody reads manuals in these images; devices come from the container runtime.
_DROP = (
    "usr/share/doc/",
    "usr/share/man/",
    "usr/share/locale/",
    "usr/share/bash-completion/",
    "dev/",
)


class LayerError(RuntimeError):
    """The packages of a layer could not be had; the text holds the last words of the tool."""


def layer(wanted: Layer, arch: str, cache: Path) -> Path:
    """The tar archive of `wanted`, kept in the cache by content. Raises LayerError."""
    identity = repr((wanted, arch, SUITE, _DROP)).encode()
    digest = hashlib.sha256(identity).hexdigest()[:12]
    target = cache / "built" / f"layer-{wanted.name}-{arch}-{digest}.tar"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        note = f"unpacking {len(wanted.packages)} Debian packages (about 20 s)"
        with (
            step(f"layer {wanted.name}", note),
            tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as work,
        ):
            unpacked, made = Path(work) / "unpacked.tar", Path(work) / "layer.tar"
            _run(_command(wanted, arch, unpacked), Path(work))
            rewrite(unpacked, made, wanted)
            made.rename(target)
    return target


def rewrite(source: Path, target: Path, wanted: Layer) -> None:
    """Copy the archive `source` to `target` without what nobody needs, and add the links.

    Times become 0, so that the same packages give the same digest. An applet of busybox gives way
    to the real program of a package.
    """
    with (
        tarfile.open(source) as unpacked,
        tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar,
    ):
        taken: set[str] = set()
        for member in unpacked:
            member.name = member.name.removeprefix("./")
            if member.name in {"", "."} or member.name.startswith(_DROP):
                continue
            member.mtime = 0
            member.pax_headers = {}
            if member.islnk():  # names another member, which was renamed in the same way
                member.linkname = member.linkname.removeprefix("./")
            folder, _, program = member.name.rpartition("/")
            if folder in {"bin", "sbin", "usr/bin", "usr/sbin"}:
                taken.add(program)
            tar.addfile(member, unpacked.extractfile(member) if member.isfile() else None)
        links = {
            name if "/" in name else f"usr/sbin/{name}": to for name, to in wanted.links.items()
        }
        links |= {f"bin/{name}": "busybox" for name in wanted.busybox if name not in taken}
        for name, to in sorted(links.items()):
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = tarfile.SYMTYPE, to, 0o777
            tar.addfile(info)


def _command(wanted: Layer, arch: str, target: Path) -> list[str]:
    mirror = os.environ.get("KUBE_HA_DEBIAN_MIRROR")
    command = [
        "mmdebstrap", "--quiet", "--variant=extract", f"--architectures={arch}",
        f"--include={','.join(wanted.packages)}", SUITE, str(target),
    ]  # fmt: skip
    return [*([] if os.geteuid() == 0 else ["sudo", "-n"]), *command, *([mirror] if mirror else [])]


def _run(command: list[str], folder: Path) -> None:
    if shutil.which("mmdebstrap") is None:
        raise LayerError("mmdebstrap is not installed\n  do: lab/host.sh install")
    result = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        last = " / ".join(result.stderr.strip().splitlines()[-3:])
        raise LayerError(
            f"mmdebstrap ended with {result.returncode}: {last}\n"
            "  do: is a Debian mirror reachable (KUBE_HA_DEBIAN_MIRROR names another one)?"
        )
