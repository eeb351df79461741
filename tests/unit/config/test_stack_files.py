"""Stack files: those of the project load and plan; the command prints or refuses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stacks.__main__ import main
from stacks.cluster.resolve import plan
from stacks.config.spec import Spec
from stacks.config.stack_file import StackFileError, from_engine, read
from stacks.load import load

ROOT = Path(__file__).resolve().parents[3]
STACKS = [ROOT / f"Pulumi.{stack}.yaml" for stack in ("dev", "staging", "prod")]
FILES = sorted([*ROOT.glob("examples/*.yaml"), *STACKS])
TOPOLOGIES = {
    "Pulumi.dev.yaml": (3, 3, 2),
    "Pulumi.prod.yaml": (3, 3, 3),
    "Pulumi.staging.yaml": (3, 3, 1),
    "adopted.yaml": (3, 3, 2),
    "air-gap.yaml": (3, 3, 2),
    "aws.yaml": (3, 3, 3),
    "tunnel.yaml": (3, 3, 2),
    "dns.yaml": (3, 3, 3),
    "gcp.yaml": (3, 3, 3),
    "hcloud.yaml": (3, 3, 3),
    "own-network.yaml": (1, 1, 1),
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


# Calls of functions, which no other work on the computer changes: 700,000 are half a second of processor time here.
@pytest.mark.parametrize(
    ("file", "most"), [("Pulumi.dev.yaml", 950_000), ("examples/thousand.yaml", 2_900_000)]
)
def test_the_plan_is_made_without_much_ado(file: str, most: int) -> None:
    command = [sys.executable, "-m", "cProfile", "-m", "stacks", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = re.search(r"^ +(\d+) function calls", done.stdout, re.MULTILINE)
    assert found is not None
    assert int(found[1]) < most


def test_the_command_prints_the_plan() -> None:
    done = run("Pulumi.dev.yaml", "--verbose")
    assert (done.returncode, done.stderr) == (0, "")
    assert "3 masters, 3 etcd members, 2 workers:" in done.stdout
    assert "  worker-2  worker       10.92.0.102  amd64\n" in done.stdout


def test_the_command_prints_the_plan_of_a_thousand_machines() -> None:
    done = run("examples/thousand.yaml", "--verbose")
    assert (done.returncode, done.stderr) == (0, "")
    assert "5 masters, 5 etcd members, 995 workers:" in done.stdout
    assert len([line for line in done.stdout.splitlines() if " ops@172.20." in line]) == 1000


def test_an_alias_may_lead_back_to_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text("config: &a\n  kube-ha:cluster: *a\n")
    with pytest.raises(StackFileError, match="does an alias lead back to where it stands"):
        read(file)


def test_the_command_needs_no_keys_but_says_that_they_are_missing(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    text = (ROOT / "examples" / "adopted.yaml").read_text()
    file.write_text(text.replace("~/.ssh/id_ed25519", "/nowhere/key"))
    done = run(str(file))
    assert done.returncode == 0
    assert "  machines.ssh.privateKeyFile: '/nowhere/key' does not" in done.stdout


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
        "  cluster.podCidr: '10.0.0.0' is not an IPv4 network; write address/bits, as '10.244.0.0/16', "
        "or '10.0.0.0/32' for it alone",
        "  pools: no machine has role etcd; give it to a pool of at least 1, better 3 machines",
        "  pools: no machine has role master; give it to a pool of at least 1, better 3 machines",
    ]


NO_STACK_FILE = [
    ("config: {kube-ha:a: 1", "is not YAML"),
    ("- a", "has no `config:`; see examples/ for complete stack files"),
    ("config: 5", "has no `config:`; see examples/ for complete stack files"),
    ("config:\n  kube-ha:etcd: {a: 1}\n  kube-ha:etcd: {b: 2}\n", "line 3: key `kube-ha:etcd` is there twice"),
    ("config:\n  kube-ha:pools:\n    a: {hosts: [{name: x, name: y}]}\n", "line 3: key `name` is there twice"),
    ("config: {a: &a {b: 1}, c: [*a, *a], d: 1, d: 2}", "line 1: key `d` is there twice"),
    ("config:\n  kube-ha:a: " + "[" * 100_000, "has more than 100 levels; nothing of use has so many"),
    ("config: {kube-ha:a: !!python/object:x {}}", "is not YAML"),
    ("config: {? [a] : 1}", "is not YAML"),
    ("config: {kube-ha:a: {1.50: x}}", "line 1: key `1.50` is not text to YAML; put it in quotes"),
    ("config: {kube-ha:a: {2026-01-01: x}}", "key `2026-01-01` is not text to YAML; put it in quotes"),
    ("config: {kube-ha:a: {~: x}}", "key `~` is not text to YAML; put it in quotes"),
    ("config: {kube-ha:a: !!set {x}}", "tag `!!set`; leave it out, or put the value in quotes"),
    ("config: {kube-ha:a: {<<: [1]}}", "`<<` takes mappings only"),
    ("config: {kube-ha:os: {packages: 2026-11-21}}", "os.packages: 2026-11-21 without quotes is a date to YAML"),
    ("config: {kube-ha:a: {x: [.nan]}}", "a.x.0.: .nan is not a number that a config can hold"),
    ("config: {kube-ha:etcd: }", "etcd: is empty, which the engine takes for a text; leave the key out"),
    ("config: {etcd: }", "etcd: is empty, which the engine takes for a text; leave the key out"),
    ("config: {etcd: {}, kube-ha:etcd: {}}", '"etcd": stands here as kube-ha:etcd too'),
    ("config: {Kube-HA:etcd: {}}", 'is of a project .Kube-HA., and read by nobody here; write kube-ha:etcd'),
    ("config: {kubeha:etcd: {}}", 'is of a project .kubeha., and read by nobody here; write kube-ha:etcd'),
    ("config: {kube_ha:etcd: {}}", 'is of a project .kube_ha., and read by nobody here; write kube-ha:etcd'),
    ("config: {kube-ha:x:etcd: {}}", "the engine takes no such key; write kube-ha:etcd"),
    ("config: {}\nkube-ha:etcd: {}", '"kube-ha:etcd": stands beside `config:`, where nobody reads it'),
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


def test_keys_without_a_prefix_get_the_projects_name(tmp_path: Path) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    file.write_text(
        "config: {rollout: {parallel: 1}, kube-ha:pools: {no: {on: off}}, aws:region: x}"
    )
    assert read(file) == {"rollout": {"parallel": 1}, "pools": {"no": {"on": "off"}}}


def test_what_is_misread_hides_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "Pulumi.x.yaml"
    text = (ROOT / "Pulumi.dev.yaml").read_text()
    more = "  kube-ha:os: {packages: 2026-11-21}\n  rollout: {paralel: 1}\n"
    file.write_text(text.replace("config:\n", "config:\n" + more))
    assert main([str(file)]) == 1
    assert [line.partition(":")[0] for line in capsys.readouterr().err.splitlines()[1:]] == [
        "  os.packages",
        "  rollout.paralel",
    ]


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
