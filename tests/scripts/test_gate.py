"""The gate fails with the reason, and so does the preflight."""

from __future__ import annotations

import json

import pytest

from tests.scripts import node_list
from tests.scripts.shell import OWNER, Shell

VALUES = {
    "PLAN": "0",
    "NODES": "2",
    "OURS": "node-1\nnode-2\nmaster-1\nworker-1",
    "MANIFEST": "",
    "NETWORK": "1",
    "NAMESPACE": "check",
    "NAME": "netexec",
    "PORT": "8080",
    "DNS_DOMAIN": "cluster.local",
    "REACH": "5",
    "DEPLOYMENTS": "kube-system/deployment/coredns kube-flannel/daemonset/flannel",
}
PODS = json.dumps(
    {
        "items": [
            {
                "metadata": {"name": f"pod-{number}"},
                "spec": {"nodeName": f"node-{number}"},
                "status": {"podIP": f"10.244.{number - 1}.2", "hostIP": f"10.0.0.{number}"},
            }
            for number in (1, 2, 3)  # the third is on a node of somebody else's
        ]
    }
)


# Everybody answers: OURS stays as it is said.
THERE = 'see_who_is_there() { HERE=$NODES AWAY=""; }; '


def kubectl(shell: Shell, cases: str) -> None:
    shell.stub("kubectl", f'case "$*" in\n{cases}\nesac')


def nodes(rows: list[str], *fields: str) -> str:
    """A case of `kubectl`: the Nodes that the API lists."""
    return f"*'get nodes'*) echo '{node_list.listing(rows, fields)}' ;;"


def test_an_object_that_is_not_listed_fails_the_gate(shell: Shell) -> None:
    kubectl(shell, "")
    out = shell.run("check_api", phase="gate", values=VALUES, fails=True)
    assert "an object just created is not in the list" in out


def test_a_rollout_that_hangs_is_named_with_its_last_lines(shell: Shell) -> None:
    kubectl(shell, '*flannel*rollout*) echo "0 of 2 updated"; exit 1 ;;')
    out = shell.run("rolled_out", phase="gate", values=VALUES, fails=True)
    assert "daemonset/flannel in namespace kube-flannel is not rolled out: 0 of 2 updated" in out


def test_cloned_machines_are_named(shell: Shell) -> None:
    kubectl(
        shell,
        nodes(["node-1|aa", "node-2|bb", "node-3|aa"], "machine"),
    )
    out = shell.run("machine_ids", phase="gate", values=VALUES, fails=True)
    assert "nodes share the machine-id aa: node-1 node-3" in out


def network(shell: Shell, curl: str) -> None:
    kubectl(
        shell,
        f"""*clusterIP*) echo 10.96.0.9 ;;
*nodePort*) echo 30123 ;;
*"get pods"*) printf '%s\\n' '{PODS}' ;;""",
    )
    shell.stub("curl", curl)


def test_every_pair_service_port_and_name_is_dialled(shell: Shell) -> None:
    network(shell, """echo '{"responses":["pod"]}'""")
    out = shell.run(f"{THERE} check_network", phase="gate", values=VALUES)
    dialled = [call for call in shell.calls if call.startswith("curl")]
    assert len(dialled) == 10  # from each of 2 nodes: 2 pods, the Service, a name, a node port
    assert any("host=netexec.check.svc.cluster.local&" in call for call in dialled)
    assert any("host=10.0.0.2&port=30123" in call for call in dialled)
    assert "10 connections" in out


def test_a_connection_that_fails_is_named_from_end_to_end(shell: Shell) -> None:
    network(
        shell,
        """[[ $* == *host=10.244.1.2* ]] && echo '{"errors":["no route"]}' || echo '{"responses":["pod"]}'""",
    )
    code = (
        THERE
        + 'wait_for() { local what=$2; shift 2; "$@" || die "$what: $("$@")"; }; check_network'
    )
    out = shell.run(code, phase="gate", values=VALUES, fails=True)
    assert "node:node-1->pod-on:node-2" in out
    assert "no route" in out


def test_a_node_without_test_pod_fails_the_gate(shell: Shell) -> None:
    kubectl(
        shell, f"*wide*) echo 'netexec-x 0/1 ImagePullBackOff' ;; *'get pods'*) echo '{PODS}' ;;"
    )
    values = {**VALUES, "NODES": "3"}
    out = shell.run(f"{THERE} all_pods_run || echo incomplete", phase="gate", values=values)
    assert "ImagePullBackOff" in out
    assert "incomplete" in out


@pytest.mark.parametrize(("applied", "forgotten"), [("master aaaa master-1", True), ("", False)])
def test_the_gate_of_an_update_ends_what_was_noted_for_another_try(
    shell: Shell,
    applied: str,
    forgotten: bool,  # noqa: FBT001 (a parameter of the table)
) -> None:
    shell.stub("kubectl")
    code = "cleanup() { :; }; check_api() { :; }; machine_ids() { :; }; main"
    values = {**VALUES, "NETWORK": "0"} | ({"APPLIED": applied} if applied else {})
    assert "the cluster works" in shell.run(code, phase="gate", values=values)
    assert ("kube-ha-incarnations" in shell.calls[-1]) == forgotten


def test_preflight_reports_all_problems_of_a_machine_at_once(shell: Shell) -> None:
    (shell.folder / "home/etcd/member").mkdir(parents=True)
    values = {
        **{"ROLES": "master", "ADDRESS": "192.0.2.9", "ARCH": "sparc", "PORTS": "", "PEERS": ""},
        **{"SOURCES": "http://mirror/x", "VXLAN": "", "MIN_CPUS": "9999"},
        **{"MIN_MEMORY_MIB": "99999999", "MIN_DISK_GIB": "9999999"},
    }
    shell.stub("curl", "echo 'could not connect'; exit 7")
    out = shell.run("main", phase="preflight", values=values, fails=True)
    assert out.startswith("ERROR master-1 (192.0.2.9): ")
    for text in (
        "parts of some other cluster",
        "the config says sparc",
        "9999 needed",
        "99999999 needed",
        "address 192.0.2.9 is on no interface",
        "http://mirror/x answers: could not connect",
    ):
        assert text in out
    assert out.count("    do: ") >= 6


@pytest.mark.parametrize(("mtu", "small"), [("", False), ("1500", False), ("8950", True)])
def test_preflight_finds_an_interface_that_is_too_small_for_the_packets_of_pods(
    shell: Shell,
    mtu: str,
    small: bool,  # noqa: FBT001 (a parameter of the table)
) -> None:
    lines = {
        "addr": "2: eth0    inet 192.0.2.90/24 scope global\n3: eth1    inet 192.0.2.9/24 scope global",
        "link": "3: eth1: <UP> mtu 1500 qdisc",
    }
    shell.stub(
        "ip",
        f"case \"$*\" in *addr*) echo '{lines['addr']}' ;; *eth1) echo '{lines['link']}' ;; esac",
    )
    values = {"ADDRESS": "192.0.2.9", "MTU": mtu, "PORTS": "", "PEERS": "", "SOURCES": "http://m/x"}
    shell.stub("curl", "printf 200")
    code = 'check_network; printf "%s\\n" "${problems[@]}"'
    out = shell.run(code, phase="preflight", values=values)
    text = "interface eth1 takes packets of 1500 bytes, pods need 8950"
    assert (text in out) == small
    assert ("raise its MTU, or lower network.mtu by 7450" in out) == small


@pytest.mark.parametrize(
    ("roles", "answer", "reached"),
    [
        ("worker", "", True),
        ("worker", "connect: Connection refused", False),
        ("loadbalancer", "", True),
        ("loadbalancer", "connect: Connection refused", True),
        ("loadbalancer", "connect: No route to host", False),
    ],
)
def test_a_load_balancer_reaches_a_master_that_does_not_serve_yet(
    shell: Shell,
    roles: str,
    answer: str,
    reached: bool,  # noqa: FBT001 (a parameter of the table)
) -> None:
    shell.stub("timeout", f"printf '{answer}' >&2; exit {int(bool(answer))}")
    code = "dials 10.0.0.11:6443 && echo reached"
    out = shell.run(f"{{ {code}; }} || true", phase="preflight", values={"ROLES": roles})
    assert ("reached" in out) == reached


@pytest.mark.parametrize(("report", "looked"), [("0", False), ("1", True)])
def test_preflight_of_our_own_node_looks_only_when_asked(
    shell: Shell,
    report: str,
    looked: bool,  # noqa: FBT001 (a parameter of the table)
) -> None:
    shell.state.mkdir(parents=True)
    (shell.state / "owner").write_text(OWNER + "\n")
    code = (
        'for check in system kernel network; do eval "check_$check() { echo looked; }"; done; main'
    )
    out = shell.run(code, phase="preflight", values={"PORTS": "6443", "REPORT": report})
    assert ("looked" in out) == looked


NAMED = {**VALUES, "API_NAME": "api.k8s.internal", "API_ADDRESSES": "10.20.0.11 10.20.0.12"}
ONCE = 'wait_for() { local what=$2; shift 2; "$@" || die "$what: $("$@")"; }; check_name'


def test_a_name_that_only_the_network_knows_leads_to_masters_alone(shell: Shell) -> None:
    listed = "10.20.0.11 STREAM api\n10.20.0.11 DGRAM\n"
    shell.stub("getent", f"printf '{listed}'")
    shell.run("check_name", phase="gate", values=NAMED)
    assert shell.calls == ["getent ahostsv4 api.k8s.internal"]
    shell.stub("getent", f"printf '{listed}10.20.0.13 STREAM\n'")
    out = shell.run(ONCE, phase="gate", values=NAMED, fails=True)
    assert "api.k8s.internal pointing to 10.20.0.11 10.20.0.12: it points to 10.20.0.13 too" in out
    shell.stub("getent", "exit 2")
    out = shell.run(ONCE, phase="gate", values=NAMED, fails=True)
    assert "no address of it is known on master-1" in out
    assert "do: see that the private zone of that name belongs to this machine's network" in out


def test_nobody_looks_up_a_name_that_is_known_elsewhere(shell: Shell) -> None:
    shell.stub("getent")
    shell.run("check_name", phase="gate", values=VALUES)
    assert shell.calls == []


BALANCER = {"DOORS": "10.20.0.5:6443 10.20.16.5:6443", "LIMIT": "1"}


def test_a_load_balancer_serves_when_each_of_its_addresses_does(shell: Shell) -> None:
    shell.stub("curl")
    out = shell.run("main", phase="balancer", values=BALANCER)
    assert "the load balancer serves at 10.20.0.5:6443 10.20.16.5:6443" in out
    asked = [call.rpartition(" ")[2] for call in shell.calls]
    assert asked == ["https://10.20.0.5:6443/readyz", "https://10.20.16.5:6443/readyz"]
    assert not (shell.folder / "lock").exists()


def test_one_that_does_not_is_named_with_what_to_do(shell: Shell) -> None:
    shell.stub("curl", '[[ $* != *10.20.16.5* ]] || { echo "connection refused"; exit 7; }')
    out = shell.run("main", phase="balancer", values=BALANCER, fails=True)
    assert "API ready at 10.20.16.5:6443 not seen in 1 s" in out
    assert "connection refused" in out
    assert "do: see that the load balancer has every master as a target" in out


def kubelets(shell: Shell, unknown: str, **values: str) -> str:
    """The gate's look at what kubelets serve with; the first answers of API servers are played."""
    kubectl(
        shell,
        """*csr*) echo '{"items": [{"metadata": {"name": "csr-1"}, "spec": {"username": "system:node:node-2"}, "status": {}},
  {"metadata": {"name": "csr-2"}, "spec": {"username": "system:node:node-1"}, "status": {"conditions": [{"type": "Approved"}]}}]}' ;;
*endpointslices*) printf '10.0.0.11\\n10.0.0.12\\n' ;;
*proxy/healthz*) echo ok ;;""",
    )
    shell.stub("openssl")
    code = (
        f"{THERE} unknown_kubelets() {{ {unknown}; }}; kubelets_served() {{ echo served; }}\n"
        'wait_for() { local what=$2; shift 2; "$@" || die "$what: $("$@")"; }; check_kubelets'
    )
    fails = unknown != ":"
    return shell.run(code, phase="gate", values={**VALUES, **values}, fails=fails)


def test_every_api_server_has_to_reach_a_kubelet_by_its_certificate(shell: Shell) -> None:
    said = kubelets(shell, ":", SERVING_CERTIFICATES="verified")
    assert "served" in said
    asked = [call for call in shell.calls if "--server" in call]
    assert [call.split("--server ")[1].split()[0] for call in asked] == [
        "https://10.0.0.11:6443",
        "https://10.0.0.12:6443",
    ]
    assert "/api/v1/nodes/master-1/proxy/healthz" in asked[0]


def test_a_kubelet_without_certificate_is_named_with_the_request_that_waits(shell: Shell) -> None:
    said = kubelets(shell, "echo 'node-2 (self-signed)'", SERVING_CERTIFICATES="issued")
    assert "a serving certificate of the cluster's CA on every kubelet" in said
    assert (
        "1 without: node-2 (self-signed); requests that wait: csr-1 of system:node:node-2" in said
    )
    assert "journalctl -u kube-ha-approver" in said


def test_kubelets_that_sign_their_own_are_not_asked(shell: Shell) -> None:
    kubelets(shell, ":", SERVING_CERTIFICATES="self-signed")
    assert shell.calls == []


@pytest.mark.parametrize(
    ("answers", "missing"),
    [("200 node-1\\n200 node-2", 0), ("503 node-1\\n000 node-2", 2), ("200 node-1", 1), ("", 2)],
    ids=["all", "refused", "the time was over", "nobody"],
)
def test_every_kubelet_has_to_answer_and_curls_meter_is_no_answer(
    shell: Shell, answers: str, missing: int
) -> None:
    kubectl(shell, nodes(["node-1", "node-2"]))
    # Of parallel transfers curl 7.88 shows a meter, -s or not.
    shell.stub(
        "curl",
        f"""case "$*" in
*--parallel*)
  echo 'DL% UL%  Dled' >&2
  printf '{answers}' | sed 's|node-.|http://localhost/api/v1/nodes/&/proxy/healthz|'
  ;;
*) echo 'x509: certificate signed by unknown authority' ;;
esac""",
    )
    said = shell.run(f"{THERE} kubelets_served", phase="gate", values=VALUES, fails=missing > 0)
    told = f"{missing} of 2 do not, one says: x509: certificate signed by unknown authority"
    said = " ".join(said.split())
    assert said.startswith(told) if missing else said == ""


CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane"}
UNINITIALIZED = {"key": "node.cloudprovider.kubernetes.io/uninitialized"}


def tainted(*taints: dict[str, str]) -> str:
    """A case of `kubectl`: a master with these taints, and a worker without."""
    master = {"metadata": {"name": "master-1"}, "spec": {"taints": taints}}
    return f"*'get nodes'*) echo '{node_list.listed(master, node_list.one('worker-1'))}' ;;"


def test_nodes_that_no_cloud_controller_manager_initialises_are_named(shell: Shell) -> None:
    kubectl(shell, tainted(CONTROL_PLANE, UNINITIALIZED))
    assert "uninitialized is still on master-1\n" in shell.run(
        "all_initialized || true", phase="gate", values=VALUES
    )
    values = {**VALUES, "CLOUD_CONTROLLER": "external"}
    code = 'wait_for() { shift 2; "$@"; }; check_initialized'
    shell.run(code, phase="gate", values=values, fails=True)
    # Nobody is waited for where there is none.
    shell.run("check_initialized", phase="gate", values=VALUES)
    kubectl(shell, tainted(CONTROL_PLANE))
    shell.run("check_initialized", phase="gate", values=values)


def test_only_what_has_failed_is_dialled_again(shell: Shell) -> None:
    """Of thousands of connections some fail by chance, others in every try."""
    fails = "[[ $* == *host=10.244.1.2* && $(<tries) -le 2 ]] && mkdir failed$(<tries) 2>/dev/null"
    network(shell, f"""if {fails}; then exit 7; fi; echo '{{"responses":["pod"]}}'""")
    code = """
wait_for() { local n; shift 2; for n in 1 2 3; do echo $n >tries; if "$@"; then return; fi; done; die "never"; }
check_network
"""
    out = shell.run(THERE + code, phase="gate", values=VALUES)
    dialled = [call for call in shell.calls if call.startswith("curl")]
    assert len(dialled) == 12, "once all of them, then one that had failed, and once more"
    assert all("host=10.244.1.2" in call for call in dialled[10:])
    assert "10 connections between" in out


@pytest.mark.parametrize(("nodes", "limits"), [(5, [181, 91]), (1000, [430, 340])])
def test_the_gate_is_more_patient_with_more_nodes(
    shell: Shell, nodes: int, limits: list[int]
) -> None:
    network(shell, "exit 7")
    code = 'wait_for() { echo "limit $1"; }; check_network'
    out = shell.run(code, phase="gate", values={**VALUES, "NODES": str(nodes)})
    assert [int(line.split()[1]) for line in out.splitlines() if "limit " in line] == limits


@pytest.mark.parametrize(
    ("silent", "enough", "passes"), [(1, "2", True), (2, "2", False), (1, "", False), (0, "", True)]
)
def test_preflight_is_content_with_most_of_a_cluster_that_lives(
    shell: Shell,
    silent: int,
    enough: str,
    *,
    passes: bool,
) -> None:
    peers = [f"10.0.0.1{number}:6443" for number in (1, 2, 3)]
    away = " ".join(peers[:silent])
    code = f"""
dials() {{ [[ " {away} " != *" $1 "* ]]; }}
SECONDS=0; sleep() {{ SECONDS=$((SECONDS + 40)); }}
check_peers; printf '%s\\n' "${{problems[@]}}" "end"
"""
    values = {"PEERS": " ".join(peers), "ROLES": "worker"} | (
        {"PEERS_ENOUGH": enough} if enough else {}
    )
    out = shell.run(code, phase="preflight", values=values)
    assert ("does not answer on port 6443" not in out) == passes
    if passes and silent:
        assert "not reached: 10.0.0.11:6443" in out


GONE = {"CONTROL_PLANE": "master-1", "ABSENT_BUDGET": "1", "NODES": "3"}


def deaf(shell: Shell, *, more: str = "") -> None:
    """node-2 is unresponsive."""
    rows = [*(f"{name}|aaaa|True" for name in ("master-1", "node-1")), "node-2|aaaa|Unknown"]
    kubectl(shell, f"{nodes(rows, 'applied', 'ready')} {more}")


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ({}, "2 master-1 node-1"),
        ({"ABSENT_BUDGET": "0"}, "3 master-1 node-1 node-2"),
        ({"ABSENT_BUDGET": "0", "MAINTENANCE": "node-2"}, "2 master-1 node-1"),
        ({"ABSENT_BUDGET": "0", "ABSENT": "node-2", "NODES": "2"}, "2 master-1 node-1"),
    ],
)
def test_who_is_unresponsive_is_not_asked_within_the_budget(
    shell: Shell, said: dict[str, str], asked: str
) -> None:
    deaf(shell)
    code = "asked_nodes() { printf '%s\\n' master-1 node-1 node-2; }; see_who_is_there; echo $HERE $OURS"
    assert shell.run(code, phase="gate", values={**VALUES, **GONE, **said}).strip() == asked


@pytest.mark.parametrize(
    ("status", "runs"),
    [
        ({"desiredNumberScheduled": 3, "updatedNumberScheduled": 2, "numberAvailable": 2}, True),
        ({"desiredNumberScheduled": 3, "updatedNumberScheduled": 1, "numberAvailable": 2}, False),
        ({"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 1}, False),
    ],
)
def test_pods_on_a_silent_machine_are_not_waited_for(
    shell: Shell, status: dict[str, int], *, runs: bool
) -> None:
    found = {
        "kind": "DaemonSet",
        "metadata": {"generation": 2},
        "status": {"observedGeneration": 2, **status},
    }
    deaf(shell, more=f"*flannel*) echo '{json.dumps(found)}' ;;")
    code = "asked_nodes() { :; }; if runs_here kube-flannel daemonset/flannel >/dev/null; then echo runs; fi"
    said = shell.run(code, phase="gate", values={**VALUES, **GONE})
    assert ("runs" in said) == runs


def test_pods_of_the_check_on_a_silent_machine_are_ended(shell: Shell) -> None:
    """Their namespace would never go."""
    deaf(shell)
    shell.run(
        "asked_nodes() { :; }; see_who_is_there; end_silent_pods",
        phase="gate",
        values={**VALUES, **GONE},
    )
    ended = [call for call in shell.calls if "delete pods" in call]
    assert len(ended) == 1
    assert "--field-selector spec.nodeName=node-2 --force --grace-period 0" in ended[0]
