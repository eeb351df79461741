"""A node that was unavailable, or died while it joined, ends well when its phases run again."""

from __future__ import annotations

import pytest

from tests.scripts.machine import WHOLE_CERTIFICATE, WHOLE_KUBECONFIG, Machine
from tests.scripts.shell import OWNER, Shell

JOIN = {"KUBEADM_CONFIG": "kind: JoinConfiguration", "DISCOVERY": "token: abcdef.0123456789abcdef"}
READY = '[[ $calls -gt {} ]] || {{ echo \'a Node with name "master-1" and status "Ready" already exists in the cluster\'; exit 1; }}'


class Joining:
    """A worker's machine, and a kubeadm that joins it unless files of before are in its way."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.kubernetes = shell.root / "etc/kubernetes"
        self.conf = self.kubernetes / "kubelet.conf"
        shell.state.mkdir(parents=True)
        (shell.state / "applied").write_text("aaaa\n")
        (shell.folder / "ca").touch()
        for folder in (self.kubernetes / "pki", shell.identity.parent):
            folder.mkdir(parents=True)
        # What the node phase has put there, and kubeadm writes: the kubelet starts with them.
        units = shell.root / "etc/systemd/system"
        for path in (
            units / "kubelet.service",
            units / "kubelet.service.d/10-kubeadm.conf",
            shell.root / "var/lib/kubelet/config.yaml",
            shell.state / "kubelet.artefact",
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        shell.stub("systemctl")
        shell.stub("sleep")
        shell.stub("curl", "printf 200")
        self.kubeadm()

    def kubeadm(self, first: str = "") -> None:
        old = f"{self.conf} {self.kubernetes}/bootstrap-kubelet.conf {self.kubernetes}/pki/ca.crt {self.shell.identity}"
        self.shell.stub(
            "kubeadm",
            f"""for file in {old}; do [[ ! -e $file ]] || {{ echo "$file exists"; exit 1; }}; done
touch {self.kubernetes}/bootstrap-kubelet.conf {self.kubernetes}/pki/ca.crt
{first}
printf %s '{WHOLE_KUBECONFIG}' >{self.conf}
printf %s '{WHOLE_CERTIFICATE}' >{self.shell.identity}""",
        )

    def has(self, conf: str | None, certificate: str | None) -> None:
        for path, text in ((self.conf, conf), (self.shell.identity, certificate)):
            if text is not None:
                path.write_text(text)

    def run(self, *, fails: bool = False) -> str:
        return self.shell.run("main", phase="join", values=JOIN, fails=fails)

    @property
    def joins(self) -> int:
        return sum(call.startswith("kubeadm join") for call in self.shell.calls)


@pytest.fixture
def joining(shell: Shell) -> Joining:
    return Joining(shell)


HALF = [
    pytest.param(None, None, id="blank"),
    pytest.param("", None, id="an empty kubeconfig after a power cut"),
    pytest.param(WHOLE_KUBECONFIG[:30], WHOLE_CERTIFICATE, id="half a kubeconfig"),
    pytest.param(WHOLE_KUBECONFIG, None, id="killed before the certificate came"),
    pytest.param(WHOLE_KUBECONFIG, "", id="an empty certificate after a power cut"),
    pytest.param(WHOLE_KUBECONFIG, WHOLE_CERTIFICATE[:70], id="a certificate without key"),
    pytest.param(None, WHOLE_CERTIFICATE, id="the certificate of a life before"),
]


@pytest.mark.parametrize(("conf", "certificate"), HALF)
def test_a_machine_that_died_in_its_own_join_joins(
    joining: Joining, conf: str | None, certificate: str | None
) -> None:
    joining.has(conf, certificate)
    for name in ("bootstrap-kubelet.conf", "discovery.conf", "pki/ca.crt"):
        (joining.kubernetes / name).write_text("left over")
    joining.run()
    assert joining.joins == 1
    assert joining.conf.read_text() == WHOLE_KUBECONFIG
    assert joining.run().strip().endswith("changes=0")
    assert joining.joins == 1


def test_nothing_with_a_token_is_left(joining: Joining) -> None:
    joining.run()
    assert sorted(file.name for file in joining.kubernetes.iterdir()) == ["kubelet.conf", "pki"]
    joining.conf.unlink()
    joining.kubeadm("exit 1")
    joining.run(fails=True)
    assert not (joining.kubernetes / "discovery.conf").exists()


def test_a_certificate_that_the_cluster_refuses_is_replaced(joining: Joining) -> None:
    joining.has(WHOLE_KUBECONFIG, WHOLE_CERTIFICATE)
    joining.shell.stub("curl", "[[ $* == *PATCH* ]] || printf 401")
    joining.run()
    assert joining.joins == 1


@pytest.mark.parametrize("answer", ["200", "404", "000", "503"])
def test_a_certificate_that_is_not_refused_is_kept(joining: Joining, answer: str) -> None:
    joining.has(WHOLE_KUBECONFIG, WHOLE_CERTIFICATE)
    joining.shell.stub("curl", f"printf {answer}; [[ {answer} != 000 || $* == *PATCH* ]]")
    joining.run()
    assert joining.joins == 0


def test_a_node_that_is_taken_for_alive_is_waited_for(joining: Joining) -> None:
    joining.kubeadm(READY.format(3))
    joining.run()
    assert joining.joins == 4


def test_no_other_failure_is_tried_again(joining: Joining) -> None:
    joining.kubeadm("echo 'token expired'; exit 1")
    assert "kubeadm join: token expired" in joining.run(fails=True)
    assert joining.joins == 1


def test_a_decommissioned_worker_joins_again(shell: Shell) -> None:
    Machine(shell).make()
    shell.run("main", phase="decommission")
    assert (
        shell.run("kubelet_made || echo not", phase="node", values={"ROLES": "worker"}) == "not\n"
    )
    assert shell.run("joined || echo not", phase="join") == "not\n"


@pytest.mark.parametrize(("conf", "certificate"), HALF)
def test_the_node_phase_leaves_a_half_made_worker_to_its_join(
    joining: Joining, conf: str | None, certificate: str | None
) -> None:
    """Settings of the cluster cannot be read yet; failing here, the join would never be reached."""
    (joining.shell.root / "var/lib/kubelet/config.yaml").touch()
    joining.has(conf, certificate)
    code = "kubelet_made || echo not yet"
    assert joining.shell.run(code, phase="node", values={"ROLES": "worker"}) == "not yet\n"


def test_the_node_phase_knows_a_whole_worker_and_a_master_without_certificate_of_its_own(
    joining: Joining,
) -> None:
    (joining.shell.root / "var/lib/kubelet/config.yaml").touch()
    joining.has(WHOLE_KUBECONFIG, None)
    joining.shell.run("kubelet_made", phase="node", values={"ROLES": "etcd master"})
    joining.has(None, WHOLE_CERTIFICATE)
    joining.shell.run("kubelet_made", phase="node", values={"ROLES": "worker"})


# --- masters

MASTER = {
    "SERVING_ISSUED": "",
    "ADDRESS": "10.0.0.11",
    "KUBEADM_CONFIG": "x",
    "AUDIT_POLICY": "",
    "CERTIFICATES": "0",
}
# kubeadm refuses kubeconfigs that it cannot read, and writes those that are not there.
KUBECONFIGS = """
for name in admin controller-manager scheduler kubelet; do
  file={root}/etc/kubernetes/$name.conf
  [[ $* != *"phase kubeconfig $name"* ]] || {{ [[ ! -e $file ]] || grep -q users $file || exit 1; echo "users: 127.0.0.1:3446" >$file; }}
done"""


@pytest.mark.parametrize("half", ["admin.conf", "kubelet.conf", "scheduler.conf"])
def test_a_master_that_died_while_it_was_made_is_made(shell: Shell, half: str) -> None:
    folder = shell.root / "etc/kubernetes"
    folder.mkdir(parents=True)
    (folder / half).touch()
    shell.identity.parent.mkdir(parents=True)
    shell.identity.write_text("half")
    shell.stub("kubeadm", KUBECONFIGS.format(root=shell.root))
    shell.stub("kubectl")
    # A kubelet that runs makes the files that static pods mount again, empty, as soon as they are gone.
    shell.stub("systemctl", f'[[ $* == "stop kubelet" ]] && touch {shell.folder}/stopped')
    shell.stub("rm", f'/bin/rm "$@"; [[ -e {shell.folder}/stopped ]] || touch {folder / half}')
    shell.run("mkdir -p $STATE; make_master", phase="master", values=MASTER)
    assert (folder / half).read_text() == "users: 127.0.0.1:3446\n"
    assert not shell.identity.exists()
    assert [call for call in shell.calls if call.startswith("kubeadm init --config")]


def test_a_decommissioned_master_is_made_anew(shell: Shell) -> None:
    Machine(shell).make()
    assert shell.run("remembered master", phase="master", values=MASTER) == "x\n"
    shell.run("main", phase="decommission")
    assert shell.run("remembered master", phase="master", values=MASTER) == ""


# --- preflight

LOOK = 'for c in system kernel network; do eval "check_$c() { echo looked; }"; done; '


def preflight(
    shell: Shell, *, owner: str = OWNER, here: str = "", wanted: str = "1", fails: bool = False
) -> str:
    shell.state.mkdir(parents=True, exist_ok=True)
    if owner:
        (shell.state / "owner").write_text(f"{owner}\n")
    if here:
        (shell.state / "incarnation").write_text(f"{here}\n")
    values = {"PORTS": "6443", "ROLES": "worker", "INCARNATION": wanted, "ADDRESS": "192.0.2.9"}
    return shell.run(
        LOOK + 'main; echo "ports=$PORTS"', phase="preflight", values=values, fails=fails
    )


def test_preflight_looks_at_an_older_incarnation_as_at_a_new_machine(shell: Shell) -> None:
    out = preflight(shell, wanted="2")
    assert "this machine is incarnation 1 of master-1: it will be wiped" in out
    assert out.count("looked") == 3
    assert "ports=\n" in out  # they are in use by what will be wiped


def test_preflight_refuses_a_newer_incarnation(shell: Shell) -> None:
    out = preflight(shell, here="3", wanted="2", fails=True)
    assert "machine is incarnation 3 of master-1, the config wants 2" in out


def test_preflight_of_the_very_incarnation_has_nothing_to_do(shell: Shell) -> None:
    assert "looked" not in preflight(shell, here="2", wanted="2")


def released(shell: Shell, *, by: str = OWNER) -> None:
    shell.state.mkdir(parents=True)
    (shell.state / "released").write_text(f"{by}\n")
    for path in ("etc/containerd/config.toml", "var/lib/containerd/io.containerd.metadata.v1.bolt"):
        file = shell.root / path
        file.parent.mkdir(parents=True)
        file.touch()
    shell.stub("systemctl", "exit 3")


@pytest.mark.parametrize("by", [OWNER, "prod ffffffffffff worker-7"])
def test_a_machine_that_was_released_with_its_files_passes(shell: Shell, by: str) -> None:
    released(shell, by=by)
    assert "preflight passed" in preflight(shell, owner="")


def test_a_runtime_that_we_did_not_bring_is_refused(shell: Shell) -> None:
    released(shell)
    (shell.state / "released").unlink()
    assert "another container runtime is here" in preflight(shell, owner="", fails=True)


def test_docker_on_a_released_machine_is_refused(shell: Shell) -> None:
    released(shell)
    (shell.root / "var/lib/docker").mkdir()
    out = preflight(shell, owner="", fails=True)
    assert out.count("another container runtime is here") == 1
    assert "/var/lib/docker" in out
