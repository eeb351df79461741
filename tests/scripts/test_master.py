"""Files of the API server: written before it changes, taken away when it no longer names them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import pytest

from stacks.phases import desired
from tests.scripts.shell import SCRIPTS, Shell

CONFIG = """kind: ClusterConfiguration
---
apiVersion: kubelet.config.k8s.io/v1beta1
maxPods: 110"""
VALUES = {
    "ADDRESS": "10.0.0.11",
    "KUBEADM_CONFIG": CONFIG,
    "AUDIT_POLICY": "kind: Policy",
    "ADMISSION_CONFIG": "",
    "OIDC_CA": "",
    "AUDIT_WEBHOOK": "",
    "AUTHENTICATION": "",
    "CERTIFICATES": "aa",
    "KEYS": "",
    "SERVING_ISSUED": "",
    "APPLIED": "bb",
}
ALL = {**VALUES, "ADMISSION_CONFIG": "kind: AdmissionConfiguration", "OIDC_CA": "PEM"}
# What touches a real control plane says what it finds instead.
FAKES = """
CONFIG=$PWD/kubeadm.yaml MANIFEST=$PWD/manifest KUBECONFIGS=""
API_FILES=${API_FILES//\\/etc\\/kubernetes/$PWD\\/kubernetes}
own() { :; }
make_master() { touch "$MANIFEST"; echo "made with $(ls kubernetes | xargs)"; }
change_master() { echo "changed with $(ls kubernetes | xargs)"; }
api_server_ready() { :; }
kubectl_admin() { :; }
settings_published() { :; }
publish_settings() { echo published; }
remember_static_pods() { :; }
renew_kubeconfigs() { :; }
follow_kubelet_settings() { :; }
end_update() { :; }
announce() { :; }
approver() { :; }
log() { echo "$*"; }
"""


def run(shell: Shell, values: Mapping[str, str]) -> list[str]:
    return shell.run(f"{FAKES}main", phase="master", values=values).splitlines()


def there(shell: Shell) -> list[str]:
    return sorted(path.name for path in (shell.folder / "kubernetes").iterdir())


def test_a_master_has_the_files_that_are_wanted_and_no_others(shell: Shell) -> None:
    assert "made with audit-policy.yaml" in run(shell, VALUES)
    assert there(shell) == ["audit-policy.yaml"]
    policy = shell.folder / "kubernetes/audit-policy.yaml"
    assert policy.read_text() == "kind: Policy\n"
    assert policy.stat().st_mode & 0o777 == 0o600


def test_a_new_file_is_there_before_the_api_server_changes(shell: Shell) -> None:
    run(shell, VALUES)
    said = run(shell, ALL)
    assert "changed with admission.yaml audit-policy.yaml oidc-ca.crt" in said
    assert run(shell, ALL) == ["done, changes=0"]


def test_a_file_goes_after_the_api_server_has_changed(shell: Shell) -> None:
    """Until then its container may have to be recreated, which fails without the file."""
    run(shell, ALL)
    said = run(shell, VALUES)
    assert "changed with admission.yaml audit-policy.yaml oidc-ca.crt" in said
    assert there(shell) == ["audit-policy.yaml"]
    assert run(shell, VALUES) == ["done, changes=0"]


def test_a_file_that_a_killed_run_left_goes_with_the_next(shell: Shell) -> None:
    run(shell, VALUES)
    (shell.folder / "kubernetes/oidc-ca.crt").write_text("left")
    said = run(shell, VALUES)
    assert not [line for line in said if line.startswith("changed with")]
    assert there(shell) == ["audit-policy.yaml"]


def test_a_change_that_failed_is_done_again_though_the_files_are_there(shell: Shell) -> None:
    run(shell, VALUES)
    failing = FAKES.replace('change_master() { echo "', 'change_master() { false; echo "')
    shell.run(f"{failing}main", phase="master", values=ALL, fails=True)
    assert any(line.startswith("changed with") for line in run(shell, ALL))


@pytest.mark.parametrize("name", ["AUDIT_POLICY", "ADMISSION_CONFIG", "OIDC_CA"])
def test_another_text_restarts_the_api_server(shell: Shell, name: str) -> None:
    run(shell, ALL)
    said = run(shell, {**ALL, name: "another"})
    assert any(line.startswith("changed with") for line in said)


def test_every_step_of_a_rotation_restarts_the_api_server(shell: Shell) -> None:
    """It reads its CAs of etcd and keys of service accounts at its start only."""
    run(shell, VALUES)
    for keys in ("etcd=1,2", "etcd=2,1", "etcd=2"):
        said = run(shell, {**VALUES, "KEYS": keys})
        assert any(line.startswith("changed with") for line in said), keys
        assert run(shell, {**VALUES, "KEYS": keys}) == ["done, changes=0"]


def test_settings_of_the_kubelet_restart_no_api_server(shell: Shell) -> None:
    run(shell, VALUES)
    said = run(shell, {**VALUES, "KUBEADM_CONFIG": CONFIG.replace("110", "60")})
    assert "published" in said
    assert not [line for line in said if line.startswith("changed with")]


def test_without_the_files_of_today_the_sum_is_that_of_masters_made_before_them(
    shell: Shell,
) -> None:
    """Or every API server would restart because the program has learnt something."""
    run(shell, VALUES)
    static_pods = "kind: ClusterConfiguration\n---\nkind: Policy\n"
    before = hashlib.sha256(static_pods.encode()).hexdigest()
    assert (shell.state / "master.sum").read_text() == f"{before}  -\n"


def test_the_plan_and_the_phase_mean_the_same_files() -> None:
    text = (SCRIPTS / "master.sh").read_text()
    entries = [f"{name}={desired.PATHS[name]}" for name in VALUES if name in desired.PATHS]
    found = re.search(r'API_FILES="([^"]*)"', text)
    assert found
    assert found[1].split() == entries[1:]


def says(shell: Shell, test: str) -> str:
    code = f"if {test}; then echo yes; else echo no; fi"
    return shell.run(code, phase="master", values=VALUES).strip()


@pytest.mark.parametrize("edit", ["echo more >>{}", "rm {}"])
def test_static_pods_changed_by_hand_are_seen(shell: Shell, edit: str) -> None:
    pod = shell.folder / "kube-scheduler.yaml"
    pod.write_text("pod")
    assert says(shell, "static_pods_changed") == "no", "an older version kept no sums"
    shell.run(f'sha256sum {pod} >"$STATE/static-pods.sums"')
    assert says(shell, "static_pods_changed") == "no"
    shell.run(edit.format(pod))
    assert says(shell, "static_pods_changed") == "yes"


def test_static_pods_changed_by_hand_are_made_again(shell: Shell) -> None:
    run(shell, VALUES)
    changed = FAKES + "static_pods_changed() { :; }\n"
    said = shell.run(f"{changed}main", phase="master", values=VALUES).splitlines()
    assert "changed with audit-policy.yaml" in said


def test_a_kubeconfig_that_was_removed_is_made_again(shell: Shell) -> None:
    run(shell, VALUES)
    code = f'{FAKES}KUBECONFIGS="admin scheduler"; kubeconfigs() {{ echo made; }}\n'
    assert "made" in shell.run(f"{code}main", phase="master", values=VALUES).splitlines()


def test_a_kubeconfig_past_rbac_stays_on_no_master(shell: Shell) -> None:
    run(shell, VALUES)
    file = shell.root / "etc/kubernetes/super-admin.conf"
    file.parent.mkdir(parents=True)
    file.touch()
    assert run(shell, VALUES) == [f"removed {file}", "done, changes=1"]
    assert not file.exists()
    assert run(shell, VALUES) == ["done, changes=0"]
    # kubeadm init makes it where a cluster begins, and no step of kube-ha does.
    shell.stub("kubeadm")
    shell.stub("kubectl")
    code = "trust_ca() { :; }; mkdir -p $STATE $ROOT/etc/kubernetes; touch $BREAK_GLASS; kubeconfigs 2>/dev/null || true; clear_away"
    shell.stub("systemctl")
    shell.run(code, phase="master", values=VALUES)
    assert [call for call in shell.calls if "super-admin" in call or "kubeconfig all" in call] == []
    assert not file.exists()


def test_what_the_cluster_keeps_for_joining_is_published_again(shell: Shell) -> None:
    shell.stub("kubectl", "echo configmap/kubeadm-config; echo configmap/kubelet-config")
    assert says(shell, "settings_published") == "yes"
    shell.stub("kubectl", "echo configmap/kubelet-config")
    assert says(shell, "settings_published") == "no"
    run(shell, VALUES)
    fakes = FAKES.replace("settings_published() { :; }", "settings_published() { false; }")
    assert "published" in shell.run(f"{fakes}main", phase="master", values=VALUES).splitlines()
