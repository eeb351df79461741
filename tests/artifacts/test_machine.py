"""lab/machine.sh on a real engine: each verb makes something so, and does nothing the second time."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "lab" / "machine.sh"
ADDRESS = "10.211.84.139"
MIRROR = "10.211.84.130"  # second of the subnet, which does not begin at .0
SSH = ["ssh", "-F", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", "-o", "LogLevel=ERROR"]


def values(**text: str) -> dict[str, str]:
    return os.environ | text


@dataclass
class Lab:
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __call__(self, verb: str, stdin: str = "", **text: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [SCRIPT, verb], input=stdin, capture_output=True, text=True, check=False, timeout=120,
            env=values(**self.environment | text),
        )  # fmt: skip

    def up(self, *, key: str = "host", **text: str) -> subprocess.CompletedProcess[str]:
        private = (self.folder / key).read_text()
        public = (self.folder / "user.pub").read_text()
        stdin = f"HOST_KEY='{private}'\nAUTHORIZED_KEY='{public}'\n"
        return self("up", stdin, **{"ADDRESS": ADDRESS} | text)

    def ssh(self, command: str, *, user: str = "root", key: str = "host") -> str:
        """Output of `command` on the machine, whose host key must be `key`."""
        known = self.folder / f"known-{key}"
        known.write_text(f"{ADDRESS} {(self.folder / f'{key}.pub').read_text()}")
        options = ["-i", str(self.folder / "user"), "-o", f"UserKnownHostsFile={known}"]
        return subprocess.run(
            [*SSH, *options, f"{user}@{ADDRESS}", command], capture_output=True, text=True,
            check=True, timeout=30,
        ).stdout  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """An empty lab with a bundle of one file."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("host", "other", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True, timeout=30)
    (folder / "bundle" / "files" / "dl.k8s.io").mkdir(parents=True)
    (folder / "bundle" / "registry").mkdir()
    (folder / "bundle" / "files" / "dl.k8s.io" / "kubelet").write_text("a kubelet")
    (folder / "bundle" / "manifest.json").write_text("{}")
    name = f"unit{os.getpid()}"
    environment = {
        "LAB": name, "SUBNET": "10.211.84.128/25", "BUNDLE": str(folder / "bundle"), "MACHINE": "m-1",
    }  # fmt: skip
    lab = Lab(folder, environment)
    yield lab
    assert lab("lab-down").returncode == 0
    assert name not in lab("list").stdout
    assert lab("lab-down").returncode == 0, "twice"


@pytest.fixture(scope="module")
def mirror(lab: Lab) -> Lab:
    up = lab("lab-up")
    assert up.stdout == f"mirror {MIRROR}\n", up.stderr
    return lab


@pytest.fixture
def machine(mirror: Lab) -> Lab:
    up = mirror.up()
    assert up.stdout == f"machine m-1 {ADDRESS}\n", up.stderr
    return mirror


@pytest.mark.lab
def test_the_mirror_serves_the_bundle_and_is_not_made_twice(machine: Lab) -> None:
    mirror = f"kube-ha-{machine.environment['LAB']}-mirror"
    assert machine("lab-up").returncode == 0
    assert machine("list").stdout.count(mirror) == 1
    assert machine.ssh(f"curl -fsS http://{MIRROR}:8080/dl.k8s.io/kubelet") == "a kubelet"
    assert machine.ssh(f"curl -fsS http://{MIRROR}:5000/v2/") == "{}"


@pytest.mark.lab
@pytest.mark.parametrize("user", ["root", "admin"])
def test_a_machine_boots_systemd_and_lets_its_users_be_root(machine: Lab, user: str) -> None:
    assert machine.ssh("hostname; sudo -n id -u", user=user) == "m-1\n0\n"
    state = machine.ssh("systemctl is-system-running --wait; systemctl --failed --quiet", user=user)
    assert state == "running\n"


@pytest.mark.lab
def test_up_again_leaves_a_machine_alone_but_for_its_keys(machine: Lab) -> None:
    boot = machine.ssh("cat /proc/1/stat /etc/machine-id")
    assert machine.up(key="other").returncode == 0
    assert (
        machine.ssh("cat /proc/1/stat /etc/machine-id", key="other").split()[21] == boot.split()[21]
    )
    assert machine.up().returncode == 0
    machine.ssh("true")


@pytest.mark.lab
def test_a_power_cut_keeps_the_disk_and_start_waits_for_sshd(machine: Lab) -> None:
    machine.ssh("touch /etc/kept /var/lib/kube-ha/kept /run/lost")
    identity = machine.ssh("cat /etc/machine-id")
    assert machine("kill").returncode == 0
    assert machine("start").returncode == 0
    seen = machine.ssh(
        "cat /etc/machine-id; ls /etc/kept /var/lib/kube-ha/kept /run/lost 2>/dev/null; true"
    )
    assert seen == f"{identity}/etc/kept\n/var/lib/kube-ha/kept\n"


@pytest.mark.lab
def test_lab_start_brings_mirror_and_machines_back(machine: Lab) -> None:
    machine("kill", MACHINE="mirror")
    machine("kill")
    started = machine("lab-start")
    name = machine.environment["LAB"]
    assert started.stdout == f"lab {name} runs: mirror and 1 machines\n", started.stderr
    assert machine.ssh(f"curl -fsS http://{MIRROR}:8080/dl.k8s.io/kubelet") == "a kubelet"
    assert machine("lab-start").returncode == 0, "twice"
    assert "there is no lab other" in machine("lab-start", LAB="other").stderr


@pytest.mark.lab
def test_a_mirror_serves_what_the_link_to_its_bundle_leads_to_now(machine: Lab) -> None:
    kubelet = f"curl -fsS http://{MIRROR}:8080/dl.k8s.io/kubelet"
    old, new, link = (machine.folder / name for name in ("bundle", "newer", "link"))
    shutil.copytree(old, new)
    (new / "files/dl.k8s.io/kubelet").write_text("another kubelet")
    link.symlink_to(new)
    assert machine("lab-serve", FROM=str(machine.folder), BUNDLE=str(link)).returncode == 0
    assert machine.ssh(kubelet) == "a kubelet", "it served something else"
    served = machine("lab-serve", FROM=str(old), BUNDLE=str(link), LAB="", SUBNET="")
    assert served.returncode == 0, served.stderr
    assert machine.ssh(kubelet) == "another kubelet"
    assert machine("lab-up").returncode == 0
    assert machine.ssh(kubelet) == "a kubelet"


@pytest.mark.lab
def test_a_paused_machine_is_silent_and_up_wakes_it(machine: Lab) -> None:
    assert machine("pause").returncode == 0
    with pytest.raises((subprocess.CalledProcessError, subprocess.TimeoutExpired)):
        machine.ssh("true")
    assert machine.up().returncode == 0
    machine.ssh("true")


@pytest.mark.lab
def test_a_new_generation_is_a_new_machine(machine: Lab) -> None:
    machine.ssh("touch /var/lib/kube-ha/old")
    identity = machine.ssh("cat /etc/machine-id")
    assert machine.up(GENERATION="2").returncode == 0
    assert machine.ssh("ls /var/lib/kube-ha") == ""
    assert machine.ssh("cat /etc/machine-id") != identity


@pytest.mark.lab
def test_down_takes_machine_and_volumes_and_may_be_repeated(machine: Lab) -> None:
    engine = os.environ.get("KUBE_HA_CONTAINER_ENGINE", "podman")
    name = f"kube-ha-{machine.environment['LAB']}-m-1"
    inspect = [engine, "container", "inspect", "-f", "{{range .Mounts}}{{.Name}} {{end}}", name]
    volumes = subprocess.run(inspect, capture_output=True, text=True, check=True, timeout=30)
    assert len(volumes.stdout.split()) == 3
    assert machine("down").returncode == 0
    assert machine("down").returncode == 0
    left = subprocess.run(
        [engine, "volume", "ls", "-q"], capture_output=True, text=True, check=True, timeout=30
    )
    assert not set(volumes.stdout.split()) & set(left.stdout.split())


@pytest.mark.lab
def test_no_key_is_seen_in_output_or_left_behind(machine: Lab) -> None:
    secret = (machine.folder / "host").read_text().splitlines()[1]
    up = machine.up()
    assert secret not in up.stdout + up.stderr
    assert not list(Path("/dev/shm").glob("tmp.*/etc/ssh/*"))  # noqa: S108


@pytest.mark.parametrize(
    ("verb", "environment", "text"),
    [
        pytest.param("up", {"LAB": "a b"}, "up needs LAB, got 'a b'", id="a name with a space"),
        pytest.param("up", {"LAB": "x", "MACHINE": ""}, "up needs MACHINE, got ''", id="missing"),
        pytest.param("dance", {}, "unknown verb 'dance'", id="unknown verb"),
    ],
)
def test_bad_values_are_refused_with_the_way_out(
    tmp_path: Path, verb: str, environment: dict[str, str], text: str
) -> None:
    # Any name will do: the engine is not reached.
    refused = Lab(tmp_path, {"KUBE_HA_CONTAINER_ENGINE": "true"})(verb, **environment)
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"ERROR machine.sh: {text}")
    assert "\n  do: " in refused.stderr


class Engine:
    """Stands for podman with one container at most: its label says what it was made from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._write(
            "engine",
            f"""\
echo "$*" >>{folder}/calls
case "$*" in
  "container inspect"*Labels*) cat {folder}/made 2>/dev/null ;;
  "container inspect"*Status*) echo running ;;
  rm*) rm {folder}/made ;;
  create*) for word; do [[ $word != kube-ha.made-from=* ]] || echo "${{word#*=}}" >{folder}/made; done ;;
  cp*) cat >/dev/null ;;
esac
""",
        )
        self._write("timeout", "printf SSH-\n")  # the machine's sshd greets
        self.lab = Lab(folder, {
            "KUBE_HA_CONTAINER_ENGINE": str(folder / "engine"), "LAB": "x", "MACHINE": "m-1",
            "PATH": f"{folder}:{os.environ['PATH']}",
        })  # fmt: skip

    def _write(self, name: str, body: str) -> None:
        (self.folder / name).write_text(f"#!/bin/bash\n{body}")
        (self.folder / name).chmod(0o755)

    def up(self, generation: str | None) -> list[str]:
        """Verbs that made or removed containers, with the names of what they took along."""
        (self.folder / "calls").unlink(missing_ok=True)
        said = {} if generation is None else {"GENERATION": generation}
        up = self.lab("up", "HOST_KEY=a\nAUTHORIZED_KEY=b\n", ADDRESS=ADDRESS, **said)
        assert up.stdout == f"machine m-1 {ADDRESS}\n", up.stderr
        calls = (self.folder / "calls").read_text().splitlines()
        return [call for call in calls if call.startswith(("rm", "create", "kill"))]


@pytest.mark.parametrize(
    ("first", "then", "made"),
    [
        (None, None, None),
        (None, "1", None),
        ("1", None, None),
        ("2", "2", None),
        (None, "2", f"2 {ADDRESS}"),
        ("2", "3", f"3 {ADDRESS}"),
        ("9", "10", f"10 {ADDRESS}"),
        # An edit that failed and was taken back: nothing of the machine that it made may serve.
        ("3", "2", f"2 {ADDRESS}"),
        ("2", None, f"1 {ADDRESS}"),
    ],
)
def test_another_generation_is_another_container_with_other_volumes(
    tmp_path: Path, first: str | None, then: str | None, made: str | None
) -> None:
    engine = Engine(tmp_path)
    assert len(engine.up(first)) == 1
    before = (tmp_path / "made").read_text()
    changed = engine.up(then)
    if made is None:
        assert changed == []
        assert (tmp_path / "made").read_text() == before
        return
    assert changed[:2] == ["kill --signal KILL kube-ha-x-m-1", "rm --force --volumes kube-ha-x-m-1"]
    assert changed[2].startswith("create --name kube-ha-x-m-1 ")
    assert (tmp_path / "made").read_text() == f"{made}\n"
    assert engine.up(then) == []


def test_a_replacement_that_was_cut_off_is_finished(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.up("1")
    (tmp_path / "made").unlink()
    (created,) = engine.up("2")
    assert f"kube-ha.made-from=2 {ADDRESS}" in created


@pytest.mark.parametrize("others", ["", "0123"])
def test_purge_takes_the_images_unless_another_checkouts_lab_runs(
    tmp_path: Path, others: str
) -> None:
    engine = tmp_path / "engine"
    engine.write_text(
        f'#!/bin/bash\necho "$*" >>{tmp_path}/calls\n'
        f'case "$*" in "ps --all --quiet --filter label=kube-ha.lab") echo "{others}" ;;\n'
        "images*-cloud) echo kube-ha-lab-cloud:current ;;\n"
        "images*) printf 'kube-ha-lab:%s\\n' current 9f2b ;; esac\n"
    )
    engine.chmod(0o755)
    assert Lab(tmp_path, {"KUBE_HA_CONTAINER_ENGINE": str(engine)})("purge").returncode == 0
    calls = (tmp_path / "calls").read_text().splitlines()
    every = "rmi kube-ha-lab-cloud:current kube-ha-lab:current kube-ha-lab:9f2b"
    assert (every in calls) == (not others)


def test_this_computer_is_told_what_it_lacks(tmp_path: Path) -> None:
    environment = values(KUBE_HA_CONTAINER_ENGINE="false", KUBE_HA_CACHE=str(tmp_path))
    check = subprocess.run(
        [ROOT / "lab" / "host.sh", "check"], capture_output=True, text=True, check=False,
        env=environment, timeout=60,
    )  # fmt: skip
    assert check.returncode == 1
    assert "missing  an answer from false" in check.stdout
    assert "    do:  " in check.stdout


@pytest.mark.parametrize(
    ("free", "cached", "needed"),
    [
        (25_000, 0, None),
        (24_999, 0, 25_000),
        (20_041, 16_000, None),
        (8_000, 60_000, None),
        (7_999, 60_000, 8_000),
    ],
)
def test_what_the_cache_has_needs_no_disk_again(
    tmp_path: Path, free: int, cached: int, needed: int | None
) -> None:
    for program, answer in (("df", f"Avail\n {free}M"), ("du", f"{cached}\t{tmp_path}")):
        (tmp_path / program).write_text(f"#!/bin/sh\nprintf '{answer}\\n'\n")
        (tmp_path / program).chmod(0o755)
    told = subprocess.run(
        [ROOT / "lab" / "host.sh", "check"], capture_output=True, text=True, check=False, timeout=60,
        env=values(KUBE_HA_CACHE=str(tmp_path), PATH=f"{tmp_path}:{os.environ['PATH']}"),
    ).stdout  # fmt: skip
    disk = [line.split(",")[1] for line in told.splitlines() if "disk:" in line]
    assert disk == ([] if needed is None else [f" needed {needed}"])
