"""Config section of rollouts: in which order, how many at a time, and what a failure means."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stacks.config.fields import (
    AbsentShare,
    DnsLabel,
    FilePath,
    LabelKey,
    LabelValue,
    Section,
    Share,
    Window,
    Zone,
)


class NodeGroupSpec(Section):
    pools: tuple[DnsLabel, ...] = Field((), description="workers of these pools")
    zones: tuple[Zone, ...] = Field((), description="workers in these zones")
    nodes: tuple[DnsLabel, ...] = Field(
        (), description="these workers; alone in its group, in the order of this list"
    )
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="workers with all of these labels"
    )


class CanarySpec(Section):
    count: Annotated[int, Field(ge=1, le=5000)] | None = Field(
        None, description="the first so many workers of the order"
    )
    nodes: tuple[DnsLabel, ...] = Field((), description="these workers")


class DrainSpec(Section):
    when: Literal["auto", "always", "never"] = Field(
        "auto",
        description="auto: pods are evicted before an update that may end containers (another "
        "minor version of kubelet or containerd); always: before every update of a worker",
    )
    timeout_s: Annotated[int, Field(ge=10, le=7200)] = Field(
        300, description="seconds after which a node whose pods do not leave has failed"
    )
    grace_s: Annotated[int, Field(ge=0, le=7200)] | None = Field(
        None, description="most seconds a pod gets to end; default: as many as it asks for"
    )


class RolloutSpec(Section):
    parallel: Share = Field(
        "10%", description="workers of a group that are changed at a time, at least 1: 3, or '10%'"
    )
    order: tuple[NodeGroupSpec, ...] = Field(
        (),
        description="groups of workers, first to last; what a group names it needs all of; the "
        "rest comes last, pool by pool",
    )
    canary: CanarySpec | None = Field(
        None, description="workers that make a first wave of their own"
    )
    pause_s: Annotated[int, Field(ge=0, le=21600)] = Field(
        0, description="seconds between the end of a wave and the next one"
    )
    failure_budget_percent: Annotated[int, Field(ge=0, le=100)] = Field(
        0,
        description="percent of all workers that may fail before no further wave begins; needs "
        "`make up`",
    )
    absent_budget: AbsentShare = Field(
        "1%",
        description="workers that may not answer without ending an update, at least 1: 3, '2%', or "
        "0 for none; they are left out, and the next update has them again",
    )
    critical: tuple[DnsLabel, ...] = Field(
        (), description="workers whose failure ends the rollout whatever the budget"
    )
    windows: tuple[Window, ...] = Field(
        (), description="times at which waves may begin, as 'Mon-Fri 09:00-17:00 UTC'; empty: any"
    )
    hold_after: Annotated[int, Field(ge=0, le=99)] | None = Field(
        None,
        description="number of the wave after which the rollout stops until this is raised or "
        "taken out; 0: before the first",
    )
    drain: DrainSpec = Field(DrainSpec(), description="pods of a node that is updated")
    plan: FilePath | None = Field(
        None,
        description="YAML or JSON file with a list of waves, each a list of names, in place of "
        "order and canary; workers that it does not name come last",
    )


class ConvergeSpec(Section):
    generation: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        1, description="raise it to run every node's phases again on the next update"
    )
