"""The add-ons of the catalogue that there are, by the name that the config has."""

from __future__ import annotations

from collections.abc import Collection

from stacks.catalogue import (
    default_deny,
    local_path,
    metallb,
    metrics_server,
    registry_login,
    toolbox,
    traefik,
)
from stacks.catalogue.entry import Entry, NodePort
from stacks.catalogue.logs import addon as logs
from stacks.catalogue.prometheus import addon as prometheus
from stacks.config.fields import Role
from stacks.config.spec import Spec

ENTRIES: dict[str, Entry] = {
    "default-deny": default_deny,
    "local-path": local_path,
    "logs": logs,
    "metallb": metallb,
    "metrics-server": metrics_server,
    "prometheus": prometheus,
    "registry-login": registry_login,
    "toolbox": toolbox,
    "traefik": traefik,
}


def chosen(spec: Spec) -> dict[str, Entry]:
    """Those of a config: named, and without manifests or a chart of the user's own."""
    if not spec.addons:
        return {}  # asked of every node
    return {
        name: ENTRIES[name]
        for name, said in sorted(spec.addons.items())
        if name in ENTRIES and not said.manifests and said.chart is None
    }


def local_ports(spec: Spec, roles: Collection[Role]) -> dict[int, str]:
    """Where programs of those of a config listen on a machine with these roles."""
    there = chosen(spec)
    if not there or not {"master", "worker"} & {*roles}:
        return {}
    return {port: what for entry in there.values() for port, what in entry.LOCAL_PORTS.items()}


def ports(spec: Spec) -> tuple[NodePort, ...]:
    """Where their programs on nodes reach each other."""
    return tuple(one for entry in chosen(spec).values() for one in entry.PORTS)


def folders(spec: Spec) -> tuple[str, ...]:
    """Of those of a config on nodes, by name below FOLDERS."""
    return tuple(entry.NODE_FOLDER for entry in chosen(spec).values() if entry.NODE_FOLDER)


def registries(spec: Spec) -> tuple[str, ...]:
    """Of their images: a mirror is asked first, and then they, for other images of theirs."""
    found = (one for entry in chosen(spec).values() for one in entry.REGISTRIES)
    return tuple(dict.fromkeys(found))


def logins(spec: Spec) -> tuple[str, ...]:
    """Registries that kubelets log in at, as host or host:port, whatever pod it is for."""
    there = chosen(spec).items()
    found = {host for name, one in there if one.LOGS_IN for host in spec.addons[name].hosts}
    return tuple(sorted(found))
