"""What is measured, and how often: the configs of the agents and of the server.

Components of a control plane listen at 127.0.0.1 alone. An agent in the network of its node asks
them there and writes to the server, so nothing is opened for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from stacks.catalogue.prometheus.names import (
    ACCESS_FOLDER,
    AGENT_PORT,
    CA,
    NODE_PORT,
    PORT,
    TOKEN,
    USER,
)
from stacks.config.ports import API_PORT
from stacks.documents.kubernetes_objects import Document

INTERVAL_S = 30

_OF_THE_CLUSTER: Document = {"ca_file": CA, "server_name": "kubernetes"}
_SELF_SIGNED: Document = {"insecure_skip_verify": True}  # at 127.0.0.1, where no other answers

# Histograms of API servers that nobody looks at, and most of their series.
_DROPPED = (
    "(apiserver_(request_body_size_bytes|request_sli_duration_seconds|response_sizes|"
    "watch_events_sizes|watch_list_duration_seconds)|workqueue_(queue|work)_duration_seconds)"
    "_(bucket|count|sum)"
)
# What containers take: of cAdvisor's hundred series of each these are looked at.
_OF_CONTAINERS = (
    "container_(cpu_usage_seconds_total|cpu_cfs_throttled_periods_total|cpu_cfs_periods_total|"
    "fs_reads_bytes_total|fs_writes_bytes_total|memory_rss|memory_working_set_bytes|"
    "network_receive_bytes_total|network_transmit_bytes_total|oom_events_total)|"
    "machine_(cpu_cores|memory_bytes)"
)


def agent(servers: Sequence[str], *, control_plane: bool, etcd: bool) -> Document:
    """The config of an agent, on a control plane node or another one, that writes to `servers`.

    `etcd`: control plane nodes have its members.
    """
    jobs = [
        _here("node", NODE_PORT),
        _here("kubelet", 10250, tls=_SELF_SIGNED),
        {
            **_here("cadvisor", 10250, tls=_SELF_SIGNED),
            "metrics_path": "/metrics/cadvisor",
            "metric_relabel_configs": [_keep("__name__", _OF_CONTAINERS)],
        },
        _here("kube-proxy", 10249),
        _here("agent", AGENT_PORT),
    ]
    if control_plane:
        jobs += [
            {
                **_here("apiserver", API_PORT, tls=_OF_THE_CLUSTER),
                "metric_relabel_configs": [_drop("__name__", _DROPPED)],
            },
            _here("controller-manager", 10257, tls=_SELF_SIGNED),
            _here("scheduler", 10259, tls=_SELF_SIGNED),
        ]
        if etcd:
            jobs.append(_here("etcd", 2381))
    return {
        # The only place in which environment variables are filled in.
        "global": {"scrape_interval": f"{INTERVAL_S}s", "external_labels": {"node": "${NODE}"}},
        "scrape_configs": jobs,
        "remote_write": [
            {
                "url": f"{server}/api/v1/write",
                "name": f"server-{number}",
                "basic_auth": _access(),
                "queue_config": {"max_shards": 4, "max_samples_per_send": 2000},
            }
            for number, server in enumerate(servers)
        ],
    }


def server(alertmanagers: Sequence[str]) -> Document:
    """The config of the server: pods and Services that ask to be measured, rules, who is told."""
    address = "([^:]+)(?::\\d+)?;(\\d+)"
    jobs: list[Document] = [
        {
            "job_name": "prometheus",
            "basic_auth": _access(),
            "static_configs": [{"targets": [f"127.0.0.1:{PORT}"]}],
        }
    ]
    for job, role, kind in (("pods", "pod", "pod"), ("services", "endpointslice", "service")):
        marks = f"__meta_kubernetes_{kind}_annotation_prometheus_io_"
        jobs.append(
            {
                "job_name": job,
                "kubernetes_sd_configs": [{"role": role}],
                "relabel_configs": [
                    _keep(f"{marks}scrape", "true"),
                    _move(f"{marks}path", "(.+)", "__metrics_path__", "$1"),
                    _move(["__address__", f"{marks}port"], address, "__address__", "$1:$2"),
                    _move("__meta_kubernetes_namespace", "(.+)", "namespace", "$1"),
                    _move("__meta_kubernetes_pod_name", "(.+)", "pod", "$1"),
                    _move("__meta_kubernetes_service_name", "(.+)", "service", "$1"),
                    _move("__meta_kubernetes_pod_node_name", "(.+)", "node", "$1"),
                ],
            }
        )
    return {
        "global": {
            "scrape_interval": f"{INTERVAL_S}s",
            "evaluation_interval": f"{INTERVAL_S}s",
        },
        # An agent that could not write sends what it kept.
        "storage": {"tsdb": {"out_of_order_time_window": "2h"}},
        "rule_files": ["/etc/prometheus/rules.yaml"],
        "scrape_configs": jobs,
        "alerting": {
            "alertmanagers": [{"static_configs": [{"targets": list(alertmanagers)}]}]
            if alertmanagers
            else []
        },
    }


def client() -> Document:
    """How promtool asks the server whether it is ready."""
    return {"basic_auth": _access()}


def _access() -> Document:
    return {"username": USER, "password_file": f"{ACCESS_FOLDER}/password"}


def _here(job: str, port: int, tls: Document | None = None) -> Document:
    """A target at 127.0.0.1; over TLS it is asked with the agent's token."""
    out: Document = {
        "job_name": job,
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
    }
    if tls is not None:
        out["scheme"] = "https"
        out["authorization"] = {"credentials_file": TOKEN}
        out["tls_config"] = tls
    return out


def _keep(source: str, regex: str) -> Document:
    return {"source_labels": [source], "regex": regex, "action": "keep"}


def _drop(source: str, regex: str) -> Document:
    return {"source_labels": [source], "regex": regex, "action": "drop"}


def _move(source: str | list[str], regex: str, target: str, replacement: str) -> Document:
    sources = [source] if isinstance(source, str) else source
    return {
        "source_labels": sources,
        "regex": regex,
        "target_label": target,
        "replacement": replacement,
    }
