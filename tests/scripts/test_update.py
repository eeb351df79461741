"""An update of a node that serves: what is evicted, what stays, and what a run that was cut off leaves to the next."""

from __future__ import annotations

import pytest

from tests.scripts.node_api import FOR_EVER, NodeApi
from tests.scripts.shell import Shell

BEGIN = "begin_update 'kubelet 1.35 -> 1.36' intrusive"


def run(shell: Shell, code: str, *, fails: bool = False) -> str:
    needed = 'source "$here/cluster-reader.sh"; source "$here/hooks.sh"'
    return shell.run(f"{needed}; {code}", phase="update", fails=fails)


def test_an_intrusive_update_evicts_and_takes_pods_again_at_its_end(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    api.pod("web-2")
    run(shell, BEGIN)
    assert api.steps == ["dry web-1", "dry web-2", "cordon", "evict web-1", "evict web-2"]
    assert api.cordoned
    assert api.annotations == {"updating": "kubelet 1.35 -> 1.36", "cordoned": "ready"}
    assert api.pods == set()
    out = run(shell, "end_update")
    assert "takes pods again" in out
    assert not api.cordoned
    assert api.annotations == {}


def test_pods_that_belong_to_the_node_and_pods_that_have_ended_stay(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("flannel", owner="DaemonSet")
    api.pod("kube-apiserver", owner="Node", static=True)
    api.pod("job-done", phase="Succeeded")
    api.pod("job-broken", owner="", phase="Failed")
    run(shell, BEGIN)
    assert api.steps == ["cordon"]
    assert len(api.pods) == 4


def test_an_update_that_is_not_intrusive_only_marks_the_node(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    run(shell, "begin_update configuration")
    assert api.steps == ["mark"]
    assert api.annotations == {"updating": "configuration"}
    run(shell, "end_update; finish")
    assert api.annotations == {}
    assert api.pods == {"web-1"}


@pytest.mark.parametrize(
    ("when", "kind", "evicts"),
    [
        ("auto", "", False),
        ("auto", "intrusive", True),
        ("always", "", True),
        ("never", "intrusive", False),
    ],
)
def test_the_config_decides_what_is_evicted(
    shell: Shell, when: str, kind: str, *, evicts: bool
) -> None:
    api = NodeApi.of(shell, drain=f"{when} 300 -")
    api.pod("web-1")
    run(shell, f"begin_update what {kind}")
    assert api.cordoned == evicts
    assert api.pods == (set() if evicts else {"web-1"})
    assert api.annotations["updating"] == "what"


def test_what_would_block_is_listed_and_nothing_is_changed(shell: Shell) -> None:
    api = NodeApi.of(shell, drain="auto 0 -")
    for name in ("web-1", "web-2"):
        api.pod(name)
    api.pod("naked", owner="")
    api.block(**{"web-1": FOR_EVER, "web-2": FOR_EVER})
    out = run(shell, BEGIN, fails=True)
    for name in ("web-1", "web-2"):
        assert f"default/{name} (HTTP 429 Cannot evict pod. The disruption budget web" in out
    assert "default/naked (has no controller" in out
    assert "PodDisruptionBudget" in out
    assert api.steps == ["dry web-1", "dry web-2"]
    assert not api.cordoned


def test_a_budget_that_is_used_up_for_a_while_is_waited_for_in_service(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    api.block(**{"web-1": 1})
    run(shell, BEGIN)
    assert api.steps == ["dry web-1", "dry web-1", "cordon", "evict web-1"]


def test_an_eviction_that_is_refused_after_all_is_tried_again(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    out = run(shell, f"expect_evictions() {{ :; }}; echo '{{\"web-1\": 2}}' >blocked; {BEGIN}")
    assert api.steps == ["cordon", *["evict web-1"] * 3]
    assert "ERROR" not in out, "it was told to the cluster as a failure"


@pytest.mark.parametrize(
    "moves",
    [
        {"labels": {"kubevirt.io": "virt-launcher"}},
        {"annotations": {"kube-ha.io/moves-when-refused": "true"}},
    ],
)
def test_a_pod_that_moves_because_it_was_refused_is_waited_for(
    shell: Shell, moves: dict[str, dict[str, str]]
) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    api.pod("virtual-machine", owner="VirtualMachineInstance", moves=moves)
    out = run(shell, BEGIN)
    assert api.steps == ["dry web-1", "cordon", "evict web-1", "evict virtual-machine"]
    assert api.pods == set()
    assert "ERROR" not in out


def test_a_pod_that_could_move_but_has_no_controller_blocks(shell: Shell) -> None:
    api = NodeApi.of(shell, drain="auto 0 -")
    api.pod("naked", owner="", moves={"annotations": {"kube-ha.io/moves-when-refused": "true"}})
    assert "default/naked (has no controller" in run(shell, BEGIN, fails=True)
    assert not api.cordoned


def test_a_pod_that_was_to_move_and_does_not_is_named_with_the_last_answer(shell: Shell) -> None:
    api = NodeApi.of(shell, drain="auto 0 -")
    api.pod(
        "vm", owner="VirtualMachineInstance", moves={"labels": {"kubevirt.io": "virt-launcher"}}
    )
    out = run(shell, BEGIN, fails=True)
    assert "default/vm (HTTP 429 Eviction triggered evacuation of VMI)" in out
    assert api.cordoned


def test_pods_that_do_not_end_are_named_and_the_node_stays_cordoned(shell: Shell) -> None:
    api = NodeApi.of(shell, drain="auto 0 -")
    api.pod("web-1", ending=True)
    out = run(shell, BEGIN, fails=True)
    assert "pods are still here after 0 s" in out
    assert "default/web-1 (is ending)" in out
    assert api.cordoned
    assert api.annotations["cordoned"] == "ready"


def test_a_run_that_was_cut_off_is_gone_on_with_and_uncordons_at_its_end(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    run(shell, f"evict_pods() {{ kill -9 $$; }}; {BEGIN}", fails=True)
    assert api.cordoned
    assert api.pods == {"web-1"}
    run(shell, f"{BEGIN}; end_update")
    assert api.pods == set()
    assert not api.cordoned
    assert api.annotations == {}


def test_a_node_that_somebody_else_cordoned_stays_so(shell: Shell) -> None:
    api = NodeApi.of(shell, maintenance="true")
    api.cordon()
    run(shell, f"{BEGIN}; end_update")
    assert api.cordoned
    assert api.annotations == {"maintenance": "true"}


@pytest.mark.parametrize(("most", "grace_s"), [("-", 3600), ("20", 20), ("7200", 3600)])
def test_pods_get_the_time_they_ask_for_up_to_a_limit(
    shell: Shell, most: str, grace_s: int
) -> None:
    api = NodeApi.of(shell, drain=f"auto 300 {most}")
    api.pod("db", grace_s=3600)
    run(shell, BEGIN)
    [body] = api.evictions()
    assert body["deleteOptions"] == {
        "gracePeriodSeconds": grace_s,
        "preconditions": {"uid": "uid-db"},
    }


def test_the_api_may_be_away_for_a_while(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    api.write("down", 3)
    run(shell, f"{BEGIN}; echo 2 >down; end_update")
    assert api.pods == set()
    assert not api.cordoned


def test_a_node_is_uncordoned_only_when_its_new_kubelet_is_ready(shell: Shell) -> None:
    """What is in the API is of the kubelet before."""
    api = NodeApi.of(shell)
    run(shell, BEGIN)
    shell.stub("systemctl", "echo 'Sat 2026-01-03 11:00:00 UTC'")
    impatient = 'wait_for() { local what=$2; shift 2; "$@" || die "$what not seen"; }'
    out = run(shell, f"{impatient}; end_update", fails=True)
    assert "Ready after its update" in out
    assert api.cordoned


def test_a_node_that_was_not_ready_before_is_not_waited_for(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.unready()
    run(shell, f"{BEGIN}; end_update")
    assert not api.cordoned


def test_a_machine_that_has_not_joined_asks_nobody(shell: Shell) -> None:
    api = NodeApi.of(shell)
    shell.identity.unlink()
    run(shell, BEGIN)
    assert shell.calls == []
    assert api.annotations == {}


def test_a_node_that_was_deleted_has_nothing_to_evict(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.write("node.json", {})
    run(shell, f"{BEGIN}; end_update")
    assert api.steps == []


@pytest.mark.parametrize(
    ("kubelet", "containerd", "said"),
    [
        ("Kubernetes v1.36.3", "containerd github.com/x/v2 v2.3.7 abc", "configuration aaaa"),
        ("Kubernetes v1.36.1", "containerd github.com/x/v2 v2.3.9 abc", "configuration aaaa"),
        ("Kubernetes v1.35.4", "containerd github.com/x/v2 v2.3.7 abc", "kubelet 1.35 -> 1.36"),
        ("Kubernetes v1.37.0", "containerd github.com/x/v2 v2.3.7 abc", "kubelet 1.37 -> 1.36"),
        ("Kubernetes v1.36.3", "containerd github.com/x/v2 2.2.9 abc", "containerd 2.2 -> 2.3"),
        (
            "Kubernetes v1.35.4",
            "containerd github.com/x/v2 v2.2.9 abc",
            "kubelet 1.35 -> 1.36, containerd 2.2 -> 2.3",
        ),
    ],
)
def test_another_minor_version_is_an_intrusive_update(
    shell: Shell, kubelet: str, containerd: str, said: str
) -> None:
    for name, version in (("kubelet", kubelet), ("containerd", containerd)):
        shell.stub(name, f"echo '{version}'")
    values = {
        "ROLES": "worker",
        "APPLIED": "aaaa",
        "ARTEFACTS": "kubelet http://m/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet 0\n"
        "containerd https://github.com/c/c/releases/download/v2.3.7/containerd-2.3.7.tar.gz 0",
    }
    code = (
        'begin_update() { echo "$1|${2:-}"; }; eval "$(declare -f other_minor | '
        f"sed 's|/usr/local/bin/|{shell.folder}/bin/|')\"; announce_update"
    )
    kind = "" if said.startswith("configuration") else "intrusive"
    assert shell.run(code, phase="node", values=values) == f"{said}|{kind}\n"
    assert shell.run(code, phase="node", values={**values, "ROLES": "master"}) == ""
    (shell.state / "node.whole").write_text("aaaa\n")
    again = shell.run(code, phase="node", values=values)
    assert again == (f"{said}|{kind}\n" if kind else "")


def test_what_was_applied_whole_and_runs_again_is_no_update(shell: Shell) -> None:
    """And what is begun in between takes the mark away before it changes anything."""
    whole = shell.state / "node.whole"
    said = "echo known=$([[ -f $WHOLE ]] && echo 1)"
    assert "known=1" not in run(shell, f"APPLIED=a; know_whole; {said}")
    run(shell, 'APPLIED=a; put 644 "$WHOLE" <<<a')
    assert "known=1" in run(shell, f"APPLIED=a; know_whole; {said}")
    assert "known=1" not in run(shell, f"APPLIED=b; know_whole; {said}")
    assert "known=1" not in run(shell, f"APPLIED=a; know_whole; {said}")
    assert not whole.exists()


def test_the_mark_goes_before_the_first_change_and_comes_after_the_last(shell: Shell) -> None:
    text = shell.run("declare -f main", phase="node")
    own = [word for line in text.splitlines() for word in line.strip(" ;").split(" ")[:1]]
    mark = [number for number, line in enumerate(text.splitlines()) if 'put 644 "$WHOLE"' in line]
    assert own.index("know_whole") < own.index("kernel")
    assert [own.index(name) < mark[0] for name in ("announce_update", "runtime", "kubelet")] == [
        True
    ] * 3
    assert len(mark) == 1
