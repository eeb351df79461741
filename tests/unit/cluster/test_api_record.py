"""A record of the API's name that the stack makes: where it leads, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from stacks.cluster import api_record
from stacks.cluster.plan import Plan
from stacks.edits import memory, transition
from stacks.explain import formats, report, terminal
from stacks.render import kubeconfig
from tests.unit.configs import GONE, adopted, aws, edited, gcp, lab, planned, problems

Config = Callable[[Mapping[str, object]], dict[str, object]]
Edits = Mapping[str, object]

PRIVATE = {"domain": "k8s.internal", "private": True}


def managed(config: Config, edits: Edits | None = None) -> dict[str, object]:
    zone = {"domain": "example.com", "id": "Z0123456789" if config is aws else "my-zone"}
    start = {
        "cluster.endpoint": "api.example.com",
        "frontDoors": {"dns": "managed", "zone": zone},
    }
    return edited(config(start), edits or {})


BAD: list[tuple[Config, Edits, dict[str, str]]] = [
    (lab, {}, {"frontDoors.dns": "managed is by the DNS of gcp or aws, machines are of lab; write unmanaged, or none"}),
    (adopted, {}, {"frontDoors.dns": "machines are of adopt"}),
    (gcp, {"frontDoors.zone": GONE}, {"frontDoors.zone": "is missing; write the domain and the id"}),
    (gcp, {"frontDoors.dns": "unmanaged"}, {"frontDoors.zone": "does nothing with dns unmanaged; write dns: managed too"}),
    (gcp, {"frontDoors.dns": "none"}, {"frontDoors.zone": "does nothing with dns none"}),
    (gcp, {"frontDoors.zone.domain": GONE}, {"frontDoors.zone.domain": "is missing (domain of the zone"}),
    (gcp, {"frontDoors.zone.domain": "example.com."}, {"frontDoors.zone.domain": "is not a DNS name"}),
    (gcp, {"frontDoors.zone.id": GONE}, {"frontDoors.zone.id": "is missing: a public zone has to be there"}),
    (gcp, {"frontDoors.zone.id": "Z0123456789"}, {"frontDoors.zone.id": "Z0123456789 is not a zone of gcp; write 'my-zone'"}),
    (aws, {"frontDoors.zone.id": "my-zone"}, {"frontDoors.zone.id": "my-zone is not a zone of aws; write 'Z0123456789ABCDEFGHIJ'"}),
    (aws, {"frontDoors.zone.id": "example.com."}, {"frontDoors.zone.id": "is not a valid DNS zone; write it as"}),
    (aws, {"frontDoors.zone.project": "the-dns-project"}, {"frontDoors.zone.project": "is of a zone of Google that is there; leave it out"}),
    (gcp, {"frontDoors.zone": {**PRIVATE, "project": "the-dns-project"}, "cluster.endpoint": "api.k8s.internal"}, {"frontDoors.zone.project": "leave it out"}),
    (gcp, {"cluster.endpoint": GONE}, {"frontDoors.dns": "cluster.endpoint, which is missing"}),
    (gcp, {"cluster.endpoint": "192.0.2.7"}, {"frontDoors.dns": "which is 192.0.2.7"}),
    (gcp, {"cluster.endpoint": "api.example.org"}, {"cluster.endpoint": "api.example.org is not a name in frontDoors.zone.domain, example.com"}),
    (gcp, {"cluster.endpoint": "myexample.com"}, {"cluster.endpoint": "myexample.com is not a name in"}),
    (gcp, {"cluster.endpoint": "api.example.com:443"}, {"cluster.endpoint": "443"}),
    (gcp, {"cluster.endpoint": "api.cluster.local", "frontDoors.zone": {"domain": "cluster.local", "private": True}}, {"cluster.endpoint": "is in cluster.dnsDomain, which pods look up inside"}),
    (aws, {"frontDoors.zone.private": True, "machines.aws.apiLoadBalancer": "external"}, {"frontDoors.zone.private": "who do not see a private zone; name a public one"}),
    (gcp, {"machines.gcp.access": "public"}, {"machines.gcp.apiLoadBalancer": "write external, or none for the masters' own addresses"}),
    (aws, {"machines.aws.apiLoadBalancer": "external", "machines.aws.apiFrom": ["198.51.100.0/24"]}, {"machines.aws.apiFrom": "has no network of sshFrom"}),
]  # fmt: skip


@pytest.mark.parametrize(("config", "edits", "expected"), BAD)
def test_a_record_that_cannot_be_is_refused(
    config: Config, edits: Edits, expected: dict[str, str]
) -> None:
    found = problems(managed(config, edits))
    assert {path for path, _ in found} == set(expected), found
    for path, words in expected.items():
        assert any(words in said for at, said in found if at == path), found


GOOD: list[tuple[Config, Edits, tuple[str, ...] | None, str]] = [
    (gcp, {}, ("10.20.0.5",), "the internal load balancer (10.20.0.5)"),
    (aws, {}, ("10.20.0.5", "10.20.16.5", "10.20.32.5"), "the internal load balancer (10.20.0.5, 10.20.16.5, 10.20.32.5)"),
    (gcp, {"pools.master.count": 1}, ("10.20.0.11",), "master-1 (10.20.0.11)"),
    (aws, {"machines.aws.apiLoadBalancer": "none"}, ("10.20.0.11", "10.20.16.12", "10.20.32.13"), "master-1, master-2, master-3 (10.20.0.11, 10.20.16.12, 10.20.32.13)"),
    (gcp, {"machines.gcp.apiLoadBalancer": "external"}, None, "the external load balancer"),
    (aws, {"machines.aws.apiLoadBalancer": "external", "machines.aws.apiFrom": ["203.0.113.128/25"]}, None, "the external load balancer"),
    (gcp, {"machines.gcp.access": "public", "pools.master.count": 1}, None, "the public addresses of master-1"),
    (gcp, {"machines.gcp.access": "public", "machines.gcp.apiLoadBalancer": "internal"}, ("10.20.0.5",), "the internal load balancer (10.20.0.5)"),
    (gcp, {"machines.gcp.access": "public", "frontDoors.zone": PRIVATE, "cluster.endpoint": "api.k8s.internal"}, ("10.20.0.5",), "the internal load balancer (10.20.0.5)"),
    (gcp, {"nodes.master-2.state": "lost", "machines.gcp.apiLoadBalancer": "none"}, ("10.20.0.11", "10.20.0.13"), "master-1, master-3 (10.20.0.11, 10.20.0.13)"),
    (gcp, {"cluster.endpoint": "example.com"}, ("10.20.0.5",), "the internal load balancer (10.20.0.5)"),
]  # fmt: skip


@pytest.mark.parametrize(("config", "edits", "known", "words"), GOOD)
def test_it_leads_to_what_clients_reach(
    config: Config, edits: Edits, known: tuple[str, ...] | None, words: str
) -> None:
    plan = planned(managed(config, edits))
    assert (api_record.known(plan), api_record.words(plan)) == (known, words)
    name = api_record.name(plan.spec)
    assert f"record of type A that the stack makes: {name} -> {words}\n" in formats.plan(plan)


def test_its_mark_is_another_one_exactly_when_its_values_are() -> None:
    marks: dict[tuple[object, ...], str] = {}
    for config, edits, known, words in GOOD:
        plan = planned(managed(config, edits))
        said = api_record.zone(plan.spec)
        marks.setdefault((api_record.name(plan.spec), said, known, words), api_record.mark(plan))
    assert len(set(marks.values())) == len(marks)
    worker = planned(managed(gcp, {"pools.worker.count": 5}))
    assert api_record.mark(worker) == api_record.mark(planned(managed(gcp)))


def test_every_kubeconfig_goes_by_the_name_whatever_stands_behind_it() -> None:
    for count in (1, 3):
        plan = planned(managed(gcp, {"pools.master.count": count}))
        assert plan.endpoint == "api.example.com:6443"
        assert 'server: "https://api.example.com:6443"' in kubeconfig.admin(plan, "CA", "C", "K")


@pytest.mark.parametrize(
    ("domain", "private", "trouble"),
    [
        ("example.com", False, ""),
        ("example.com.", False, ""),
        ("Example.COM.", False, ""),
        ("example.org.", False, "frontDoors.zone.domain: zone my-zone is that of example.org, not of example.com"),
        ("com", False, "frontDoors.zone.domain: zone my-zone is that of com"),
        ("example.com.", True, "frontDoors.zone.private: zone my-zone says true; write that"),
    ],
)  # fmt: skip
def test_the_zone_that_is_there_has_to_be_the_one_that_is_meant(
    domain: str,
    private: bool,  # noqa: FBT001 (pytest gives it by name)
    trouble: str,
) -> None:
    said = api_record.zone(planned(managed(gcp)).spec)
    assert said is not None
    found = api_record.mismatch(said, domain=domain, private=private)
    assert found.startswith(trouble) if trouble else found == ""


def told(before: Plan, after: Plan) -> tuple[str, transition.Verdict]:
    known = memory.read(memory.of(before))
    verdict = transition.check(known, after)
    return terminal.as_text(report.report(known, after, verdict), verbose=True), verdict


def test_an_edit_says_where_it_led_and_where_it_will_lead() -> None:
    off = {"machines.gcp.deletionProtection": False}
    three, one = (planned(managed(gcp, {**off, "pools.master.count": n})) for n in (3, 1))
    said, verdict = told(three, one)
    assert (
        "name of the API\n       record api.example.com -> master-1 (10.20.0.11), no longer "
        "api.example.com -> the internal load balancer (10.20.0.5)\n" in said
    )
    assert said.index("name of the API") < said.index("list of nodes")
    assert [path for path, _ in verdict.warnings] == []
    same, _ = told(three, planned(managed(gcp, {**off, "pools.worker.count": 3})))
    assert "record" not in same


def test_a_name_that_is_given_up_is_warned_of() -> None:
    first = planned(managed(gcp))
    off = planned(gcp({"cluster.endpoint": "api.example.com"}))
    said, verdict = told(first, off)
    assert "record api.example.com in zone my-zone is deleted" in said
    ((path, words),) = verdict.warnings
    assert path == "frontDoors.dns"
    assert "who goes by it loses the API" in words
    balancer = "the internal load balancer (10.20.0.5)"
    for edits, words in (
        ({"cluster.endpoint": "k8s.example.com"}, f"no longer api.example.com -> {balancer}"),
        ({"frontDoors.zone.id": "another-zone"}, "in zone another-zone, before my-zone"),
    ):
        said, verdict = told(first, planned(managed(gcp, edits)))
        assert [path for path, _ in verdict.warnings] == ["frontDoors.zone"]
        assert f"-> {balancer}, {words}\n" in said
    said, verdict = told(off, first)
    assert "record api.example.com -> the internal load balancer (10.20.0.5)" in said
    assert verdict.warnings == ()


def test_clients_outside_are_not_led_to_where_they_cannot_go_without_a_word() -> None:
    outer = planned(managed(gcp, {"machines.gcp.apiLoadBalancer": "external"}))
    inner = planned(managed(gcp, {"machines.gcp.apiLoadBalancer": "none"}))
    _, verdict = told(outer, inner)
    text = (
        "api.example.com will point to master-1, master-2, master-3 (10.20.0.11, 10.20.0.12, "
        "10.20.0.13): clients outside of the network lose the API"
    )
    assert verdict.warnings == (("machines.gcp.apiLoadBalancer", text),)
    assert told(inner, outer)[1].warnings == ()
    public = {"machines.gcp.access": "public", "machines.gcp.apiLoadBalancer": "none"}
    own, internal = (
        planned(managed(gcp, {**public, "machines.gcp.apiLoadBalancer": kind}))
        for kind in ("none", "internal")
    )
    assert [path for path, _ in told(own, internal)[1].warnings] == ["machines.gcp.apiLoadBalancer"]
    assert told(internal, own)[1].warnings == ()


def test_what_is_made_first_is_told_too() -> None:
    plan = planned(managed(gcp))
    said = terminal.as_text(report.report(None, plan, transition.check(None, plan)), verbose=True)
    assert "record api.example.com -> the internal load balancer (10.20.0.5)\n" in said
    assert "checked: the load balancer answers before the record leads there" in said
