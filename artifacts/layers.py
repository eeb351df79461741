"""Layers of Debian packages for images whose programs call other programs."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from artifacts.lock import Layer
from artifacts.progress import step

SUITE = "bookworm"
# Nobody reads manuals in these images; devices come from the container runtime.
_DROP = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/bash-completion", "dev")


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
            made = Path(work) / "layer.tar"
            _run(_command(wanted, arch, made), Path(work))
            made.rename(target)
    return target


def _command(wanted: Layer, arch: str, target: Path) -> list[str]:
    links = [f'ln -s {to} "$1/usr/sbin/{name}"' for name, to in wanted.links.items()]
    # Real programs of other packages win over applets.
    links += [
        f'test -e "$1/bin/{name}" -o -e "$1/usr/bin/{name}" || ln -s busybox "$1/bin/{name}"'
        for name in wanted.busybox
    ]
    drop = " ".join(f'"$1/{path}"' for path in _DROP)
    hook = "\n".join([f"rm -rf {drop}", 'mkdir -p "$1/bin" "$1/usr/sbin" "$1/dev"', *links])
    mirror = os.environ.get("KUBE_HA_DEBIAN_MIRROR")
    command = [
        "mmdebstrap", "--quiet", "--variant=extract", f"--architectures={arch}",
        f"--include={','.join(wanted.packages)}", f"--customize-hook={hook}", SUITE, str(target),
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
