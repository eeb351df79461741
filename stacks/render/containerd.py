"""containerd: its config, its unit, and where it pulls images from."""

from __future__ import annotations

from urllib.parse import urlsplit

from stacks.catalogue import registry as catalogue
from stacks.cluster.plan import Plan
from stacks.networks import registry

_CONFIG = """\
version = 4

[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "registry.k8s.io/pause:{pause}"

[plugins."io.containerd.cri.v1.images".registry]
  config_path = "/etc/containerd/certs.d"

{oom}[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/opt/cni/bin"]
  conf_dir = "/etc/cni/net.d"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  SystemdCgroup = true
{more}"""

_DOWNLOADS = """
[plugins."io.containerd.transfer.v1.local"]
  max_concurrent_downloads = {downloads}
"""

_LOG = """
[debug]
  level = "{level}"
"""

# A container may not lower an OOM score: without this no pod sandbox starts.
_OOM = """\
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true

"""

_UNIT = """\
[Unit]
Description=containerd, the container runtime
After=network.target dbus.service
StartLimitIntervalSec=0

[Service]
ExecStartPre=-/sbin/modprobe overlay
ExecStart=/usr/local/bin/containerd
Type=notify
# Restarting containerd must leave the containers alone: systemd manages neither
# their cgroups nor their shims.
Delegate=yes
KillMode=process
Restart=always
RestartSec=2
TasksMax=infinity
{limits}{watchdog}
[Install]
WantedBy=multi-user.target
"""

_LIMITS = """\
LimitNPROC=infinity
LimitCORE=infinity
OOMScoreAdjust=-999
"""

# containerd tells systemd nothing once it has started, so a loop beside it does while it answers.
# It is of this start alone: KillMode leaves it there when containerd ends.
_WATCHDOG = """\
NotifyAccess=all
WatchdogSec={seconds}
ExecStartPost=/bin/sh -c 'while kill -0 $$MAINPID 2>/dev/null; do \
timeout {third} /usr/local/bin/ctr version >/dev/null 2>&1 && systemd-notify WATCHDOG=1; \
sleep {third}; done &'
"""


def config(plan: Plan) -> str:
    """/etc/containerd/config.toml, for containerd 2.3 (config version 4)."""
    oom = _OOM if plan.containers else ""
    spec = plan.spec.runtime
    more = ""
    if spec.max_concurrent_downloads is not None:
        # Of the service that pulls; the key of that name in the CRI plugin makes it use another.
        more += _DOWNLOADS.format(downloads=spec.max_concurrent_downloads)
    if spec.log_level is not None:
        more += _LOG.format(level=spec.log_level)
    return _CONFIG.format(pause=plan.versions.pause, oom=oom, more=more)


def hosts(plan: Plan) -> dict[str, str]:
    """/etc/containerd/certs.d/<upstream registry>/hosts.toml by upstream registry.

    One that is not here is asked itself. The mirror of our own images is the server and no `[host]`
    before it: containerd asks the server last, so upstream there would be a way around the mirror,
    and without `server` it takes upstream for it (containerd's hosts.md). That is what the user's
    mirrors are for: they may fail. Of registries that hold an image of the catalogue the mirror is
    such a one: users have images of their own there.
    """
    own = {}
    if plan.mirror is not None:
        text = f'server = "{plan.mirror.registry}"\ncapabilities = ["pull", "resolve"]\n'
        own = dict.fromkeys(registry.registries(plan.spec), text)
    mirrors = dict(plan.spec.runtime.registry_mirrors)
    if plan.mirror is not None:
        for host in catalogue.registries(plan.spec):
            # Once, where the user names it too: a table of TOML stands once.
            mirrors[host] = tuple(dict.fromkeys([plan.mirror.registry, *mirrors.get(host, ())]))
    return own | {host: "\n".join(map(_mirror, urls)) for host, urls in sorted(mirrors.items())}


def _mirror(url: str) -> str:
    text = f'[host."{url}"]\n  capabilities = ["pull", "resolve"]\n'
    # The path is the whole of it then, without /v2 behind.
    return text + ("  override_path = true\n" if urlsplit(url).path else "")


def unit(plan: Plan) -> str:
    """/etc/systemd/system/containerd.service."""
    seconds = plan.spec.runtime.watchdog_s
    watchdog = "" if seconds is None else _WATCHDOG.format(seconds=seconds, third=seconds // 3)
    return _UNIT.format(limits="" if plan.containers else _LIMITS, watchdog=watchdog)


def proxy(plan: Plan) -> str:
    """/etc/systemd/system/containerd.service.d/proxy.conf; empty where no proxy is configured."""
    values = proxy_environment(plan)
    if not values:
        return ""
    lines = [f'Environment="{name}={_quoted(value)}"' for name, value in values]
    return "[Service]\n" + "\n".join(lines) + "\n"


def proxy_environment(plan: Plan) -> list[tuple[str, str]]:
    """HTTP_PROXY and the like as (name, value), for programs that download on a node."""
    spec = plan.spec.proxy
    urls = [
        (name, url) for name, url in (("HTTP_PROXY", spec.http), ("HTTPS_PROXY", spec.https)) if url
    ]
    if not urls:
        return []
    own = ("127.0.0.1", "localhost", plan.spec.cluster.pod_cidr, plan.spec.cluster.service_cidr)
    direct = [*own, *_mirror_host(plan), *spec.no_proxy]
    return [*urls, ("NO_PROXY", ",".join(dict.fromkeys(direct)))]


def _mirror_host(plan: Plan) -> list[str]:
    if plan.mirror is None:
        return []
    hosts = (urlsplit(url).hostname for url in (plan.mirror.url, plan.mirror.registry))
    return [host for host in hosts if host is not None]


def _quoted(value: str) -> str:
    # In a unit file % starts a specifier, and quotes and backslashes end or escape.
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
