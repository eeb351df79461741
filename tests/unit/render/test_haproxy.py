"""The door to the API that every node has of its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from stacks.config.network import API_SHUTDOWN_DELAY_S
from stacks.render import haproxy
from tests.unit.certificate import certificate
from tests.unit.render.examples import adopted, assert_snapshot, lab, local_api, program


def test_snapshot() -> None:
    assert_snapshot("haproxy.cfg", local_api(lab()))


def test_a_master_asks_its_own_api_server_first_and_is_like_all_else() -> None:
    plan = lab()
    for node in plan.masters:
        own = haproxy.local_api(plan, node)
        assert f"\n  use-server {node.name} if {{ dst 127.0.0.1 }}\n" in own
        others = [line for line in own.splitlines()[1:] if "use-server" not in line]
        assert others == local_api(plan).splitlines()[1:]
    assert "use-server" not in local_api(plan)


def test_the_only_master_has_the_text_of_all_nodes() -> None:
    plan = lab(1)
    assert haproxy.local_api(plan, plan.masters[0]) == local_api(plan)


def test_at_the_vip_all_masters_share_the_work() -> None:
    plan = lab(frontDoors={"vip": {"address": "10.92.0.5"}})
    text = haproxy.local_api(plan, plan.masters[0])
    assert "\n  bind 10.92.0.5:" in text
    assert "use-server master-1 if { dst 127.0.0.1 }" in text


def test_three_masters_fit_into_the_payload_of_a_node() -> None:
    assert len(local_api(lab())) <= 1600


def test_every_server_line_cuts_sessions_to_a_vanished_master() -> None:
    text = local_api(lab())
    servers = [line for line in text.splitlines() if line.startswith("  server ")]
    assert len(servers) == 6
    # HAProxy takes tcp-ut in default-server without a word and without any effect.
    assert all(line.endswith(" tcp-ut 20s") for line in servers)
    assert "tcp-ut" not in next(line for line in text.splitlines() if "default-server" in line)


def test_requests_in_flight_survive_a_draining_master() -> None:
    assert "shutdown-sessions" not in local_api(lab())


def test_each_master_is_there_checked_and_as_unchecked_backup() -> None:
    text = local_api(adopted())
    checked = re.findall(r"^  server (\S+) (\S+) check ", text, re.MULTILINE)
    backups = re.findall(r"^  server (\S+)-unchecked (\S+) backup ", text, re.MULTILINE)
    assert checked == [("master-1", "192.0.2.21:6443"), ("master-2", "192.0.2.22:6443")]
    assert backups == checked


def test_nodes_notice_a_draining_master_before_it_stops_answering() -> None:
    """An API server answers for 15 s after /readyz turned (shutdown-delay-duration)."""
    text = local_api(lab())
    inter, fast, fall = (
        _number(rf"\b{word} (\d+)", text) for word in ("inter", "fastinter", "fall")
    )
    check = _number(r"timeout check (\d+)s", text)
    assert inter + (fall - 1) * fast + check < 15


def test_settings_come_from_the_config() -> None:
    wanted = {"maxConnections": 9000, "checkIntervalMs": 700, "idleTimeoutH": 48}
    text = local_api(lab(loadBalancing=wanted))
    # In global for the process, in defaults for the listener: the smaller one counts.
    assert re.findall(r"^  maxconn (\d+)$", text, re.MULTILINE) == ["9000", "9000"]
    assert re.findall(r"^  timeout (client|server) (\w+)", text, re.MULTILINE) == [
        ("client", "48h"),
        ("server", "48h"),
    ]
    # A master that is about to change sides is not asked less often than another.
    assert " inter 700ms fastinter 700ms fall 2 " in text
    assert " inter 4s fastinter 1s fall 2 " in local_api(
        lab(loadBalancing={"checkIntervalMs": 4000})
    )


def test_the_slowest_checks_that_are_accepted_notice_a_draining_master_in_time() -> None:
    slowest = lab(loadBalancing={"checkIntervalMs": 5999}).spec.load_balancing
    assert slowest.detection_ms < 1000 * API_SHUTDOWN_DELAY_S


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, pattern
    return int(found[1])


@pytest.mark.parametrize(
    ("masters", "wanted"),
    [
        (1, {}),
        (3, {"maxConnections": 9900, "checkIntervalMs": 5999, "idleTimeoutH": 500}),
        (7, {"maxConnections": 100, "checkIntervalMs": 500, "idleTimeoutH": 1}),
    ],
)
def test_haproxy_accepts_it(masters: int, wanted: dict[str, int], tmp_path: Path) -> None:
    haproxy = program("haproxy", tmp_path)
    ca = tmp_path / "ca.crt"
    ca.write_text(certificate())
    config = tmp_path / "haproxy.cfg"
    config.write_text(
        local_api(lab(masters, loadBalancing=wanted)).replace("/etc/kube-ha/ca.crt", str(ca))
    )
    done = subprocess.run(
        [haproxy, "-c", "-f", config], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert not re.search(r"warning|alert", done.stdout + done.stderr, re.IGNORECASE)
