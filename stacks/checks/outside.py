"""Checks of what lies outside the cluster: no address or name of it may be one of the inside.

What nodes look for in podCidr or serviceCidr is sent to a pod or to nobody, and what pods look for
in the cluster's own domain is not asked of anybody else. So every field that names a place outside
is looked at, whatever section it is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Annotated, get_args, get_origin
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel

from stacks.config import kubernetes_values, values
from stacks.config.problems import Problem, dotted
from stacks.config.spec import Spec

_URLS = (values.url, values.base_url, kubernetes_values.issuer_url)
_PLACES = (*_URLS, values.endpoint, values.host)
# Said by check_addresses and check_front_doors, with words of their own.
_ELSEWHERE = ("cluster.endpoint", "frontDoors.vip.address", "hosts")


def problems(spec: Spec) -> Iterator[Problem]:
    """Fields that name what nodes or pods would look for inside the cluster."""
    networks = {
        "cluster.podCidr": IPv4Network(spec.cluster.pod_cidr),
        "cluster.serviceCidr": IPv4Network(spec.cluster.service_cidr),
    }
    for loc, host, is_url in places(spec):
        path = dotted(loc)
        if path in _ELSEWHERE:
            if path == "cluster.endpoint" and spec.front_doors.dns != "managed":
                yield from _of_domain(spec, path, host)
            continue
        if host == "localhost" or host.endswith(".localhost"):
            text = f"{host} is whichever machine asks; write an address or name that all reach"
            yield Problem(path, text)
        elif re.fullmatch(r"[0-9.]+", host):  # as values.host tells addresses from names
            for name, network in networks.items():
                # An identity provider or a registry may be a Service; masters and nodes reach it.
                may_be = loc[-1] == "issuerUrl" or (not is_url and "registryMirrors" in loc)
                inside = name == "cluster.serviceCidr" and may_be
                if IPv4Address(host) in network and not inside:
                    text = f"{host} is in {name} {network}, where nodes find pods and Services of"
                    way = "this cluster alone; choose another network there, or another address"
                    yield Problem(path, f"{text} {way}")
        else:
            yield from _of_domain(spec, path, host)


def _of_domain(spec: Spec, path: str, host: str) -> Iterator[Problem]:
    domain = spec.cluster.dns_domain
    if path.endswith("issuerUrl") and host == f"kubernetes.default.svc.{domain}":
        return  # said by check_control_plane
    if within(host, domain) or host.removesuffix(".svc") in ("kubernetes", "kubernetes.default"):
        text = f"{host} is in cluster.dnsDomain {domain}, which pods look up inside the cluster"
        yield Problem(path, f"{text} alone; choose another domain there, or another name")


def within(host: str, domain: str) -> bool:
    """Whether a name is of a domain."""
    return host == domain or host.endswith(f".{domain}")


def places(section: BaseModel) -> Iterator[tuple[tuple[str | int, ...], str, bool]]:
    """Config path, host and whether it is in a URL, of every field that names a place."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if value is not None:
            at = (field.alias or name,)
            yield from _of(value, field.annotation, field.metadata, at)


def _of(
    value: object, kind: object, marks: list[object], at: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], str, bool]]:
    if get_origin(kind) is Annotated:
        kind, *inner = get_args(kind)
        marks = [*inner, *marks]
    if isinstance(value, BaseModel):
        yield from (((*at, *loc), host, is_url) for loc, host, is_url in places(value))
    elif isinstance(value, str):
        kinds = [_check(mark) for mark in [*marks, *_marks(kind)]]
        found = next((one for one in kinds if one in _PLACES), None)
        if found is not None:
            yield at, _host(value, is_url=found in _URLS), found in _URLS
    elif isinstance(value, Mapping):
        key_kind, item_kind = (*get_args(_plain(kind)), None, None)[:2]
        for key, item in value.items():
            yield from ((loc, host, u) for loc, host, u in _of(key, key_kind, [], (*at, str(key))))
            yield from _of(item, item_kind, [], (*at, str(key)))
    elif isinstance(value, tuple):
        item_kind = (*get_args(_plain(kind)), None)[0]
        for index, item in enumerate(value):
            yield from _of(item, item_kind, [], (*at, index))


def _plain(kind: object) -> object:
    """`X` of `X | None`."""
    if get_origin(kind) in (dict, tuple):
        return kind
    return next((part for part in get_args(kind) if get_origin(part) in (dict, tuple)), kind)


def _marks(kind: object) -> list[object]:
    """Of `Annotated[str, ...] | None`."""
    found: list[object] = []
    for part in (kind, *get_args(kind)):
        if get_origin(part) is Annotated:
            found += get_args(part)[1:]
    return found


def _check(mark: object) -> object:
    return mark.func if isinstance(mark, AfterValidator) else None


def _host(text: str, *, is_url: bool) -> str:
    if is_url:
        return urlsplit(text).hostname or ""
    return text.partition(":")[0].lower()
