"""When certificates end, and which of them somebody has to see to. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from operations.observe.expected import Expected, Renewal
from operations.observe.facts import Certificate, Machine
from operations.observe.hints import AGAIN, RAISE, UP, Difference
from stacks.edits.endings import SOON

# A kubelet renews its own certificate when 10 to 30 % of its life are left (client-go, certificate
# manager): with less than that, it tries in vain.
_LATE = 0.1
_APPROVER = "journalctl -u kube-ha-approver on each master tells why it is not approved"


def differences(
    found: Machine, wanted: Expected, *, renewal: timedelta, now: datetime
) -> Iterator[Difference]:
    """Certificates that are gone, have ended, or end within `renewal` or soon."""
    told = {*found.changed.get("pki", {}), *wanted.files}
    for path, kind in wanted.certificates.items():
        certificate = found.certificates.get(path)
        if kind == "unwanted":
            if certificate is not None:
                text = f"{path} is there: who reads it acts past RBAC, and nothing needs it"
                yield Difference(kind="secret", subject=path, text=text, do=RAISE)
        elif certificate is not None:
            yield from _ends(path, certificate, kind, renewal=renewal, now=now)
        elif path not in told:
            text = f"{path} holds no certificate"
            yield Difference(kind="certificate", subject=path, text=text, do=_gone(kind))


def administrator(
    certificate: Certificate | None, *, renewal: timedelta, now: datetime
) -> Iterator[Difference]:
    """The kubeconfig that the stack gives out; None: there is none yet."""
    if certificate is not None:
        yield from _ends("the stack's kubeconfig", certificate, "up", renewal=renewal, now=now)


def _gone(kind: Renewal) -> str:
    if kind == "kubelet":
        return "raise nodes.<name>.generation of this node and run pulumi up: it is recreated"
    if kind == "approver":
        return f"{_APPROVER}; else {RAISE}"
    return RAISE


def _ends(
    path: str, certificate: Certificate, kind: Renewal, *, renewal: timedelta, now: datetime
) -> Iterator[Difference]:
    left, life = certificate.ends - now, certificate.ends - certificate.begins
    # Of those that live for weeks only, the last third.
    renewal = max(renewal, min(SOON, life / 3))
    if kind in ("kubelet", "approver"):
        renewal = life * _LATE
    if left > renewal:
        return
    day = f"{certificate.ends:%Y-%m-%d %H:%M} UTC"
    when = f"has expired on {day}" if left <= timedelta() else f"ends on {day}, {days(left)}"
    yield Difference(kind="certificate", subject=path, text=f"{path} {when}", do=_renew(kind))


def _renew(kind: Renewal) -> str:
    if kind == "up":
        return f"{UP}: it renews certificates that end within pki.leafRenewalHours; else {AGAIN}"
    if kind == "kubelet":
        return "journalctl -u kubelet there tells why it does not renew it"
    if kind == "approver":
        return _APPROVER
    return "no up renews a CA: replace it in three steps before that day (docs/operate/rotate.md)"


def days(left: timedelta) -> str:
    """`in 12 days`, `in 5 hours`."""
    if left >= timedelta(days=2):
        return f"in {left.days} days"
    return f"in {left // timedelta(hours=1)} hours"
