"""What kubelets, makers of pods and of objects write into the API is data: it commands nobody, names nobody else, and shows as text.

Every field that others can write is given every kind of text that once was, or could be, more than text, and goes through every script that reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.ssh import client
from tests.scripts import node_list
from tests.scripts.node_api import NodeApi
from tests.scripts.shell import Shell
from tests.scripts.test_nodes import VALUES as NODES_VALUES
from tests.scripts.test_retire import VALUES as RETIRE_VALUES
from tests.scripts.test_wave import FIRST
from tests.scripts.test_wave import VALUES as WAVE_VALUES

WANTED = "a" * 16
# MARK is a path: whoever makes it has executed a text.
TEXTS = {
    "row": "x\nmaster-1|{hash}|True||\nmaster-2||True||",
    "option": "x\n-lkubernetes.io/os|x|True||",
    "option alone": "-lkubernetes.io/os --all -f",
    "cells": "x|y|True|{hash}|{hash} 12:00 no disk|true",
    "substitution": "$(touch MARK)`touch MARK`;touch MARK",
    "subscript": "SECONDS[$(touch${{IFS}}MARK)]",
    "drain": "always SECONDS[$(touch${{IFS}}MARK)] a[$(touch${{IFS}}MARK)]",
    "quotes": "'; touch MARK; '\"; touch MARK; \"",
    "json": '","kube-ha.io/applied":"{hash}","x":"',
    "tabs": "worker-9\tTrue\tx\tnode\tmaster-9",
    "terminal": "\x1b[2J\x1b]0;x\x07\x9b31m\r\n::add-mask::x\n  ::set-output name=x::y ##[group]x",
    "long": "9" * 200_000,
    "hash, then more": "{hash} 12:00 no\ndisk\x1b[31m|x|::stop-commands::x",
    "hash and newline": "{hash}\n",
    "true and newline": "true\n",
    "number": "08",
    "glob": "* [a-z]* ~ {{a,b}}",
    "not ASCII": "\u202eworker\u0000-1\u2028::add-mask::x",
}
MINE = "worker-2"  # the one that is hostile
OTHERS = ("master-1", "master-2", "master-3", "worker-1", "db")


def text_of(kind: str, mark: Path) -> str:
    return TEXTS[kind].format(hash=WANTED).replace("MARK", str(mark))


def hostile(text: str) -> dict[str, object]:
    """A Node whose kubelet has written this wherever it may, and told of itself what lets nothing be skipped."""
    keys = ("applied", "begun", "failed", "leaving", "maintenance", "kept", "drain", "os", "labels", "taints", "updating", "cordoned")  # fmt: skip
    return {
        "metadata": {
            "name": MINE,
            "annotations": {f"kube-ha.io/{key}": text for key in keys},
            "labels": {"a": text},
        },
        "spec": {"taints": [{"key": text, "value": text, "effect": text}]},
        "status": {
            "conditions": [
                {"type": "Ready", "status": text, "reason": text, "message": text},
                {"type": text, "status": "True"},
            ],
            "addresses": [{"type": "InternalIP", "address": text}, {"type": text, "address": text}],
            "nodeInfo": {
                key: text
                for key in ("kubeletVersion", "containerRuntimeVersion", "machineID", "osImage")
            },
        },
    }


def honest(name: str) -> dict[str, object]:
    return node_list.one(name, applied=WANTED, ready="True", kubelet="v1.36.3", runtime="containerd://2.3.7", address="127.0.0.9", machine=name[-1:] * 4)  # fmt: skip


@pytest.fixture(params=TEXTS)
def text(request: pytest.FixtureRequest, shell: Shell) -> str:
    return text_of(str(request.param), shell.folder / "executed")


def api(shell: Shell, text: str) -> None:
    """kubectl shows this cluster and records what it is asked to change, a word a line."""
    nodes = [*(honest(name) for name in OTHERS), hostile(text)]
    (shell.folder / "nodes").write_text(node_list.listed(*nodes))
    (shell.folder / "node").write_text(json.dumps(hostile(text)))
    record = {"known": "master-[1-3],worker-[1-3],db", "labels": text, "taints": text, f"joining.{MINE}": text}  # fmt: skip
    (shell.folder / "record").write_text(json.dumps({"data": record}))
    lists = {"objects": text, "left": f"{text}\n-f kube-system https://example.com/x.yaml"}
    (shell.folder / "lists").write_text(
        json.dumps({"items": [{"metadata": {"name": text, "labels": {"kube-ha.io/addon": text}}, "data": lists},
                              {"metadata": {"name": "kube-ha-addon-toys", "labels": {"kube-ha.io/addon": "toys"}}, "data": lists}]})
    )  # fmt: skip
    pod = {"metadata": {"name": text, "labels": {"app": text}}, "spec": {"nodeName": MINE}, "status": {"podIP": text, "hostIP": text}}  # fmt: skip
    (shell.folder / "pods").write_text(json.dumps({"items": [pod]}))
    request = {"metadata": {"name": text}, "spec": {"username": text}, "status": {}}
    (shell.folder / "requests").write_text(json.dumps({"items": [request]}))
    shell.stub(
        "kubectl",
        f"""cd "{shell.folder}"
case "$*" in
  *"get nodes"*) cat nodes ;;
  *"get "*"-- node "*) cat node ;;
  *"get configmap kube-ha-nodes"*) cat record ;;
  *"get configmaps -l"*) cat lists ;;
  *"get pods"*) cat pods ;;
  *"get csr"*) cat requests ;;
  *" apply "* | *" patch "*) cat >/dev/null ;;
  *" label "* | *" taint "* | *" annotate "* | *" cordon "* | *" uncordon "* | *" drain "* | *" delete "*)
    printf '%s\\n' "$@" >>changed; [[ $* != *" -- "* ]] && echo "$*" >>unparted ;;
esac
true""",
    )
    shell.stub("curl", "echo 'HTTP 000'; exit 7")
    shell.stub("sleep")


def touched(shell: Shell) -> set[str]:
    """Nodes that any command was about, and words that were options where a name should be."""
    changed = shell.folder / "changed"
    words = set(changed.read_text().splitlines()) if changed.exists() else set()
    known = {*OTHERS, MINE, "worker-3"}
    return {word for word in words if word in known or word in ("--all", "-f") or "-l" in word[:2]}


def safe(shell: Shell, said: str) -> None:
    """Nothing of the text was executed, no name is without its --, and what is printed is text."""
    assert not (shell.folder / "executed").exists()
    assert not (shell.folder / "unparted").exists()
    assert not re.search(r"[^\n\t -~]", said), "control bytes or more reach the terminal"
    assert not re.search(r"(?m)^\s*::|##\[", said), "a log of CI would take this for a command"
    assert max(map(len, said.splitlines()), default=0) < 7000


def test_the_list_of_nodes_touches_nobody_but_who_leaves(shell: Shell, text: str) -> None:
    """worker-3 was asked for once and is there no more; nobody of those that are there leaves."""
    api(shell, text)
    code = "read_record; missing; mark_nodes; keep_nodes; maintain_nodes; drain_nodes; delete_nodes; tell_strangers; settle_nodes; sweep_addons toys"
    wanted = f"master {WANTED} master-[1-3]\nworker {WANTED} worker-[1-2],db"
    marks = {"LABELS": "worker-[1-2]\t", "TAINTS": "worker-[1-2]\t"}
    values = {**NODES_VALUES, **marks, "WANTED": wanted}
    said = shell.run(code, phase="nodes", values=values)
    safe(shell, said)
    assert touched(shell) <= {MINE}, "its own Node may be uncordoned, which its kubelet may do too"
    deleted = [call for call in shell.calls if " delete " in call or " drain " in call]
    assert deleted == []
    assert set(re.findall(r"(?m)^(?:busy|idle|failed) (\S+)", said)) <= {MINE}


def test_a_gate_between_waves_tells_of_it_alone(shell: Shell, text: str) -> None:
    api(shell, text)
    values = {**WAVE_VALUES, "WANTED": "", "NODES": f"worker {WANTED} worker-[1-2]", "LATER": ""}
    said = shell.run('unfinished_nodes "$NODES"', phase="wave", values=values)
    safe(shell, said)
    assert "worker-1" not in said
    ended = {**values, "STALL_S": "0", "IDLE_S": "0"}
    # It may say of itself that all is well, or not: nobody else's word changes by that.
    safe(shell, shell.run("await_wave || true", phase="wave", values=ended, fails=not_well(said)))


def not_well(said: str) -> bool:
    return said != ""


def test_evictions_are_tried_by_the_plans_own_settings(shell: Shell, text: str) -> None:
    """Gate 0 reads the worker's Node and pods as root, with the administrator's key."""
    node = NodeApi.of(shell)
    node.pod("web-1", grace_s=3600)
    node.write("node.json", {**hostile(text), "metadata": {"name": MINE, "annotations": {"kube-ha.io/drain": text}}})  # fmt: skip
    pods = json.loads((shell.folder / "pods.json").read_text())
    metadata = {"name": text, "namespace": text, "uid": text, "annotations": {"x": text}}
    pods["hostile"] = {"metadata": metadata, "spec": {"terminationGracePeriodSeconds": text}, "status": {"phase": text}}  # fmt: skip
    node.write("pods.json", pods)
    values = {**WAVE_VALUES, **FIRST, "DRAIN": "auto 300 20"}
    said = shell.run(f"KEYS={shell.folder}/keys; mkdir $KEYS; blockers {MINE}", phase="wave", values=values)  # fmt: skip
    safe(shell, said)
    [body] = [call.split(" ", 2)[2] for call in shell.calls if "eviction" in call]
    assert json.loads(body)["deleteOptions"]["gracePeriodSeconds"] == 20


def test_a_node_that_reads_its_own_settings_reads_a_form(shell: Shell, text: str) -> None:
    node = NodeApi.of(shell, drain=text)
    node.pod("web-1")
    sources = 'source "$here/cluster-reader.sh"; source "$here/hooks.sh"'
    code = f'{sources}; see_node; drain_settings; begin_update "x" intrusive'
    said = shell.run(code, phase="update")
    safe(shell, said)
    assert said.splitlines()[0] == "auto 300 -"


def test_who_is_taken_out_is_who_the_plan_names(shell: Shell, text: str) -> None:
    api(shell, text)
    shell.stub("etcdctl", "echo 'one is healthy'")
    values = {**RETIRE_VALUES, "INCARNATIONS": f"{MINE}=2:active"}
    said = shell.run(f"leave_pods {MINE}; readiness {MINE}", phase="retire", values=values)
    safe(shell, said)
    assert touched(shell) == {MINE}


def test_the_gate_asks_only_addresses_and_names(shell: Shell, text: str) -> None:
    api(shell, text)
    values = {"NETWORK": "1", "NODES": "6", "NAMESPACE": "check", "NAME": "netexec", "OURS": MINE, "PORT": "8080"}  # fmt: skip
    code = f"{UNKNOWN}; test_pods; kubelets_known || true; machine_ids || true; all_initialized; unknown_kubelets /ca"
    said = shell.run(code, phase="gate", values=values)
    safe(shell, said)
    urls = (shell.state / "kubelets.urls").read_text()
    assert set(re.findall(r'url = "([^"]*)"', urls)) == {"https://127.0.0.9:10250/healthz"}
    assert MINE not in [line.split(" ")[0] for line in said.splitlines() if line.startswith("pod")]


UNKNOWN = 'die() { printf \'ERROR %s\\n\' "$(plain <<<"$1")"; return 1; }'


def test_the_probe_tells_a_row_a_node(shell: Shell, text: str) -> None:
    api(shell, text)
    (shell.state / "kept").parent.mkdir(parents=True, exist_ok=True)
    (shell.state / "owner").write_text(text[:9000].replace("\0", ""))
    said = shell.run("ASK=cluster; say owner \"$(content_of $STATE/owner)\"; main", phase="probe")  # fmt: skip
    assert not (shell.folder / "executed").exists()
    rows = [line.split("\t") for line in said.splitlines()]
    assert sorted(row[1] for row in rows if row[0] == "node") == sorted([*OTHERS, MINE])
    assert {len(row) for row in rows if row[0] == "node"} == {9}
    assert {row[0] for row in rows} <= {"node", "asked", "settings", "owner", "end"}
    assert not re.search(r"[^\n\t -~]", said)


def test_what_a_machine_prints_is_text_to_a_terminal(text: str) -> None:
    """A worker in wrong hands answers a probe with what it likes."""
    said = client.plain(f"{text}\n{text}")
    assert not re.search(r"[^\n\t -~]", said)
    assert not re.search(r"(?m)^[ \t]*::|##\[", said)


def test_an_error_prints_no_more_than_text(shell: Shell, text: str) -> None:
    (shell.folder / "text").write_bytes(text.encode("utf-8", "replace").replace(b"\0", b""))
    out = shell.run('log "$(<text)"; die "not seen: $(<text)"', fails=True)
    safe(shell, out)


# --- the class, in the text of the scripts ---

SCRIPTS = Path(__file__).parents[2] / "components/scripts"
CHANGING = "label|taint|annotate|cordon|uncordon|drain|delete"


def lines() -> Iterator[tuple[str, int, str]]:
    for path in sorted(SCRIPTS.glob("*.sh")):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if not line.lstrip().startswith("#"):
                yield path.name, number, line


def test_a_name_is_never_a_word_of_kubectl_without_its_dashes() -> None:
    """Of what changes something in the cluster: behind -- no name is an option."""
    asked = re.compile(rf"kubectl_admin (?:-n \S+ )?(?:{CHANGING}) (?!.*--raw)(.*)")
    found = [
        f"{file}:{number}: {line.strip()}"
        for file, number, line in lines()
        if (match := asked.search(line)) and "$" in match[1] and " -- " not in f" {match[1]}"
        # Of this process, and of the stack.
        if "kube-ha-gate-$$" not in line
        and '"$NAMESPACE" --ignore-not-found' not in line
        # The value of an option, whatever it is.
        and not re.search(
            r'delete pods -l "app=\$NAME" --field-selector "spec\.nodeName=\$name" --force', line
        )
    ]
    assert found == []


def test_nobody_reads_nodes_but_the_reader() -> None:
    found = {
        file
        for file, _, line in lines()
        if re.search(r"\bget nodes?\b", line) and "jsonpath" in line
    }
    assert found == set()


_READ = re.compile(r"\bread (?:-\S+ )*((?:[a-z_]+ ?)+)")
_ARITHMETIC = re.compile(r"\(\((.*?)\)\)")
# What these print is a number, whoever asks; all else is checked where it is read, or is not a number of others.
_NUMBERS = re.compile(
    r"\$\((?:wc -[lw]|count_of|incarnation|date \+%s|grep -c|minute_of_week|healthy_count|other_ready_masters|known_masters|under_other_keys)"
)


def functions() -> Iterator[tuple[str, str]]:
    """Each function of the scripts, by its name, with its text."""
    for path in sorted(SCRIPTS.glob("*.sh")):
        for match in re.finditer(r"(?ms)^([a-z_]+)\(\) \{.*?^\}", path.read_text()):
            yield f"{path.name} {match[1]}", match[0]


# Functions in which a word that is read is a number by where it comes from, and why.
KNOWN_NUMBERS = {
    "update.sh begin_update": "drain_settings: by the form of cluster-reader.sh",
    "update.sh evict_pod": "drain_settings; GRACE is of own_pods, by jq's whole",
}


def test_arithmetic_takes_no_word_that_was_read_without_a_look_at_it() -> None:
    """bash evaluates the value of a variable there, and executes what is in a subscript of it."""
    found = []
    for name, text in functions():
        read = {word for match in _READ.finditer(text) for word in match[1].split()} - {"_"}
        used = {word for body in _ARITHMETIC.findall(text) for word in re.findall(r"[a-z_]+", body)}
        for word in sorted(read & used):
            looked_at = re.search(rf"\[\[ \$\{{?{word}\}}? =~ \^", text)
            if not looked_at and name not in KNOWN_NUMBERS:
                found.append(f"{name}: {word}")
    assert found == []
