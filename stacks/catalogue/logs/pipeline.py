"""What a collector does: which logs it reads, what it calls them, how it keeps and sends them.

A line is in the queue on the node's disk before the place where it ended is noted, and leaves the
queue once the store has taken it. Of the journal the place is noted first, line by line.
"""

from __future__ import annotations

from stacks.catalogue.logs.names import (
    ACCESS_FOLDER,
    CLUSTER_NAME,
    COLLECTOR,
    CONTAINER,
    ENDPOINT_FOLDER,
    ENDPOINT_KEY,
    HEALTH_PORT,
    LOG,
    NAMESPACE,
    NODE,
    POD,
    RECEIVER_PORT,
    ROLE,
    SERVICE,
    STORE_PORT,
    UNIT,
    receiver,
)
from stacks.config.spec import AddonSpec, Spec
from stacks.documents.kubernetes_objects import Document

STATE = "/state"  # in the container
MIB = 1024 * 1024
COLLECTOR_MIB = 256  # of memory, at most
RECEIVER_MIB = 256
_OFFSETS, _QUEUE, _TOKEN = "file_storage/offsets", "file_storage/queue", "bearertokenauth"
_BUFFER_MIB = 512  # of a node, where the config says nothing
_BATCH = 1 * MIB  # of lines in one request, at most
# Nothing is given up: whoever reads waits, and what he would read stays in its file.
_RETRY: Document = {"enabled": True, "max_elapsed_time": "0s"}
# As OpenTelemetry maps those of syslog.
_SEVERITIES: Document = {
    "fatal": ["0"],
    "error3": ["1"],
    "error2": ["2"],
    "error": ["3"],
    "warn": ["4"],
    "info2": ["5"],
    "info": ["6"],
    "debug": ["7"],
}


def collector(spec: Spec, said: AddonSpec, *, control_plane: bool) -> Document:
    """Config of the collectors of one kind of node."""
    readers: Document = {
        "journald": _journal(spec, control_plane=control_plane),
        "file_log/pods": _pods(spec, control_plane=control_plane),
    }
    if control_plane:
        readers["file_log/audit"] = _audit(spec)
    keeps: Document = {_OFFSETS: _kept("offsets"), _QUEUE: _kept("queue")}
    own: Document = {} if said.endpoint else {_TOKEN: _password()}
    return {
        "extensions": {"health_check": _health(), **keeps, **own},
        "receivers": readers,
        "processors": {"memory_limiter": _limiter(COLLECTOR_MIB)},
        "exporters": {"otlp_http": _sender(spec, said)},
        "service": _service([*keeps, *own], [*readers]),
    }


def receiving() -> Document:
    """Config of the program before the store: it asks for the password, and keeps nothing.

    It says that it has a line only after the store has said so.
    """
    http: Document = {
        "endpoint": f"0.0.0.0:{RECEIVER_PORT}",
        "auth": {"authenticator": _TOKEN},
        "max_request_body_size": 16 * MIB,
    }
    return {
        "extensions": {"health_check": _health(), _TOKEN: _password()},
        "receivers": {"otlp": {"protocols": {"http": http}}},
        "processors": {"memory_limiter": _limiter(RECEIVER_MIB)},
        "exporters": {
            "otlp_http": {
                "endpoint": f"http://127.0.0.1:{STORE_PORT}/otlp",
                "compression": "none",
                "sending_queue": {"enabled": False},
                "retry_on_failure": {"enabled": False},
            }
        },
        "service": _service([_TOKEN], ["otlp"]),
    }


def _service(extensions: list[str], receivers: list[str]) -> Document:
    return {
        "extensions": ["health_check", *extensions],
        "pipelines": {
            "logs": {
                "receivers": receivers,
                "processors": ["memory_limiter"],
                "exporters": ["otlp_http"],
            }
        },
        "telemetry": {"logs": {"level": "warn"}, "metrics": {"level": "none"}},
    }


def _named(spec: Spec, log: str, *, control_plane: bool) -> Document:
    """Attributes that all lines of a log have in common."""
    return {
        CLUSTER_NAME: spec.cluster.name,
        NODE: "${env:NODE}",
        ROLE: "master" if control_plane else "worker",
        LOG: log,
    }


def _journal(spec: Spec, *, control_plane: bool) -> Document:
    """All of the journal, by the node's own journalctl: it knows the files of its systemd."""
    return {
        "journalctl_path": "/usr/bin/journalctl",
        "start_at": "beginning",
        "priority": "debug",
        "all": True,  # long lines too
        "convert_message_bytes": True,
        "storage": _OFFSETS,
        "retry_on_failure": _RETRY,
        "resource": _named(spec, "journal", control_plane=control_plane),
        "operators": [*_units(), *_messages()],
    }


def _units() -> list[Document]:
    """Whose line it is: what systemd says of a service, too, is that service's."""
    resource = f'resource["{UNIT}"]'
    by_manager = 'body._PID == "1" && body.UNIT != nil'
    unit = f"({by_manager} ? body.UNIT : body._SYSTEMD_UNIT)"
    is_service = f'resource.{UNIT} endsWith ".service" && not (resource.{UNIT} startsWith "run-")'
    return [
        {
            "type": "add",
            "field": resource,
            "value": f'EXPR(body._TRANSPORT == "kernel" ? "kernel" : ({unit} ?? "other"))',
        },
        # Sessions, mounts and scopes of containers are without number, as are labels then.
        {
            "type": "add",
            "if": f'resource.{UNIT} != "kernel" && not ({is_service})',
            "field": resource,
            "value": "other",
        },
        {"type": "add", "field": f'resource["{SERVICE}"]', "value": f"EXPR(resource.{UNIT})"},
    ]


def _messages() -> list[Document]:
    """What it says, how bad that is, and who calls itself how; the rest of the fields goes."""
    called = 'attributes["syslog.identifier"]'
    return [
        {
            "type": "severity_parser",
            "if": "body.PRIORITY != nil",
            "parse_from": "body.PRIORITY",
            "preset": "none",
            "mapping": _SEVERITIES,
        },
        _move("SYSLOG_IDENTIFIER", called),
        _move("MESSAGE", "body"),
    ]


def _move(name: str, to: str) -> Document:
    return {"type": "move", "if": f"body.{name} != nil", "from": f"body.{name}", "to": to}


def _pods(spec: Spec, *, control_plane: bool) -> Document:
    """Logs that kubelets keep of containers, those that they have rotated too.

    What goes wrong with sending is told by collectors and the store alone to `kubectl logs`: it
    would make lines without an end here.
    """
    folder = "/var/log/pods"
    own = [f"{folder}/{NAMESPACE}_{name}*/*/*" for name in (f"{COLLECTOR}-", f"{POD}_")]
    return {
        **_files([f"{folder}/*/*/*.log*"], [f"{folder}/*/*/*.gz", f"{folder}/*/*/*.tmp", *own]),
        "resource": _named(spec, "pods", control_plane=control_plane),
        "operators": [
            {"type": "container"},
            {
                "type": "add",
                "field": f'resource["{SERVICE}"]',
                "value": f'EXPR(resource["{CONTAINER}"])',
            },
            {"type": "remove", "field": 'attributes["log.file.path"]'},
            {"type": "remove", "field": "attributes.logtag"},
        ],
    }


def _audit(spec: Spec) -> Document:
    """What API servers write of requests. The last time in a line is none of a client's making."""
    return {
        **_files(["/var/log/kubernetes/audit*.log"], []),
        "include_file_path": False,
        "max_log_size": "1MiB",
        "resource": _named(spec, "audit", control_plane=True) | {SERVICE: "audit"},
        "operators": [
            {
                "type": "regex_parser",
                "regex": '^.*"stageTimestamp":"(?P<stage>[^"]+)"',
                "on_error": "send_quiet",
                "timestamp": {
                    "parse_from": "attributes.stage",
                    "layout_type": "gotime",
                    "layout": "2006-01-02T15:04:05.999999Z07:00",
                },
            },
            {"type": "remove", "if": "attributes.stage != nil", "field": "attributes.stage"},
        ],
    }


def _files(include: list[str], exclude: list[str]) -> Document:
    return {
        "include": include,
        "exclude": exclude,
        "start_at": "beginning",
        "include_file_name": False,
        "include_file_path": True,
        "poll_interval": "500ms",
        # Whoever empties a file does not keep later lines back.
        "on_truncate": "read_whole_file",
        "storage": _OFFSETS,
        "retry_on_failure": _RETRY,
    }


def _sender(spec: Spec, said: AddonSpec) -> Document:
    where: Document = {"endpoint": said.endpoint or receiver(spec.cluster.dns_domain)}
    if said.endpoint is None:
        where["auth"] = {"authenticator": _TOKEN}
    elif said.secret:
        kept = f"{ENDPOINT_FOLDER}/{ENDPOINT_KEY}"
        where["headers"] = {"Authorization": f"${{file:{kept}}}"}
    return {
        **where,
        "compression": "gzip",
        "timeout": "30s",
        "retry_on_failure": {**_RETRY, "initial_interval": "1s", "max_interval": "10s"},
        "sending_queue": {
            "storage": _QUEUE,
            "sizer": "bytes",
            "queue_size": (said.buffer_mib or _BUFFER_MIB) * MIB,
            "block_on_overflow": True,
            "num_consumers": 2,
            "batch": {
                "flush_timeout": "500ms",
                "sizer": "bytes",
                "min_size": _BATCH // 4,
                "max_size": _BATCH,
            },
        },
    }


def _kept(name: str) -> Document:
    """A database of its own for each: that of the queue grows and shrinks."""
    folder = f"{STATE}/{name}"
    return {
        "directory": folder,
        "create_directory": True,
        "timeout": "10s",
        # What a power cut has torn is put aside.
        "recreate": True,
        "compaction": {
            "directory": folder,
            "on_start": True,
            "on_rebound": True,
            "cleanup_on_start": True,
        },
    }


def _limiter(mib: int) -> Document:
    return {"check_interval": "1s", "limit_mib": mib * 3 // 4, "spike_limit_mib": mib // 4}


def _health() -> Document:
    return {"endpoint": f"0.0.0.0:{HEALTH_PORT}"}


def _password() -> Document:
    return {"filename": f"{ACCESS_FOLDER}/password"}
