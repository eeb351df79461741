"""Bring the helm of the lock to this computer: `python -m artifacts.helm` makes .local/bin/helm.

Out of the bundle in .local/bundle where that has it (`make bundle ALSO="tools=helm"`), else
downloaded, else built. What is there already stays, and nobody is asked.
"""

from __future__ import annotations

import sys
from pathlib import Path

from artifacts import build, bundle, programs
from artifacts.download import DownloadError, Upstream
from artifacts.lock import TOOLS, LockError, read
from artifacts.pins import PinError

_BUNDLE = Path(".local/bundle")
_LINK = Path(".local/bin/helm")


def main() -> int:
    """1 after an error, which is on stderr."""
    try:
        lock = read(None, build.host_arch(), also=[TOOLS])
        places = programs.Places(bundle=_BUNDLE, upstream=Upstream(), cache=bundle.cache_folder())
        found = programs.of(lock, ("helm",), places)["helm"]
    except (LockError, DownloadError, PinError, build.BuildError) as error:
        print(f"ERROR helm: {error}", file=sys.stderr)
        return 1
    _LINK.parent.mkdir(parents=True, exist_ok=True)
    if not (_LINK.exists() and _LINK.samefile(found)):
        new = _LINK.with_name(f".{_LINK.name}.new")
        new.unlink(missing_ok=True)
        new.symlink_to(found)
        new.replace(_LINK)  # who plans meanwhile finds the old one or the new one
    return 0


if __name__ == "__main__":
    sys.exit(main())
