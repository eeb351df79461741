"""The plan as JSON: of the form that its schema tells, with every node by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from stacks.edits import memory, transition
from stacks.explain import document, report
from stacks.version import VERSION
from tests.unit.configs import GONE, adopted, aws, edited, gcp, lab, planned
from tests.unit.explain.reports import made

SCHEMA = Path(__file__).parents[3] / "docs/plan.schema.json"
VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
TRUST = {"pki.rotation.kubernetes": {"generation": 2, "step": "trust"}}
EDITS: list[tuple[dict[str, object] | None, dict[str, object]]] = [
    (None, lab()),
    (None, aws()),
    (None, gcp()),
    (lab(), lab()),
    (lab(), lab({"pools.worker.count": 3})),
    (lab({"cluster.kubernetes": "1.35.4"}), lab()),
    (lab(), lab({"nodes": {"master-2": {"state": "lost"}}, "pools.master.count": 4})),
    (lab(), lab({"nodes": {"worker-1": {"generation": 2}}})),
    (lab(), lab({"nodes": {"worker-1": {"state": "decommissioned"}}})),
    (lab(VIP), lab()),
    (lab(), lab(TRUST)),
    (lab(), lab({"network.backend": "host-gw", "allow": ["network-backend/host-gw"]})),
    (adopted(), edited(adopted(), {"pools.master.hosts.0": GONE})),
]


def strict(schema: object) -> object:
    """The same schema, to which a key that it does not tell is an error."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        out["additionalProperties"] = False
    return out


@pytest.fixture(scope="module")
def schema() -> Mapping[str, object]:
    found = strict(json.loads(SCHEMA.read_text()))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(("before", "after"), EDITS)
def test_it_is_as_the_schema_tells(
    schema: Mapping[str, object],
    before: dict[str, object] | None,
    after: dict[str, object],
) -> None:
    found = json.loads(document.as_json(made(before, after), [("pools", "see to it")]))
    jsonschema.validate(found, schema)
    assert found["version"] == 1
    for key in found:
        less = {name: value for name, value in found.items() if name != key}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(less, schema)


def test_so_is_a_refusal(schema: Mapping[str, object]) -> None:
    found = json.loads(document.refused([("cluster.name", "cannot change")]))
    jsonschema.validate(found, schema)
    assert found == {
        "version": 1,
        "programVersion": VERSION,
        "refused": [{"path": "cluster.name", "text": "cannot change"}],
    }


def test_so_is_what_is_told_where_the_last_config_is_not_known(
    schema: Mapping[str, object],
) -> None:
    oldest = {
        "format": 1,
        "fixed": {},
        "kubernetes": "1.36.3",
        "pools": {"master": {"roles": ["etcd", "master"], "machines": {"master-1": "10.92.0.11"}}},
    }
    edits = {"pools.master.count": 1, "kubelet.servingCertificates": "self-signed"}
    known, wanted = memory.read(oldest), planned(lab(edits))
    said = report.report(known, wanted, transition.check(known, wanted))
    found = json.loads(document.as_json(said))
    jsonschema.validate(found, schema)
    assert not found["comparable"]
    assert found["nodes"]["unchanged"] is None
    assert found["disruption"] == []


def test_it_holds_what_people_read() -> None:
    said = made(lab({"cluster.kubernetes": "1.35.4"}), lab())
    found = json.loads(document.as_json(said, [("pools", "see to it")]))
    assert found["changes"] == ["Upgrade Kubernetes 1.35.4 -> 1.36.3"]
    assert found["nodes"] == {"add": 0, "change": 5, "replace": 0, "remove": 0, "unchanged": 0}
    assert found["rollBack"]["limits"][0].startswith("Kubernetes until master-1 has finished")
    assert found["warnings"] == [{"path": "pools", "text": "see to it"}]
    noticed = {one["audience"]: one["notices"] for one in found["disruption"]}
    assert noticed["pods"][0].startswith("evicted from master-1 to master-3, worker-1, worker-2")
    assert noticed["etcd"] == []


def test_waves_are_not_folded_and_every_node_has_its_name() -> None:
    said = made(lab(), lab({"loadBalancing.maxConnections": 5000}))
    found = json.loads(document.as_json(said))
    workers = [wave for wave in found["waves"] if wave["title"].startswith("workers, wave")]
    assert [[node["name"] for node in wave["nodes"]] for wave in workers] == [
        ["worker-1"],
        ["worker-2"],
    ]
    [node] = workers[0]["nodes"]
    assert (node["verb"], node["pool"], node["roles"]) == ("change", "worker", ["worker"])


def test_what_was_allowed_is_in_it() -> None:
    said = made(lab(), lab({"network.backend": "host-gw", "allow": ["network-backend/host-gw"]}))
    [allowed] = json.loads(document.as_json(said))["allowed"]
    assert allowed["id"] == "network-backend/host-gw"
