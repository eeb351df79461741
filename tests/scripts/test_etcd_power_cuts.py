"""A machine that sets lost or foreign data aside and joins is cut off anywhere on the way: real members."""

from __future__ import annotations

import pytest

from tests.scripts.lost_data import (
    ALL,
    ASKING,
    begin,
    impostor,
    join,
    lose_data,
    run,
    serves,
    voters,
)
from tests.scripts.real_etcd import Members
from tests.scripts.restores import JOIN

CUTS = {
    "etcd has stopped": 'rm() { if [[ $* == *bootstrap.env* ]]; then cut; fi; command rm "$@"; }',
    "before the data is aside": "set_aside_etcd() { cut; }",
    "the data is half aside": 'mv() { if [[ $1 == */member ]]; then cut; fi; command mv "$@"; }',
    "the data is aside": "join_or_found() { cut; }",
    "the entry is not added": "added() { cut; }",
    "the entry is added": 'added() { etcdctl_at "$1" member add "$NODE" --learner --peer-urls "$PEER_URL" >/dev/null; cut; }',
    "it is not written down": "record_cluster() { cut; }",
    "before it starts": "start_etcd() { cut; }",
    "before it is promoted": "promote() { cut; }",
    "before it is proved": "prove_cluster() { cut; }",
}


@pytest.mark.parametrize("cut", CUTS)
def test_power_cut_between_setting_data_aside_and_joining(members: Members, cut: str) -> None:
    """Wherever: at the boot after it no etcd serves but the cluster's, and the phase continues."""
    begin(members, proved=False)
    first, false = members[1], members[2]
    impostor(members, false)
    hook = f"cut() {{ kill -9 $$ $BASHPID; }}; {CUTS[cut]}\n"
    settle = "settle() { systemctl start etcd; }; before_restart() { :; }\n"
    cut_off = f'{settle}{hook}become_member "$PKI/etcd.env"'
    run(members, false, cut_off, fails=True)
    false.kill()
    false.boot()
    if serves(members, false) and cut not in ("etcd has stopped", "before the data is aside"):
        assert members.cluster_id(false) == members.cluster_id(first)
    join(members, false)
    assert voters(members, first) == ALL
    assert members.get(false, "/registry/a") == "written"


def test_a_lost_answer_to_the_adding_costs_nothing(members: Members) -> None:
    begin(members)
    member = members[2]
    lose_data(member)
    lost = """
lost=""
eval "really_$(declare -f etcdctl_at)"
etcdctl_at() {
  really_etcdctl_at "$@" || return
  if [[ "$*" == *"member add"* && ! -f $STATE/lost ]]; then touch "$STATE/lost"; return 1; fi
}
"""
    out = run(members, member, f"{lost}{JOIN.removeprefix(ASKING)}")
    assert (member.shell.state / "lost").exists()
    assert "lost incarnation" in out
    assert out.count("removing the lost incarnation") == 1
    assert voters(members, members[1]) == ALL
