"""keepalived itself, as it is in the machine image, takes every configuration that is made, and no rubbish."""

from __future__ import annotations

import resource
import subprocess

import pytest

from stacks.render.keepalived import CHECK, VRRP_FILE, holder
from tests.e2e.harness import lab
from tests.unit import configs
from tests.unit.configs import planned
from tests.unit.render import examples

pytestmark = pytest.mark.lab

_TEST = f"""
cat >/etc/keepalived/keepalived.conf
mkdir -p /etc/kube-ha
echo 'auth_pass abcd1234' >{VRRP_FILE}
printf '#!/bin/sh\\n' >{CHECK}
chmod 755 {CHECK}
exec keepalived -t 2>&1
"""


def taken(text: str) -> tuple[bool, str]:
    """Whether `keepalived -t` ends well, and what it says."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = ["--ulimit", f"nofile={files}:{files}", "--ulimit", "nproc=32768:32768"]
    image = "localhost/kube-ha-lab:current"
    done = subprocess.run(
        lab.engine_command("run", "--rm", "-i", *limits, image, "bash", "-c", _TEST),
        cwd=lab.ROOT,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("masters", [1, 3, 7])
def test_it_takes_what_is_made(masters: int) -> None:
    plan = examples.lab(masters, frontDoors={"vip": {"address": "10.92.0.5"}})
    for node in {plan.masters[0], plan.masters[-1]}:
        good, said = taken(holder(plan, node))
        assert good, said
        assert said.strip() == ""


def test_it_takes_that_of_a_load_balancer() -> None:
    edge = {"pools.edge": {"roles": ["loadbalancer"], "count": 2}}
    made = planned(configs.lab({"frontDoors.vip": {"address": "10.92.0.5"}, **edge}))
    good, said = taken(holder(made, made.load_balancers[0]))
    assert good, said


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("vrrp_instance", "vrrp_insistence", "Unknown keyword"),
        (
            "interface eth0",
            "interface nope0",
            "interface nope0 for vrrp_instance dev doesn't exist",
        ),
        ("virtual_router_id 51", "virtual_router_id 999", "VRID"),
    ],
)
def test_it_refuses_rubbish(good: str, bad: str, said: str) -> None:
    plan = examples.lab(frontDoors={"vip": {"address": "10.92.0.5"}})
    fine, told = taken(holder(plan, plan.masters[0]).replace(good, bad))
    assert not fine
    assert said in told
