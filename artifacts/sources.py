"""Decide for every artefact whether it is downloaded or built.

`python -m artifacts.sources` ends well where all of the default set can be downloaded from here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Literal, assert_never

from artifacts.download import Upstream, reachable
from artifacts.lock import Lock, LockError, read
from artifacts.progress import say

Origin = Literal["downloaded", "built"]
Source = Literal["auto", "download", "build"]


def origins(lock: Lock, source: Source, upstream: Upstream) -> Mapping[str, Origin]:
    """Origin by name of file or image.

    `auto` downloads what comes from a host that answers, and builds the rest: some networks let one
    of upstream's hosts through and not another. Raises LockError for what is upstream's alone, and
    would have to be built.
    """
    found = _origins(lock, source, upstream)
    lost = [i for i in lock.images if i.is_upstreams_alone and found[i.name] == "built"]
    if lost:
        names = ", ".join(sorted(image.name for image in lost))
        hosts = ", ".join(sorted({image.ref.partition("/")[0] for image in lost}))
        raise LockError(
            f"{names}: cannot be built, so {hosts} has to answer; make the bundle where it does"
        )
    return found


def _origins(lock: Lock, source: Source, upstream: Upstream) -> Mapping[str, Origin]:
    names = [artefact.name for artefact in lock.artefacts]
    if source == "download":
        return dict.fromkeys(names, "downloaded")
    if source == "build":
        return dict.fromkeys(names, "built")
    if source == "auto":
        return _probed(lock, upstream)
    assert_never(source)


def _probed(lock: Lock, upstream: Upstream) -> Mapping[str, Origin]:
    # What is asked for is what will be fetched, so that the redirects of a release are proved too.
    asked = {file.name: _probe_of_file(file.published, lock, upstream) for file in lock.files}
    asked |= {image.name: _probe_of_image(image.ref, upstream) for image in lock.images}
    answers = reachable(asked.values())
    silent = sorted({url.split("/")[2] for url, answers_ in answers.items() if not answers_})
    if silent:
        say(f"no answer from {', '.join(silent)}: what is theirs is built from Go modules")
    return {name: "downloaded" if answers[url] else "built" for name, url in asked.items()}


def _probe_of_file(published: str, lock: Lock, upstream: Upstream) -> str:
    """One URL per host is enough: the first file's checksum."""
    host = published.split("/")[2]
    first = next(file.published for file in lock.files if file.published.split("/")[2] == host)
    return upstream.at(first)


def _probe_of_image(ref: str, upstream: Upstream) -> str:
    return f"{upstream.registry or 'https://' + ref.partition('/')[0]}/v2/"


if __name__ == "__main__":
    sys.exit("built" in origins(read(None, "amd64"), "auto", Upstream()).values())
