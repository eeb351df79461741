"""Rotations step by step: what each node trusts, what signs, what changes, in which order."""

from __future__ import annotations

import itertools
import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from stacks.cluster import rotation
from stacks.config.pki import Step
from tests.plan.graph import Graph
from tests.plan.recording import ROOT, Engine, RunError
from tests.plan.registration import Run
from tests.plan.settled import Stacks, assert_exactly
from tests.scripts.shell import SCRIPTS, Shell
from tests.unit.configs import lab
from toolchain.values import plain

MASTERS = ["master-1", "master-2", "master-3"]
WORKERS = ["worker-1", "worker-2"]
PKI = "/etc/kubernetes/pki"
STEPS: tuple[Step, ...] = ("trust", "issue", "drop")
GATE = ["! dev-acceptance-attempt", "~ dev-nodes", "~ dev-gate"]


def config(generation: int, step: Step, *paths: str) -> dict[str, object]:
    """Those rotations in that step; all of them when none is named."""
    said = {"generation": generation, "step": step}
    return lab(dict.fromkeys(paths or rotation.PATHS.values(), said))


def files(run: Run, node: str) -> dict[str, str]:
    """Keys and certificates that a node is sent, by path."""
    out: dict[str, str] = {}
    for kind in ("etcd-keys", "master-shared-keys", "master-keys"):
        text = run.named(f"dev-{node}-{kind}").text("stdin")
        values = dict(word.split("=", 1) for word in shlex.split(text, comments=True))
        for number in range(1, int(values["PKI_COUNT"]) + 1):
            out[values[f"PKI_PATH_{number}"]] = values[f"PKI_TEXT_{number}"]
    return out


def certificates(text: str) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(text.encode())


def names(text: str) -> list[str]:
    return [
        str(cert.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)
        for cert in certificates(text)
    ]


def is_signed(leaf: str, authority: x509.Certificate) -> bool:
    try:
        certificates(leaf)[0].verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Rotated:
    """A cluster whose keys all went from generation 1 to 2; its ups by step."""

    born: Run
    runs: Mapping[Step, Run]
    engine: Engine

    @property
    def all(self) -> list[Run]:
        return [self.born, *self.runs.values()]


@pytest.fixture(scope="module")
def rotated(stacks: Stacks) -> Rotated:
    engine, born = stacks.settled(lab())
    runs: dict[Step, Run] = {}
    for step in STEPS:
        runs[step] = engine.up(config(2, step))
        assert_exactly(engine.up(config(2, step)), [])
    return Rotated(born, runs, engine)


BUNDLES = {
    f"{PKI}/ca.crt": ("kubernetes", "kubernetes-2"),
    f"{PKI}/front-proxy-ca.crt": ("front-proxy-ca", "front-proxy-ca-2"),
}


@pytest.mark.parametrize("path", BUNDLES)
def test_the_ca_that_signs_comes_first(rotated: Rotated, path: str) -> None:
    """kubeadm takes the first certificate of a file for the CA whose key it has."""
    old, new = BUNDLES[path]
    found = [names(files(run, "master-2")[path]) for run in rotated.all]
    assert found == [[old], [old, new], [new, old], [new]]


@pytest.mark.parametrize("path", ["/etc/kube-ha/etcd/ca.crt", f"{PKI}/etcd/ca.crt"])
def test_etcds_bundle_stays_the_same_while_leafs_change(rotated: Rotated, path: str) -> None:
    found = [names(files(run, "master-2")[path]) for run in rotated.all]
    both = ["etcd-ca", "etcd-ca-2"]
    assert found == [["etcd-ca"], both, both, ["etcd-ca-2"]]


def test_the_controller_manager_signs_with_one_certificate_and_its_key(rotated: Rotated) -> None:
    path = f"{PKI}/signing-ca.crt"
    assert path not in files(rotated.born, "master-1")
    found = [names(files(run, "master-1")[path]) for run in rotated.runs.values()]
    assert found == [["kubernetes"], ["kubernetes-2"], ["kubernetes-2"]]
    keys = [files(run, "master-1")[f"{PKI}/ca.key"] for run in rotated.all]
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_at_every_moment_of_every_step_everybody_trusts_everybody(rotated: Rotated) -> None:
    """Whoever has made a step and whoever has not: each one's certificates against the other's CAs."""
    trust = {
        f"{PKI}/apiserver.crt": [f"{PKI}/ca.crt"],
        f"{PKI}/apiserver-kubelet-client.crt": [f"{PKI}/ca.crt"],
        f"{PKI}/front-proxy-client.crt": [f"{PKI}/front-proxy-ca.crt"],
        f"{PKI}/apiserver-etcd-client.crt": ["/etc/kube-ha/etcd/ca.crt"],
        "/etc/kube-ha/etcd/server.crt": ["/etc/kube-ha/etcd/ca.crt", f"{PKI}/etcd/ca.crt"],
        "/etc/kube-ha/etcd/peer.crt": ["/etc/kube-ha/etcd/ca.crt"],
        "/etc/kube-ha/etcd/client.crt": ["/etc/kube-ha/etcd/ca.crt"],
    }
    sent = [(files(run, "master-1"), files(run, "master-2")) for run in rotated.all]
    for before, after in itertools.pairwise(sent):
        for mine, theirs in ((before[0], after[1]), (after[0], before[1]), (after[0], after[1])):
            for leaf, bundles in trust.items():
                for bundle in bundles:
                    known = certificates(theirs[bundle])
                    assert any(is_signed(mine[leaf], ca) for ca in known), f"{leaf}: {bundle}"


def test_after_the_last_step_nobody_trusts_what_the_first_ca_signs(rotated: Rotated) -> None:
    old, new = files(rotated.born, "master-1"), files(rotated.runs["drop"], "master-1")
    for leaf, bundle in (
        (f"{PKI}/apiserver.crt", f"{PKI}/ca.crt"),
        (f"{PKI}/front-proxy-client.crt", f"{PKI}/front-proxy-ca.crt"),
        ("/etc/kube-ha/etcd/peer.crt", "/etc/kube-ha/etcd/ca.crt"),
    ):
        assert not any(is_signed(old[leaf], ca) for ca in certificates(new[bundle])), leaf
        assert any(is_signed(new[leaf], ca) for ca in certificates(new[bundle])), leaf


def test_tokens_are_checked_with_both_keys_while_one_signs(rotated: Rotated) -> None:
    found = [files(run, "master-1") for run in rotated.all]
    publics = [text[f"{PKI}/sa.pub"].count("BEGIN PUBLIC KEY") for text in found]
    assert publics == [1, 2, 2, 1]
    keys = [text[f"{PKI}/sa.key"] for text in found]
    assert keys[0] == keys[1] != keys[2] == keys[3]
    assert found[0][f"{PKI}/sa.pub"] in found[1][f"{PKI}/sa.pub"]
    assert found[3][f"{PKI}/sa.pub"] in found[1][f"{PKI}/sa.pub"]


def test_secrets_can_be_read_by_every_key_that_may_have_written_them(rotated: Rotated) -> None:
    found = []
    for run in rotated.all:
        parsed = yaml.safe_load(files(run, "master-1")["/etc/kubernetes/encryption.yaml"])
        (entry,) = parsed["resources"]
        found.append([key["name"] for key in entry["providers"][0]["secretbox"]["keys"]])
    both = ["key-1", "key-1-seed-2", "key-2", "key-2-seed-2"]
    assert found == [["key-1"], both, both[::-1], ["key-2-seed-2"]]
    written = [run.named("dev-rotation").text("stdin") for run in rotated.runs.values()]
    assert [re.findall(r"ENCRYPTS=(\S+)", text) for text in written] == [["key-1"], ["key-2-seed-2"], ["key-2-seed-2"]]  # fmt: skip
    keys = [_secretbox(run) for run in rotated.all]
    assert len(set(keys[1].values())) == 4, "each is another key"
    assert {**keys[0], **keys[3]}.items() <= keys[1].items()
    assert keys[1] == keys[2]


def _secretbox(run: Run) -> dict[str, str]:
    parsed = yaml.safe_load(files(run, "master-1")["/etc/kubernetes/encryption.yaml"])
    held = parsed["resources"][0]["providers"][0]["secretbox"]["keys"]
    return {key["name"]: key["secret"] for key in held}


def test_another_seed_makes_another_key_of_snapshots_and_the_same_cluster(rotated: Rotated) -> None:
    found = [files(run, "master-2")["/etc/kube-ha/etcd/backup.key"] for run in rotated.all]
    assert found[0] == found[1] != found[2] == found[3]
    ids = {
        re.search(r"CLUSTER_ID=(\S+)", run.named("dev-gate").text("stdin")) for run in rotated.all
    }
    assert len({found[1] for found in ids if found}) == 1
    # Snapshots of before open still, whatever step it is.
    assert plain(rotated.engine.outputs["backupKey"]) == found[3]
    assert plain(rotated.engine.outputs["backupKeys"]) == {"1": found[0], "2": found[3]}


def test_workers_trust_and_are_known_by_the_bundle(rotated: Rotated) -> None:
    found = []
    for run in rotated.all:
        text = run.named("dev-worker-1-node").text("stdin")
        values = dict(word.split("=", 1) for word in shlex.split(text, comments=True))
        found.append(names(values["CA_CRT"]))
    old, new = "kubernetes", "kubernetes-2"
    assert found == [[old], [old, new], [new, old], [new]]


def test_what_leaves_the_stack_trusts_both(rotated: Rotated) -> None:
    """The operator's kubeconfig of one step works in the next."""
    gone = {change.name for change in rotated.runs["drop"].changes if change.mark == "-"}
    assert gone == {
        *(f"dev-pki-{ca}-ca{part}" for ca in ("kubernetes", "etcd", "front-proxy") for part in ("", "-key")),
        "dev-pki-service-account",
    }  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_masters_change_one_by_one_then_the_cluster_then_workers(
    rotated: Rotated, step: Step
) -> None:
    graph = Graph(rotated.runs[step])
    for before, after in itertools.pairwise(MASTERS):
        for phase in ("master-shared-keys", "etcd", "master"):
            assert f"dev-{before}-master" in graph.before(f"dev-{after}-{phase}")
    # Leafs are read while their programs run, by those who know both CAs: they wait for nobody.
    for node, leafs in itertools.product(MASTERS, ("etcd-keys", "master-keys")):
        assert not {f"dev-{other}-node" for other in MASTERS} & graph.before(f"dev-{node}-{leafs}")
        assert f"dev-{node}-{leafs}" in graph.before("dev-snapshot")
    assert "dev-master-3-master" in graph.before("dev-rotation")
    assert "dev-rotation" in graph.before("dev-gate")
    assert "dev-rotation" in graph.before("dev-addon-coredns")
    for worker in WORKERS:
        assert "dev-master-3-master" in graph.before(f"dev-{worker}-node")


def stamped(phase: str, nodes: list[str]) -> list[str]:
    return [
        line
        for node in nodes
        for line in (f"! {_name(node, phase)}-attempt", f"~ {_name(node, phase)}")
    ]


def _name(node: str, phase: str) -> str:
    return f"dev-{node}-{phase}" if phase else f"dev-{node}"


KEYS = [
    *stamped("master-shared-keys", MASTERS),
    *stamped("master-keys", MASTERS),
    *stamped("master", MASTERS),
    *("+ dev-rotation", "+ dev-rotation-attempt"),
    "~ dev-snapshot",  # keys change: etcd is saved before
    *GATE,
]
NODES = [
    line
    for node in (*MASTERS, *WORKERS)
    for line in (f"! dev-{node}-scripts", f"~ dev-{node}-node")
]
# Their pods restart, to read the CA and to have new tokens.
ADDONS = stamped("", ["addon-coredns", "addon-flannel", "addon-kube-proxy"])
TRUST = {
    "controlPlane.encryptionKey": [],
    "pki.rotation.seed": ["+ dev-pki-seed-2"],
    "pki.rotation.serviceAccount": ["+ dev-pki-service-account-2", *ADDONS],
    "pki.rotation.frontProxy": ["+ dev-pki-front-proxy-ca-2", "+ dev-pki-front-proxy-ca-2-key"],
    "pki.rotation.etcd": [
        *("+ dev-pki-etcd-ca-2", "+ dev-pki-etcd-ca-2-key"),
        *(*stamped("etcd-keys", MASTERS), *stamped("etcd", MASTERS)),
    ],
    "pki.rotation.kubernetes": [
        *("+ dev-pki-kubernetes-ca-2", "+ dev-pki-kubernetes-ca-2-key"),
        *(*NODES, *ADDONS),
        *("! dev-wave-0", "! dev-wave-1"),
    ],
}


@pytest.mark.parametrize("path", TRUST)
def test_only_those_who_read_it_change(stacks: Stacks, path: str) -> None:
    engine, _ = stacks.settled(lab())
    assert_exactly(engine.up(config(2, "trust", path)), [*KEYS, *TRUST[path]])


def test_a_skipped_step_touches_nothing(stacks: Stacks) -> None:
    engine, _ = stacks.settled(lab())
    before = dict(engine.resources)
    with pytest.raises(RunError, match=re.escape("set {generation: 2, step: trust}")):
        engine.up(config(2, "issue", "pki.rotation.etcd"))
    assert engine.resources == before


def test_a_step_that_broke_off_is_taken_back_and_runs_again(stacks: Stacks) -> None:
    """No file of the step is left though the encryption key shows in no public text."""
    path = "controlPlane.encryptionKey"
    engine, _ = stacks.settled(lab())
    with pytest.raises(RunError):
        engine.up(config(2, "trust", path), failing={"dev-master-2-master-shared-keys"})
    changed = {change.name for change in engine.up(lab()).changes}
    assert {f"dev-{name}-master-shared-keys" for name in ("master-1", "master-2")} <= changed
    assert "dev-master-1-master" in changed


KUBECONFIGS = ("admin", "controller-manager", "kubelet", "scheduler")
# What master.sh does of each step with kubeadm: kubeconfigs that exist, then a certificate of the kubelet.
_KUBEADM = """
export PATH={bin}:$PATH
source {scripts}/identity.sh
embed_ca now/pki/ca.crt conf/*.conf
for name in admin controller-manager kubelet scheduler; do
  kubeadm init phase kubeconfig $name --config now/kubeadm.yaml --kubeconfig-dir $PWD/conf >log 2>&1 || die "$(tail -n 3 log)"
done
embed_ca now/pki/ca.crt conf/*.conf
kubeadm kubeconfig user --config now/kubeadm.yaml --client-name system:node:x --org system:nodes 2>log >user
sed -n 's/^ *client-certificate-data: *//p' user | base64 -d >certificate
signed_by now/pki/ca.crt certificate
for file in conf/*.conf; do embedded_ca $file | cmp - now/pki/ca.crt; done
"""


@pytest.mark.slow
def test_kubeadm_takes_the_bundles_of_every_step_and_signs_with_the_first(
    rotated: Rotated, tmp_path: Path
) -> None:
    """The real one: it refuses kubeconfigs that do not trust the signer, and a key that is not its."""
    shell = Shell(tmp_path)
    (tmp_path / "conf").mkdir()
    (kubeadm,) = (ROOT / ".local/bundle/files/dl.k8s.io").rglob(f"v{_version()}/**/amd64/kubeadm")
    for run in rotated.all:
        shutil.rmtree(tmp_path / "now", ignore_errors=True)
        for path, text in files(run, "master-1").items():
            if path.startswith(f"{PKI}/"):
                file = tmp_path / "now/pki" / path.removeprefix(f"{PKI}/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"{text}\n")
        stdin = run.named("dev-master-1-master").text("stdin")
        values = dict(word.split("=", 1) for word in shlex.split(stdin, comments=True))
        text = values["KUBEADM_CONFIG"].replace(PKI, str(tmp_path / "now/pki"))
        (tmp_path / "now/kubeadm.yaml").write_text(text)
        shell.run(_KUBEADM.format(bin=kubeadm.parent, scripts=SCRIPTS))
        assert {path.stem for path in (tmp_path / "conf").iterdir()} == set(KUBECONFIGS)


def _version() -> str:
    cluster = lab()["cluster"]
    assert isinstance(cluster, dict)
    return str(cluster["kubernetes"])
