"""How whoever makes machines gets the keys by which tokens of service accounts are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from pulumi import Output

# Public keys, PEM one after the other; asked for by those alone who publish them.
TokenPems: TypeAlias = Callable[[], Output[str]]
