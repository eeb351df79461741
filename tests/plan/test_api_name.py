"""The record of the API's name that the stack makes: where it leads, and when it moves."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable, Mapping

import pulumi
import pytest

from stacks.cluster import api_record
from tests.plan import clouds as providers
from tests.plan.graph import Graph
from tests.plan.recording import Engine, RunError
from tests.plan.registration import Resource, Run
from tests.plan.settled import Stacks, assert_changes, assert_exactly
from tests.unit.configs import aws, gcp, planned
from toolchain.values import Value, plain

Config = Callable[[Mapping[str, object]], dict[str, object]]
Edits = Mapping[str, object]

CLOUDS = ((gcp, "gcp", "my-zone"), (aws, "aws", "Z0123456789"))
NAME = {"cluster.endpoint": "api.example.com"}
GATE = ["! prod-acceptance-attempt", "~ prod-nodes", "~ prod-door", "~ prod-gate"]
# Record, and what comes before and after it.
MOVED = ["! prod-api-name-attempt", "~ prod-api-name", "~ prod-api-name-known"]
MASTERS = ["10.20.0.11", "10.20.0.12", "10.20.0.13"]
SERVED = "prod-balancer-serves"
TO_EXTERNAL_AWS = {"machines.aws.apiLoadBalancer": "external"}


def managed(edits: Edits | None = None, zone: str = "my-zone") -> dict[str, object]:
    return {
        **NAME,
        "frontDoors": {"dns": "managed", "zone": {"domain": "example.com", "id": zone}},
        **(edits or {}),
    }


def without(provider: str) -> dict[str, object]:
    return {f"machines.{provider}.apiLoadBalancer": "none"}


def leads_to(run: Run) -> Value:
    record = run.named("prod-api-name")
    if record.type.startswith("gcp:"):
        return record.value("rrdatas")
    return record.value("records") or record.value("aliases")


PRIVATE = {"frontDoors.zone": {"domain": "k8s.internal", "private": True}, "cluster.endpoint": "api.k8s.internal"}  # fmt: skip
INNER = {"domain": "example.com", "private": True}


# What a provider would refuse fails the run: see tests/plan/clouds.py.
@pytest.mark.parametrize(
    ("config", "edits"),
    [
        (gcp, {}),
        (gcp, {"pools.master.count": 1}),
        (gcp, without("gcp")),
        (gcp, {"machines.gcp.apiLoadBalancer": "external"}),
        (gcp, {"machines.gcp.access": "public", "machines.gcp.apiLoadBalancer": "internal"}),
        (gcp, {"machines.gcp.access": "public", "pools.master.count": 1}),
        (gcp, PRIVATE),
        (gcp, {**PRIVATE, "machines.gcp.network": "mine"}),
        (gcp, {"frontDoors.zone": {**INNER, "id": "my-inner", "project": "the-dns-project"}}),
        (gcp, {"cluster.endpoint": "example.com"}),
        (aws, {}),
        (aws, {"pools.master.count": 1}),
        (aws, without("aws")),
        (aws, {"machines.aws.apiLoadBalancer": "external"}),
        (aws, {"machines.aws.access": "public", "pools.master.count": 1}),
        (aws, PRIVATE),
        (aws, {"frontDoors.zone": {**INNER, "id": "Z9876543210"}}),
        (aws, {"cluster.endpoint": "api.example.com:6443"}),
    ],
)
def test_every_record_fits_its_provider_and_a_second_up_changes_nothing(
    stacks: Stacks, config: Config, edits: Edits
) -> None:
    zone = "my-zone" if config is gcp else "Z0123456789"
    engine, run = stacks.settled(config(managed(edits, zone)))
    assert run.named("prod-api-name")
    assert_exactly(engine.up(config(managed(edits, zone))), [])


WRONG: list[tuple[str, dict[str, Value], str]] = [
    ("gcp:dns/recordSet:RecordSet", {"managedZone": "z", "name": "a.example.com", "type": "A", "ttl": 60, "rrdatas": ["192.0.2.1"]}, "name 'a.example.com'"),
    ("gcp:dns/recordSet:RecordSet", {"managedZone": "z", "name": "a.example.com.", "type": "A", "ttl": 60}, "one of rrdatas"),
    ("gcp:dns/recordSet:RecordSet", {"managedZone": "z", "name": "a.example.com.", "type": "A", "ttl": 60, "rrdatas": ["a"]}, "['a'] for type A"),
    ("gcp:dns/recordSet:RecordSet", {"name": "a.example.com.", "type": "A", "rrdatas": ["192.0.2.1"]}, "managed_zone is missing"),
    ("gcp:dns/managedZone:ManagedZone", {"name": "a", "dnsName": "a.", "description": "", "visibility": "private"}, "networks go with"),
    ("aws:route53/record:Record", {"zoneId": "Z1", "name": "a.b", "type": "A", "records": ["192.0.2.1"]}, "ttl goes with"),
    ("aws:route53/record:Record", {"zoneId": "Z1", "name": "a.b", "type": "A", "ttl": 60, "records": ["192.0.2.1", "192.0.2.1"]}, "twice"),
    ("aws:route53/record:Record", {"zoneId": "Z1", "name": "a.b", "type": "A", "aliases": [{"name": "lb"}]}, "aliases is"),
    ("aws:route53/zone:Zone", {"name": "a.b"}, "a public zone"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "inputs", "reason"), WRONG)
def test_what_a_provider_would_refuse_is_found(
    kind: str, inputs: dict[str, Value], reason: str
) -> None:
    assert reason in "; ".join(providers.problems(kind, inputs))


def test_it_leads_to_the_load_balancer_where_there_is_one(stacks: Stacks) -> None:
    _, run = stacks.settled(gcp(managed()))
    assert leads_to(run) == ["10.20.0.5"]
    assert run.named("prod-api-name").value("name") == "api.example.com."
    outer = gcp(managed({"machines.gcp.apiLoadBalancer": "external"}))
    _, run = stacks.settled(outer)
    assert leads_to(run) == ["198.51.100.7"]
    _, run = stacks.settled(aws(managed(zone="Z0123456789")))
    balancer = run.named("prod-api-internal")
    alias = {
        "name": plain(balancer.outputs["dnsName"]),
        "zoneId": plain(balancer.outputs["zoneId"]),
        "evaluateTargetHealth": True,
    }
    assert leads_to(run) == [alias]
    assert run.named("prod-api-name").value("ttl") is None


def test_else_by_turns_to_the_masters_at_the_addresses_that_clients_reach(stacks: Stacks) -> None:
    _, run = stacks.settled(gcp(managed(without("gcp"))))
    assert leads_to(run) == MASTERS
    assert run.named("prod-api-name").value("ttl") == api_record.TTL_S
    public = {"machines.gcp.access": "public", "pools.master.count": 1}
    _, run = stacks.settled(gcp(managed(public)))
    assert leads_to(run) == [plain(run.named("prod-master-1-address").outputs["address"])]
    # Who sees a private zone is in the network.
    _, run = stacks.settled(gcp(managed({**public, **PRIVATE})))
    assert leads_to(run) == ["10.20.0.11"]


def test_the_output_and_the_check_say_where_it_leads(stacks: Stacks) -> None:
    for config, edits, values in (
        (gcp, managed(), ["10.20.0.5"]),
        (aws, managed(zone="Z0123456789"), ["10.20.0.5", "10.20.16.5", "10.20.32.5"]),
        (gcp, managed(without("gcp")), MASTERS),
    ):
        engine, run = stacks.settled(config(edits))
        (record,) = _list(plain(engine.outputs["dnsRecords"]))
        assert record == {"name": "api.example.com", "type": "A", "values": values}
        asked = json.loads(run.named("prod-door").text("stdin"))
        assert (asked["addresses"], asked["ask"], asked["made"]) == (values, False, True)
        assert "prod-api-name-known" in Graph(run).before("prod-door")


def _list(value: Value) -> list[Value]:
    assert isinstance(value, list)
    return value


@pytest.mark.parametrize(("config", "provider", "zone"), CLOUDS)
def test_it_comes_after_what_serves_and_before_anybody_leaves(
    stacks: Stacks, config: Config, provider: str, zone: str
) -> None:
    graph = Graph(stacks.settled(config(managed(zone=zone)))[1])
    parts = {"gcp": ["prod-api-internal"], "aws": ["prod-api-internal-listener"]}[provider]
    kind = {"gcp": "", "aws": "-internal"}[provider]
    parts += [f"prod-master-{number}-balanced{kind}" for number in (1, 2, 3)]
    assert {*parts, "prod-master-3-master"} <= graph.before(SERVED)
    assert {SERVED, "prod-api-name-attempt"} <= graph.needs("prod-api-name")
    assert graph.needs("prod-api-name-known") >= {"prod-api-name"}
    assert "prod-api-name-known" in graph.before("prod-nodes")
    # Workers join meanwhile.
    assert "prod-api-name" not in graph.before("prod-worker-1-join")


@pytest.mark.parametrize(("config", "provider", "zone"), CLOUDS)
def test_an_internal_balancer_is_asked_from_a_master_an_external_one_from_here(
    stacks: Stacks, config: Config, provider: str, zone: str
) -> None:
    _, run = stacks.settled(config(managed(zone=zone)))
    asked = run.named(SERVED)
    assert "run.sh balancer " in asked.text("create")
    assert "DOORS=" in asked.text("stdin")
    assert "10.20.0.5:6443" in asked.text("stdin")
    outer = managed({f"machines.{provider}.apiLoadBalancer": "external"}, zone)
    _, run = stacks.settled(config(outer))
    said = json.loads(run.named(SERVED).text("stdin"))
    assert (said["door"], said["ask"]) == ("api.example.com:6443", True)
    # On AWS by the name, which has one in each zone.
    (at,) = said["at"]
    assert at.startswith("198.51.") if provider == "gcp" else at.endswith(".amazonaws.com")


@pytest.mark.parametrize("edits", [{}, NAME, managed(zone="Z0123456789"), {"frontDoors.verify": "masters", "cluster.endpoint": "10.20.0.5"}])  # fmt: skip
def test_whoever_asks_an_internal_balancer_on_aws_is_let_in(
    stacks: Stacks, edits: dict[str, object]
) -> None:
    """Masters, which prove that it serves, other nodes, and people by the bastion. At Google the masters' rules say so."""
    _, run = stacks.settled(aws(edits))
    (balancer,) = (one for one in run.custom if one.type.endswith(":LoadBalancer"))
    (own,) = _list(balancer.value("securityGroups"))
    ids = {one.id: one.name for one in run.custom if one.type.endswith(":SecurityGroup")}
    rules = [one for one in run.custom if one.type.endswith("IngressRule") and one.text("securityGroupId") == own]  # fmt: skip
    sources = {ids[one.text("referencedSecurityGroupId")] for one in rules if "referencedSecurityGroupId" in one.inputs}  # fmt: skip
    assert sources == {"prod-node-doors", "prod-bastion-doors"}


def names(run: Run, mark: str) -> list[str]:
    return [change.name for change in run.changes if change.mark == mark]


@pytest.mark.parametrize(("config", "provider", "zone"), CLOUDS)
def test_from_one_master_to_three_and_back_it_moves_when_the_balancer_serves_and_back_before_it_goes(
    stacks: Stacks, config: Config, provider: str, zone: str
) -> None:
    off = OFF if provider == "gcp" else {}
    one = config(managed({"pools.master.count": 1, **off}, zone))
    engine, born = stacks.settled(one)
    assert leads_to(born) == ["10.20.0.11"]
    assert SERVED not in {r.name for r in born.custom}
    grown = engine.up(config(managed(off, zone)))
    assert {str(change) for change in grown.changes} >= {*MOVED, f"+ {SERVED}"}
    graph = Graph(grown)
    assert "prod-api-internal" in graph.before("prod-api-name")
    assert "prod-master-3-master" in graph.before("prod-api-name")
    # No certificate is new: the name was in all from the first day.
    assert not [name for name in names(grown, "~") if name.startswith("prod-pki")]
    assert_exactly(engine.up(config(managed(off, zone))), [])
    shrunk = engine.up(one)
    assert leads_to(shrunk) == ["10.20.0.11"]
    order = [str(change) for change in shrunk.changes]
    moved, known = order.index("~ prod-api-name"), order.index("~ prod-api-name-known")
    left = order.index("~ prod-nodes")
    gone = order.index("- prod-api-internal")
    assert moved < known < left < gone
    assert_exactly(engine.up(one), [])


NONE = without("gcp")
OFF = {"machines.gcp.deletionProtection": False}
TO_EXTERNAL = {"machines.gcp.apiLoadBalancer": "external"}
EDITS: list[tuple[Config, Edits, Edits, list[str]]] = [
    (gcp, {}, {"pools.worker.count": 3}, []),
    (gcp, {**NONE, "pools.master.count": 2}, {"pools.master.count": 1}, MOVED),
    (gcp, {**NONE, "pools.master.count": 1}, {"pools.master.count": 3}, MOVED),
    (gcp, {}, NONE, [*MOVED, f"- {SERVED}"]),
    (gcp, NONE, {"machines.gcp.apiLoadBalancer": "internal"}, [*MOVED, f"+ {SERVED}"]),
    # Asked by another way: another kind of command of that name.
    (gcp, {}, TO_EXTERNAL, [*MOVED, f"+ {SERVED}", f"- {SERVED}"]),
    (gcp, {"pools.master.count": 2}, {"pools.master.count": 3}, []),
    (gcp, NONE, {"nodes.master-2.generation": 2}, []),
    (aws, {}, without("aws"), [*MOVED, f"- {SERVED}"]),
    (aws, without("aws"), {"pools.master.count": 1}, MOVED),
    (aws, {"pools.master.count": 2}, {"pools.master.count": 3}, []),
]  # fmt: skip


@pytest.mark.parametrize(("config", "start", "edit", "expected"), EDITS)
def test_an_edit_moves_it_only_where_its_addresses_change(
    stacks: Stacks, config: Config, start: Edits, edit: Edits, expected: list[str]
) -> None:
    zone = "my-zone" if config is gcp else "Z0123456789"
    start = {**(OFF if config is gcp else {}), **start}
    engine, _ = stacks.settled(config(managed(start, zone)))
    run = engine.up(config(managed({**start, **edit}, zone)))
    found = {str(c) for c in run.changes if "api-name" in c.name or c.name == SERVED}
    assert found == set(expected)
    assert_exactly(engine.up(config(managed({**start, **edit}, zone))), [])


def test_on_and_off(stacks: Stacks) -> None:
    nobody = {**NAME, "frontDoors": {"dns": "none"}}
    made = [f"+ prod-{name}" for name in ("api-name-attempt", "api-name", "api-name-known", "balancer-serves", "door")]  # fmt: skip
    rest = [line for line in GATE if "door" not in line]
    assert_changes(stacks, gcp(nobody), gcp(managed()), [*made, *rest])
    gone = [line.replace("+ ", "- ") for line in made]
    run = assert_changes(stacks, gcp(managed()), gcp(nobody), [*gone, *rest])
    text = "frontDoors.dns: record api.example.com in zone my-zone is deleted at the end, and who"
    assert [line for line in run.messages if line.startswith(text)]
    order = [str(change) for change in run.changes]
    assert order.index("~ prod-gate") < order.index("- prod-api-name")


def test_another_name_and_another_zone_are_there_before_the_first_goes(stacks: Stacks) -> None:
    engine, _ = stacks.settled(gcp(managed()))
    other = managed({"cluster.endpoint": "k8s.example.com"})
    run = engine.up(gcp(other))
    assert "! prod-api-name" in {str(change) for change in run.changes}
    assert_exactly(engine.up(gcp(other)), [])
    # Of a zone of the stack's own, too.
    engine, _ = stacks.settled(gcp(managed(PRIVATE)))
    moved = {
        "frontDoors.zone": {"domain": "other.internal", "private": True},
        "cluster.endpoint": "api.other.internal",
    }
    run = engine.up(gcp(managed(moved)))
    order = [str(change) for change in run.changes]
    assert order.index("+ prod-zone-other-internal") < order.index("! prod-api-name")
    assert order.index("! prod-api-name") < order.index("- prod-zone-k8s-internal")


def test_a_private_zone_is_seen_by_the_cluster_s_network_and_looked_up_by_a_master(
    stacks: Stacks,
) -> None:
    _, run = stacks.settled(gcp(managed({**PRIVATE, **without("gcp")})))
    zone = run.named("prod-zone-k8s-internal")
    network = plain(run.named("prod-network").id)
    assert zone.value("privateVisibilityConfig") == {"networks": [{"networkUrl": network}]}
    gate = run.named("prod-gate").text("stdin")
    assert "API_NAME=api.k8s.internal\n" in gate
    assert f"API_ADDRESSES='{' '.join(MASTERS)}'\n" in gate
    assert not [one for one in run.custom if one.name == "prod-door"]
    _, run = stacks.settled(aws(managed(PRIVATE)))
    zone = run.named("prod-zone-k8s-internal")
    assert zone.value("vpcs") == [{"vpcId": run.named("prod-vpc").id}]
    assert "API_NAME" not in stacks.settled(gcp(managed()))[1].named("prod-gate").text("stdin")


@pytest.mark.parametrize(
    ("config", "zone", "reason"),
    [
        (gcp, {"domain": "example.org", "id": "my-zone"}, "zone.domain: zone my-zone is that of example.com, not of example.org"),
        (aws, {"domain": "example.org", "id": "Z0123456789"}, "zone.domain: zone Z0123456789 is that of example.com"),
        (gcp, {"domain": "example.com", "id": "my-inner"}, "zone.private: zone my-inner says true"),
        (aws, {"domain": "example.com", "id": "Z0123456789", "private": True}, "zone.private: zone Z0123456789 says false"),
    ],
)  # fmt: skip
def test_a_zone_that_is_another_one_than_the_config_says_is_refused(
    stacks: Stacks, config: Config, zone: dict[str, object], reason: str
) -> None:
    """Route 53 would take the name for one of its zone: api.example.com.example.org."""
    edits = managed({"frontDoors.zone": zone, "cluster.endpoint": f"api.{zone['domain']}"})
    with pytest.raises(pulumi.RunError) as raised:
        stacks.new(config(edits)).up(config(edits))
    assert reason in str(raised.value)


def test_a_try_that_failed_and_its_revert_both_wait_for_resolvers(stacks: Stacks) -> None:
    """The record has moved; what failed is the list of nodes."""
    three, two = (gcp(managed({**NONE, **OFF, "pools.master.count": n})) for n in (3, 2))
    engine, _ = stacks.settled(three)
    again = engine.fork()
    with pytest.raises(RunError):
        engine.up(two, failing=["prod-api-name-known"])
    back = engine.up(three)
    assert {*MOVED} <= {str(change) for change in back.changes}
    assert leads_to(back) == MASTERS
    with pytest.raises(RunError):
        again.up(two, failing=["prod-api-name-known"])
    retried = again.up(two)
    assert "~ prod-api-name-known" in {str(change) for change in retried.changes}
    assert leads_to(retried) == MASTERS[:2]


def test_one_that_cannot_be_made_takes_nobody_out(stacks: Stacks) -> None:
    """A record of that name is there already, say: who leaves has not left yet."""
    off = {**NONE, **OFF}
    nobody = {**NAME, **off, "frontDoors": {"dns": "none"}}
    engine, _ = stacks.settled(gcp(nobody))
    edit = gcp(managed({**off, "pools.master.count": 2}))
    with pytest.raises(RunError):
        engine.up(edit, failing=["prod-api-name"])
    state = {resource.name for resource in engine.resources.values()}
    assert {"prod-master-3-machine", "prod-master-3-master"} <= state
    done = engine.up(edit)
    assert leads_to(done) == MASTERS[:2]


def test_the_preview_says_what_moves(stacks: Stacks) -> None:
    engine, born = stacks.settled(gcp(managed(OFF)))
    first = "record api.example.com -> the internal load balancer (10.20.0.5)"
    assert first in " ".join("".join(born.messages).split())
    run = engine.up(gcp(managed({**OFF, "pools.master.count": 1})))
    wanted = (
        "record api.example.com -> master-1 (10.20.0.11), no longer api.example.com -> the "
        "internal load balancer (10.20.0.5)"
    )
    assert wanted in " ".join("".join(run.messages).split())


def test_words_differ_whenever_values_do() -> None:
    seen: dict[str, tuple[str, ...] | None] = {}
    for edits in ({}, without("gcp"), {"pools.master.count": 1}, {"pools.master.count": 2, **without("gcp")},
                  {"machines.gcp.apiLoadBalancer": "external"}, {"machines.gcp.access": "public", **without("gcp")}):  # fmt: skip
        plan = planned(gcp(managed(edits)))
        assert api_record.words(plan) not in seen
        seen[api_record.words(plan)] = api_record.known(plan)
    assert len(set(seen.values())) == len(seen) - 1  # both that only the provider knows are None


BALANCERS = ("none", "internal", "external")
FAILING = ("", "", "", "prod-balancer-serves", "prod-api-name", "prod-api-name-known", "prod-nodes", "prod-gate")  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_in_whatever_order_and_wherever_it_fails_nobody_goes_to_whom_resolvers_may_lead(
    stacks: Stacks, seed: int
) -> None:
    dice = random.Random(seed)  # noqa: S311 (no secret)
    config = gcp(managed({**OFF, "pools.master.count": dice.randint(1, 3)}))
    engine, _ = stacks.settled(config)
    named = where(engine)
    led = [named["prod-api-name"].value("rrdatas")]  # all that resolvers may know, the newest last
    for _ in range(7):
        edit = {
            "pools.master.count": dice.randint(1, 3),
            "machines.gcp.apiLoadBalancer": dice.choice(BALANCERS),
        }
        failing = dice.choice(FAILING)
        with contextlib.suppress(RunError):
            engine.up(gcp(managed({**OFF, **edit})), failing=[failing] if failing else [])
        old, named = named, where(engine)
        if named["prod-api-name"].inputs != old["prod-api-name"].inputs:
            led.append(named["prod-api-name"].value("rrdatas"))
        if named["prod-api-name-known"].inputs != old["prod-api-name-known"].inputs:
            led = led[-1:]
        if named["prod-nodes"].text("stdin") != old["prod-nodes"].text("stdin"):
            assert len(led) == 1, edit
        for value in led:
            assert isinstance(value, list)
            assert {str(address) for address in value} <= serving(named), (edit, failing)


def where(engine: Engine) -> dict[str, Resource]:
    return {one.name: one for one in engine.resources.values() if one.custom}


def serving(named: Mapping[str, Resource]) -> set[str]:
    """Addresses at which the API answers: of masters that are nodes, of load balancers."""
    found = {f"10.20.0.1{n}" for n in (1, 2, 3) if f"prod-master-{n}-master" in named}
    balancers = {"prod-api-internal": "10.20.0.5", "prod-api-external": "198.51.100.7"}
    return found | {address for name, address in balancers.items() if name in named}
