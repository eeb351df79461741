"""Locations of Hetzner Cloud by network zone (docs.hetzner.com, "Networks", FAQ)."""

from __future__ import annotations

from collections.abc import Mapping

_LOCATIONS: Mapping[str, tuple[str, ...]] = {
    "eu-central": ("fsn1", "nbg1", "hel1"),
    "us-east": ("ash",),
    "us-west": ("hil",),
    "ap-southeast": ("sin",),
}
EUROPE = "eu-central"


def form(network_zone: str) -> tuple[str, str]:
    """Pattern of those of a network zone, and the first of them."""
    known = _LOCATIONS[network_zone]
    return "|".join(known), known[0]
