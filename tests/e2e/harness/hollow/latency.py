"""How long API servers took for what they were asked, by their own histograms."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_BUCKET = re.compile(r"apiserver_request_sli_duration_seconds_bucket\{(.*)\} ([0-9.e+]+)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_MUTATING = frozenset({"POST", "PUT", "PATCH", "DELETE", "APPLY"})

# Kinds of requests as upstream's objectives tell them apart -> most seconds until a bucket -> requests.
Seen = Mapping[str, Counter[float]]


@dataclass(frozen=True, slots=True)
class Latency:
    """Of one kind of requests: `within_s` is the bucket in which the slowest of 99 % are."""

    kind: str  # get, list or mutating
    requests: int
    within_s: float

    def __str__(self) -> str:
        return f"{self.kind}: 99 % of {self.requests} within {self.within_s:g} s"


def read(metrics: Iterable[str]) -> Seen:
    """Requests by kind and bucket, summed over the API servers whose /metrics these are."""
    out: dict[str, Counter[float]] = {"get": Counter(), "list": Counter(), "mutating": Counter()}
    for text in metrics:
        for found in _BUCKET.finditer(text):
            labels = dict(_LABEL.findall(found[1]))
            kind = _kind(labels)
            if kind:
                out[kind][float(labels["le"])] += round(float(found[2]))
    return out


def between(before: Seen, after: Seen) -> list[Latency]:
    """Of what was asked between two reads, kinds that nobody asked for left out."""
    return [
        _latency(kind, after[kind] - before[kind]) for kind in after if after[kind] - before[kind]
    ]


def _kind(labels: Mapping[str, str]) -> str:
    verb = labels.get("verb", "")
    if verb in _MUTATING:
        return "mutating"
    return {"GET": "get", "LIST": "list"}.get(verb, "")


def _latency(kind: str, buckets: Counter[float]) -> Latency:
    every = buckets[float("inf")]
    within = min(edge for edge, count in buckets.items() if count >= 0.99 * every)
    return Latency(kind, every, within)
