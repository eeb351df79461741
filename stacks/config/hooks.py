"""Config section of hooks: who is told when a node is drained, takes pods again, or is released."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import Certificates, Section, Url

Event = Literal["beforeDrain", "afterUncordon", "beforeRelease"]


class HooksSpec(Section):
    url: Url = Field(description="webhook, https; nodes and masters POST to it")
    events: tuple[Event, ...] = Field(
        ("beforeDrain", "afterUncordon", "beforeRelease"), description="which of them it is sent"
    )
    timeout_s: Annotated[int, Field(ge=5, le=7200)] = Field(
        300, description="seconds for which beforeDrain and beforeRelease wait for its consent"
    )
    ca: Certificates | None = Field(
        None, description="CA of its certificate; default: those of the machines"
    )
