"""What the cluster records of this stack's own nodes: whom it asked for, before they can join, and whom alone masters take out."""

from __future__ import annotations

import json

import pytest

from tests.scripts.shell import Shell
from tests.scripts.test_nodes import READY, VALUES, changing, cluster, node, recorded

KNOWN = "master-[1-3],worker-[1-3],db"


def drained(shell: Shell) -> list[str]:
    shell.run("read_record; drain_nodes; delete_nodes", phase="nodes", values=VALUES)
    return [text.split()[-1] for text in changing(shell) if text.startswith("drain")]


def test_who_was_asked_for_once_and_is_wanted_no_more_leaves(shell: Shell) -> None:
    """worker-3 was there for long; worker-4 came by an update that was interrupted, and has said nothing yet."""
    nodes = [*READY, node("worker-3"), node("worker-4", ""), node("guest-1")]
    cluster(shell, nodes, record={"known": KNOWN, "joining.worker-4": "1"})
    assert drained(shell) == ["worker-3", "worker-4"]


def test_a_node_that_nobody_asked_for_is_left_alone_and_told(shell: Shell) -> None:
    cluster(shell, [*READY, node("guest-1"), node("worker-30")], record={"known": KNOWN})
    assert drained(shell) == []
    out = shell.run("read_record; tell_strangers", phase="nodes", values=VALUES)
    assert "WARNING Node guest-1 was never asked for by this stack" in out
    assert "WARNING Node worker-30 was never asked for" in out


def test_a_cluster_from_before_the_record_takes_up_who_announces_something(shell: Shell) -> None:
    nodes = [*READY, node("worker-3"), node("worker-4", "", "True", "c" * 16), node("guest-1", "")]
    cluster(shell, nodes)
    assert drained(shell) == ["worker-3", "worker-4"]
    shell.run("read_record; settle_nodes", phase="nodes", values=VALUES)
    assert recorded(shell)["known"] == "master-[1-3],worker-[1-2],db"


def test_what_is_settled_is_forgotten_as_asked_for(shell: Shell) -> None:
    cluster(shell, READY, record={"known": "db", "joining.worker-1": "1", "joining.worker-9": "1"})
    shell.run("read_record; settle_nodes", phase="nodes", values=VALUES)
    assert recorded(shell) == {"known": "master-[1-3],worker-[1-2],db", "labels": "", "taints": ""}


def test_a_token_is_made_for_names_that_the_cluster_knows_by_then(shell: Shell) -> None:
    cluster(shell, READY, record={"known": KNOWN})
    shell.stub("kubeadm")
    # What else stands around a token is tested with it.
    others = "; ".join(f"{name}() {{ :; }}" for name in ("tell_joining", "approve_nobody", "end_tokens", "rm"))  # fmt: skip
    code = f"{others}; put() {{ cat >/dev/null; }}; main"
    values = {"KUBEADM_CONFIG": "", "JOINING": "worker-[4-6/2],spare"}
    shell.run(code, phase="mint", values=values)
    assert recorded(shell) == {
        "known": KNOWN,
        "joining.worker-4": "1",
        "joining.worker-6": "1",
        "joining.spare": "1",
    }
    words = [call.split()[0] for call in shell.calls if "patch" in call or "kubeadm init" in call]
    assert words == ["kubectl", "kubeadm"]


@pytest.mark.parametrize(("known", "writes"), [(KNOWN, False), ("master-[2-3]", True)])
def test_a_master_asks_for_itself_once(shell: Shell, known: str, *, writes: bool) -> None:
    cluster(shell, READY, record={"known": known})
    code = 'source "$here/cluster-reader.sh"; source "$here/node-record.sh"; ask_for_self'
    shell.run(code)
    assert (recorded(shell).get("joining.master-1") == "1") == writes


def test_the_first_to_write_makes_the_record(shell: Shell) -> None:
    shell.stub(
        "kubectl",
        f"""cd "{shell.folder}"
case "$*" in
  *patch*) if [[ -e made ]]; then cat >patched; else echo 'Error from server (NotFound): no' >&2; exit 1; fi ;;
  *create*) touch made; exit 1 ;; # another master was faster
esac""",
    )
    code = 'source "$here/cluster-reader.sh"; source "$here/node-record.sh"; ask_for worker-1'
    shell.run(code)
    told = json.loads((shell.folder / "patched").read_text())
    assert told == {"data": {"joining.worker-1": "1"}}


def test_a_record_that_cannot_be_written_is_an_error_before_anybody_joins(shell: Shell) -> None:
    shell.stub("kubectl", "echo 'etcdserver: no leader' >&2; exit 1")
    code = 'source "$here/cluster-reader.sh"; source "$here/node-record.sh"; ask_for worker-1'
    assert "cannot be written: etcdserver: no leader" in shell.run(code, fails=True)
