"""`python -m operations.cis.page` writes the table of docs/reference/cis.md."""

from __future__ import annotations

from pathlib import Path

from operations.cis.control import Control
from operations.cis.controls import CONTROLS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cis.md"

# Below it the page is made; what stands above is written by hand.
_MARK = "<!-- Made by `python -m operations.cis.page` from the controls in operations/cis. -->"
_HEAD = """
| id | what it asks | of | scored | decided by |
|---|---|---|---|---|
"""


def text() -> str:
    """The page, with the controls of now."""
    above, mark, _ = PAGE.read_text().partition(_MARK)
    return f"{above}{mark}\n{_HEAD}" + "".join(_row(control) for control in CONTROLS)


def _row(control: Control) -> str:
    if control.decide is None:
        how = f"a person: {control.reason}"
    elif control.reason:
        how = f"the machine; by design: {control.reason}"
    else:
        how = "the machine"
    scored = "yes" if control.scored else ""
    return f"| {control.id} | {control.title} | {control.on} | {scored} | {how} |\n"


if __name__ == "__main__":
    PAGE.write_text(text())
