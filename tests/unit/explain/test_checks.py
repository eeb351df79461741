"""What is told as checked is what a script does, and of what runs; an interruption leaves what there is to leave."""

from __future__ import annotations

import pytest

from stacks.explain import checks
from stacks.explain.actions import Wave
from stacks.phases.checks import CHECKS
from tests.unit.configs import adopted, lab
from tests.unit.explain.reports import made
from tests.unit.phases.bash_calls import functions, reached

Config = dict[str, object]
ONE, TWO = {"pools.master.count": 1}, {"pools.master.count": 2}
FLAG, ETCD = {"controlPlane.apiServerArgs": {"v": "3"}}, {"etcd.quotaBackendGib": 4}
VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
EDGES = {**VIP, "pools.edge": {"roles": ["loadbalancer"], "count": 2}}
ADDON = {"addons": {"team": {"manifests": ["examples/addons/defaults.yaml"]}}}


def wave(before: Config | None, after: Config, title: str) -> Wave:
    [found] = [one for one in made(before, after).waves if one.title.startswith(title)]
    return found


@pytest.mark.parametrize(
    "one", checks.EVERY, ids=lambda one: f"{one.phase} {one.by}: {one.text[:30]}"
)
def test_a_check_is_declared_by_its_phase(one: checks.Check) -> None:
    assert one.by in CHECKS[one.phase]


@pytest.mark.parametrize(
    ("phase", "name"), [(phase, name) for phase, names in CHECKS.items() for name in names]
)
def test_a_phase_calls_what_it_declares_to_check(phase: str, name: str) -> None:
    assert name in functions(phase)
    assert name in reached(phase)


def test_every_declared_check_is_told() -> None:
    told = {(one.phase, one.by) for one in checks.EVERY}
    assert {(phase, by) for phase, names in CHECKS.items() for by in names} == told


MEMBERS = "etcd members and masters"
ALONE = "the member votes and is healthy"
OTHERS_VOTE = "a member restarts only where the others have a quorum without it; after it, it votes and is healthy"
OTHERS_SERVE = "an API server stops only while another is ready"
AFTER = "after it, its /readyz, and the API through the node's own HAProxy"
SERVES = "/readyz of each API server, and the API through the node's own HAProxy"
CHECKED: list[tuple[Config | None, Config, str, str]] = [
    (lab(), lab(ETCD), MEMBERS, f"{OTHERS_VOTE}; {OTHERS_SERVE}"),
    (lab(TWO), lab({**TWO, **ETCD}), MEMBERS, f"{ALONE}; {OTHERS_SERVE}"),
    (lab(ONE), lab({**ONE, **ETCD}), MEMBERS, ALONE),
    (lab(), lab(FLAG), MEMBERS, f"{OTHERS_SERVE}; {AFTER}"),
    (lab(ONE), lab({**ONE, **FLAG}), MEMBERS, SERVES),
    (lab(), lab({"loadBalancing.maxConnections": 5000}), MEMBERS, SERVES),
    (None, lab(ONE), "etcd members", ALONE),
    (None, lab(), "etcd members", "each member votes and is healthy before the next"),
    (lab(), lab({"pools.worker.count": 3}), "list of nodes", "every wanted node is Ready and as wanted"),
    (lab(), lab({"pools.worker.count": 1}), "list of nodes", "every wanted node is Ready and as wanted before one leaves"),
    (
        lab(), lab({"nodes.master-3.state": "removed"}), "list of nodes",
        "every wanted node is Ready and as wanted before one leaves; before an etcd member leaves, the remaining members have "
        "a quorum of their own",
    ),
    (lab({"network.plugin": "none"}), lab({"network.plugin": "none", "pools.worker.count": 1}), "list of nodes", "every wanted node has applied what is wanted"),
    (lab(), lab({"nodes.worker-1.state": "lost"}), "lost nodes", "etcd answers with a quorum before anybody goes"),
    (
        lab(), lab({"nodes.master-3.state": "lost"}), "lost nodes",
        "etcd answers with a quorum before anybody goes; before an etcd member is removed, the remaining members have a quorum of "
        "their own",
    ),
    (lab(), lab(ADDON), "add-ons of the config", "applied by the API server"),
    (lab(), lab({"network.mtu": 1400}), "add-ons", "applied by the API server; that their pods run is asked by the gate"),
    (lab(), lab({"pki.rotation.etcd": {"generation": 2, "step": "trust"}}), "CAs and keys", "nothing: no copy of them is kept in the cluster"),
    (
        lab(), lab({"pki.rotation.kubernetes": {"generation": 2, "step": "trust"}}), "CAs and keys",
        "each namespace holds the CAs of this step; extension API servers know the CAs of this step",
    ),
    (
        lab(), lab({"controlPlane.encryptionKey": {"generation": 2, "step": "trust"}}), "CAs and keys",
        "no Secret is under another key than the one that encrypts",
    ),
    (lab(EDGES), lab({**EDGES, "loadBalancing.maxConnections": 5000}), "load balancers", "HAProxy takes its configuration"),
    (
        lab(EDGES), lab({**EDGES, "os/packages": "june"}), "load balancers",
        "HAProxy takes its configuration; after a reboot the machine is back before the next is touched",
    ),
    (lab(EDGES), lab({**EDGES, "os/packages": "june", "os/reboot": "never"}), "load balancers", "HAProxy takes its configuration"),
    (lab(), lab({"pools.worker.count": 1}), "machines that have left", "the provider says that they are gone"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "title", "expected"), CHECKED)
def test_what_runs_is_checked_and_nothing_else_is_told(
    before: Config | None, after: Config, title: str, expected: str
) -> None:
    told = wave(before, after, title).checked
    assert told == expected or told.startswith(f"{expected}; /readyz")


def test_machines_that_are_kept_keep_their_data() -> None:
    gone, kept = {"nodes.worker-2.state": "removed"}, {"machines.onRelease": "keep"}
    wiped = {"machines.onRelease": "wipe"}
    assert (
        wave(adopted(kept), adopted({**kept, **gone}), "machines that have left").checked
        == checks.STOPPED.text
    )
    assert (
        wave(adopted(wiped), adopted({**wiped, **gone}), "machines that have left").checked
        == checks.WIPED.text
    )


LEFT: list[tuple[Config | None, Config, str, str]] = [
    (lab(), lab(FLAG), MEMBERS, "the one in progress old or new, the others untouched and serving"),
    (lab(ONE), lab({**ONE, **FLAG}), MEMBERS, "the machine old or new, or not serving; the next update resumes"),
    (lab(), lab({"pools.worker.count": 3}), "new machines", "a machine that nobody uses; the next update resumes"),
    (lab(), lab({"pools.worker.count": 4}), "new machines", "machines that nobody uses; the next update resumes"),
    (lab(), lab({"pools.worker.labels": {"a": "b"}}), "list of nodes", "some labels, taints and cordons set, others not; the next update resumes"),
    (lab(), lab({"pools.worker.count": 1}), "list of nodes", "a node cordoned or gone; the remaining ones are untouched"),
    (lab(EDGES), lab({**EDGES, "loadBalancing.maxConnections": 5000}), "load balancers", "some with the old configuration; all of them serve"),
    (
        lab(), lab({"kubelet.maxPods": 60}), "workers, wave 1",
        "the worker old or new; the next update resumes, and later waves are untouched",
    ),
    (lab(), lab({"kubelet.maxPods": 60}), "workers, wave 2", "the worker old or new; the next update resumes"),
    (
        lab({"pki.rotation.etcd": {"generation": 2, "step": "issue"}}), lab({"pki.rotation.etcd": {"generation": 2, "step": "drop"}}),
        "CAs and keys", "the new one alone is known to all nodes; the next update resumes",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "title", "expected"), LEFT)
def test_an_interruption_leaves_no_others_where_there_are_none(
    before: Config | None, after: Config, title: str, expected: str
) -> None:
    assert wave(before, after, title).abort == expected
