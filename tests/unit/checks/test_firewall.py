"""The firewall of machines: nobody is locked out whom the config knows, and clouds have rules of their own."""

from __future__ import annotations

import pytest

from stacks.config.problems import SpecError
from stacks.load import load, planned
from tests.unit.configs import adopted, aws, gcp, host_key, lab

PATH = "machines.firewall"
SAID = {"networks": ["10.92.0.0/24"], "sshFrom": ["10.92.0.0/24"], "apiFrom": []}
OF_ADOPTED = {"networks": ["192.0.2.0/24"], "sshFrom": ["203.0.113.0/24"], "apiFrom": []}
BASTION = {"agent": True, "bastion": {"address": "198.51.100.7", "hostKey": host_key(5)}}


def refused(raw: dict[str, object]) -> dict[str, str]:
    """What a config is refused for, by path; empty where it is accepted."""
    try:
        planned(load(raw, read_keys=False))
    except SpecError as error:
        return dict(error.problems)
    return {}


def test_it_is_accepted_where_everybody_is_let_in() -> None:
    assert refused(lab({PATH: SAID})) == {}
    assert refused(adopted({PATH: OF_ADOPTED})) == {}
    assert refused(adopted({PATH: {**OF_ADOPTED, "sshFrom": ["0.0.0.0/0"]}})) == {}


@pytest.mark.parametrize("key", ["networks", "sshFrom", "apiFrom"])
def test_who_may_come_has_to_be_said(key: str) -> None:
    said = {name: value for name, value in SAID.items() if name != key}
    assert [*refused(lab({PATH: said}))] == [f"{PATH}.{key}"]


def test_machines_that_others_would_keep_out_are_named() -> None:
    found = refused(lab({PATH: {**SAID, "networks": ["10.92.0.8/29"]}, "pools.worker.count": 4}))
    assert [*found] == [f"{PATH}.networks"]
    assert "the address of worker-1 to worker-4, so the other" in found[f"{PATH}.networks"]
    gone = {"nodes": {"worker-2": {"state": "removed"}}}
    within = {**OF_ADOPTED, "networks": ["192.0.2.0/28", "192.0.2.101/32"]}
    assert [*refused(adopted({PATH: within}))] == [f"{PATH}.networks"]
    assert refused(adopted({PATH: within, **gone})) == {}


def test_computers_that_every_login_comes_from_are_let_in() -> None:
    found = refused(lab({PATH: {**SAID, "sshFrom": ["192.0.2.0/24"]}}))
    assert "10.92.0.1, this computer" in found[f"{PATH}.sshFrom"]
    by_bastion = {PATH: OF_ADOPTED, "machines.ssh": BASTION}
    found = refused(adopted(by_bastion))
    assert "198.51.100.7, the bastion" in found[f"{PATH}.sshFrom"]
    let_in = {**OF_ADOPTED, "sshFrom": ["198.51.100.7/32"]}
    assert refused(adopted({**by_bastion, PATH: let_in})) == {}


def test_nobody_at_all_is_refused() -> None:
    found = refused(adopted({PATH: {**OF_ADOPTED, "sshFrom": []}}))
    assert "is empty" in found[f"{PATH}.sshFrom"]


@pytest.mark.parametrize("make", [gcp, aws])
def test_clouds_have_rules_of_their_own(make: type[dict[str, object]]) -> None:
    assert "which the stack makes" in refused(make({PATH: SAID}))[PATH]


def test_more_networks_than_fit_in_a_command_are_refused_with_the_fix() -> None:
    many = [f"203.0.{number}.0/25" for number in range(100)]
    found = refused(adopted({PATH: {**OF_ADOPTED, "sshFrom": many, "apiFrom": many}}))
    assert "name fewer, wider networks" in found[PATH]


def test_what_else_fills_a_command_is_told_without_a_firewall_too() -> None:
    mirrors = {f"registry-{number}.example.com": ["http://192.0.2.9:5000"] for number in range(60)}
    assert [*refused(lab({"runtime.registryMirrors": mirrors}))] == ["runtime.registryMirrors"]
