"""A server of releases, in the layout that their makers use, with an engine that is a shell script."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from toolchain import releases
from toolchain.install import PLUGINS

_VERSION = (Path(__file__).parents[2] / ".pulumi.version").read_text(encoding="utf-8").strip()

# An engine whose `plugin install` unpacks an archive or copies a folder as the real one does.
ENGINE = """#!/bin/sh
echo "$@" >>"$PULUMI_HOME/calls"
for last; do :; done
target="$PULUMI_HOME/plugins/resource-$4-$5"
mkdir -p "$target"
if [ -d "$last" ]; then cp "$last"/* "$target"; else tar -xzf "$last" -C "$target"; fi
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        return


@dataclass(frozen=True, slots=True)
class Server:
    """Releases in the layout their makers use, on a loopback port."""

    folder: Path
    url: str

    def offer(self, release: releases.Release, files: dict[str, str], *, folder: str = "") -> Path:
        """Put a release there: an archive of these files, and the list of its sums."""
        place = self.folder / release.repository / "releases/download" / f"v{release.version}"
        place.mkdir(parents=True)
        archive = place / release.file
        with tarfile.open(archive, "w:gz") as packed:
            for name, text in files.items():
                entry = tarfile.TarInfo(f"{folder}{name}")
                entry.size, entry.mode = len(text.encode()), 0o755
                packed.addfile(entry, io.BytesIO(text.encode()))
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        (place / release.checksums).write_text(f"{'0' * 64}  other\n{digest}  {release.file}\n")
        return archive


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """One that has everything the toolchain wants."""
    folder.mkdir()
    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    made = Server(folder, f"http://127.0.0.1:{http.server_port}")
    programs = {
        "pulumi": ENGINE,
        "pulumi-language-python": "#!/bin/sh\necho official host\n",
        "pulumi-language-python-exec": "# runner\n",
        "pulumi-resource-pulumi-python": "# dynamic\n",
        "pulumi-language-nodejs": "# not for us\n",
        "pulumi-language-yaml": "# for tests\n",
    }
    made.offer(releases.engine(_VERSION), programs, folder="pulumi/")
    for name, version in PLUGINS.items():
        made.offer(releases.plugin(name, version), {f"pulumi-resource-{name}": f"# {name}\n"})
    try:
        yield made
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
