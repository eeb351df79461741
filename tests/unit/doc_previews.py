"""`python -m tests.unit.doc_previews` writes the previews in docs: plans of edits of the lab's stack.

A page has `<!-- preview: NAME -->`, and below it the plan as it is printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from stacks.explain import terminal
from tests.unit.configs import lab
from tests.unit.explain.reports import made

DOCS = Path(__file__).resolve().parents[2] / "docs"
MARK = re.compile(r"(<!-- preview: ([a-z-]+) -->\n)(?:\n```\n.*?\n```\n)?", re.DOTALL)
# The last lines are the same in all of them.
_FOOTER = "\n  Every action, check and interruption"

CASES: dict[str, tuple[Mapping[str, object], Mapping[str, object]]] = {
    "absent": ({}, {"nodes.worker-1": {"state": "absent"}}),
    "add": ({}, {"pools.worker.count": 3}),
    "addon": (
        {},
        {"addons": {"team": {"manifests": [str(DOCS.parent / "examples/addons/defaults.yaml")]}}},
    ),
    "backups": ({}, {"etcd.backup": {"everyHours": 4, "keep": 42}}),
    "compromised": ({}, {"nodes.worker-2": {"state": "compromised"}}),
    "converge": ({}, {"converge": {"generation": 2}}),
    "generation": ({}, {"nodes.worker-1": {"generation": 2}}),
    "lost": ({}, {"pools.master.count": 4, "nodes.master-2": {"state": "lost"}}),
    "hooks": ({}, {"hooks": {"url": "https://hooks.example.com/nodes", "timeoutS": 600}}),
    "maintenance": ({}, {"nodes.worker-1": {"state": "maintenance", "drain": True}}),
    "oidc": (
        {},
        {
            "controlPlane.oidc": {
                "issuerUrl": "https://id.example.com",
                "clientId": "kubernetes",
                "usernameClaim": "email",
                "usernamePrefix": "oidc:",
                "groupsClaim": "groups",
                "groupsPrefix": "oidc:",
            }
        },
    ),
    "patch": ({"cluster.kubernetes": "1.36.1"}, {}),
    "trust": ({}, {"pki.rotation": {"kubernetes": {"generation": 2, "step": "trust"}}}),
}


def text(page: str) -> str:
    """The page with its previews as they would be printed now."""
    return MARK.sub(lambda found: f"{found[1]}\n```\n{_printed(found[2])}\n```\n", page)


def _printed(name: str) -> str:
    before, after = CASES[name]
    said = made(lab(before), lab(after))
    warned = [*said.plan.warnings, *said.verdict.warnings]
    return terminal.as_text(said, warned).partition(_FOOTER)[0].rstrip()


if __name__ == "__main__":
    for path in DOCS.rglob("*.md"):
        path.write_text(text(path.read_text()))
