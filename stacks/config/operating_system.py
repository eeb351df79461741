"""Config section of the operating system: packages and reboots."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import PackageName, Section, UpdateWord


class OsSpec(Section):
    packages: UpdateWord | None = Field(
        None,
        description="a value of your own, for example a date: whenever it changes, packages of "
        "the operating system are updated, machine by machine; default: they are left as they are",
    )
    reboot: Literal["if-needed", "always", "never"] = Field(
        "if-needed",
        description="after that: if-needed where /run/reboot-required or a newer kernel is there",
    )
    reboot_timeout_s: Annotated[int, Field(ge=60, le=7200)] = Field(
        600, description="seconds that a machine may take to be back"
    )
    hold: tuple[PackageName, ...] = Field(
        (), description="packages that stay as they are (apt-mark hold), updates of others go on"
    )
