"""Another Kubernetes version on a master: what waits for the API server, in which order, and what is refused."""

from __future__ import annotations

import pytest

from tests.scripts.shell import Shell

NODE = {
    "ROLES": "etcd master",
    "KUBERNETES": "1.36.3",
    "ARTEFACTS": "kubelet http://mirror/kubelet new",
    "KUBELET_UNIT": "",
    "KUBELET_DROPIN": "",
    "APPLIED": "aa",
}
MASTER = {
    "ADDRESS": "10.0.0.11",
    "KUBEADM_CONFIG": "kubernetesVersion: v1.36.3",
    "AUDIT_POLICY": "",
    "ADMISSION_CONFIG": "",
    "OIDC_CA": "",
    "CERTIFICATES": "aa",
    "APPLIED": "bb",
}
STAGE = """
kubelet_made() { :; }
fetch() { echo "fetched $2"; mkdir -p "${3%/*}"; echo "$2" >"$3"; }
install_binary() { echo "installed $3"; }
stage_kubelet http://mirror/kubelet "$SUM"
echo "there: "$(cat "$NEXT"/kubelet "$NEXT"/kubelet.sum 2>/dev/null || true)
"""


def stage(shell: Shell, wanted: str) -> list[str]:
    """Phase node with a wanted kubelet, as a list of what it did; last what is beside."""
    said = shell.run(STAGE, phase="node", values={**NODE, "SUM": wanted}).splitlines()
    return [line for line in said if "wrote" not in line]


@pytest.fixture
def installed(shell: Shell) -> Shell:
    """A machine whose kubelet is `old`."""
    shell.run('echo old >"$STATE/kubelet.artefact"')
    return shell


def test_another_kubelet_is_put_beside_the_one_that_runs(installed: Shell) -> None:
    assert stage(installed, "new") == ["fetched new", "there: new new"]
    assert stage(installed, "new") == ["there: new new"]


def test_a_kubelet_beside_it_goes_when_the_change_is_taken_back(installed: Shell) -> None:
    stage(installed, "new")
    assert stage(installed, "old") == ["there: "]


def test_a_third_version_takes_the_place_of_the_second(installed: Shell) -> None:
    stage(installed, "new")
    assert stage(installed, "newer") == ["fetched newer", "there: newer newer"]


def test_a_kubelet_changed_by_hand_is_put_right_at_once(installed: Shell) -> None:
    """It is the same version: nothing has to drain."""
    installed.run('echo "1 1 $PWD/gone" >"$STATE/kubelet.files"')
    assert stage(installed, "old") == ["installed old", "there: "]


def test_a_download_that_was_cut_off_is_begun_again(installed: Shell) -> None:
    stage(installed, "new")
    (installed.folder / "home/next/kubelet").unlink()
    assert stage(installed, "new") == ["fetched new", "there: new new"]


@pytest.mark.parametrize(
    ("roles", "made", "waits"),
    [
        ("etcd master", "return 0", "yes"),
        ("etcd master", "return 1", "no"),
        ("worker", "return 0", "no"),
    ],
)
def test_only_the_kubelet_of_a_master_waits(
    shell: Shell, roles: str, made: str, waits: str
) -> None:
    code = f"kubelet_made() {{ {made}; }}; if waits_for_api_server; then echo yes; else echo no; fi"
    assert shell.run(code, phase="node", values={**NODE, "ROLES": roles}).strip() == waits


PUBLISHED = "apiVersion: kubeadm.k8s.io/v1beta4\nkubernetesVersion: v{}\nnetworking: {{}}"


def goes(shell: Shell, wanted: str, published: str, own: str = "") -> str:
    """What phase node says to a wanted version; the cluster answers with one, or not at all."""
    answer = PUBLISHED.format(published) if published else ""
    shell.stub("kubectl", f"cat <<'END'\n{answer}\nEND" if published else "exit 1")
    mark = f'echo v{own} >"$STATE/kubernetes"; ' if own else ""
    code = f"kubelet_made() {{ :; }}; {mark}refuse_older_minor; echo continues"
    older = bool(own or published) and wanted.startswith("1.35") and "1.36" in (published or own)
    return shell.run(code, phase="node", values={**NODE, "KUBERNETES": wanted}, fails=older)


@pytest.mark.parametrize(
    ("wanted", "published", "own"),
    [
        pytest.param("1.36.3", "1.35.4", "1.35.4", id="up"),
        pytest.param("1.35.4", "1.35.4", "", id="back before any master has finished"),
        pytest.param("1.36.1", "1.36.3", "1.36.3", id="a patch back"),
        pytest.param("1.35.4", "1.35.4", "1.36.3", id="back after a restore"),
        pytest.param("1.35.4", "", "", id="nobody knows"),
    ],
)
def test_versions_a_master_goes_to(shell: Shell, wanted: str, published: str, own: str) -> None:
    shell.stub("kubectl", "")
    assert goes(shell, wanted, published, own).splitlines()[-1] == "continues"


@pytest.mark.parametrize(("published", "own"), [("1.36.3", ""), ("", "1.36.3")])
def test_a_master_does_not_go_back_once_one_has_finished(
    shell: Shell, published: str, own: str
) -> None:
    said = goes(shell, "1.35.4", published, own)
    assert "has finished Kubernetes 1.36.3, so it cannot go back to 1.35.4" in said
    assert "do: set cluster.kubernetes to 1.36.3 and run pulumi up" in said


CHANGE = """
MANIFEST=$PWD/kubernetes/manifests/kube-apiserver.yaml; CONFIG=$PWD/kubeadm.yaml; MANIFESTS=${MANIFEST%/*} ASIDE=$PWD/aside
mkdir -p "${MANIFEST%/*}"; touch "$MANIFEST" "${MANIFEST%/*}"/kube-{controller-manager,scheduler}.yaml
api_server_ready() { :; }
known_masters() { echo 3; }
other_ready_masters() { echo "$OTHERS"; }
kubeconfigs() { :; }
taken_back() { echo steady >>"$PWD/calls"; }
nothing_on() { echo "closed $1: $(cd "${MANIFEST%/*}" && echo kube-*)" >>"$PWD/calls"; }
api_server_ended() { echo "ended" >>"$PWD/calls"; }
mark_installed() { :; }
kubelet_started() { :; }
kubelet_version() { if [[ $1 == */next/* ]]; then echo v1.36.3; else echo "$IS"; fi; }
begin_update() { echo "evicted for $1, $2" >>"$PWD/calls"; }
mv() { if [[ $2 == */next/kubelet ]]; then echo swapped >>"$PWD/calls"; rm -f "$2"; else command mv "$@"; fi; }
sleep() { :; }
log() { :; }
"""


def change(
    shell: Shell, *, staged: bool, others: int = 2, runs: str = "v1.35.4", fails: bool = False
) -> list[str]:
    """Calls of a change of the control plane, options left out."""
    beside = 'mkdir -p "$NEXT"; echo new | tee "$NEXT/kubelet" >"$NEXT/kubelet.sum"; '
    code = f"{CHANGE}{beside if staged else ''}change_master"
    shell.run(
        code, phase="master", values={**MASTER, "OTHERS": str(others), "IS": runs}, fails=fails
    )
    return [call.partition(" --")[0] for call in shell.calls]


@pytest.fixture
def master(shell: Shell) -> Shell:
    """A machine whose images are all but one there, and that holds one of the two leases."""
    images = "".join(
        f"echo registry.k8s.io/{name}\n"
        for name in ("kube-apiserver:v1", "kube-scheduler:v1", "kube-proxy:v1", "etcd:3")
    )
    shell.stub("kubeadm", f"if [[ $1 == config ]]; then\n{images}fi")
    shell.stub("ctr", '[[ $* == *"images ls"* ]] && echo registry.k8s.io/kube-scheduler:v1; true')
    shell.stub("uname", "echo me")
    shell.stub("systemctl")
    shell.stub(
        "kubectl",
        'case "$*" in *"get lease kube-scheduler"*) echo other_1 ;; *"get lease"*) echo me_1 ;; esac',
    )
    return shell


def test_an_upgrade_pulls_drains_swaps_and_waits_in_this_order(master: Shell) -> None:
    calls = change(master, staged=True)
    order = [
        "kubeadm config images list",
        "ctr -n k8s.io images ls -q",
        "ctr -n k8s.io images pull",
        "evicted for kubelet 1.35.4 -> 1.36.3, intrusive",
        "closed 10257: kube-apiserver.yaml",
        "closed 10259: kube-apiserver.yaml",
        "closed 6443: kube-*",
        "ended",
        "systemctl stop kubelet",
        "swapped",
        "kubeadm init phase kubelet-start",
        "kubeadm init phase control-plane all",
        "steady",
    ]
    assert [call for call in calls if call in order] == order
    leases = [call for call in master.calls if "patch lease" in call]
    assert len(leases) == 1, "of the two leases this master holds one"
    assert "patch lease kube-controller-manager" in leases[0]


def test_a_flag_stops_the_api_server_alone(master: Shell) -> None:
    calls = change(master, staged=False)
    assert "closed 6443: kube-controller-manager.yaml kube-scheduler.yaml" in calls
    assert not [call for call in calls if "10257" in call or call.startswith("systemctl")]


def test_a_patch_of_the_kubelet_evicts_nobody(master: Shell) -> None:
    calls = change(master, staged=True, runs="v1.36.1")
    assert "swapped" in calls
    assert not [call for call in calls if call.startswith("evicted")]


def test_a_change_that_was_cut_off_goes_on_where_no_api_answers(master: Shell) -> None:
    """The only API server is unavailable already: nobody could be evicted, and waiting for it would be forever."""
    master.stub("kubectl", "exit 1")
    calls = change(master, staged=True)
    assert "swapped" in calls
    assert not [call for call in calls if call.startswith("evicted")]


def test_nothing_is_pulled_that_is_there(master: Shell) -> None:
    change(master, staged=True)
    pulled = [call.split()[-1] for call in master.calls if "images pull" in call]
    assert pulled == ["registry.k8s.io/kube-apiserver:v1"]


def test_the_last_api_server_that_serves_is_not_stopped(master: Shell) -> None:
    calls = change(master, staged=True, others=0, fails=True)
    assert not [call for call in calls if call.startswith(("closed", "systemctl", "swapped"))]


def test_a_change_waits_until_the_api_server_is_steady(shell: Shell) -> None:
    """Good once is not enough: the check fails in between, and the count starts again."""
    code = (
        "api_server_ready() { echo x >>checks; (($(wc -l <checks) != 3)); }; taken_back() { :; }; sleep() { :; }; "
        "wait_for 20 steady steady; wc -l <checks"
    )
    assert shell.run(code, phase="master", values=MASTER).strip() == "8"


@pytest.mark.parametrize(
    ("containers", "tasks", "ended"),
    [
        ("abc", "TASK PID STATUS\nabc 12 RUNNING", "no"),
        ("abc\ndef", "TASK PID STATUS\nxyz 9 RUNNING\ndef 12 RUNNING", "no"),
        ("abc", "TASK PID STATUS\nabc 12 STOPPED\nxyz 9 RUNNING", "yes"),
        ("", "TASK PID STATUS\nxyz 9 RUNNING", "yes"),
    ],
)
def test_the_old_api_server_has_ended_when_its_container_has(
    shell: Shell, containers: str, tasks: str, ended: str
) -> None:
    """Its port closes earlier, and a kubelet that stops then leaves it running."""
    shell.stub("ctr", f'if [[ $* == *tasks* ]]; then echo "{tasks}"; else echo "{containers}"; fi')
    code = "if api_server_ended >/dev/null; then echo yes; else echo no; fi"
    assert shell.run(code, phase="master", values=MASTER).strip() == ended
    (asked,) = [call for call in shell.calls if "containers ls" in call]
    assert "kube-apiserver-master-1" in asked


@pytest.mark.parametrize(
    ("row", "back"),
    [
        ("kubernetes-api,master-1,0,0,,,,,,UP,1", "yes"),
        ("kubernetes-api,master-1,0,0,,,,,,UP 1/2,1", "no"),
        ("kubernetes-api,master-1,0,0,,,,,,DOWN,1", "no"),
        ("kubernetes-api,master-12,0,0,,,,,,UP,1", "no"),
        ("kubernetes-api,master-1,0,0,,,,,,DOWN,1\nkubernetes-api,master-2,0,,UP,1", "no"),
    ],
)
def test_the_own_haproxy_says_when_it_has_taken_the_master_back(
    shell: Shell, row: str, back: str
) -> None:
    shell.stub("socat", f"cat <<'END'\n# pxname,svname\n{row}\nEND")
    code = "if taken_back; then echo yes; else echo no; fi"
    assert shell.run(code, phase="master", values=MASTER).strip() == back


ETCD = {
    "ADDRESS": "10.0.0.11",
    "MEMBERS": "master-1=10.0.0.11 master-2=10.0.0.12",
    "ARCH_DIR": "etcd-v3.6.16-linux-amd64",
}


@pytest.mark.parametrize(
    ("wanted", "reached", "said"),
    [
        ("3.6.16", "3.5.0", ""),
        ("3.6.15", "3.6.0", ""),
        ("3.5.35", "3.5.0", ""),
        ("3.5.35", "not_decided", ""),
        (
            "3.5.35",
            "3.6.0",
            "all etcd members have reached 3.6, and its data is nothing for 3.5.35",
        ),
    ],
)
def test_etcd_goes_back_only_until_all_members_have_gone_on(
    shell: Shell, wanted: str, reached: str, said: str
) -> None:
    answer = f'{{"etcdserver":"3.6.16","etcdcluster":"{reached}","storage":"3.6.0"}}'
    shell.stub("curl", f"[[ $* == *10.0.0.12* ]] || exit 7; echo '{answer}'")
    values = {**ETCD, "ARCH_DIR": f"etcd-v{wanted}-linux-amd64"}
    code = "refuse_older_etcd; echo continues"
    out = shell.run(code, phase="etcd-member", values=values, fails=bool(said))
    assert (out == "continues\n") is not bool(said)
    assert said in out
    assert not said or "do: set cluster.etcd to a version of 3.6 and run pulumi up" in out
