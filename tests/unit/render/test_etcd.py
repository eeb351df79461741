"""etcd's environment and unit."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stacks.cluster.plan import Plan
from stacks.render import etcd
from tests.unit.render.examples import adopted, assert_snapshot, lab, program


def _environment(plan: Plan, name: str) -> dict[str, str]:
    lines = etcd.environment(plan, plan.node(name)).splitlines()
    return dict(line.split("=", 1) for line in lines)


def _flags(plan: Plan) -> dict[str, str]:
    """As systemd hands them to etcd."""
    (line,) = re.findall(r"^ExecStart=/usr/local/bin/etcd (.*)$", etcd.unit(plan), re.MULTILINE)
    return dict(word.removeprefix("--").split("=", 1) for word in line.split())


def test_snapshot() -> None:
    plan = lab()
    assert_snapshot("etcd.env", etcd.environment(plan, plan.node("master-1")))


def test_every_door_but_the_local_metrics_asks_for_a_certificate() -> None:
    flags, values = _flags(lab()), _environment(lab(), "master-2")
    assert flags["client-cert-auth"] == flags["peer-client-cert-auth"] == "true"
    for key, value in values.items():
        for url in value.split(",") if key.endswith("_URLS") else ():
            local = key == "ETCD_LISTEN_METRICS_URLS" and urlsplit(url).hostname == "127.0.0.1"
            assert local or urlsplit(url).scheme == "https", key


def test_a_member_is_reached_at_its_own_address_and_locally() -> None:
    values = _environment(adopted(), "etcd-3")
    assert values["ETCD_NAME"] == "etcd-3"
    assert values["ETCD_LISTEN_CLIENT_URLS"] == "https://127.0.0.1:2379,https://192.0.2.13:2379"
    assert values["ETCD_ADVERTISE_CLIENT_URLS"] == "https://192.0.2.13:2379"
    assert values["ETCD_INITIAL_ADVERTISE_PEER_URLS"] == "https://192.0.2.13:2380"


def test_data_is_where_kubeadm_reset_does_not_look() -> None:
    assert _flags(lab())["data-dir"] == "/var/lib/kube-ha/etcd"


def test_no_setting_is_given_twice() -> None:
    """etcd ends at once where a flag and its environment are both there."""
    names = {f"ETCD_{name.upper().replace('-', '_')}" for name in _flags(lab())}
    assert not names & _environment(lab(), "master-1").keys()


@pytest.mark.parametrize("plan", [lab(), adopted()], ids=["lab", "adopted"])
def test_etcd_is_not_root_and_writes_its_data_alone(plan: Plan) -> None:
    lines = etcd.unit(plan).splitlines()
    assert {"User=etcd", "Group=etcd", "CapabilityBoundingSet=", "NoNewPrivileges=yes"} <= {*lines}
    assert {"ProtectSystem=strict", f"ReadWritePaths={etcd.DATA}"} <= {*lines}
    # What acts on what is not etcd's does so as root, outside of all that.
    others = [line for line in lines if line.startswith(("ExecStartPre=", "ExecStopPost="))]
    assert others
    assert all("+" in line.partition("=")[2].partition("/")[0] for line in others)
    # Before each start: whoever made the data, etcd can read it.
    keys = "/etc/kube-ha/etcd/server.key /etc/kube-ha/etcd/peer.key"
    assert f"ExecStartPre=+/bin/chown -R etcd:etcd {etcd.DATA} {keys}" in lines


def test_no_etcd_founds_a_cluster_by_what_the_config_says() -> None:
    """Left out, etcd takes itself for the only member, and `new` for the state."""
    values = _environment(lab(), "master-1")
    assert "ETCD_INITIAL_CLUSTER" not in values
    assert values["ETCD_INITIAL_CLUSTER_STATE"] == "existing"
    lines = etcd.unit(lab()).splitlines()
    # The later one counts: who founds or joins says so there.
    env, bootstrap = (n for n, line in enumerate(lines) if line.startswith("EnvironmentFile="))
    assert lines[env].endswith("=/etc/kube-ha/etcd/etcd.env")
    assert lines[bootstrap].endswith("=-/etc/kube-ha/etcd/bootstrap.env")


def test_etcd_is_asked_whose_data_it_has_before_it_starts_and_after() -> None:
    for plan in (lab(), adopted()):
        lines = etcd.unit(plan).splitlines()
        guard = "=+/bin/bash /usr/local/lib/kube-ha/etcd-guard.sh"
        assert f"ExecStartPre{guard} before" in lines
        assert f"ExecStartPost{guard} after" in lines
        assert "RequiresMountsFor=/var/lib/kube-ha/etcd" in lines


def test_growing_changes_no_member_that_is_there() -> None:
    assert _environment(lab(1), "master-1") == _environment(lab(3), "master-1")


def test_settings_come_from_the_config() -> None:
    plan = lab(etcd={"heartbeatIntervalMs": 250, "electionTimeoutMs": 2500, "quotaBackendGib": 8})
    values = _environment(plan, "master-1")
    assert values["ETCD_HEARTBEAT_INTERVAL"] == "250"
    assert values["ETCD_ELECTION_TIMEOUT"] == "2500"
    assert values["ETCD_QUOTA_BACKEND_BYTES"] == str(8 * 2**30)


def test_what_etcd_has_as_its_default_is_left_out() -> None:
    """A member restarts when its environment changes: one that says the same in words must not."""
    assert not {"ETCD_METRICS", "ETCD_MAX_REQUEST_BYTES"} & _environment(lab(), "master-1").keys()
    wanted = {
        "metrics": "extensive",
        "maxRequestKib": 2048,
        "snapshotCount": 50000,
        "compactionRetentionMin": 90,
    }
    values = _environment(lab(etcd=wanted), "master-1")
    assert values["ETCD_METRICS"] == "extensive"
    assert values["ETCD_MAX_REQUEST_BYTES"] == str(2 * 2**20)
    assert values["ETCD_SNAPSHOT_COUNT"] == "50000"
    assert values["ETCD_AUTO_COMPACTION_RETENTION"] == "90m"
    hours = _environment(lab(etcd={"compactionRetentionMin": 120}), "master-1")
    assert hours["ETCD_AUTO_COMPACTION_RETENTION"] == "2h"


def test_etcd_itself_takes_every_setting(tmp_path: Path) -> None:
    """A word that etcd does not know is a start that fails, or a warning that nobody reads."""
    wanted = {"metrics": "extensive", "maxRequestKib": 2048, "compactionRetentionMin": 5}
    values = _environment(lab(etcd=wanted), "master-1")
    # Where it would listen and what it would trust is not on this computer.
    own = {name: value for name, value in values.items() if not _of_the_machine(name)}
    own |= {"ETCD_LISTEN_CLIENT_URLS": "http://127.0.0.1:0"}
    own["ETCD_INITIAL_CLUSTER_STATE"] = "new"  # the founding word
    own |= {"ETCD_LISTEN_PEER_URLS": "http://127.0.0.1:0", "PATH": os.environ["PATH"]}
    own |= {"ETCD_ADVERTISE_CLIENT_URLS": "http://127.0.0.1:0"}
    # Files of keys are not here; that etcd knows the names of their flags is seen all the same.
    flags = [f"--{name}={_in(tmp_path, name, value)}" for name, value in _flags(lab()).items()]
    log = tmp_path / "log"
    with log.open("w") as stream:
        started = subprocess.Popen(
            [program("etcd", tmp_path), *flags], env=own, stdout=stream, stderr=stream
        )
    try:
        end = time.monotonic() + 30
        while "ready to serve client requests" not in log.read_text() and time.monotonic() < end:
            assert started.poll() is None, log.read_text()
            time.sleep(0.1)
    finally:
        started.kill()
        started.wait()
    assert "ready to serve client requests" in log.read_text()
    assert "unrecognized environment variable" not in log.read_text()


def _of_the_machine(name: str) -> bool:
    return name.endswith("_URLS")


def _in(folder: Path, name: str, value: str) -> str:
    if name == "data-dir":
        return str(folder / "data")
    return "" if name.endswith("-file") else "false"


def test_the_unit_opens_no_more_files_than_a_lab_machine_may() -> None:
    found = re.search(r"^LimitNOFILE=(\d+)$", etcd.unit(lab()), re.MULTILINE)
    assert found is not None
    assert int(found[1]) <= 20000
    assert "OOMScoreAdjust" not in etcd.unit(lab())
    assert "LimitNOFILE=65536" in etcd.unit(adopted())
