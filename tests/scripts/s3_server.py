"""A real server of the S3 API, which checks the signature of every request: versitygw, built from its Go module."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from artifacts import build, bundle
from artifacts.lock import Module

ACCESS_KEY = "AKIAEXAMPLE"
SECRET = 'se/cr"e\\t+='  # what a quote and a backslash do to a config of curl's shows here
BUCKET = "acme-etcd"
REGION = "eu-central-1"
_READY_S = 20
_MODULE = Module(
    name="versitygw",
    version="1.8.0",
    folder=Path(__file__).parent / "versitygw",
    packages=("github.com/versity/versitygw/cmd/versitygw",),
    rename={},
    ldflags="",
    tags="",
    cgo=False,
    cold_s=110,
)


@dataclass(slots=True)
class S3Server:
    """Its buckets are folders: `objects` looks past the API."""

    folder: Path
    tls: tuple[Path, Path] | None = None  # certificate and key
    address: str = "127.0.0.1"
    secret: str = SECRET
    port: int = field(default_factory=lambda: _free_port())
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.address}:{self.port}"

    @property
    def bucket(self) -> Path:
        return self.folder / "data" / BUCKET

    @property
    def objects(self) -> list[str]:
        """Names of all objects, in order."""
        return sorted(
            str(path.relative_to(self.bucket))
            for path in self.bucket.rglob("*")
            if path.is_file() and ".sgwtmp" not in path.parts
        )

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def start(self) -> None:
        (self.folder / "side").mkdir(parents=True, exist_ok=True)
        self.bucket.mkdir(parents=True, exist_ok=True)
        words = ["--port", f"{self.address}:{self.port}", "--region", REGION]
        if self.tls:
            words += ["--cert", str(self.tls[0]), "--key", str(self.tls[1])]
        words += ["posix", "--sidecar", str(self.folder / "side"), str(self.folder / "data")]
        keys = {"ROOT_ACCESS_KEY": ACCESS_KEY, "ROOT_SECRET_KEY": self.secret}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [program(), *words], env=os.environ | keys, stdout=log, stderr=log
            )
        end = time.monotonic() + _READY_S
        while True:
            try:
                socket.create_connection((self.address, self.port), timeout=1).close()
                return
            except OSError:
                assert time.monotonic() < end, self.log
                time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def program() -> Path:
    """Built once into the cache of artefacts."""
    if shutil.which("go") is None:
        pytest.skip("there is no Go on this computer")
    return build.build(_MODULE, build.host_arch(), bundle.cache_folder())["versitygw"]


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port
