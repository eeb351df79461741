"""Real etcd members that are out of space: who keeps working, and how the space comes back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from tests.scripts.real_etcd import Member, Members

QUOTA = 6 * 1024**2
# The harness has each member at one address of its own, and no API server's keys.
HERE = """
etcdctl_at() {
  local address=${1#https://} pki=$ROOT/etc/kube-ha/etcd
  address=${address/127.0.0.1/$ADDRESS}
  shift
  timeout 12 etcdctl --endpoints "https://${address%:2379}:2379" --cacert "$pki/ca.crt" --cert "$pki/client.crt" --key "$pki/client.key" --dial-timeout 2s --command-timeout 5s "$@"
}
"""


@pytest.fixture
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Members]:
    """Three members of a small quota, with an alarm: nothing can be written."""
    members = Members(tmp_path_factory.mktemp("full"))
    set_quota(members, QUOTA)
    try:
        members.start()
        fill(members)
        yield members
    finally:
        members.stop()


def set_quota(members: Members, quota: int) -> None:
    for member in members.all.values():
        file = member.pki / "etcd.env"
        lines = [line for line in file.read_text().splitlines() if "QUOTA" not in line]
        file.write_text("\n".join([*lines, f"ETCD_QUOTA_BACKEND_BYTES={quota}", ""]))


def fill(members: Members) -> None:
    for number in range(200):
        if members.ask(members[1], "put", f"/registry/big/{number}", "x" * 120_000).returncode:
            break
    refused = members.ask(members[1], "put", "/registry/a", "b")
    assert "database space exceeded" in refused.stderr
    # What made the old question useless.
    assert members.ask(members[2], "endpoint", "health").returncode


def status(members: Members, member: Member) -> dict[str, int]:
    (found,) = json.loads(members.answer(member, "endpoint", "status", "-w", "json"))
    return {key: int(found["Status"][key]) for key in ("dbSize", "dbSizeInUse", "leader")}


def alarms(members: Members) -> str:
    return members.answer(members[1], "alarm", "list").strip()


def defrag(members: Members, number: int = 1, *, fails: bool = False) -> str:
    return members[number].run("defrag", fails=fails, MEMBERS=members.words)


def test_out_of_space_members_answer_and_what_repairs_goes_on(full: Members) -> None:
    for member in full.all.values():
        member.run("snapshot", 'answers "$ADDRESS"', MEMBERS=full.words)
    values = {"REASON": "manual", "MEMBERS": full.words, "BACKUP_KEEP": "3"}
    values |= {"BACKUP_DIRECTORY": "", "BACKUP_ENCRYPT": "0"}
    out = full[1].run("snapshot", fails=False, **values)
    assert "alarm NOSPACE of master-" in out
    assert "make defrag" in out
    assert len(full[1].backups) == 1
    # A restart for a higher quota has its quorum, and a dead member can be taken out.
    heir = full[1].run("etcd-member", f"{HERE} etcd_successor", MEMBERS=full.words).strip()
    assert heir in {full[2].address, full[3].address}
    full[3].kill()
    rows = full.answer(full[1], "member", "list", "-w", "simple").splitlines()
    id_ = next(row.split(", ")[0] for row in rows if ", master-3, " in row)
    endpoints = f"https://{full[1].address}:2379"
    code = f"{HERE} quorum_without {id_} master-3; member_removed {id_}"
    full[1].run("retire", code, ETCD_ENDPOINTS=endpoints, MEMBERS=full.words)
    left = full.answer(full[1], "member", "list", "-w", "simple")
    assert "master-3" not in left


def test_defrag_gives_space_back_ends_the_alarm_and_the_second_time_has_nothing_to_do(
    full: Members,
) -> None:
    full.answer(full[1], "del", "--prefix", "/registry/big/")  # what a user deletes
    leader = full.leader()
    out = defrag(full)
    assert "alarm NOSPACE is ended" in out
    rewritten = [line.split()[2] for line in out.splitlines() if "; now " in line]
    assert len(rewritten) == 3
    assert rewritten[-1] == leader.name
    assert full.leader() is not leader  # it has handed over before it stood still
    assert alarms(full) == ""
    for member in full.all.values():
        assert status(full, member)["dbSize"] < QUOTA / 4
    full.put(full[2], {"/registry/a": "written again"})
    again = defrag(full, 2)
    assert again.count("nothing to give back") == 3
    assert "; now " not in again


def test_broken_off_it_goes_on_and_a_member_that_is_away_is_left_out_and_named(
    full: Members,
) -> None:
    full.answer(full[1], "del", "--prefix", "/registry/big/")
    away = next(member for member in full.all.values() if member not in (full.leader(), full[1]))
    away.kill()
    code = 'end_nospace() { die "cut off"; }; main'
    out = full[1].run("defrag", code, fails=True, MEMBERS=full.words)
    assert "cut off" in out
    assert alarms(full)
    out = defrag(full, fails=True)
    assert f"no answer of {away.address}" in out
    assert alarms(full) == "", out
    assert status(full, full[1])["dbSize"] < QUOTA / 4
    away.systemctl("start", "etcd")
    full.wait_serving(away)
    # It catches up, and counts what is free with a write. Its file is still as big as the quota: a write that it takes
    # part in may raise the alarm again, and then no other counts.
    end = time.monotonic() + 30
    while not (again := bool(alarms(full))) and status(full, away)["dbSizeInUse"] > QUOTA / 4:
        assert time.monotonic() < end
        full.ask(full[1], "put", "/registry/a", "b")
        time.sleep(0.2)
    out = defrag(full)
    rewritten = [line.split()[2] for line in out.splitlines() if "; now " in line]
    # Under an alarm others have something to give back, too: the revisions that are compacted for it.
    assert away.name in rewritten if again else rewritten == [away.name]
    assert status(full, away)["dbSize"] < QUOTA / 4
    assert alarms(full) == "", out
    full.put(full[1], {"/registry/a": "c"})


def test_where_objects_fill_it_the_alarm_stays_until_every_member_has_a_bigger_quota(
    full: Members,
) -> None:
    out = full[1].run("defrag", 'end_nospace "$ADDRESS"; tell_alarms "$ADDRESS"')
    assert "alarm NOSPACE stays" in out
    assert "raise etcd.quotaBackendGib" in out
    set_quota(full, 2 * QUOTA)
    # As the phase etcd-member does it, one after the other: the first write to a member that has not got it yet would raise it again.
    for number in (1, 2, 3):
        assert alarms(full)
        full[number].kill()
        full[number].systemctl("start", "etcd")
        full.wait_serving(full[number])
        out = full[number].run("etcd-member", f"{HERE} end_nospace 127.0.0.1", MEMBERS=full.words)
        assert ("alarm NOSPACE is ended" in out) == (number == 3)
    assert alarms(full) == ""
    full.put(full[2], {"/registry/a": "written again"})


def test_a_corrupt_member_is_named_and_nothing_is_rewritten(full: Members) -> None:
    out = full[1].run(
        "defrag", 'alarms_at() { echo "CORRUPT master-2"; }; main', fails=True, MEMBERS=full.words
    )
    assert "alarm CORRUPT of master-2" in out
    assert "raise nodes.master-2.generation" in out
    assert "; now " not in out
