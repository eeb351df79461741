"""containerd's config, units and registries."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

from stacks.cluster.plan import Plan
from stacks.render import containerd
from tests.unit.render.examples import adopted, assert_snapshot, lab, program

RUNTIME = "io.containerd.cri.v1.runtime"
IMAGES = "io.containerd.cri.v1.images"
PROXY = {"http": "http://proxy.example.com:3128", "https": "http://proxy.example.com:3128"}


def test_snapshot() -> None:
    assert_snapshot("containerd.toml", containerd.config(lab()))


def test_config_is_small_and_of_version_4() -> None:
    text = containerd.config(lab())
    assert len(text) <= 800
    assert tomllib.loads(text)["version"] == 4


def test_cgroups_are_those_of_systemd_as_the_kubelet_has_them() -> None:
    for plan in (lab(), adopted()):
        runc = tomllib.loads(containerd.config(plan))["plugins"][RUNTIME]["containerd"]["runtimes"][
            "runc"
        ]
        assert runc["options"]["SystemdCgroup"] is True


def test_only_containers_give_up_lowering_oom_scores() -> None:
    assert tomllib.loads(containerd.config(lab()))["plugins"][RUNTIME]["restrict_oom_score_adj"]
    assert "oom" not in containerd.config(adopted())
    assert "OOMScoreAdjust" not in containerd.unit(lab())
    assert "OOMScoreAdjust=-999" in containerd.unit(adopted())


def test_adopted_containers_are_treated_as_those_of_the_lab() -> None:
    assert "restrict_oom_score_adj = true" in containerd.config(_adopted_containers())


def _adopted_containers() -> Plan:
    ssh = {"agent": True, "insecureIgnoreHostKey": True}
    return adopted(machines={"provider": "adopt", "ssh": ssh, "containers": True})


def test_every_image_of_ours_comes_from_the_mirror_and_from_nowhere_else() -> None:
    files = containerd.hosts(lab())
    assert sorted(files) == ["ghcr.io", "registry.k8s.io"]
    for text in files.values():
        assert tomllib.loads(text) == {
            "server": "http://10.92.0.2:5000",
            "capabilities": ["pull", "resolve"],
        }


def test_the_users_mirrors_are_asked_before_the_registry_itself() -> None:
    mirrors = {
        "docker.io": ["https://mirror.example.com", "http://10.0.0.9:5000"],
        "quay.io:443": ["https://harbor.example.com/v2/quay"],
        "10.0.0.9:5000": ["http://10.0.0.9:5000"],  # one without TLS
    }
    plan = lab(runtime={"registryMirrors": mirrors})
    files = containerd.hosts(plan)
    assert list(files) == [
        "ghcr.io",
        "registry.k8s.io",
        "10.0.0.9:5000",
        "docker.io",
        "quay.io:443",
    ]
    assert '[host."http://10.0.0.9:5000"]' in files["10.0.0.9:5000"]
    assert {host: files[host] for host in ("ghcr.io", "registry.k8s.io")} == containerd.hosts(lab())
    hub = tomllib.loads(files["docker.io"])
    capabilities = ["pull", "resolve"]
    assert list(hub["host"].items()) == [
        ("https://mirror.example.com", {"capabilities": capabilities}),
        ("http://10.0.0.9:5000", {"capabilities": capabilities}),
    ]
    # Without it the registry itself comes last.
    assert "server" not in hub
    quay = tomllib.loads(files["quay.io:443"])["host"]["https://harbor.example.com/v2/quay"]
    assert quay == {"capabilities": capabilities, "override_path": True}


def test_without_a_mirror_of_ours_our_registries_may_have_others() -> None:
    files = containerd.hosts(adopted(runtime={"registryMirrors": {"ghcr.io": ["https://m"]}}))
    assert files == {"ghcr.io": '[host."https://m"]\n  capabilities = ["pull", "resolve"]\n'}


def test_settings_come_from_the_config(tmp_path: Path) -> None:
    plan = lab(runtime={"maxConcurrentDownloads": 8, "logLevel": "warn"})
    dumped = tomllib.loads(_dumped(containerd.config(plan), tmp_path))
    assert dumped["debug"]["level"] == "warn"
    assert dumped["plugins"]["io.containerd.transfer.v1.local"]["max_concurrent_downloads"] == 8
    # The CRI plugin's own key of that name would make it pull in another way.
    assert dumped["plugins"][IMAGES]["max_concurrent_downloads"] == 3
    assert containerd.config(plan).startswith(containerd.config(lab()))


def test_without_mirror_upstream_is_asked() -> None:
    assert containerd.hosts(adopted()) == {}


def test_without_proxy_there_is_no_drop_in() -> None:
    assert containerd.proxy(lab()) == ""


def test_proxy_is_not_asked_for_the_cluster_itself() -> None:
    text = containerd.proxy(lab(proxy={**PROXY, "noProxy": [".example.com", "10.0.0.0/8"]}))
    assert text.splitlines() == [
        "[Service]",
        'Environment="HTTP_PROXY=http://proxy.example.com:3128"',
        'Environment="HTTPS_PROXY=http://proxy.example.com:3128"',
        'Environment="NO_PROXY=127.0.0.1,localhost,10.244.0.0/16,10.96.0.0/16,10.92.0.2,'
        '.example.com,10.0.0.0/8"',
    ]


def _dumped(text: str, tmp_path: Path) -> str:
    """What containerd itself makes of a config."""
    path = tmp_path / "config.toml"
    path.write_text(text)
    done = subprocess.run(
        [program("containerd", tmp_path), "--config", path, "config", "dump"],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert "warn" not in done.stderr.lower(), done.stderr
    return done.stdout


def test_containerd_reads_what_was_meant(tmp_path: Path) -> None:
    plugins = tomllib.loads(_dumped(containerd.config(lab()), tmp_path))["plugins"]
    assert plugins[IMAGES]["pinned_images"]["sandbox"] == "registry.k8s.io/pause:3.10.2"
    assert plugins[IMAGES]["registry"]["config_path"] == "/etc/containerd/certs.d"
    assert plugins[RUNTIME]["cni"]["bin_dirs"] == ["/opt/cni/bin"]
    assert plugins[RUNTIME]["restrict_oom_score_adj"] is True
    assert plugins[RUNTIME]["containerd"]["runtimes"]["runc"]["options"]["SystemdCgroup"] is True


def test_a_containerd_that_hangs_is_restarted_where_it_is_wanted() -> None:
    assert "WatchdogSec" not in containerd.unit(lab())
    watched = containerd.unit(lab(runtime={"watchdogS": 60}))
    assert (
        "\nNotifyAccess=all\nWatchdogSec=60\nExecStartPost=/bin/sh -c 'while kill -0 $$MAINPID "
        in watched
    )
    # It has been told of at least once when the time is over, though one answer took its longest.
    assert watched.count("timeout 20 ") == watched.count("sleep 20;") == 1
