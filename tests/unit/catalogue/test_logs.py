"""Add-on logs: what collectors may see, what they keep, where they send to, and what the store refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from stacks.catalogue.logs import names
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.config.problems import SpecError
from stacks.load import load
from stacks.phases import gate
from stacks.phases.node import of_node
from stacks.phases.scripts import FOLDER as SCRIPTS
from tests.unit.configs import lab

ENDPOINT = "https://loki.example.com/otlp"


def made(**said: object) -> Plan:
    return plan(load(lab({"addons": {"logs": said}})))


def objects(one: Plan, kind: str) -> dict[str, dict[str, Any]]:
    found = yaml.safe_load_all(one.addons[0].text)
    return {each["metadata"]["name"]: each for each in found if each["kind"] == kind}


def config(one: Plan, name: str) -> dict[str, Any]:
    (text,) = objects(one, "ConfigMap")[name]["data"].values()
    return dict(yaml.safe_load(text))


def collector(one: Plan, kind: str = "worker") -> dict[str, Any]:
    return config(one, f"{names.COLLECTOR}-{kind}")


def refused(**said: object) -> list[str]:
    with pytest.raises(SpecError) as found:
        made(**said)
    return [problem.path for problem in found.value.problems]


def test_collectors_see_logs_and_what_reads_them_and_no_key_of_the_node() -> None:
    writable = {"/var/lib/kube-ha-addons/logs"}
    read = {"/etc/machine-id", "/run/log", "/usr", "/lib", "/lib64", "/var/log"}
    for said, more in (({}, set()), ({"endpoint": ENDPOINT}, {"/etc/ssl/certs"})):
        for daemon_set in objects(made(**said), "DaemonSet").values():
            pod = daemon_set["spec"]["template"]["spec"]
            paths = {v["name"]: v["hostPath"]["path"] for v in pod["volumes"] if "hostPath" in v}
            assert set(paths.values()) == writable | read | more
            assert pod["automountServiceAccountToken"] is False
            assert not {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"} & pod.keys()
            (container,) = pod["containers"]
            for one in container["volumeMounts"]:
                assert one.get("readOnly", False) is (paths.get(one["name"]) not in writable)


def test_a_worker_can_write_to_the_store_and_read_nothing_there() -> None:
    """The password is one of what receives; what answers listens to its own pod alone."""
    one = made()
    server = config(one, names.STORE)["server"]
    assert {server["http_listen_address"], server["grpc_listen_address"]} == {"127.0.0.1"}
    receiving = config(one, names.RECEIVER)
    assert [*receiving["receivers"]] == ["otlp"]
    assert receiving["receivers"]["otlp"]["protocols"]["http"]["auth"] == {
        "authenticator": "bearertokenauth"
    }
    (service,) = objects(one, "Service").values()
    assert [port["port"] for port in service["spec"]["ports"]] == [names.RECEIVER_PORT]
    assert config(one, names.STORE)["limits_config"]["deletion_mode"] == "disabled"


def test_no_password_is_in_what_the_stack_keeps() -> None:
    (secret,) = objects(made(), "Secret").values()
    assert secret.keys() == {"apiVersion", "kind", "metadata"}
    assert secret["metadata"]["annotations"] == {"kube-ha.io/basic-auth": names.USER}
    one = made(endpoint=ENDPOINT, secret="loki-header")
    assert not objects(one, "Secret")
    assert collector(one)["exporters"]["otlp_http"]["headers"] == {
        "Authorization": "${file:/etc/logs-endpoint/authorization}"
    }


def test_what_a_collector_reads_of_it_has_to_be_in_the_secret_that_the_config_names() -> None:
    for daemon_set in objects(made(endpoint=ENDPOINT, secret="loki-header"), "DaemonSet").values():
        volumes = daemon_set["spec"]["template"]["spec"]["volumes"]
        assert [v["secret"] for v in volumes if "secret" in v] == [
            {
                "secretName": "loki-header",
                "items": [{"key": "authorization", "path": "authorization"}],
            }
        ]


def test_lines_wait_on_the_nodes_disk_up_to_a_bound_and_whoever_reads_waits_behind_it() -> None:
    sender = collector(made(bufferMib=64))["exporters"]["otlp_http"]
    kept = sender["sending_queue"]
    assert (kept["sizer"], kept["queue_size"]) == ("bytes", 64 * 1024 * 1024)
    assert kept["block_on_overflow"] is True
    assert kept["storage"] == "file_storage/queue"
    every = [sender, *collector(made(), "control-plane")["receivers"].values()]
    assert {one["retry_on_failure"]["max_elapsed_time"] for one in every} == {"0s"}
    for one in every[1:]:
        assert one["storage"] == "file_storage/offsets"
        assert one["start_at"] == "beginning"
    for daemon_set in objects(made(), "DaemonSet").values():
        (container,) = daemon_set["spec"]["template"]["spec"]["containers"]
        assert "--feature-gates=stanza.synchronousLogEmitter" in container["args"]


def test_every_line_says_its_cluster_node_role_and_log() -> None:
    for kind, role in (("control-plane", "master"), ("worker", "worker")):
        for reader, one in collector(made(), kind)["receivers"].items():
            log = reader.partition("/")[2] or "journal"
            common = {"k8s.cluster.name": "dev", "k8s.node.name": "${env:NODE}"}
            assert one["resource"].items() >= (common | {"role": role, "log": log}).items()
    assert "file_log/audit" not in collector(made())["receivers"]


def test_the_stores_labels_are_those_of_lines() -> None:
    (how,) = config(made(), names.STORE)["limits_config"]["otlp_config"]["resource_attributes"]["attributes_config"]  # fmt: skip
    assert how == {"action": "index_label", "attributes": [*names.LABELS]}


def test_collectors_and_store_do_not_read_of_their_own_trouble() -> None:
    """It would make a line for each line."""
    excluded = collector(made())["receivers"]["file_log/pods"]["exclude"]
    for pod in (
        "logs-collector-worker-x7k2p",
        "logs-collector-control-plane-x7k2p",
        "logs-store-0",
    ):
        own = f"/var/log/pods/kube-system_{pod}_0a1b/loki/0.log"
        assert any(_matches(pattern, own) for pattern in excluded)
    other = "/var/log/pods/shop_logs-store-0_0a1b/app/0.log"
    assert not any(_matches(pattern, other) for pattern in excluded)
    include = collector(made())["receivers"]["file_log/pods"]["include"]
    assert any(_matches(pattern, f"{other}.20260401-120000") for pattern in include)


def _matches(pattern: str, path: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), path) is not None


def test_with_an_endpoint_there_is_no_store_and_the_gate_waits_for_none() -> None:
    one = made(endpoint=ENDPOINT)
    assert not objects(one, "StatefulSet")
    assert not objects(one, "Service")
    assert "statefulset" not in gate.of_gate(one)["DEPLOYMENTS"]
    assert "kube-system/statefulset/logs-store" in gate.of_gate(made())["DEPLOYMENTS"]
    sender = collector(one)["exporters"]["otlp_http"]
    assert sender["endpoint"] == ENDPOINT
    assert not {"auth", "headers"} & sender.keys()


def test_settings_that_have_no_meaning_or_show_a_secret_are_refused() -> None:
    assert refused(secret="x") == ["addons.logs.secret"]
    assert refused(endpoint="http://loki:3100/otlp", secret="x") == ["addons.logs.endpoint"]
    assert refused(endpoint=ENDPOINT, retentionDays=3, storageGi=5) == [
        "addons.logs.retentionDays",
        "addons.logs.storageGi",
    ]
    assert refused(endpoint="https://me:word@loki") == ["addons.logs.endpoint"]
    assert refused(bufferMib=1) == ["addons.logs.bufferMib"]


def test_the_store_is_bounded_by_days_size_and_memory() -> None:
    def spec(**said: object) -> dict[str, Any]:
        (found,) = objects(made(**said), "StatefulSet").values()
        return dict(found["spec"])

    limits = config(made(retentionDays=3), names.STORE)["limits_config"]
    assert {limits["retention_period"], limits["reject_old_samples_max_age"]} == {"72h"}
    volumes = {one["name"]: one for one in spec()["template"]["spec"]["volumes"]}
    assert volumes["data"]["emptyDir"] == {"sizeLimit": "10Gi"}
    (claim,) = spec(storageGi=50)["volumeClaimTemplates"]
    assert claim["spec"]["resources"]["requests"]["storage"] == "50Gi"
    for kind in ("DaemonSet", "StatefulSet"):
        for one in objects(made(), kind).values():
            for container in one["spec"]["template"]["spec"]["containers"]:
                assert container["resources"]["limits"].keys() == {"memory"}


def test_nodes_know_whose_folders_they_keep() -> None:
    def told(one: Plan) -> set[str | None]:
        return {of_node(one, node).get("ADDON_FOLDERS") for node in one.nodes}

    assert told(made()) == {"logs"}
    assert told(plan(load(lab()))) == {None}
    assert "/var/lib/kube-ha-addons\n" in (SCRIPTS / "addon-folders.sh").read_text()
    assert '"$ROOT/var/lib/kube-ha-addons"' in (SCRIPTS / "wipe.sh").read_text()
