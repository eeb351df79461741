"""How long files, functions and lines may be. What is longer holds two things."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

FILE, FUNCTION, COLUMNS = 350, 45, 120
ROOMS = ("artifacts", "ci", "components", "lab", "operations", "provider", "stacks", "toolchain")
# User data of machines in clouds: another byte would change every one of them.
WIDE = {"components/machines/cloud_init.sh"}


def files(*rooms: str, suffix: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", *rooms],
        capture_output=True,
        text=True,
        check=True,
    )
    return [
        Path(line)
        for line in listed.stdout.splitlines()
        if line.endswith(suffix) and Path(line).exists()
    ]


def test_no_file_is_longer_than_it_may_be() -> None:
    paths = files(*ROOMS, suffix=".py") + files(*ROOMS, suffix=".sh")
    assert [str(path) for path in paths if len(path.read_text().splitlines()) > FILE] == []


def test_no_function_is_longer_than_it_may_be() -> None:
    found = set()
    for path in files(*ROOMS, suffix=".py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                if node.end_lineno - node.lineno >= FUNCTION:
                    found.add(f"{path}: {node.name}")
    assert found == set()


def test_no_line_of_a_script_is_wider_than_it_may_be() -> None:
    wide = {
        f"{path}:{number}"
        for path in files(suffix=".sh")
        if str(path) not in WIDE
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > COLUMNS
    }
    assert wide == set()
