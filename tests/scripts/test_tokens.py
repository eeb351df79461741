"""Bootstrap tokens of kube-ha: one at most, and none once all have joined; those of others stay."""

from __future__ import annotations

import base64
import json
import time

import pytest

from stacks.cluster.resolve import plan
from stacks.load import load
from stacks.render import join
from tests.scripts.shell import SCRIPTS, Shell
from tests.unit.configs import lab

PLAN = plan(load(lab()))


def secret(name: str, description: str | None) -> dict[str, object]:
    said = {} if description is None else {"description": description}
    data = {key: base64.b64encode(text.encode()).decode() for key, text in said.items()}
    return {"metadata": {"name": name}, "data": data}


def holds(shell: Shell, *items: dict[str, object]) -> None:
    (shell.folder / "secrets").write_text(json.dumps({"items": items}))
    shell.stub(
        "kubectl",
        f'if [[ $* == *"get secrets"* ]]; then cat {shell.folder}/secrets; fi\n'
        f'if [[ $* == *"apply "* ]]; then cat >{shell.folder}/applied; fi',
    )


OURS = [secret(f"bootstrap-token-{name}", join.OURS) for name in ("aaaaaa", "bbbbbb")]
OTHERS = [
    secret("bootstrap-token-cccccc", None),
    secret("bootstrap-token-dddddd", "made by kubeadm token create"),
    secret("bootstrap-token-eeeeee", f"{join.OURS} and more"),
]


def deleted(shell: Shell) -> list[str]:
    return [call.rpartition(" -- ")[2] for call in shell.calls if " delete secret " in call]


def test_both_sides_know_the_same_mark() -> None:
    assert f'JOIN_TOKENS="{join.OURS}"' in (SCRIPTS / "tokens.sh").read_text()


def test_all_of_ours_go_and_no_other(shell: Shell) -> None:
    holds(shell, *OURS, *OTHERS)
    shell.run("end_tokens", phase="tokens")
    assert deleted(shell) == ["bootstrap-token-aaaaaa", "bootstrap-token-bbbbbb"]


@pytest.mark.parametrize("ours", ["bbbbbb.0123456789abcdef", "123456.0123456789012345", "12e456.7"])
def test_minting_leaves_one(shell: Shell, ours: str) -> None:
    """A token may look like a number, and then it is in quotes."""
    kept = secret(f"bootstrap-token-{ours[:6]}", join.OURS)
    holds(shell, OURS[0], kept, *OTHERS)
    shell.stub("kubeadm")
    code = "own() { :; }; put() { cat >/dev/null; }; rm() { :; }; main"
    config = join.bootstrap_token(PLAN, PLAN.masters[0], ours, joining=1)
    values = {"KUBEADM_CONFIG": config, "JOINING": "b-[2-3],a-1", "TOKEN_S": "7200"}
    shell.run(code, phase="mint", values=values)
    assert deleted(shell) == ["bootstrap-token-aaaaaa"]
    told = json.loads((shell.folder / "applied").read_text())
    assert told["metadata"] == {"name": "kube-ha-joining", "namespace": "kube-system"}
    assert (told["data"]["token"], told["data"]["names"]) == (ours[:6], "b-2 b-3 a-1")
    assert 0 < int(told["data"]["until"]) - time.time() <= 7200
    calls = [call for call in shell.calls if "configmap kube-ha-nodes" not in call]
    assert [call.split()[0] for call in calls] == ["kubectl", "kubeadm", *["kubectl"] * 3]
    # What kubeadm has let everybody do is taken back before anybody has the token.
    assert calls[2].endswith(" -- clusterrolebinding kubeadm:node-autoapprove-bootstrap")


@pytest.mark.parametrize(("joining", "hours"), [(1, 2.0), (8, 2.025), (1000, 5.125), (10_000, 24)])
def test_a_token_lives_until_the_last_machine_has_joined(joining: int, hours: float) -> None:
    assert abs(join.token_life_s(joining) - hours * 3600) < 90
    text = join.bootstrap_token(PLAN, PLAN.masters[0], "abcdef.0123456789abcdef", joining=joining)
    assert f'ttl: "{join.token_life_s(joining)}s"' in text
    # Nobody may check a token against what anybody may read.
    assert "  usages:\n  - authentication\n  groups:\n" in text


def test_names_that_are_no_tokens_are_never_words(shell: Shell) -> None:
    names = ("--all", "bootstrap-token-aaaaaa -n default", "bootstrap-token-AAAAAA", "x")
    holds(shell, *(secret(name, join.OURS) for name in names))
    shell.run("end_tokens", phase="tokens")
    assert deleted(shell) == []


def test_an_api_that_does_not_answer_is_not_taken_for_none(shell: Shell) -> None:
    shell.stub("kubectl", "exit 1")
    shell.run("end_tokens", phase="tokens", fails=True)
