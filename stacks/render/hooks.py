"""The file by which a node knows the webhook of the stack."""

from __future__ import annotations

import json

from stacks.cluster.plan import Plan

CONFIG = "/etc/kube-ha/hooks.json"


def hooks(plan: Plan) -> str:
    """JSON, as hooks.sh reads it; empty without a webhook."""
    said = plan.spec.hooks
    if said is None:
        return ""
    told = {
        "url": said.url,
        "events": [*said.events],
        "timeoutS": said.timeout_s,
        "ca": said.ca or "",
    }
    return json.dumps(told, indent=2, sort_keys=True)
