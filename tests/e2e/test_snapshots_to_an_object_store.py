"""Story: snapshots go to an object store on this computer, one that is unavailable is told, and etcd comes back from it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.operations import operation, write, written
from tests.e2e.harness.stack import Stack
from tests.scripts.s3_server import ACCESS_KEY, BUCKET, REGION, SECRET, S3Server

NAME = "test-store"
KEY = "kube-ha:backupSecretKey"
SUBNET = "10.93.15"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """At this computer's address in the lab, which is there once the lab is."""
    found = S3Server(tmp_path_factory.mktemp("s3"), address=f"{SUBNET}.1")
    try:
        yield found
    finally:
        found.stop()


@pytest.fixture(scope="module")
def stack(server: S3Server) -> Iterator[Stack]:
    wanted = config.lab(NAME, f"{SUBNET}.0/24", masters=1, workers=1)
    with Stack("snapshots_to_an_object_store", wanted) as stack:
        stack.pulumi("config", "set", "--secret", KEY, SECRET, "--stack", stack.name)
        given = yaml.safe_load(stack.file.read_text())["config"]
        stack.config["backupSecretKey"] = given[KEY]
        store = {
            "endpoint": server.endpoint,
            "bucket": BUCKET,
            "prefix": "lab",
            "region": REGION,
            "accessKey": ACCESS_KEY,
        }
        stack.edit("etcd.backup.objectStore", store)
        stack.up()
        server.start()
        yield stack


def test_the_timers_snapshot_is_in_the_store_and_nothing_tells_the_secret(
    stack: Stack, server: S3Server
) -> None:
    node = stack.node("master-1")
    node.run("systemctl start kube-ha-backup.service")
    assert [name.endswith(("-schedule.db.gz.enc", ".sha256")) for name in server.objects] == [
        True
    ] * 2
    folder = f"lab/{stack.lab}-{stack.output('clusterId')}/"
    assert all(name.startswith(folder) for name in server.objects)
    assert node.run("stat -c %a /etc/kube-ha/etcd/store.key").strip() == "600"
    told = node.run("journalctl -u kube-ha-backup; cat /etc/kube-ha/etcd/backup.values")
    assert "AKIAEXAMPLE" in told
    assert SECRET not in told
    assert SECRET not in stack.state_file.read_text()
    assert "in the object store: " in operation(stack, "status")


def test_a_store_that_is_away_fails_the_unit_and_not_etcd(stack: Stack, server: S3Server) -> None:
    node = stack.node("master-1")
    server.stop()
    assert node.asked("systemctl start kube-ha-backup.service && echo done") == ""
    assert node.run("systemctl is-failed kube-ha-backup.service").strip() == "failed"
    assert "did not get to the object store" in operation(stack, "drift", fails=True)
    said = operation(stack, "backup", fails=True)
    assert "is here and whole" in said
    assert stack.ready() == {"master-1": True, "worker-1": True}
    server.start()
    operation(stack, "backup")
    assert "did not get to the object store" not in operation(stack, "status")


def test_etcd_goes_back_to_what_lies_in_the_store(stack: Stack) -> None:
    write(stack, "before-the-backup")
    operation(stack, "backup")
    write(stack, "after-the-backup")
    said = operation(stack, "restore", "--snapshot", "store:latest", "--replace")
    assert "is brought to .local/backups" in said
    assert "before-the-backup" in written(stack)
    assert "after-the-backup" not in written(stack)
    assert_up_changes_nothing(stack)
