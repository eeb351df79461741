"""Who has the machines, and which network pods have, is asked of registries: nobody else tells one from another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from components import machines
from stacks.config.machines import MachinesSpec
from stacks.config.network import NetworkSpec
from stacks.networks import registry as networks
from stacks.providers import registry as providers

ROOT = Path(__file__).parents[2]
FILES = sorted(
    str(file.relative_to(ROOT))
    for file in (
        *(
            f
            for room in ("stacks", "components", "operations")
            for f in (ROOT / room).rglob("*.py")
        ),
        ROOT / "__main__.py",
    )
)
NAMES = {*providers.all_(), *networks.NETWORKS} - {"none"}  # many settings have that word
ASKED = {"provider", "plugin"}
# Where each is one module, and where a line names it: the config's words, and what makes machines.
PLUGS = ("stacks/providers/", "stacks/networks/")
LINES = {"stacks/config/machines.py", "stacks/config/network.py", "components/machines/__init__.py"}
# The version of each is a column of the lock, as that of every component.
COLUMNS = {"stacks/releases/versions.py"}


def branches(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Lines that tell one provider or network from another, by its word or by its section."""
    for node in ast.walk(tree):
        compared: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            compared = [node.left, *node.comparators]
        elif isinstance(node, ast.Match):
            compared = [node.subject]
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Attribute):
            compared = [node.slice]
        if any(_name(one) in ASKED for one in compared):
            yield compared[0].lineno, "asks for the provider or the network itself"
        if isinstance(node, ast.Constant) and node.value in NAMES:
            yield node.lineno, f"names {node.value}"
        if (
            isinstance(node, ast.Attribute)
            and node.attr in NAMES
            and _name(node.value) == "machines"
        ):
            yield node.lineno, f"reads the section of {node.attr}"


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def may(file: str) -> bool:
    own = (f"components/machines/{name}" for name in providers.OTHERS)
    return file.startswith((*PLUGS, *own)) or file in LINES | COLUMNS


@pytest.mark.parametrize("file", FILES)
def test_nobody_but_the_plugs_tells_one_from_another(file: str) -> None:
    found = [] if may(file) else [*branches(ast.parse((ROOT / file).read_text()))]
    assert not found, "\n".join(f"{file}:{line} {what}" for line, what in found)


@pytest.mark.parametrize(
    "text",
    [
        'plan.spec.machines.provider == "gcp"',
        "provider in (A, B)",
        'spec.network.plugin != "none"',
        "match plan.spec.machines.provider:\n    case _: pass",
        'kind = {"lab": 1}',
        "TABLE[spec.machines.provider]",
        "x = spec.machines.aws",
    ],
)  # fmt: skip
def test_a_branch_is_seen(text: str) -> None:
    assert [*branches(ast.parse(text))]


def test_every_word_of_the_config_has_its_modules() -> None:
    kinds = MachinesSpec.model_json_schema()["properties"]["provider"]["enum"]
    assert [*providers.all_()] == kinds
    assert [*machines.MODULES] == [*providers.OTHERS]
    assert [*networks.NETWORKS] == NetworkSpec.model_json_schema()["properties"]["plugin"]["enum"]
    assert {name: plug.NAME for name, plug in providers.all_().items()} == {
        name: name for name in kinds
    }
