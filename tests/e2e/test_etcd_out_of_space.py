"""Story: etcd is full. Nothing is written any more, and what repairs it continues: a snapshot, a bigger quota, defrag."""

from __future__ import annotations

import json

import pytest

from tests.e2e.harness import config
from tests.e2e.harness.assertions import assert_up_changes_nothing
from tests.e2e.harness.lab import LabError
from tests.e2e.harness.operations import operation, write, written
from tests.e2e.harness.stack import Stack

GIB = 1024**3
# The smallest quota that the config takes is filled beside Kubernetes, by keys that it does not read; each value is nothing that makes the file smaller.
FILL = """
cd /tmp && head -c 1000000 /dev/urandom | base64 -w 0 >value
put() { etcdctl --endpoints https://127.0.0.1:2379 --cacert $P/ca.crt --cert $P/client.crt --key $P/client.key put "/fill/$1" <value; }
P=/etc/kube-ha/etcd
for n in $(seq 1200); do put $n >said 2>&1 || break; done
rm -f value; grep -o 'database space exceeded' said
"""


def wanted() -> config.Config:
    return config.lab("test-space", "10.93.71.0/24", masters=1, workers=1)


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    stack.edit("etcd.quotaBackendGib", 1)
    stack.up()
    return stack


def size(stack: Stack) -> int:
    (found,) = json.loads(stack.node("master-1").etcdctl("endpoint status -w json"))
    return int(found["Status"]["dbSize"])


def test_a_full_etcd_is_named_with_its_way_out(stack: Stack) -> None:
    assert "database space exceeded" in stack.node("master-1").run(FILL, timeout_s=300)
    with pytest.raises(LabError, match="database space exceeded"):
        write(stack, "refused")
    assert "ALARMS: NOSPACE of master-1" in operation(stack, "status")
    told = operation(stack, "drift", fails=True)
    assert "etcd alarm NOSPACE of master-1" in told
    assert "make defrag" in told


def test_a_bigger_quota_is_applied_all_the_same_and_ends_the_alarm(stack: Stack) -> None:
    stack.edit("etcd.quotaBackendGib", 2)
    update = stack.up()
    stack.took("up of a bigger quota while etcd is full", update.seconds)
    write(stack, "after-the-quota")
    assert "no alarms" in operation(stack, "status")
    assert_up_changes_nothing(stack)


def test_defrag_gives_the_disk_back(stack: Stack) -> None:
    node = stack.node("master-1")
    node.etcdctl("del --prefix /fill/")
    (found,) = json.loads(node.etcdctl("endpoint status -w json"))
    node.etcdctl(f"compact {found['Status']['header']['revision']} --physical")
    assert size(stack) > GIB * 9 // 10
    said = operation(stack, "defrag")
    stack.measured(said.splitlines()[0].partition(": ")[2])
    assert size(stack) < GIB // 10
    assert "nothing to give back" in operation(stack, "defrag")
    assert "after-the-quota" in written(stack)
