"""How a machine stops being a node: wiped, kept, decommissioned, or wiped for its next incarnation."""

from __future__ import annotations

import pytest

from tests.scripts.machine import Machine
from tests.scripts.shell import OWNER, Shell

MARK = {"home/state/owner"}
UNITS = {
    *("kubelet", "etcd", "haproxy", "containerd"),
    *(
        "kube-ha-addons.timer",
        "kube-ha-backup.timer",
        "kube-ha-etcd-guard.timer",
        "kube-ha-metrics.timer",
    ),
}
LISTENS = "open_port() { :; }"  # a stub of etcdctl listens nowhere


@pytest.fixture
def machine(shell: Shell) -> Machine:
    machine = Machine(shell)
    machine.make()
    return machine


def leave(machine: Machine, *, keep: bool = False, fails: bool = False) -> str:
    return machine.shell.run("main", phase="leave", values={"KEEP": "01"[keep]}, fails=fails)


def decommission(machine: Machine) -> str:
    return machine.shell.run("main", phase="decommission")


@pytest.mark.parametrize("owner", ["prod 0123456789ab master-1", "dev ffffffffffff master-1"])
@pytest.mark.parametrize("keep", [False, True], ids=["wipe", "keep"])
def test_a_machine_of_another_owner_is_not_touched(
    shell: Shell,
    owner: str,
    keep: bool,  # noqa: FBT001 (a parameter of the table)
) -> None:
    machine = Machine(shell)
    machine.make(owner=owner)
    before = machine.files
    assert f'this machine belongs to "{owner}"' in leave(machine, keep=keep, fails=True)
    assert machine.files == before
    assert machine.shell.calls == []


def test_leaving_stops_and_removes_everything_of_ours_and_nothing_else(machine: Machine) -> None:
    assert "left the cluster, machine is clean" in leave(machine)
    assert machine.ours == set()
    assert {"root/etc/hosts", "root/usr/local/bin/somebody-elses"} <= machine.files
    assert machine.running == set()
    assert "nothing of this cluster" in leave(machine)


@pytest.mark.parametrize("table", ["ip calico", "ip6 calico", "arp calico-arp", "ip kube-proxy"])
def test_tables_of_networks_go(machine: Machine, table: str) -> None:
    """All that Felix of Calico 3.32 makes, as a decommissioned machine had them."""
    decommission(machine)
    assert f"nft delete table {table}" in machine.shell.calls


def test_rules_of_networks_go_however_many_there_are(machine: Machine) -> None:
    machine.shell.stub(
        "iptables-save", "echo ':cali-INPUT - [0:0]'; seq -f '-A X -j cali-%.0f' 50000"
    )
    decommission(machine)
    assert "iptables-restore" in [call.split()[0] for call in machine.shell.calls]


@pytest.mark.parametrize("incarnation", ["1", "2", "7"])
def test_leaving_wipes_whichever_incarnation_it_meets(machine: Machine, incarnation: str) -> None:
    (machine.shell.state / "incarnation").write_text(incarnation)
    leave(machine)
    assert machine.ours == set()


def test_etcd_alone_leaves_runtime_and_haproxy_of_somebody_else_alone(machine: Machine) -> None:
    (machine.shell.state / "containerd.artefact").unlink()
    (machine.shell.root / "etc/haproxy/haproxy.cfg").write_text("frontend web\n")
    leave(machine)
    assert machine.running == {"kubelet", "haproxy", "containerd", "containerd-shim"}
    assert machine.asked_of_systemd("disable") == [
        "kube-ha-backup.timer",
        "kube-ha-etcd-guard.timer",
        "etcd",
    ]
    assert "root/etc/haproxy/haproxy.cfg" in machine.files
    assert "root/var/lib/containerd/meta.db" in machine.files
    assert "root/usr/local/bin/etcd" not in machine.files


def test_the_virtual_ip_goes_before_anything_that_it_leads_to_ends(machine: Machine) -> None:
    conf = machine.shell.root / "etc/keepalived/keepalived.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("# kube-ha: the virtual IP\n")
    (machine.shell.folder / "running/keepalived").touch()
    leave(machine)
    assert machine.asked_of_systemd("disable")[0] == "keepalived"
    assert machine.ours == set()
    assert machine.running == set()


def test_keepalived_of_somebody_else_goes_on(machine: Machine) -> None:
    conf = machine.shell.root / "etc/keepalived/keepalived.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("vrrp_instance web {\n}\n")
    (machine.shell.folder / "running/keepalived").touch()
    leave(machine)
    assert machine.running == {"keepalived"}
    assert conf.exists()


def test_what_cannot_be_ended_is_told_and_nothing_is_removed(machine: Machine) -> None:
    machine.shell.stub("pgrep", "echo 77 kube-scheduler")
    code = 'wait_for() { "${@:3}" || die "$2: $("${@:3}")"; }; main'
    out = machine.shell.run(code, phase="leave", fails=True)
    assert "everything of kube-ha ended: 77 kube-scheduler" in out
    assert "do: reboot the machine" in out
    assert {"root/etc/kubernetes/pki/ca.key", "home/state/owner"} <= machine.files


@pytest.mark.parametrize("port", ["2379", "6443", "10250"])
def test_a_port_that_is_still_open_is_not_quiet(machine: Machine, port: str) -> None:
    machine.shell.stub("pgrep")
    machine.shell.stub("ss", f"[[ $2 != *{port} ]] || echo LISTEN pid=9")
    assert "LISTEN pid=9" in machine.shell.run("nothing_runs || true", phase="leave")
    machine.shell.stub("ss")
    machine.shell.run("nothing_runs", phase="leave")


def test_containers_are_ended_by_their_cgroups_without_containerd(machine: Machine) -> None:
    """0 and 1 are never killed: the one is the group of the caller, the other the machine's init."""
    pod = machine.shell.root / "sys/fs/cgroup/unified/kubepods.slice/pod1"
    pod.mkdir(parents=True)
    other = machine.shell.root / "sys/fs/cgroup/unified/system.slice"
    other.mkdir()
    code = f"""
sleep 300 & mine=$!
sleep 300 & others=$!
printf '0\\n1\\n%s\\n' $mine >{pod}/cgroup.procs
printf '%s\\n' $others >{other}/cgroup.procs
sleep() {{ : >{pod}/cgroup.procs; }}
end_containers
wait $mine || echo "ended with $?"
builtin kill -0 $others && echo "others live"
builtin kill $others
"""
    out = machine.shell.run(code, phase="leave")
    assert "ended with 137" in out
    assert "others live" in out


# --- keep


def test_keeping_stops_everything_and_takes_identity_and_keys_away(machine: Machine) -> None:
    assert "files stay" in leave(machine, keep=True)
    assert machine.running == set()
    assert set(machine.asked_of_systemd("disable")) == UNITS
    left = machine.files
    assert not [file for file in left if "kubernetes/" in file and "/log/" not in file]
    assert not [file for file in left if file.endswith((".key", ".pem", ".sum", "owner"))]
    assert (machine.shell.state / "released").read_text() == OWNER + "\n"


def test_keeping_keeps_data_and_programs(machine: Machine) -> None:
    leave(machine, keep=True)
    assert {
        "root/var/lib/containerd/meta.db",
        "root/var/lib/kubelet/pods/1/volumes/data",
        "root/usr/local/bin/kubelet",
        "root/usr/local/lib/kube-ha/leave",
        "root/var/log/kubernetes/audit.log",
        "home/etcd.removed/member/wal/0.wal",
        "home/state/containerd.artefact",
    } <= machine.files


def test_a_kept_machine_belongs_to_nobody_and_is_kept_once(machine: Machine) -> None:
    leave(machine, keep=True)
    before = machine.files
    assert "nothing of this cluster" in leave(machine, keep=True)
    assert machine.files == before


def test_a_kept_machine_can_be_wiped_by_hand(machine: Machine) -> None:
    leave(machine, keep=True)
    assert "machine is clean" in leave(machine)
    assert machine.ours == set()


def test_a_kept_machine_may_become_a_node_of_any_cluster(machine: Machine) -> None:
    leave(machine, keep=True)
    machine.shell.run("own", values={"CLUSTER": "prod", "NODE": "worker-9"})
    assert (machine.shell.state / "owner").read_text() == "prod 0123456789ab worker-9\n"
    assert not (machine.shell.state / "released").exists()


# --- decommission


def test_decommissioning_ends_everything_for_good(machine: Machine) -> None:
    out = decommission(machine)
    assert machine.running == set()
    assert set(machine.asked_of_systemd("disable")) == UNITS
    assert not out.strip().endswith("changes=0")


def test_decommissioning_takes_the_identity_and_leaves_the_rest(machine: Machine) -> None:
    before = machine.files
    decommission(machine)
    assert {
        "root/etc/kubernetes/kubelet.conf",
        "root/etc/kubernetes/admin.conf",
        "root/etc/kubernetes/manifests/kube-apiserver.yaml",
        "root/var/lib/kubelet/pki/kubelet-client-current.pem",
        "root/var/lib/kubelet/pki/kubelet-client-2026-01-01.pem",
        "home/state/master.sum",
        "home/state/etcd.service.sum",
        "root/run/cni/kube-ha/10.244.1.7",
    } <= before - machine.files
    assert {
        "root/var/lib/containerd/meta.db",
        "root/usr/local/bin/kubelet",
        "home/etcd/member/wal/0.wal",
        "root/etc/kubernetes/pki/ca.key",
        "home/state/containerd.artefact",
        "home/state/owner",
    } <= machine.files


def test_decommissioning_again_changes_nothing(machine: Machine) -> None:
    decommission(machine)
    before = machine.files
    assert decommission(machine).strip().endswith("done, changes=0")
    assert machine.files == before


def test_a_member_that_still_votes_is_not_stopped(machine: Machine) -> None:
    machine.shell.stub(
        "etcdctl", "echo '1, started, master-1, https://x:2380, https://x:2379, false'"
    )
    out = machine.shell.run(f"{LISTENS}; main", phase="decommission", fails=True)
    assert "etcd on this machine is still a voting member, so nothing was stopped" in out
    assert "kubelet" in machine.running


# --- the next incarnation


def renew(machine: Machine, number: str = "2", *, fails: bool = False, first: str = ":") -> str:
    values = {"INCARNATION": number}
    return machine.shell.run(
        f"{first}; export MAIN=$$; own renew", phase="node", values=values, fails=fails
    )


def test_an_older_incarnation_is_wiped_before_the_machine_is_used(machine: Machine) -> None:
    assert "wiping what was incarnation 1 of this node" in renew(machine)
    assert machine.ours == {*MARK, "home/state/incarnation", "root/usr/local/lib/kube-ha/leave"}
    assert machine.running == set()
    machine.shell.forget()
    assert "wiping" not in renew(machine)
    assert machine.asked_of_systemd("disable") == []


def test_an_older_incarnation_that_still_votes_is_not_wiped(machine: Machine) -> None:
    machine.shell.stub(
        "etcdctl", "echo '1, started, master-1, https://x:2380, https://x:2379, false'"
    )
    before = machine.files
    assert "still a voting member" in renew(machine, fails=True, first=LISTENS)
    assert machine.files == before


@pytest.mark.parametrize("phase", ["join", "etcd-member", "master", "decommission"])
def test_no_other_phase_works_on_an_older_incarnation(machine: Machine, phase: str) -> None:
    out = machine.shell.run(
        "main", phase=phase, values={"INCARNATION": "2", "ADDRESS": "x"}, fails=True
    )
    assert "this machine is still incarnation 1 of master-1, the config wants 2" in out


@pytest.mark.parametrize("phase", ["node", "join", "decommission"])
def test_a_newer_incarnation_is_refused(machine: Machine, phase: str) -> None:
    (machine.shell.state / "incarnation").write_text("3\n")
    out = machine.shell.run("main", phase=phase, values={"INCARNATION": "2"}, fails=True)
    assert "this machine is incarnation 3 of master-1, the config wants 2" in out
    assert "set nodes.master-1.generation to 3, or to 4 to recreate it" in out


@pytest.mark.parametrize("what", ["wipe", "leave", "keep", "decommission"])
def test_cut_off_at_any_call_the_next_run_ends_in_the_same_state(
    shell: Shell, tmp_path_factory: pytest.TempPathFactory, what: str
) -> None:
    phase, code, values = {
        "wipe": ("node", "own renew", {"INCARNATION": "2"}),
        "leave": ("leave", "main", {}),
        "keep": ("leave", "main", {"KEEP": "1"}),
        "decommission": ("decommission", "main", {}),
    }[what]
    code = f"export MAIN=$$; {code}"
    undisturbed = Machine(shell)
    undisturbed.make()
    shell.run(code, phase=phase, values=values)
    calls = len(shell.calls)
    assert calls > 10
    for cut in range(1, calls, calls // 8):
        machine = Machine(Shell(tmp_path_factory.mktemp("machine")))
        machine.make()
        machine.stub(cut_off_at=cut)
        machine.shell.run(code, phase=phase, values=values, fails=True)
        machine.stub()
        machine.shell.run(code, phase=phase, values=values)
        assert machine.files == undisturbed.files, cut
        assert machine.running == set(), cut
