"""Inputs of the command resources: defaults, what is wrong with them, and how to read them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from toolchain.command.hop import (
    DEFAULT_DIAL_ERROR_LIMIT,
    DEFAULT_PER_DIAL_TIMEOUT_S,
    DEFAULT_PORT,
    DEFAULT_USER,
    Connection,
)
from toolchain.command.output import LOGGING, Stream
from toolchain.resources import OperationError, Problem
from toolchain.values import UNKNOWN, Properties, Secret, Unknown, Value, plain

_CONNECTION_DEFAULTS: Mapping[str, Value] = {
    "user": DEFAULT_USER,
    "port": float(DEFAULT_PORT),
    "dialErrorLimit": float(DEFAULT_DIAL_ERROR_LIMIT),
    "perDialTimeout": float(DEFAULT_PER_DIAL_TIMEOUT_S),
}

_CONNECTION_KEYS = {
    *("agentSocketPath", "dialErrorLimit", "host", "hostKey", "password", "perDialTimeout"),
    *("port", "privateKey", "privateKeyPassword", "proxy", "user"),
}

_SECRET_KEYS = ("password", "privateKey", "privateKeyPassword")

_COMMON_KEYS = {
    *("addPreviousOutputInEnv", "create", "delete", "environment", "logging", "stdin"),
    *("triggers", "update"),
}
_LOCAL_KEYS = _COMMON_KEYS | {"archivePaths", "assetPaths", "dir", "interpreter"}
_REMOTE_KEYS = _COMMON_KEYS | {"connection"}


def check_remote(inputs: Properties) -> tuple[Properties, list[Problem]]:
    """Inputs of a remote command, its connection a secret with defaults; and what is wrong."""
    checked, problems = _check_common(inputs, _REMOTE_KEYS)
    checked["connection"], found = check_connection(inputs)
    return checked, problems + found


def check_local(inputs: Properties) -> tuple[Properties, list[Problem]]:
    """Inputs of a local command, and what is wrong."""
    checked, problems = _check_common(inputs, _LOCAL_KEYS)
    problems += [
        Problem(key, "the lab's stand-in for the command plugin does not collect files")
        for key in ("archivePaths", "assetPaths")
        if key in inputs
    ]
    return checked, problems


def check_connection(inputs: Properties) -> tuple[Value, list[Problem]]:
    """The input `connection`, with defaults at both hops, as a secret; and what is wrong.

    Keys and passwords in it are secrets once more: the official plugin stores them so, and for it
    a mark more or less is a change.
    """
    given = inputs.get("connection")
    value = given.value if isinstance(given, Secret) else given
    if isinstance(value, Unknown):
        return Secret(UNKNOWN), []
    if not isinstance(value, dict):
        return Secret(value), [Problem("connection", "missing required property")]
    filled = _filled(value)
    problems = _hop_problems("connection", filled, _CONNECTION_KEYS)
    proxy = filled.get("proxy")
    if isinstance(proxy, dict):
        filled["proxy"] = _filled(proxy)
        problems += _hop_problems("connection.proxy", proxy, _CONNECTION_KEYS - {"proxy"})
    return Secret(filled), problems


def unknown_properties(
    given: Mapping[str, Value], known: Collection[str], prefix: str = ""
) -> list[Problem]:
    """One problem for each name that the kind of resource does not have."""
    return [Problem(prefix + key, "unknown property") for key in sorted(given.keys() - set(known))]


def connection(properties: Properties) -> Connection:
    """The connection of a resource whose inputs were checked."""
    value = plain(properties.get("connection"))
    if not isinstance(value, dict):
        raise OperationError("connection: missing required property")
    return _hop(value)


def text(properties: Properties, key: str) -> str | None:
    """A string input, None when it is not set."""
    value = plain(properties.get(key))
    return value if isinstance(value, str) else None


def texts(properties: Properties, key: str) -> dict[str, str]:
    """A map of strings, empty when it is not set."""
    value = plain(properties.get(key))
    if not isinstance(value, dict):
        return {}
    return {name: item for name, item in value.items() if isinstance(item, str)}


def shown(properties: Properties) -> frozenset[Stream]:
    """The streams whose lines are shown while a command runs: both, unless `logging` says less."""
    return LOGGING.get(text(properties, "logging") or "", LOGGING["stdoutAndStderr"])


def words(properties: Properties, key: str) -> list[str]:
    """A list of strings, empty when it is not set."""
    value = plain(properties.get(key))
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _check_common(inputs: Properties, known: set[str]) -> tuple[Properties, list[Problem]]:
    problems = unknown_properties(inputs, known)
    checked = dict(inputs)
    logging = checked.get("logging")
    if isinstance(logging, str) and logging not in LOGGING:
        problems.append(Problem("logging", f"want one of {', '.join(LOGGING)}, not {logging}"))
    for key in ("create", "update", "delete", "stdin"):
        value = checked.get(key, "")
        value = value.value if isinstance(value, Secret) else value
        if not isinstance(value, str | Unknown):
            problems.append(Problem(key, "want a string"))
    return checked, problems


def _filled(hop: Mapping[str, Value]) -> Properties:
    filled: Properties = {**_CONNECTION_DEFAULTS, **hop}
    for key in _SECRET_KEYS:
        if key in filled and not isinstance(filled[key], Secret):
            filled[key] = Secret(filled[key])
    return filled


def _hop_problems(path: str, hop: Mapping[str, Value], known: set[str]) -> list[Problem]:
    problems = [Problem(f"{path}.{key}", "unknown property") for key in sorted(hop.keys() - known)]
    if not hop.get("host"):
        problems.append(Problem(f"{path}.host", "missing required property"))
    return problems


def _hop(value: dict[str, Value]) -> Connection:
    def word(key: str) -> str | None:
        found = value.get(key)
        return found if isinstance(found, str) else None

    def number(key: str, default: int) -> int:
        found = value.get(key)
        return int(found) if isinstance(found, float | int) else default

    proxy = value.get("proxy")
    return Connection(
        host=word("host") or "",
        user=word("user") or DEFAULT_USER,
        port=number("port", DEFAULT_PORT),
        password=word("password"),
        private_key=word("privateKey"),
        private_key_password=word("privateKeyPassword"),
        agent_socket_path=word("agentSocketPath"),
        host_key=word("hostKey"),
        dial_error_limit=number("dialErrorLimit", DEFAULT_DIAL_ERROR_LIMIT),
        per_dial_timeout_s=number("perDialTimeout", DEFAULT_PER_DIAL_TIMEOUT_S),
        proxy=_hop(proxy) if isinstance(proxy, dict) else None,
    )
