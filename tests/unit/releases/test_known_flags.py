"""Flags, feature gates and values that a component would not start with are refused."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import pytest
import yaml

from artifacts import known_flags as written
from artifacts.known_flags import choices, flags
from stacks.checks import flags as check_flags
from stacks.config.problems import SpecError
from stacks.load import load
from stacks.releases import known_flags, versions
from stacks.releases.known_flags import Known, port_range, wrong
from stacks.render import kubeadm
from tests.unit.configs import lab, planned, problems
from tests.unit.flags import KNOWN, SWITCHABLE

SECTIONS = {
    "apiServerArgs": "kube-apiserver",
    "controllerManagerArgs": "kube-controller-manager",
    "schedulerArgs": "kube-scheduler",
}
RIGHT = {
    "bool": "true", "int": "3", "int32": "3", "duration": "1m30s", "float": "0.001", "float32": "0.5",
    "ip": "127.0.0.1", "quantity": "2Gi", "mapStringString": "a=b", "stringToString": "a=b",
    "int32Slice": "23,24", "portRange": "30000-32767", "Level": "4",
}  # fmt: skip
WRONG = {
    "bool": "maybe", "int": "lots", "int32": "99999999999", "duration": "5 minutes", "float": "x",
    "float32": "x", "ip": "10.0.0", "quantity": "much", "mapStringString": "a", "stringToString": "a",
    "int32Slice": "a", "portRange": "32767-30000", "Level": "-1",
}  # fmt: skip


def refused(edits: dict[str, object]) -> list[str]:
    """The paths that a config is refused for; none where it is accepted."""
    try:
        load(lab(edits), read_keys=False)
    except SpecError as error:
        return [path for path, _ in error.problems]
    return []


def known() -> Known:
    assert KNOWN is not None
    return KNOWN


@pytest.mark.parametrize("section", SECTIONS)
def test_every_flag_there_is_takes_its_kind_and_nothing_else(section: str) -> None:
    there = known().flags[SECTIONS[section]]
    free = {flag: kind for flag, kind in there.items() if flag not in check_flags.OWNED[section]}
    right = {
        flag: known().choices.get(flag, [RIGHT.get(kind, "")])[0]
        for flag, kind in free.items()
        if flag not in ("controllers", "runtime-config")
    }
    # All at once would not fit in a command, which is another problem.
    assert not [path for path in refused({f"controlPlane.{section}": right}) if "." in path]
    bad = {flag: WRONG[kind] for flag, kind in free.items() if kind in WRONG} | {
        flag: "FOO" for flag in free if flag in known().choices
    }
    bad = {flag: value for flag, value in bad.items() if flag != "runtime-config"}
    assert refused({f"controlPlane.{section}": bad}) == sorted(
        f"controlPlane.{section}.{flag}" for flag in bad
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_a_flag_that_is_not_there_is_refused_with_the_one_that_may_be_meant(section: str) -> None:
    there = known().flags[SECTIONS[section]]
    typos = {
        flag[:-1] + ("y" if flag.endswith("x") else "x")
        for flag in there
        if flag not in check_flags.OWNED[section] and len(flag) > 1
    } - {*there}
    found = dict(problems(lab({f"controlPlane.{section}": dict.fromkeys(sorted(typos), "1")})))
    assert len(found) == len(typos) > 10
    for path, text in found.items():
        near = difflib.get_close_matches(path.rpartition(".")[2], there, n=1, cutoff=0.7)
        assert (f"did you mean {near[0]!r}?" if near else "see its --help") in text


@pytest.mark.parametrize("where", ["controlPlane", "kubelet"])
def test_gates_that_are_locked_or_not_there_are_refused(where: str) -> None:
    path = f"{where}.featureGates"
    wanted = {name: not gate.locked or gate.on for name, gate in known().gates.items()}
    # All at once would not fit in a command, which is another problem.
    assert not [one for one in refused({path: wanted}) if "." in one]
    locked = {name: not gate.on for name, gate in known().gates.items() if gate.locked}
    assert len(locked) > 20
    assert refused({path: locked}) == sorted(f"{path}.{name}" for name in locked)
    unknown = {f"{name}X": True for name in known().gates if f"{name}X" not in known().gates}
    assert refused({path: unknown}) == sorted(f"{path}.{name}" for name in unknown)


EXAMPLES = [
    ("controlPlane.apiServerArgs", "goaway-chance", "0.5", "'0.5' is not within 0 and 0.02"),
    ("controlPlane.apiServerArgs", "max-requests-inflight", "lots", "'lots' is not a whole number"),
    ("controlPlane.apiServerArgs", "insecure-port", "0", "kube-apiserver has no such flag"),
    ("controlPlane.apiServerArgs", "version", "true", "prints something and ends"),
    ("controlPlane.apiServerArgs", "etcd-prefix", "/other", "would show another data set"),
    ("controlPlane.apiServerArgs", "egress-selector-config-file", "/x", "'/x' is on no master"),
    ("controlPlane.apiServerArgs", "endpoint-reconciler-type", "none", "is lease"),
    ("controlPlane.apiServerArgs", "runtime-config", "api/all=false", "takes away APIs"),
    ("controlPlane.apiServerArgs", "runtime-config", "a/v1=true,apps/v1=false", "takes away APIs"),
    ("controlPlane.controllerManagerArgs", "secure-port", "6443", "is fixed; probes ask there"),
    ("controlPlane.controllerManagerArgs", "controllers", "*,-nodeipam", "takes away what nodes get"),
    ("controlPlane.controllerManagerArgs", "controllers", "endpointslice", "has no '*'"),
    ("controlPlane.schedulerArgs", "config", "/x", "its file is not shipped to masters"),
    ("controlPlane.schedulerArgs", "leader-elect-resource-name", "x", "would make another lease"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "flag", "value", "reason"), EXAMPLES)
def test_flags_that_hurt_the_cluster_are_refused(
    section: str, flag: str, value: str, reason: str
) -> None:
    [(path, text)] = problems(lab({section: {flag: value}}))
    assert path == f"{section}.{flag}"
    assert reason in text


def test_the_kubelets_own_certificate_is_not_switched_off() -> None:
    gates = {"kubelet.featureGates": {"RotateKubeletServerCertificate": False}}
    [(path, text)] = problems(lab(gates))
    assert path == "kubelet.featureGates.RotateKubeletServerCertificate"
    assert "servingCertificates: self-signed" in text
    assert refused({**gates, "kubelet.servingCertificates": "self-signed"}) == []


def test_what_nobody_was_asked_about_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_flags, "_FOLDER", tmp_path)
    known_flags._of_minor.cache_clear()
    raw = lab({"controlPlane.apiServerArgs": {"no-such-flag": "1"}})
    assert [path for path, text in planned(raw).warnings if "not known" in text] == ["controlPlane"]
    assert not [text for _, text in planned(lab()).warnings if "not known" in text]
    known_flags._of_minor.cache_clear()


def test_what_is_written_down_is_of_versions_of_the_lock() -> None:
    """A newer patch in the lock asks for `python -m artifacts.known_flags`."""
    newest = {versions.minor(version): version for version in reversed(versions.known())}
    for file in written.FOLDER.glob("*.json"):
        major, minor = file.stem.split(".")
        held = json.loads(file.read_text())
        assert held["version"] == newest[int(major), int(minor)]
        assert file.read_text() == written.written(held)
        assert file.stat().st_size < 64 * 1024
    assert (written.FOLDER / "1.36.json").exists()


def test_a_help_is_read_by_its_lines() -> None:
    text = (
        "Flags:\n\n"
        "      --tls-min-version string   Minimum. Possible values: VersionTLS12, VersionTLS13\n"
        "      --tls-cipher-suites strings   List.\n"
        "                                 Preferred values: A, B. \n"
        "                                 Insecure values: C.\n"
        "  -h, --help                     help\n"
        "  -v, --v Level                  verbosity, --x as in text\n"
    )
    assert flags(text) == {
        "tls-min-version": "string", "tls-cipher-suites": "strings", "help": "bool", "v": "Level"
    }  # fmt: skip
    assert choices(text) == {
        "tls-min-version": ["VersionTLS12", "VersionTLS13"], "tls-cipher-suites": ["A", "B", "C"]
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["abc", "32767-30000", "0-10", "1-65536", "", "1-2-3", "-5", "99999"]
)
def test_what_is_no_range_of_ports(text: str) -> None:
    assert port_range(text) is None
    assert wrong("portRange", (), text)


def test_ranges_of_ports_are_read_as_kubernetes_does() -> None:
    assert port_range("30000-32767") == range(30000, 32768)
    assert port_range("30000+10") == range(30000, 30011)
    assert port_range("30000") == range(30000, 30001)


def test_some_gates_may_be_switched() -> None:
    assert len(SWITCHABLE) > 50


@pytest.mark.parametrize("kubernetes", versions.known())
def test_what_this_program_sets_itself_is_known_by_every_version(kubernetes: str) -> None:
    there = known_flags.of(kubernetes)
    assert there is not None, f"python -m artifacts.known_flags {kubernetes} FOLDER writes it"
    made = planned(lab({"cluster.kubernetes": kubernetes}))
    documents = list(yaml.safe_load_all(kubeadm.init(made, made.masters[0])))
    (cluster,) = (one for one in documents if one["kind"] == "ClusterConfiguration")
    for section, program in (
        ("apiServer", "kube-apiserver"),
        ("controllerManager", "kube-controller-manager"),
        ("scheduler", "kube-scheduler"),
    ):
        given = {each["name"] for each in cluster[section]["extraArgs"]}
        assert given <= there.flags[program].keys(), program
