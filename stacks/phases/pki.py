"""What phase `pki` is told: files with keys and certificates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFile:
    """Where it lies, and who may read it; its text is the stack's secret."""

    path: str
    secret: bool
    owner: str = ""  # user:group; default: root

    @property
    def name(self) -> str:
        """Of the file, without folder and ending."""
        return PurePosixPath(self.path).stem


def of_pki(files: Sequence[KeyFile], generation: int, os_packages: str = "") -> dict[str, str]:
    """Values of the pki phase, but for the texts, PKI_TEXT_<number from 1>."""
    values = {"GENERATION": str(generation), "PKI_COUNT": str(len(files))}
    if os_packages:
        values["OS_PACKAGES"] = os_packages
    for number, file in enumerate(files, start=1):
        if file.secret:
            values[f"PKI_MODE_{number}"] = "600"
        if file.owner:
            values[f"PKI_OWNER_{number}"] = file.owner
        values[f"PKI_PATH_{number}"] = file.path
        values[f"PKI_TEXT_{number}"] = ""
    return values
