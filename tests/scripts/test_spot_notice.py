"""A spot machine that its cloud takes away: its pods are evicted within the notice, by its own kubelet identity."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.scripts.node_api import FOR_EVER, NodeApi
from tests.scripts.shell import Shell

UNIT = "etc/systemd/system/kube-ha-spot-notice.service"
OWN = "etc/kube-ha/kubelet.d/50-spot.conf"


def notice(seconds: int) -> str:
    at = datetime.now(UTC) + timedelta(seconds=seconds)
    return f'{{"action":"terminate","time":"{at:%Y-%m-%dT%H:%M:%SZ}"}}'


def emptied(shell: Shell, said: str) -> str:
    return shell.run(f"empty_before_end '{said}'", phase="node")


def test_its_pods_are_evicted_and_it_stays_cordoned(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    api.pod("flannel", owner="DaemonSet")
    assert "all pods have gone" in emptied(shell, notice(100))
    assert api.steps == ["cordon", "evict web-1"]
    assert api.cordoned
    assert api.annotations["updating"] == "the cloud takes this machine away"
    assert api.pods == {"flannel"}


def test_a_budget_is_asked_again_as_long_as_there_is_time_and_no_longer(shell: Shell) -> None:
    api = NodeApi.of(shell)
    api.pod("web-1")
    api.pod("web-2")
    api.write("blocked", {"web-1": 2, "web-2": FOR_EVER})
    told = emptied(shell, notice(14))
    assert api.pods == {"web-2"}
    assert "default/web-2 (HTTP 429" in told


def test_without_a_time_that_can_be_read_there_are_the_usual_two_minutes(shell: Shell) -> None:
    for said in ("{}", "x", notice(-30), notice(9000), '{"time":"$(reboot)"}'):
        assert shell.run(f"seconds_left '{said}'", phase="node").strip() == "120"
    assert 95 <= int(shell.run(f"seconds_left '{notice(100)}'", phase="node")) <= 100


def test_the_unit_and_the_settings_are_those_of_a_spot_machine_alone(shell: Shell) -> None:
    shell.stub("systemctl", "echo active")
    code = "await_notice; own_settings; finish"
    values = {"SPOT_NOTICE": "1", "KUBELET_OWN": "kind: KubeletConfiguration"}
    assert "changes=0" in shell.run(code, phase="node")
    assert "changes=4" in shell.run(code, phase="node", values=values)
    assert "changes=0" in shell.run(code, phase="node", values=values)
    assert "Environment=NODE=master-1\n" in (shell.root / UNIT).read_text()
    assert (shell.root / OWN).read_text() == "kind: KubeletConfiguration\n"
    files = shell.run("kubelet_files", phase="node").split()
    assert str(shell.root / OWN) in files
    assert "changes=2" in shell.run(code, phase="node")
    assert not (shell.root / UNIT).exists()
    assert str(shell.root / OWN) not in shell.run("kubelet_files", phase="node")


def test_the_metadata_is_asked_with_a_token_until_it_says_something(shell: Shell) -> None:
    """Of what it says nothing is looked at but that it is there."""
    shell.stub(
        "curl",
        """case "$*" in
          *api/token) echo TOKEN ;;
          *"X-aws-ec2-metadata-token: TOKEN"*spot/instance-action) ((calls > 4)) || exit 22; echo '{"action":"terminate"}' ;;
          *) exit 7 ;;
        esac""",
    )
    shell.stub("sleep", "[[ $1 == 5 ]]")
    wait = 'until said=$(notice); do sleep "$LOOK_S"; done; echo "heard $said"'
    assert 'heard {"action":"terminate"}' in shell.run(wait, phase="node")
    asked = [call for call in shell.calls if "instance-action" in call]
    assert len(asked) == 3
    assert all("-X PUT" in call for call in shell.calls if "api/token" in call)
    assert shell.calls.count("sleep 5") == 2
