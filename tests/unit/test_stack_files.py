"""Stack files: those of the project load and plan; the command prints or refuses."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stacks.plan import plan
from stacks.spec import Spec, SpecError, load
from stacks.stack_file import StackFileError, from_engine, read

ROOT = Path(__file__).resolve().parents[2]
STACKS = [ROOT / f"Pulumi.{stack}.yaml" for stack in ("dev", "staging", "prod")]
FILES = sorted([*ROOT.glob("examples/*.yaml"), *STACKS])
TOPOLOGIES = {
    "Pulumi.dev.yaml": (3, 3, 2),
    "Pulumi.prod.yaml": (3, 3, 3),
    "Pulumi.staging.yaml": (3, 3, 1),
    "adopted.yaml": (3, 3, 2),
    "aws.yaml": (3, 3, 3),
    "tunnel.yaml": (3, 3, 2),
    "dns.yaml": (3, 3, 3),
    "gcp.yaml": (3, 3, 3),
    "load-balancers.yaml": (3, 3, 2),
    "separate-etcd.yaml": (3, 2, 1),
    "single.yaml": (1, 1, 1),
    "stacked.yaml": (5, 5, 3),
    "thousand.yaml": (5, 5, 995),
}


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stacks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_stack_file_of_the_project_loads_and_plans(file: Path) -> None:
    made = plan(load(read(file), read_keys=False))
    counts = (len(made.etcd), len(made.masters), len(made.workers))
    assert counts == TOPOLOGIES[file.name]


def test_the_project_declares_exactly_the_sections_there_are() -> None:
    project = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    declared = project["config"]
    sections = {f"kube-ha:{field.alias or name}" for name, field in Spec.model_fields.items()}
    assert set(declared) == sections
    for key, entry in declared.items():
        assert entry["type"] == ("array" if key == "kube-ha:allow" else "object"), key
        assert entry["description"], key
    required = {key for key, entry in declared.items() if "default" not in entry}
    assert required == {"kube-ha:cluster", "kube-ha:machines", "kube-ha:pools"}


def test_the_command_prints_the_plan_in_well_under_a_second() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run("Pulumi.dev.yaml")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    # Processor time: the computer may be busy.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 masters, 3 etcd members, 2 workers:" in done.stdout
    assert "  worker-2  worker       10.92.0.102  amd64\n" in done.stdout


def test_the_command_prints_the_plan_of_a_thousand_machines_in_under_a_second() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run("examples/thousand.yaml")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
    assert (done.returncode, done.stderr) == (0, "")
    assert "5 masters, 5 etcd members, 995 workers:" in done.stdout
    assert len([line for line in done.stdout.splitlines() if " ops@172.20." in line]) == 1000


def test_an_alias_may_lead_back_to_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text("config: &a\n  kube-ha:cluster: *a\n")
    with pytest.raises(SpecError, match="config: holds something that is no plain data"):
        load(read(file))


def test_the_command_needs_no_keys_but_says_that_they_are_missing(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    text = (ROOT / "examples" / "adopted.yaml").read_text()
    file.write_text(text.replace("~/.ssh/id_ed25519", "/nowhere/key"))
    done = run(str(file))
    assert done.returncode == 0
    assert done.stderr.startswith("warning: machines.ssh.privateKeyFile: '/nowhere/key' does not")


def test_the_command_says_every_problem_and_fails(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(
        "config:\n"
        "  kube-ha:cluster: {name: x, kubernetes: 1.36.3, podCidr: 10.0.0.0}\n"
        "  kube-ha:machines: {provider: lab}\n"
        "  kube-ha:pools: {worker: {roles: [worker], count: 1}}\n"
        "  aws:region: eu-central-1\n"
    )
    done = run(str(file))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"{file}: 3 problems, nothing was touched",
        "  cluster.podCidr: '10.0.0.0' is no IPv4 network; write address/bits, as '10.244.0.0/16'",
        "  pools: no machine has role etcd; give it to a pool of at least 1, better 3 machines",
        "  pools: no machine has role master; give it to a pool of at least 1, better 3 machines",
    ]


NO_STACK_FILE = [
    ("config: {kube-ha:a: 1", "is no YAML"),
    ("- a", "has no `config:`; see examples/ for complete stack files"),
    ("config: 5", "has no `config:`; see examples/ for complete stack files"),
    ("config:\n  kube-ha:etcd: {a: 1}\n  kube-ha:etcd: {b: 2}\n", "line 3: key `kube-ha:etcd` is there twice"),
    ("config:\n  kube-ha:pools:\n    a: {hosts: [{name: x, name: y}]}\n", "line 3: key `name` is there twice"),
    ("config: {a: &a {b: 1}, c: [*a, *a], d: 1, d: 2}", "line 1: key `d` is there twice"),
    ("config:\n  kube-ha:a: " + "[" * 100_000, "has more than 100 levels; no config has so many"),
    ("config: {kube-ha:a: !!python/object:x {}}", "is no YAML"),
    ("config: {? [a] : 1}", "is no YAML"),
    ("\xff\xfe\x00", "cannot be read"),
    (None, "cannot be read"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), NO_STACK_FILE)
def test_a_file_that_is_no_stack_file_is_refused(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    if text is not None:
        file.write_bytes(text.encode("latin-1"))
    with pytest.raises(StackFileError, match=reason):
        read(file)


def test_the_command_refuses_what_is_no_stack_file() -> None:
    done = run("README.nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "README.nowhere: 1 problem, nothing was touched\n  cannot be read: "
    )


def test_engine_and_file_give_the_same_config() -> None:
    file = read(ROOT / "Pulumi.prod.yaml")
    engine = {f"kube-ha:{key}": json.dumps(value) for key, value in file.items()}
    assert from_engine(engine | {"aws:region": "x"}, secret=[]) == file


def test_what_is_encrypted_does_not_reach_the_plan() -> None:
    engine = {"kube-ha:token": "hunter2", "kube-ha:note": "plain"}
    raw = from_engine(engine, secret=["kube-ha:token"])
    assert raw == {"token": {"secure": ""}, "note": "plain"}
