"""How often a property is tried."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings


def counted(examples: int) -> settings:
    """So many examples, of the profile in tests/conftest.py; a failure is made small, and printed with its config."""
    return settings(
        max_examples=examples,
        deadline=None,  # the computer may be busy
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
