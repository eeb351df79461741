"""Fill the storage of an OCI registry.

What upstream's registries have is copied by Python alone. What was built here goes through a
registry that runs only as long as this takes.
"""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from pathlib import Path

from artifacts import pull

START_TIMEOUT_S = 20
_INSTALL = "lab/host.sh install"


class RegistryError(RuntimeError):
    """The registry did not start, or an image did not get in; the text holds the last answer."""


class Registry:
    """A storage, and the registry in front of it, which starts when it is first needed."""

    def __init__(self, storage: Path, running: ExitStack) -> None:
        self._storage, self._running = storage, running

    @cached_property
    def endpoint(self) -> str:
        """Where it answers, host:port of this computer. Raises RegistryError."""
        return self._running.enter_context(_started(self._storage))

    def copy(self, source: str, ref: str, arch: str, *, plain_http: bool = False) -> str:
        """Copy one image from `source` (skopeo's words) to where nodes ask for `ref`.

        A mirror holds repositories without upstream's host name: containerd asks so. Gives the
        digest of the manifest for `arch`; layers and digests stay what they are. Raises
        RegistryError.
        """
        path = ref.partition("/")[2]
        if source.startswith("docker://"):
            return self._pulled(source.removeprefix("docker://"), path, arch, plain=plain_http)
        if shutil.which("skopeo") is None:
            raise RegistryError(f"skopeo is not installed\n  do: {_INSTALL}")
        with tempfile.NamedTemporaryFile("r") as digest:
            command = [
                "skopeo", "--insecure-policy", f"--override-arch={arch}", "--override-os=linux",
                "copy", "--quiet", "--preserve-digests", f"--digestfile={digest.name}",
                "--dest-tls-verify=false", "--retry-times=3",
                source, f"docker://{self.endpoint}/{path}",
            ]  # fmt: skip
            result = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if result.returncode != 0:
                last = result.stderr.strip().splitlines()[-1:] or ["no output"]
                raise RegistryError(
                    f"{ref}: skopeo ended with {result.returncode}: {last[0]}\n"
                    "  do: check the network and the disk; run again, what is done stays done"
                )
            return digest.read().strip()

    def _pulled(self, source: str, path: str, arch: str, *, plain: bool) -> str:
        host, _, named = source.partition("/")
        repository, _, tag = named.rpartition(":")
        upstream = pull.Source(url=f"http{'' if plain else 's'}://{host}", repository=repository)
        to, _, to_tag = path.rpartition(":")
        try:
            return upstream.copy(tag, arch, pull.Storage(self._storage), (to, to_tag))
        except pull.PullError as error:
            raise RegistryError(str(error)) from None


@contextmanager
def serve(storage: Path) -> Iterator[Registry]:
    """A registry that writes to `storage`, stopped at the end."""
    storage.mkdir(parents=True, exist_ok=True)
    with ExitStack() as running:
        yield Registry(storage, running)


@contextmanager
def _started(storage: Path) -> Iterator[str]:
    if shutil.which("docker-registry") is None:
        raise RegistryError(f"docker-registry is not installed\n  do: {_INSTALL}")
    endpoint = f"127.0.0.1:{_free_port()}"
    with tempfile.TemporaryDirectory() as work:
        config, log = Path(work) / "config.yml", Path(work) / "log"
        config.write_text(
            "version: 0.1\nlog: {level: error}\n"
            f"storage: {{filesystem: {{rootdirectory: '{storage.absolute()}'}}}}\n"
            f"http: {{addr: '{endpoint}'}}\n"
        )
        with log.open("w") as output, subprocess.Popen(
            ["docker-registry", "serve", str(config)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        ) as process:  # fmt: skip
            try:
                _wait_for(endpoint, process, log)
                yield endpoint
            finally:
                process.terminate()


def _wait_for(endpoint: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_TIMEOUT_S
    answer = "none"
    while time.monotonic() < end and process.poll() is None:
        try:
            with closing(http.client.HTTPConnection(endpoint, timeout=2)) as connection:
                connection.request("GET", "/v2/")
                status = connection.getresponse().status
        except OSError as error:
            answer = str(error)
        else:
            if status == http.client.OK:
                return
            answer = f"HTTP {status}"
        time.sleep(0.05)
    raise RegistryError(
        f"docker-registry at {endpoint} not ready in {START_TIMEOUT_S} s; last answer: {answer}; "
        f"its log ends: {log.read_text()[-300:]}\n  do: run it by hand: docker-registry serve"
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
