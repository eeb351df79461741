"""Hosts in files of their own: the same config as in the stack file, and problems by file and line."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from stacks import load
from stacks.__main__ import main
from stacks.config import hosts_file, stack_file
from stacks.config.pools import HostSpec
from stacks.config.problems import SpecError
from stacks.edits import memory
from tests.unit.configs import GONE, adopted, host, host_key

FIELDS = [field.alias or name for name, field in HostSpec.model_fields.items()]
FULL: dict[str, object] = {
    **host("worker", 1),
    "sshAddress": "worker-1.example.com",
    "user": "ops",
    "port": 2222,
    "zone": "1",
}
HEADER = "name,address,hostKey\n"
ROW = f"worker-1,192.0.2.101,{host_key(1)}\n"


def as_csv(hosts: list[dict[str, object]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS)
    writer.writeheader()
    writer.writerows(hosts)
    return out.getvalue()


def stack(folder: Path, text: str, name: str = "hosts.csv", **pool: object) -> Path:
    """A stack file whose workers are in a file with that text."""
    raw = adopted({"pools.worker": {"roles": ["worker"], "hostsFile": name, **pool}})
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    file = folder / "Pulumi.prod.yaml"
    file.write_text(json.dumps({"config": {f"kube-ha:{key}": value for key, value in raw.items()}}))
    return file


def told(file: Path) -> list[str]:
    said = stack_file.look(file)
    found, _ = load.look(said.config, misread=said.problems)
    return [f"{path}: {text}" for path, text in said.located(found)]


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("hosts.csv", as_csv),
        ("hosts.csv", lambda hosts: "\ufeff" + as_csv(hosts).replace("\r\n", "\n\n,,\n")),
        ("more/hosts.yaml", yaml.safe_dump),
        ("hosts.yml", json.dumps),
    ],
)
def test_hosts_of_a_file_are_those_of_the_stack_file(
    tmp_path: Path, name: str, write: object
) -> None:
    assert callable(write)
    hosts = [FULL, host("worker", 2)]
    file = stack(tmp_path, write(hosts), name)
    inline = load.load(adopted({"pools.worker.hosts": hosts}))
    assert told(file) == []
    spec = load.load(stack_file.read(file))
    assert spec == inline
    assert memory.of(load.planned(spec)) == memory.of(load.planned(inline))
    assert stack_file.hosts_files(file) == [name]


def test_the_program_reads_the_same_as_the_plan(tmp_path: Path) -> None:
    file = stack(tmp_path, as_csv([FULL]))
    config: Mapping[str, object] = json.loads(file.read_text())["config"]
    given = {"PULUMI_CONFIG": json.dumps({k: json.dumps(v) for k, v in config.items()})}
    said = stack_file.of_engine(given, tmp_path)
    assert (said.config, said.origins) == (stack_file.read(file), stack_file.look(file).origins)


def test_a_stack_file_behind_a_link_has_its_hosts_beside_it(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "project").mkdir()
    link = tmp_path / "project/Pulumi.prod.yaml"
    link.symlink_to(stack(tmp_path / "stacks", as_csv([FULL])))
    assert told(link) == []


def test_columns_of_numbers_are_those_of_the_model() -> None:
    schema = HostSpec.model_json_schema(by_alias=True)["properties"]
    kinds = {
        name: {part.get("type") for part in entry.get("anyOf", [entry])} - {"null"}
        for name, entry in schema.items()
    }
    assert {name for name, kind in kinds.items() if kind == {"integer"}} == {*hosts_file._NUMBERS}
    assert all(kind in ({"string"}, {"integer"}) for kind in kinds.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            HEADER + "\n" + ROW.replace("192.0.2.101", "192.0.2.999"),
            "hosts.csv:3: address: '192.0.2.999' is not an IPv4 address; write four numbers, as 10.0.0.11",
        ),
        (HEADER + "worker-1,,x\n", "hosts.csv:2: hostKey: 'x' is not an OpenSSH"),
        (HEADER + "worker-1,,x\n", "hosts.csv:2: address: is missing"),
        (HEADER + "worker-1\n", "hosts.csv:2: has 1 cells, the first line names 3"),
        (HEADER + ROW.strip() + ",b\n", "hosts.csv:2: has 4 cells, the first line names 3"),
        (
            HEADER.replace("hostKey", "hostkey") + ROW,
            "hosts.csv:1: unknown column `hostkey`; did you mean `hostKey`?",
        ),
        (HEADER.replace("hostKey", "name") + ROW, "hosts.csv:1: column `name` is there twice"),
        ("", "pools.worker.hostsFile: 'hosts.csv' has no column name and no column address"),
        (
            "name;address\na;b\n",
            "pools.worker.hostsFile: 'hosts.csv' has no column name and no column address; its first line "
            "names the columns, with commas between them: name,address,",
        ),
        (HEADER + '"worker-1,\n', "pools.worker.hostsFile: 'hosts.csv' is not CSV (line 2: "),
        (
            "port," + HEADER + "x," + ROW,
            'hosts.csv:2: port: "x" is not a whole number',
        ),
        (
            HEADER + ROW + ROW.replace("worker-1", "worker-2"),
            "hosts.csv:3: address: '192.0.2.101' is taken by worker-1 (hosts.csv:2)",
        ),
    ],
)  # fmt: skip
def test_problems_of_csv_carry_the_line(tmp_path: Path, text: str, said: str) -> None:
    found = told(stack(tmp_path, text))
    assert any(one.startswith(said) for one in found), found
    assert all("hosts[" not in one for one in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "# all\n- name: worker-1\n  address: 192.0.2.101\n- name: Worker\n  address: 192.0.2.102\n",
            "hosts.yaml:4: name: 'Worker' ",
        ),
        ("- name: a\n  name: b\n", "pools.worker.hostsFile: 'hosts.yaml' line 2: key `name` is there twice"),
        ("- {name: a, address: 192.0.2.1, rack: 4}\n", "hosts.yaml:1: rack: unknown key `rack`"),
        ("- 5\n", "hosts.yaml:1: 5 is not a mapping"),
        ("\n- {name: a, address: 192.0.2.1, zone: 2026-01-02}\n", "hosts.yaml:2: zone: 2026-01-02 without quotes"),
        ("hosts: []\n", "pools.worker.hostsFile: 'hosts.yaml' is not a list of hosts"),
        ("", "pools.worker.hostsFile: 'hosts.yaml' is not a list of hosts"),
        ("a: [\n", "pools.worker.hostsFile: 'hosts.yaml' is not YAML"),
    ],
)  # fmt: skip
def test_problems_of_yaml_carry_the_line(tmp_path: Path, text: str, said: str) -> None:
    found = told(stack(tmp_path, text, "hosts.yaml"))
    assert any(one.startswith(said) for one in found), found


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("gone.csv", "cannot be read (no such file or directory); it is searched in the folder of the stack file"),
        ("folder.csv", "cannot be read (is a directory)"),
        ("pipe.csv", "cannot be read (is no regular file)"),
        ("hosts.txt", "is a file of another kind; its name ends in .csv, .yaml, .yml"),
        ("../outside.csv", "is not below the folder of the stack file"),
        ("link.csv", "is not below the folder of the stack file"),
        ("linked/outside.csv", "is not below the folder of the stack file"),
        ("/etc/hosts.csv", "is not below the folder of the stack file"),
        ("~/hosts.csv", "is not below the folder of the stack file"),
        ("latin.csv", "is not text in UTF-8 (line 2)"),
        ("big.csv", "cannot be read (has more than 16384 KiB)"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_one_problem(tmp_path: Path, name: str, said: str) -> None:
    folder = tmp_path / "stack"
    file = stack(folder, ROW)
    (tmp_path / "outside.csv").write_text(HEADER + ROW)
    (folder / "link.csv").symlink_to(tmp_path / "outside.csv")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "folder.csv").mkdir()
    os.mkfifo(folder / "pipe.csv")
    (folder / "latin.csv").write_bytes((HEADER + "ä" + ROW).encode("latin-1"))
    with (folder / "big.csv").open("wb") as big:
        big.truncate(16 * 2**20 + 1)
    file.write_text(file.read_text().replace('"hosts.csv"', json.dumps(name)))
    [found] = told(file)
    assert found.startswith(f"pools.worker.hostsFile: {name!r} {said}")


def test_hosts_and_a_file_of_them_exclude_each_other(tmp_path: Path) -> None:
    [found] = told(stack(tmp_path, HEADER + ROW, hosts=[host("worker", 1)]))
    assert found.startswith("pools.worker.hostsFile: and hosts are both there")


def test_machines_that_are_made_are_in_no_file(tmp_path: Path) -> None:
    file = stack(tmp_path, HEADER + ROW, count=1)
    lab = json.loads(file.read_text())
    lab["config"]["kube-ha:machines"] = {"provider": "lab"}
    lab["config"]["kube-ha:pools"]["master"] = {"roles": ["etcd", "master"], "count": 1}
    file.write_text(json.dumps(lab))
    assert told(file) == ["pools.worker.hostsFile: is for provider adopt; in the lab write count"]


def test_a_path_that_is_no_text_is_for_the_model() -> None:
    with pytest.raises(SpecError, match=r"pools\.worker\.hostsFile: 5 is not a text"):
        load.load(adopted({"pools.worker.hosts": GONE, "pools.worker.hostsFile": 5}))


def test_the_command_tells_lines_and_compares_with_a_file_beside_the_earlier_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    then = stack(tmp_path / "then", as_csv([host("worker", 1)]))
    now = stack(tmp_path / "now", as_csv([host("worker", 1), host("worker", 2)]))
    assert main([str(now), "--previous", str(then)]) == 0
    assert "worker-2" in capsys.readouterr().out
    assert main([str(now), "--previous", str(now)]) == 0
    assert "nothing to do" in capsys.readouterr().out
    (tmp_path / "now/hosts.csv").write_text(HEADER + "worker-1,x,y\n")
    assert main([str(now)]) == 1
    assert "  hosts.csv:2: address: 'x' is not an IPv4 address" in capsys.readouterr().err
