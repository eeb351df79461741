"""Add-on prometheus: what is measured where, which alerts there are, and what nodes tell of themselves."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from stacks.catalogue.prometheus import names
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.load import load
from stacks.phases.node import of_node
from stacks.phases.scripts import FOLDER as SCRIPTS
from tests.e2e.harness.prometheus import CASES
from tests.unit.configs import lab

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operate" / "alerts.md"
VIP = {"frontDoors.vip": {"address": "10.92.0.5"}}
ALWAYS = "Watchdog"


def made(
    config: Mapping[str, object] | None = None, said: Mapping[str, object] | None = None
) -> Plan:
    """`said` of the add-on, in a cluster that has `config` besides."""
    return plan(load(lab({"addons": {"prometheus": dict(said or {})}, **(config or {})})))


def objects(one: Plan) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(one.addons[0].text))


def files(one: Plan) -> dict[str, Any]:
    """Each file of its ConfigMaps: name of the ConfigMap and of the file -> what is in it."""
    return {
        f"{document['metadata']['name']}/{name}": yaml.safe_load(text) if name.endswith("yaml") else text
        for document in objects(one)
        if document["kind"] == "ConfigMap"
        for name, text in document["data"].items()
    }  # fmt: skip


def alerts(one: Plan) -> dict[str, dict[str, Any]]:
    (group,) = files(one)["prometheus-config/rules.yaml"]["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def jobs(one: Plan, kind: str) -> set[str]:
    config = files(one)[f"{names.AGENT}-{kind}/agent.yaml"]
    return {job["job_name"] for job in config["scrape_configs"]}


def test_each_alert_has_series_that_fire_it_and_a_section_of_its_page() -> None:
    there = alerts(made(VIP))
    assert set(there) == {*CASES, ALWAYS}
    assert re.findall(r"^## (.+)$", PAGE.read_text(), re.MULTILINE) == list(there)
    for name, rule in there.items():
        assert rule["annotations"]["page"] == f"docs/operate/alerts.md#{name.lower()}"
        assert rule["annotations"]["summary"].endswith(".")
        assert rule["labels"]["severity"] in ("critical", "warning", "none")


def test_alerts_of_a_virtual_ip_are_there_with_one() -> None:
    assert {name for name in alerts(made(VIP)) if name.startswith("Vip")} == {
        "VipWithoutOwner",
        "VipWithSeveralOwners",
    }
    assert not [name for name in alerts(made()) if name.startswith("Vip")]


@pytest.mark.parametrize(("masters", "below"), [(3, 3), (5, 4)])
def test_a_quorum_is_at_risk_one_failure_before_it_is_lost(masters: int, below: int) -> None:
    one = made({"pools.master.count": masters})
    assert alerts(one)["EtcdQuorumAtRisk"]["expr"].endswith(f"< {below}")
    assert alerts(one)["ApiServerMissing"]["expr"].endswith(f"< {masters}")


def test_a_single_master_has_no_quorum_to_lose_and_one_server() -> None:
    one = made({"pools.master.count": 1})
    assert "EtcdQuorumAtRisk" not in alerts(one)
    assert alerts(one)["ApiServerMissing"]["labels"]["severity"] == "critical"
    (server,) = (each for each in objects(one) if each["kind"] == "StatefulSet")
    assert server["spec"]["replicas"] == 1
    (write,) = files(one)[f"{names.AGENT}-worker/agent.yaml"]["remote_write"]
    assert write["url"] == "http://prometheus-0.prometheus.kube-system.svc.cluster.local:9090/api/v1/write"  # fmt: skip


def test_etcd_elsewhere_is_neither_asked_nor_missed() -> None:
    pools = {
        "pools.etcd": {"roles": ["etcd"], "count": 3},
        "pools.master": {"roles": ["master"], "count": 2},
    }
    one = made(pools)
    assert "etcd" not in jobs(one, "control-plane")
    assert not [name for name in alerts(one) if name.startswith(("Etcd", "Backup"))]
    assert "etcd" in jobs(made(), "control-plane")


def test_components_of_a_control_plane_are_asked_there_alone() -> None:
    one = made()
    more = jobs(one, "control-plane") - jobs(one, "worker")
    assert more == {"apiserver", "controller-manager", "etcd", "scheduler"}
    assert jobs(one, "worker") < jobs(one, "control-plane")


def test_every_program_that_listens_on_the_node_listens_at_127_0_0_1() -> None:
    for document in objects(made()):
        if document["kind"] != "DaemonSet":
            continue
        for container in document["spec"]["template"]["spec"]["containers"]:
            (where,) = (word for word in container["args"] if word.startswith("--web.listen-address="))  # fmt: skip
            assert where.startswith("--web.listen-address=127.0.0.1:")


def test_no_password_is_in_what_the_stack_keeps() -> None:
    (secret,) = (one for one in objects(made()) if one["kind"] == "Secret")
    assert secret.keys() == {"apiVersion", "kind", "metadata"}
    assert secret["metadata"]["annotations"] == {"kube-ha.io/basic-auth": names.USER}


def test_a_claim_is_made_where_the_config_says_how_much() -> None:
    def server(**said: object) -> dict[str, Any]:
        (found,) = (one for one in objects(made(said=said)) if one["kind"] == "StatefulSet")
        spec: dict[str, Any] = found["spec"]
        return spec

    assert "volumeClaimTemplates" not in server()
    (claim,) = server(storageGi=50)["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "50Gi"
    (container,) = server(storageGi=50, retentionDays=40)["template"]["spec"]["containers"]
    assert {"--storage.tsdb.retention.time=40d", "--storage.tsdb.retention.size=40GB"} <= set(container["args"])  # fmt: skip


def test_alertmanagers_are_those_of_the_config() -> None:
    said = {"alertmanagers": ["am.example.com:9093", "10.0.0.9:9093"]}
    (told,) = files(made(said=said))["prometheus-config/prometheus.yaml"]["alerting"][
        "alertmanagers"
    ]
    assert told["static_configs"] == [{"targets": said["alertmanagers"]}]
    assert files(made())["prometheus-config/prometheus.yaml"]["alerting"]["alertmanagers"] == []


def test_nodes_tell_of_themselves_where_somebody_reads_it() -> None:
    def told(one: Plan) -> dict[str, dict[str, str]]:
        values = {node.name: of_node(one, node) for node in one.nodes}
        return {
            n: {k: t for k, t in v.items() if k.startswith("METRICS")} for n, v in values.items()
        }

    assert not any(told(plan(load(lab()))).values())
    for name, said in told(made(VIP)).items():
        holder = {"METRICS_VIP": "10.92.0.5"} if name.startswith("master") else {}
        assert said == {"METRICS": "1", **holder}


def test_node_exporter_reads_where_nodes_write() -> None:
    script = (SCRIPTS / "metrics.sh").read_text()
    assert f"into=$ROOT{names.FACTS}\n" in script
    assert f"RuntimeDirectory={names.FACTS.removeprefix('/run/')}\n" in script
    text = made().addons[0].text
    assert text.count(f"--collector.textfile.directory=/host{names.FACTS}") == 2
