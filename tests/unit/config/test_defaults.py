"""Levels of defaults: a new cluster gets the newest, one that exists keeps its own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.config import defaults
from stacks.edits import memory
from stacks.edits.memory import Memory
from stacks.explain.changes import changes
from stacks.load import load, planned
from stacks.phases import desired
from tests.unit.configs import lab

LATER: Mapping[str, object] = {"cluster.defaults": defaults.NEWEST}


def before_levels(edits: Mapping[str, object] | None = None) -> Memory:
    """The memory of a cluster that was made by a program without levels: no such fields in it."""
    kept = memory.of(plan(load(lab({"cluster.defaults": 1, **(edits or {})}))))
    config = kept["config"]
    assert isinstance(config, dict)
    del config["cluster"]["defaults"]
    config["controlPlane"].update(admissionPlugins=["NodeRestriction"], podSecurity=None)
    for key in ("anonymous", "extendTokenExpiration", "tlsCiphers", "oidcIssuers"):
        del config["controlPlane"][key]
    for key in ("detail", "webhook"):
        del config["controlPlane"]["audit"][key]
    for key in ("seccompDefault", "tlsCiphers"):
        del config["kubelet"][key]
    del config["etcd"]["tlsCiphers"]
    return memory.read(kept)


def after(found: Memory | None, edits: Mapping[str, object] | None = None) -> Plan:
    return planned(load(lab(edits or {})), found)


def hints(wanted: Plan) -> list[str]:
    return [text for path, text in wanted.warnings if path == defaults.PATH]


def test_a_cluster_that_exists_keeps_what_it_has_and_is_told_what_a_new_one_gets() -> None:
    found = before_levels()
    wanted = after(found)
    assert found.level == 1
    assert changes(found, wanted).nodes == ()
    [hint] = hints(wanted)
    for word in (
        "keeps level 1",
        "controlPlane.admissionPlugins: [DenyServiceExternalIPs, NodeRestriction]",
        "controlPlane.anonymous: health",
        "controlPlane.audit.detail: bodies",
        "controlPlane.extendTokenExpiration: false",
        "controlPlane.podSecurity.warn: baseline",
        "kubelet.podPidsLimit: 4096",
        "kubelet.seccompDefault: true",
        "etcd.tlsCiphers: strong",
        "Set it to 2",
    ):
        assert word in hint


def test_its_files_are_byte_for_byte_those_of_before() -> None:
    found = before_levels()
    wanted = after(found)
    assert found.plan is not None
    for node in wanted.nodes:
        assert desired.files(wanted, node) == desired.files(found.plan, node)
    text = "".join(desired.files(wanted, wanted.masters[0]).values())
    for word in ("DenyServiceExternalIPs", "cipher", "authentication-config", "seccomp", "Pids"):
        assert word not in text


def test_a_new_cluster_gets_the_newest_without_a_word_about_it() -> None:
    wanted = after(None)
    assert wanted.spec.cluster.defaults == defaults.NEWEST
    assert hints(wanted) == []
    text = "".join(desired.files(wanted, wanted.masters[0]).values())
    for word in ("DenyServiceExternalIPs", "CIPHER", "authentication-config", "seccompDefault"):
        assert word in text


def test_the_level_of_the_config_counts_from_the_next_up_on_and_is_remembered() -> None:
    wanted = after(before_levels(), LATER)
    assert wanted.spec.kubelet.pod_pids_limit == 4096
    assert hints(wanted) == []
    assert {node.name for node in changes(before_levels(), wanted).nodes} == {
        node.name for node in wanted.nodes
    }
    # The word may go again: the cluster is what it is now.
    kept = memory.read(memory.of(wanted))
    assert after(kept).spec == wanted.spec
    assert changes(kept, after(kept)).nodes == ()


def test_who_says_that_the_level_stays_hears_no_more_of_it() -> None:
    assert hints(after(before_levels(), {"cluster.defaults": 1})) == []


@pytest.mark.parametrize("level", [1, 2])
def test_what_the_config_says_counts_on_every_level(level: int) -> None:
    said = {
        "cluster.defaults": level,
        "controlPlane.admissionPlugins": ["NodeRestriction", "AlwaysPullImages"],
        "controlPlane.anonymous": "all",
        "controlPlane.extendTokenExpiration": True,
        "controlPlane.tlsCiphers": "all",
        "controlPlane.audit.detail": "metadata",
        "controlPlane.podSecurity": {"enforce": "restricted"},
        "etcd.tlsCiphers": "all",
        "kubelet.tlsCiphers": "all",
        "kubelet.seccompDefault": False,
        "kubelet.podPidsLimit": 500,
    }
    spec = after(None, said).spec
    assert spec.control_plane.admission_plugins == ("NodeRestriction", "AlwaysPullImages")
    assert spec.control_plane.anonymous == "all"
    assert spec.control_plane.extend_token_expiration is True
    assert spec.control_plane.audit.detail == "metadata"
    assert spec.control_plane.pod_security is not None
    assert spec.control_plane.pod_security.warn == "privileged"
    ciphers = (spec.control_plane.tls_ciphers, spec.etcd.tls_ciphers, spec.kubelet.tls_ciphers)
    assert ciphers == ("all", "all", "all")
    assert (spec.kubelet.seccomp_default, spec.kubelet.pod_pids_limit) == (False, 500)


def test_nothing_is_left_open_once_the_level_is_known() -> None:
    """Memories hold what a cluster has, not what its program of then would have said."""
    spec = after(None).spec
    for value in (
        *(spec.control_plane.anonymous, spec.control_plane.tls_ciphers),
        *(spec.control_plane.admission_plugins, spec.control_plane.extend_token_expiration),
        *(spec.control_plane.audit.detail, spec.control_plane.pod_security),
        *(spec.etcd.tls_ciphers, spec.kubelet.tls_ciphers, spec.kubelet.seccomp_default),
        spec.kubelet.pod_pids_limit,
    ):
        assert value is not None
    assert defaults.settled(spec) == spec
