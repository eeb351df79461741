"""What upstream's releases were when they were first had: artifacts/pins.json, which is committed.

A checksum that upstream publishes beside a file proves that it came whole, not that it is what it
was last month. Pins do: `make bundle` writes down what it downloaded and refuses whatever is
another one later; nodes that download from upstream compare with them. What was built here is not
upstream's, and never a pin.

    files    SHA-256 (hex) by upstream URL
    images   digest (sha256:<hex>) by architecture and reference
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

FILE = Path(__file__).parent / "pins.json"


class PinError(RuntimeError):
    """Upstream gave something else than before, or there is no reading the pins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """SHA-256 by URL, digest by architecture and reference."""

    files: Mapping[str, str] = field(default_factory=dict)
    images: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def read(file: Path | None = None) -> Pins:
    """The pins of this checkout; none where nobody has recorded any. Raises PinError."""
    file = file or FILE
    try:
        found = json.loads(file.read_bytes())
        return Pins(
            files={str(url): str(digest) for url, digest in found["files"].items()},
            images={
                str(arch): {str(ref): str(digest) for ref, digest in listed.items()}
                for arch, listed in found["images"].items()
            },
        )
    except FileNotFoundError:
        return Pins()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        text = f"{file} cannot be read ({error!r}); have it back from git: git checkout -- {file}"
        raise PinError(text) from None


def of_bundle(manifest: Mapping[str, object], names: Mapping[str, str]) -> Pins:
    """What a bundle's manifest says of upstream's releases.

    `names`: the artefact's name by URL and reference.
    """
    origin = cast(Mapping[str, str], manifest.get("origin", {}))
    files = cast(Mapping[str, Mapping[str, str]], manifest.get("files", {}))
    images = cast(Mapping[str, str], manifest.get("images", {}))
    return Pins(
        files={
            url: entry["sha256"]
            for url, entry in files.items()
            if origin.get(names.get(url, "")) == "downloaded"
        },
        images={
            str(manifest.get("arch")): {
                ref: digest
                for ref, digest in images.items()
                if origin.get(names.get(ref, "")) == "downloaded"
            }
        },
    )


def differences(pins: Pins, found: Pins) -> list[str]:
    """Lines, one for each release that is not what its pin says."""
    return [
        f"{what} is {is_now}, pinned is {pinned}"
        for what, pinned, is_now in _pairs(pins, found)
        if pinned != is_now
    ]


def compare(pins: Pins, found: Pins) -> None:
    """Raises PinError, with every release that is another one than its pin says."""
    lines = differences(pins, found)
    if lines:
        todo = (
            "do not use this bundle: find out who published what and why; only where that is known "
            "and right, take the old lines out of artifacts/pins.json and commit that"
        )
        raise PinError("\n  ".join(["upstream is not what it was:", *lines, f"do: {todo}"]))


def record(found: Pins, file: Path | None = None) -> int:
    """Add what has no pin yet; gives how many those are.

    Raises PinError for those that differ, and writes nothing then.
    """
    file = file or FILE
    pins = read(file)
    compare(pins, found)
    files = {**pins.files, **found.files}
    archs = pins.images.keys() | {arch for arch, listed in found.images.items() if listed}
    images = {arch: {**pins.images.get(arch, {}), **found.images.get(arch, {})} for arch in archs}
    added = len(files) - len(pins.files)
    added += sum(len(images[arch]) - len(pins.images.get(arch, {})) for arch in images)
    if added:
        text = json.dumps({"files": files, "images": images}, indent=1, sort_keys=True) + "\n"
        new = file.with_suffix(".new")
        new.write_text(text)
        new.replace(file)
    return added


def _pairs(pins: Pins, found: Pins) -> Iterator[tuple[str, str, str]]:
    """What, its pin and what it is now, of everything that has both."""
    for url, digest in sorted(found.files.items()):
        if url in pins.files:
            yield url, pins.files[url], digest
    for arch, listed in sorted(found.images.items()):
        for ref, digest in sorted(listed.items()):
            if ref in pins.images.get(arch, {}):
                yield f"{ref} ({arch})", pins.images[arch][ref], digest
