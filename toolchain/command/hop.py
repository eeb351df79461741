"""One hop of an SSH connection: its options, and what an attempt to dial it raises."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_USER = "root"
DEFAULT_PORT = 22
DEFAULT_DIAL_ERROR_LIMIT = 10
DEFAULT_PER_DIAL_TIMEOUT_S = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The options of one hop. Its repr would hold keys, so there is none."""

    host: str
    user: str = DEFAULT_USER
    port: int = DEFAULT_PORT
    password: str | None = None
    private_key: str | None = None
    private_key_password: str | None = None
    agent_socket_path: str | None = None
    host_key: str | None = None
    dial_error_limit: int = DEFAULT_DIAL_ERROR_LIMIT
    per_dial_timeout_s: float = DEFAULT_PER_DIAL_TIMEOUT_S
    proxy: Connection | None = None

    def __repr__(self) -> str:
        """Where, never with what."""
        return f"Connection({self.user}@{self.endpoint})"

    @property
    def endpoint(self) -> str:
        """`host:port`, IPv6 hosts in brackets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class DialError(Exception):
    """One attempt to connect failed; another may succeed."""
