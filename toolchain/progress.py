"""Lines that tell a person what a long set-up is doing."""

from __future__ import annotations

from datetime import datetime


def say(subject: str, text: str) -> None:
    """Print `12:03:41 engine  text`, at once."""
    now = datetime.now().astimezone().strftime("%H:%M:%S")
    print(f"{now} {subject:<8} {text}", flush=True)
