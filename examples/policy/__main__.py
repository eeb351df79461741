"""A policy pack: what a company may refuse beyond what kube-ha refuses. Change the rules to yours.

    pulumi preview --policy-pack examples/policy --policy-pack-config examples/policy/config.json

The stack itself is registered before any other resource, and its config is complete by then: a
violation ends the run before anything is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pulumi
from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    PolicyPack,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
)
from rules import host_keys, members, overrides

_LISTED = {"type": "array", "items": {"type": "string"}}


def _section(name: str) -> Mapping[str, object]:
    found = pulumi.Config("kube-ha").get_object(name)
    return found if isinstance(found, dict) else {}


def _listed(name: str) -> list[str]:
    found = pulumi.Config("kube-ha").get_object(name)
    return [str(one) for one in found] if isinstance(found, list) else []


def _is_stack(args: ResourceValidationArgs) -> bool:
    return args.resource_type == "pulumi:pulumi:Stack"


def _report(report: ReportViolation, reasons: Iterable[str]) -> None:
    for reason in reasons:
        report(reason)


def approved_overrides(args: ResourceValidationArgs, report: ReportViolation) -> None:
    if _is_stack(args):
        _report(report, overrides(_listed("allow"), args.get_config().get("approved", [])))


def pinned_host_keys(args: ResourceValidationArgs, report: ReportViolation) -> None:
    if _is_stack(args):
        _report(report, host_keys(_section("machines"), _section("pools")))


def three_members(args: ResourceValidationArgs, report: ReportViolation) -> None:
    if _is_stack(args):
        stacks = args.get_config().get("stacks", [])
        reasons = members(pulumi.get_stack(), _section("pools"), _section("nodes"), stacks)
        _report(report, reasons)


PolicyPack(
    "kube-ha",
    enforcement_level=EnforcementLevel.MANDATORY,
    policies=[
        ResourceValidationPolicy(
            name="approved-overrides",
            description="A refusal is passed over only where the policy's config approves it.",
            config_schema=PolicyConfigSchema({"approved": {**_LISTED, "default": []}}),
            validate=approved_overrides,
        ),
        ResourceValidationPolicy(
            name="pinned-host-keys",
            description="Every machine is recognised by its host key.",
            validate=pinned_host_keys,
        ),
        ResourceValidationPolicy(
            name="three-members",
            description="Stacks of production have three etcd members or more.",
            config_schema=PolicyConfigSchema({"stacks": {**_LISTED, "default": ["prod*"]}}),
            validate=three_members,
        ),
    ],
)
