"""Members with data of before a restore that come back: they do not serve, and join again."""

from __future__ import annotations

import shutil
from pathlib import Path

from operations import restore
from operations.etcd_snapshots.restore_checks import Wish
from operations.restore import Steps
from tests.scripts.real_etcd import Member
from tests.scripts.restores import Lab


def test_an_old_member_that_comes_back_is_nothing_to_the_new_cluster(
    three: Lab, tmp_path: Path
) -> None:
    """It was unavailable during the restore and has its old data: it does not even start."""
    members = three.members
    three.away = {"master-3"}
    members[3].kill()
    members[1].kill()
    wish = Wish(on="master-2", source="master-2", dead=("master-3",), replace=True)
    three.restore(wish, None, tmp_path / "opened")
    assert three.voters(members[2]) == ["master-1", "master-2"]
    assert not members[3].boot()
    refused = members.ask(members[3], "put", "/registry/a", "from the past")
    assert refused.returncode
    assert members.get(members[1], "/registry/a") == "written"
    # The next update brings it in as a new member.
    three.away = set()
    Steps(three.stack, wish, {}, restore.Snapshot(plain=tmp_path, total="", size=0))._join(
        three.stack.plan.node("master-3")
    )
    assert three.voters(members[2]) == ["master-1", "master-2", "master-3"]
    assert (members[3].shell.folder / "home/etcd.removed/member").is_dir()


def old_members_return(three: Lab, folder: Path) -> Member:
    """master-1 starts again without the two others, which still have the data of before."""
    members = three.members
    three.away = {"master-2", "master-3"}
    for number in (2, 3):
        members[number].kill()
    wish = Wish(on="master-1", source="master-1", dead=("master-2", "master-3"), replace=True)
    three.restore(wish, None, folder / "opened")
    members.put(members[1], {"/registry/a": "after the restore"})
    three.away = set()
    return members[1]


def rejoin(three: Lab, name: str) -> None:
    """What `pulumi up` does on that machine."""
    wish = Wish(on="master-1")
    nothing = restore.Snapshot(plain=Path(), total="", size=0)
    Steps(three.stack, wish, {}, nothing)._join(three.stack.plan.node(name))


def test_two_of_three_old_members_that_come_back_do_not_serve(three: Lab, tmp_path: Path) -> None:
    """They would be a quorum of the cluster that was."""
    members, first = three.members, old_members_return(three, tmp_path)
    # Nor does any HAProxy point to them: workers' neither.
    assert set(three.diverted) == {"master-1", "worker-1", "worker-2"}
    assert set(three.diverted.values()) == {"master-2 master-3"}
    for number in (2, 3):
        assert not members[number].boot()
        assert members[number].refused.startswith("older ")
    # Also while the new cluster is off: they have heard of it.
    first.kill()
    for number in (2, 3):
        assert not members[number].boot()
        assert members.ask(members[number], "get", "/registry/a", "--consistency=s").returncode
    assert first.boot()
    members.wait_healthy(first)
    for name in ("master-2", "master-3"):
        rejoin(three, name)
    assert three.voters(first) == ["master-1", "master-2", "master-3"]
    for member in members.all.values():
        assert members.get(member, "/registry/a") == "after the restore"
        assert member.guard("running").returncode == 0
        assert member.is_running


def test_old_members_that_could_ask_nobody_end_as_soon_as_they_can(
    three: Lab, tmp_path: Path
) -> None:
    """The network between them was cut when they came back."""
    members, first = three.members, old_members_return(three, tmp_path)
    first.kill()
    for number in (2, 3):
        members[number].boot()
    members.wait_healthy(members[2])
    assert members.get(members[2], "/registry/a") == "written"
    assert first.boot()
    members.wait_healthy(first)
    manifest = members[2].shell.root / "etc/kubernetes/manifests/kube-apiserver.yaml"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("- --etcd-servers=https://127.0.0.1:2379\n- --v=2\n")
    for number in (2, 3):
        # The timer asks again and again; on a busy computer an answer may come too late for one.
        for _ in range(10):
            members[number].guard("running")
            if not members[number].is_running:
                break
        assert not members[number].is_running
        assert members[number].refused.startswith("older ")
    assert not manifest.exists(), "the API server beside it ends"
    assert members.get(first, "/registry/a") == "after the restore"
    assert first.guard("running").returncode == 0
    assert first.is_running


def test_each_restore_is_of_a_higher_epoch_than_all_before(three: Lab, tmp_path: Path) -> None:
    members = three.members
    file = Path(shutil.copy(three.save(members[2]), tmp_path))
    epochs = [1]
    for number in range(2):
        assert three.restore(Wish(on="master-1", replace=True), file, tmp_path / f"{number}") == 0
        told = {members.get(member, "/kube-ha/epoch") for member in members.all.values()}
        written = {
            (m.shell.state / "etcd.cluster").read_text().split()[1] for m in members.all.values()
        }
        assert len(told) == 1
        assert told == written
        epochs.append(int(told.pop()))
    assert epochs == sorted(set(epochs))
