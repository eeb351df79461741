"""The cluster on one screen: a page that Prometheus fills in itself each time it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from stacks.catalogue.entry import Wanted

NAME = "cluster"  # /consoles/cluster.html
_SECONDS = 30  # until it is asked again
_MOST = 100  # rows of nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One figure of each row: what is asked, and how its answer is written."""

    title: str
    query: str  # PromQL with one answer a row at most; %s is the row's label as a matcher
    form: str = "humanize"  # a function of Prometheus' templates; empty: as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    title: str
    rows: str  # PromQL: one row for each answer
    label: str  # by which rows are told apart
    columns: tuple[Column, ...]


def tables(wanted: Wanted) -> tuple[Table, ...]:
    """Whole cluster, control plane, nodes."""
    return (_cluster(), _control_plane(wanted), _nodes(wanted))


def page(wanted: Wanted) -> str:
    """HTML with templates of Prometheus in it."""
    name = escape(wanted.spec.cluster.name)
    parts = "\n".join(map(_table, tables(wanted)))
    return _PAGE.format(name=name, seconds=_SECONDS, alerts=_ALERTS, tables=parts)


def _cluster() -> Table:
    cpu = 'sum(rate(node_cpu_seconds_total{mode!="idle"}[2m]))'
    memory = "sum(node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes)"
    ok = 'sum(rate(apiserver_request_total{code!~"5.."}[2m]))'
    read = 'sum by (le) (rate(apiserver_request_duration_seconds_bucket{verb="GET"}[5m]))'
    write = (
        "sum by (le) (rate(apiserver_request_duration_seconds_bucket"
        '{verb=~"POST|PUT|PATCH|DELETE"}[5m]))'
    )
    return Table(
        title="Cluster",
        rows="vector(1)",
        label="",
        columns=(
            Column(title="nodes that report", query='count(up{job="node"} == 1)'),
            Column(
                title="nodes not ready",
                query="sum(max by (zone) (node_collector_unhealthy_nodes_in_zone))",
            ),
            Column(title="pods", query="sum(kubelet_running_pods)"),
            Column(
                title="processors in use",
                query=f"{cpu} / count(node_cpu_seconds_total{{mode='idle'}})",
                form="humanizePercentage",
            ),
            Column(
                title="memory in use",
                query=f"{memory} / sum(node_memory_MemTotal_bytes)",
                form="humanizePercentage",
            ),
            Column(title="API requests a second", query=ok),
            Column(
                title="99 % of reads within",
                query=f"histogram_quantile(0.99, {read})",
                form="humanizeDuration",
            ),
            Column(
                title="99 % of writes within",
                query=f"histogram_quantile(0.99, {write})",
                form="humanizeDuration",
            ),
        ),
    )


def _control_plane(wanted: Wanted) -> Table:
    columns = [
        Column(title="API server", query='up{job="apiserver",%s}', form=""),
        Column(
            title="requests in flight",
            query="sum(apiserver_current_inflight_requests{%s})",
        ),
        Column(
            title="leads",
            query="sum(leader_election_master_status"
            '{name=~"kube-controller-manager|kube-scheduler",%s})',
            form="",
        ),
    ]
    if wanted.etcd:
        sync = "rate(etcd_disk_wal_fsync_duration_seconds_bucket{%s}[5m])"
        columns += [
            Column(title="etcd", query='up{job="etcd",%s}', form=""),
            Column(title="etcd leads", query="etcd_server_is_leader{%s}", form=""),
            Column(
                title="etcd holds",
                query="etcd_mvcc_db_total_size_in_bytes{%s}",
                form="humanize1024",
            ),
            Column(
                title="99 % of syncs within",
                query=f"histogram_quantile(0.99, {sync})",
                form="humanizeDuration",
            ),
        ]
    if wanted.keepalived:
        columns.append(Column(title="virtual IP", query="kube_ha_vip_owner{%s}", form=""))
    return Table(
        title="Control plane",
        rows='last_over_time(up{job="apiserver"}[30m])',
        label="node",
        columns=tuple(columns),
    )


def _nodes(wanted: Wanted) -> Table:
    del wanted
    some = '{fstype!~"tmpfs|overlay|ramfs",%s}'
    full = f"max(1 - node_filesystem_avail_bytes{some} / node_filesystem_size_bytes{some})"
    return Table(
        title=f"Nodes (the {_MOST} busiest at most)",
        rows=f"topk({_MOST}, last_over_time(node_load1[30m]))",
        label="node",
        columns=(
            Column(title="kubelet", query='up{job="kubelet",%s}', form=""),
            Column(title="pods", query="sum(kubelet_running_pods{%s})", form=""),
            Column(title="load", query="node_load1{%s}"),
            Column(
                title="memory in use",
                query="1 - node_memory_MemAvailable_bytes{%s} / node_memory_MemTotal_bytes{%s}",
                form="humanizePercentage",
            ),
            Column(title="fullest disk", query=full, form="humanizePercentage"),
            Column(
                title="masters reached",
                query="sum(kube_ha_haproxy_server_up{%s})",
                form="",
            ),
            Column(
                title="certificates end in",
                query="min(kube_ha_certificate_not_after_seconds{%s}) - time()",
                form="humanizeDuration",
            ),
        ),
    )


def _table(table: Table) -> str:
    heads = "".join(
        f"<th>{escape(text)}</th>"
        for text in ([table.label] if table.label else []) + [one.title for one in table.columns]
    )
    name = f"<th>{{{{ .Labels.{table.label} }}}}</th>" if table.label else ""
    cells = "".join(f"<td>{_cell(table, one)}</td>" for one in table.columns)
    order = f' | sortByLabel "{table.label}"' if table.label else ""
    rows = f"{{{{ range query `{table.rows}`{order} }}}}"
    return (
        f"<h2>{escape(table.title)}</h2>\n<table><tr>{heads}</tr>\n"
        f"{rows}<tr>{name}{cells}</tr>\n{{{{ end }}}}</table>"
    )


def _cell(table: Table, column: Column) -> str:
    """A figure, or a dash where nobody says one."""
    query = column.query
    if table.label:
        matcher = f'{table.label}="%s"'
        names = " ".join([".Labels." + table.label] * query.count("%s"))
        asked = f"(printf `{query.replace('%s', matcher)}` {names})"
    else:
        asked = f"`{query}`"
    form = f" | {column.form}" if column.form else ""
    figure = f"{{{{ . | first | value{form} }}}}"
    return f"{{{{ with query {asked} }}}}{figure}{{{{ else }}}}-{{{{ end }}}}"


_ALERTS = """\
{{ range query `ALERTS{alertstate="firing",severity!="none"}` | sortByLabel "alertname" }}\
<p class="{{ .Labels.severity }}"><b>{{ .Labels.alertname }}</b> \
{{ .Labels.node }} {{ .Labels.mountpoint }} {{ .Labels.path }}</p>
{{ else }}<p>No alert fires.</p>
{{ end }}"""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="refresh" content="{seconds}">
<title>{name}</title>
<style>
body {{ font: 14px sans-serif; margin: 1.5em; color: #222; background: #fff }}
h1 {{ font-size: 1.4em }} h2 {{ font-size: 1.1em; margin-bottom: .3em }}
table {{ border-collapse: collapse }}
th, td {{ padding: .25em .9em .25em 0; text-align: left; border-bottom: 1px solid #ddd }}
td {{ font-variant-numeric: tabular-nums }}
p.critical {{ color: #b00020 }} p.warning {{ color: #9a6700 }}
@media (prefers-color-scheme: dark) {{
body {{ color: #ddd; background: #181818 }} th, td {{ border-color: #444 }}
p.critical {{ color: #ff7a7a }} p.warning {{ color: #e0b040 }}
}}
</style>
</head>
<body>
<h1>{name}</h1>
{alerts}
{tables}
</body>
</html>
"""
