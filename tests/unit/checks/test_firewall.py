"""What a config may not say of the firewall on machines."""

from __future__ import annotations

import pytest

from stacks import load
from stacks.config.problems import SpecError
from tests.unit.configs import adopted, gcp, host_key, lab

BASTION = {"agent": True, "bastion": {"address": "192.0.2.9", "hostKey": host_key(9)}}


def refused(raw: dict[str, object]) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        load.load(raw)
    return dict(caught.value.problems)


def test_ssh_has_to_let_in_the_bastion() -> None:
    said = {"machines.ssh": BASTION, "machines.firewall": {"sshFrom": ["10.0.0.0/8"]}}
    found = refused(adopted(said))
    assert "does not hold the bastion 192.0.2.9" in found["machines.firewall.sshFrom"]
    load.load(adopted({**said, "machines.firewall": {"sshFrom": ["10.0.0.0/8", "192.0.2.9/32"]}}))
    load.load(adopted({**said, "machines.firewall": {}}))


def test_a_bastion_known_by_name_is_not_judged() -> None:
    named = {**BASTION, "bastion": {**BASTION["bastion"], "address": "bastion.example.com"}}  # type: ignore[dict-item]
    load.load(adopted({"machines.ssh": named, "machines.firewall": {"sshFrom": ["10.0.0.0/8"]}}))


def test_ports_are_of_protocols_that_have_some() -> None:
    said = {"machines.firewall": {"more": [{"protocol": "esp", "ports": 9}, {"protocol": "esp"}]}}
    assert list(refused(lab(said))) == ["machines.firewall.more[0].ports"]


def test_clouds_have_rules_of_their_own() -> None:
    found = refused(gcp({"machines.firewall": {}}))
    assert "has rules, which the stack makes" in found["machines.firewall"]
