"""Checks of the kubelet's settings: a kubelet that refuses them would leave its node NotReady."""

from __future__ import annotations

from collections.abc import Mapping

from stacks.config.kubelet import EvictionSignal, KubeletSpec, Reservable
from stacks.config.problems import Problem, dotted
from stacks.config.spec import Spec
from stacks.providers import registry

_BYTES = ("k", "Ki", "M", "Mi", "G", "Gi", "T", "Ti")


def problems(spec: Spec) -> list[Problem]:
    """What the kubelet refuses to start with, or what means something else than it says."""
    kubelet = spec.kubelet
    containers = spec.machines.containers or registry.of(spec).LOCAL
    return [
        *_eviction(kubelet.eviction_hard),
        *_reserved("systemReserved", kubelet.system_reserved),
        *_reserved("kubeReserved", kubelet.kube_reserved),
        *_image_gc(kubelet),
        *(_no_shutdown(kubelet) if containers else _shutdown(kubelet)),
    ]


def _eviction(thresholds: Mapping[EvictionSignal, str]) -> list[Problem]:
    out = []
    for signal, value in thresholds.items():
        path = dotted(("kubelet", "evictionHard", signal))
        counted = signal == "pid.available" or signal.endswith("inodesFree")
        if value.endswith("%"):
            continue
        if counted and value.endswith(("m", "i")):
            text = f"{value!r} is not a count; write a number as '10k', or a part as '5%'"
            out.append(Problem(path, text))
        elif not counted and not value.endswith(_BYTES):
            text = f"{value!r} has no unit of bytes; write as '500Mi', or a part as '10%'"
            out.append(Problem(path, text))
    return out


def _reserved(key: str, amounts: Mapping[Reservable, str]) -> list[Problem]:
    """`m` is a thousandth, and of memory a thousandth of a byte."""
    out = []
    for resource, value in amounts.items():
        path = f"kubelet.{key}.{resource}"
        if resource == "cpu" and value.endswith(_BYTES):
            out.append(
                Problem(path, f"{value!r} is not an amount of CPU; write as '500m' or '1.5'")
            )
        elif resource != "cpu" and not value.endswith(_BYTES):
            out.append(Problem(path, f"{value!r} has no unit of bytes; write as '512Mi' or '2Gi'"))
    return out


def _image_gc(kubelet: KubeletSpec) -> list[Problem]:
    high, low = kubelet.image_gc_percent
    if low < high:
        return []
    if kubelet.image_gc_low_percent is None:
        text = f"{high} is not above imageGcLowPercent, {low} where it is not said; say it, too"
        return [Problem("kubelet.imageGcHighPercent", text)]
    text = f"{low} is not under imageGcHighPercent {high}; images would be deleted without end"
    return [Problem("kubelet.imageGcLowPercent", text)]


def _shutdown(kubelet: KubeletSpec) -> list[Problem]:
    if kubelet.shutdown_critical_s <= kubelet.shutdown_s:
        return []
    text = (
        f"{kubelet.shutdown_critical_s} is more than shutdownGracePeriodS {kubelet.shutdown_s}, "
        "which it is a part of"
    )
    return [Problem("kubelet.shutdownGracePeriodCriticalPodsS", text)]


def _no_shutdown(kubelet: KubeletSpec) -> list[Problem]:
    said = {
        "shutdownGracePeriodS": kubelet.shutdown_grace_period_s,
        "shutdownGracePeriodCriticalPodsS": kubelet.shutdown_grace_period_critical_pods_s,
    }
    text = "does nothing in containers: no systemd-logind there holds a shutdown back; leave it out"
    return [Problem(f"kubelet.{key}", text) for key, value in said.items() if value is not None]
