"""The API as this computer finds it at one address: a real TLS server plays it."""

from __future__ import annotations

import io
import json
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from operations import door
from tests.unit.render.test_haproxy_running import ApiServer, _certificates


@pytest.fixture
def api(tmp_path: Path) -> Iterator[tuple[ApiServer, str]]:
    ca, leaf = _certificates(tmp_path, "localhost")
    server = ApiServer("master-1", leaf)
    yield server, ca.read_text()
    server.die()


def test_an_api_that_is_ready_is_fine(api: tuple[ApiServer, str]) -> None:
    server, ca = api
    assert door.ask(f"localhost:{server.port}", ca) == ""


def test_one_that_is_not_ready_is_told(api: tuple[ApiServer, str]) -> None:
    server, ca = api
    server.ready = False
    assert door.ask(f"localhost:{server.port}", ca) == "HTTP 500 master-1"


def test_somebody_else_s_certificate_is_not_accepted(
    api: tuple[ApiServer, str], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    stranger = _certificates(other, "localhost")[0].read_text()
    assert "certificate" in door.ask(f"localhost:{api[0].port}", stranger).lower()


def test_a_name_that_the_certificate_does_not_hold_is_not_accepted(
    api: tuple[ApiServer, str],
) -> None:
    assert "certificate" in door.ask(f"127.0.0.1:{api[0].port}", api[1]).lower()


def test_an_address_to_which_the_name_does_not_lead_yet_is_asked_under_that_name(
    tmp_path: Path,
) -> None:
    ca, leaf = _certificates(tmp_path, "api.example.invalid")
    server = ApiServer("master-1", leaf)
    at = f"api.example.invalid:{server.port}", ca.read_text()
    assert door.ask(*at, at="127.0.0.1") == ""
    assert "known" in door.ask(*at)
    assert "certificate" in door.ask(f"localhost:{server.port}", at[1], at="127.0.0.1").lower()
    server.die()
    assert "refused" in door.ask(*at, at="127.0.0.1")


def test_every_address_of_a_load_balancer_is_asked(
    api: tuple[ApiServer, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = {
        "door": f"localhost:{api[0].port}",
        "ca": api[1],
        "limit_s": 0,
        "ask": True,
        "addresses": [],
        "at": ["127.0.0.1", "127.0.0.9"],
    }
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(said)))
    assert door.main() == 1
    assert f"ERROR localhost:{api[0].port} at 127.0.0.9: API not ready" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({**said, "at": ["127.0.0.1"]})))
    assert door.main() == 0


def test_a_load_balancer_known_by_its_name_is_asked_at_every_address_that_it_has(
    api: tuple[ApiServer, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As on AWS, which gives it one in each zone, minutes after it is made."""
    known, asked = socket.getaddrinfo, iter([[], ["127.0.0.1"]])

    def resolved(host: str, *given: Any) -> list[Any]:
        if host != "balancer.example.com":
            return known(host, *given)
        found = next(asked, ["127.0.0.1", "127.0.0.9"])
        if not found:
            raise OSError("not known yet")
        return [(0, 0, 0, "", (one, 0)) for one in found]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    said = {"door": f"localhost:{api[0].port}", "ca": api[1], "limit_s": 3, "ask": True, "addresses": [], "at": ["balancer.example.com"]}  # fmt: skip
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(said)))
    assert door.main() == 1
    assert "at 127.0.0.9: API not ready" in capsys.readouterr().out
    assert door.leads_astray("balancer.example.com", ["balancer.example.com"]) == ""
    assert "127.0.0.9" in door.leads_astray("balancer.example.com", ["localhost"])


def test_a_record_that_the_stack_made_is_not_asked_of_the_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = {"door": "localhost:1", "ca": "", "limit_s": 0, "ask": False, "addresses": ["10.0.0.2"]}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps({**said, "made": True})))
    assert door.main() == 1
    out = capsys.readouterr().out
    assert "do: the stack has made the record; resolvers may know for up to 15 minutes" in out
    assert "make records" not in out


def test_the_last_answer_and_the_way_out_are_told(
    api: tuple[ApiServer, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server, ca = api
    server.die()
    said = {
        "door": f"localhost:{server.port}",
        "ca": ca,
        "limit_s": 0,
        "ask": True,
        "addresses": [],
    }
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(said)))
    assert door.main() == 1
    out = capsys.readouterr().out
    assert "API not ready in 0 s; last answer: [Errno 111] Connection refused" in out
    assert "do: see that the load balancer runs" in out


def test_a_name_may_lead_to_what_is_wanted_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert door.leads_astray("localhost", ["127.0.0.1", "10.0.0.2"]) == ""
    said = {"door": "localhost:1", "ca": "", "limit_s": 0, "ask": False, "addresses": ["10.0.0.2"]}
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(said)))
    assert door.main() == 1
    out = capsys.readouterr().out
    assert "ERROR localhost: points to 127.0.0.1 too, where no client belongs" in out
    assert "do: make records of type A: localhost -> 10.0.0.2" in out


def test_a_name_that_nobody_knows_is_told() -> None:
    assert "no address of it is known here" in door.leads_astray(
        "api.example.invalid", ["10.0.0.2"]
    )
