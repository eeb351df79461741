"""Fill the storage of an OCI registry, through a registry that runs only as long as this takes."""

from __future__ import annotations

import http.client
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

START_TIMEOUT_S = 20


class RegistryError(RuntimeError):
    """The registry did not start, or an image did not get in; the text holds the last answer."""


class Registry:
    """A running registry on a loopback port."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    def copy(self, source: str, ref: str, arch: str, *, plain_http: bool = False) -> str:
        """Copy one image from `source` (skopeo's words) to where nodes ask for `ref`.

        A mirror holds repositories without upstream's host name: containerd asks so. Gives the
        digest of the manifest for `arch`; layers and digests stay what they are. Raises
        RegistryError.
        """
        with tempfile.NamedTemporaryFile("r") as digest:
            command = [
                "skopeo", "--insecure-policy", f"--override-arch={arch}", "--override-os=linux",
                "copy", "--quiet", "--preserve-digests", f"--digestfile={digest.name}",
                "--dest-tls-verify=false", "--retry-times=3",
                *(["--src-tls-verify=false"] if plain_http else []),
                source, f"docker://{self.endpoint}/{ref.partition('/')[2]}",
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


@contextmanager
def serve(storage: Path) -> Iterator[Registry]:
    """A registry that writes to `storage`, stopped at the end. Raises RegistryError."""
    for program in ("docker-registry", "skopeo"):
        if shutil.which(program) is None:
            raise RegistryError(f"{program} is not installed\n  do: lab/host.sh install")
    storage.mkdir(parents=True, exist_ok=True)
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
                yield Registry(endpoint)
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
