"""Config section of sizing: for how many nodes the settings of a cluster are made."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from stacks.config.fields import Section

Size = Literal[100, 300, 1000]
SIZES: tuple[Size, ...] = get_args(Size)
SMALLEST: Size = SIZES[0]  # what every cluster had before there were sizes
PATH = "sizing.nodes"


class SizingSpec(Section):
    nodes: Size | None = Field(
        None,
        description="nodes up to which the settings of docs/explain/sizing.md are meant; default: "
        "what the nodes of a new cluster need; one that exists keeps its own",
    )
