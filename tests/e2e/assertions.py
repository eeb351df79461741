"""What several stories promise."""

from __future__ import annotations

from tests.e2e.node import Node
from tests.e2e.stack import Stack


def assert_up_changes_nothing(stack: Stack) -> None:
    """One more up: no resource, no SSH connection, no process on any node that started anew."""
    stack.settled()
    connections = _connections(stack.nodes())
    assert all(connections.values()), f"logins are not counted: {connections}"
    processes = {node.name: node.processes() for node in stack.nodes()}
    again = stack.up()
    assert again.changes == {}
    assert again.ssh_connections == []
    assert _connections(stack.nodes()) == connections, "the sshd of these machines saw a login"
    assert {node.name: node.processes() for node in stack.nodes()} == processes
    stack.measured(f"up without an edit: {again.seconds:.1f} s, 0 resources, 0 SSH connections")


def _connections(nodes: list[Node]) -> dict[str, int]:
    return {node.name: node.connections() for node in nodes}
