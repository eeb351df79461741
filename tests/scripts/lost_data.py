"""Real members of etcd beside API servers, whose data is lost or is that of another cluster."""

from __future__ import annotations

import shutil

from tests.scripts.real_etcd import Member, Members
from tests.scripts.restores import JOIN

ASKING = JOIN.partition("settle()")[0]  # etcdctl as the members of this computer are reached
MANIFEST = "etc/kubernetes/manifests/kube-apiserver.yaml"
LOCAL = "spec:\n  - --etcd-servers=https://127.0.0.1:2379\n  - --v=2\n"


def begin(members: Members, *, proved: bool = True) -> None:
    members.start(proved=proved)
    members.put(members[1], {"/registry/a": "written"})
    for member in members.all.values():
        manifest = member.shell.root / MANIFEST
        manifest.parent.mkdir(parents=True)
        manifest.write_text(LOCAL)


def run(members: Members, member: Member, code: str, *, fails: bool = False, **values: str) -> str:
    given = {"MEMBERS": members.words, "BOOTSTRAP": "0", **values}
    return member.run("etcd-member", f"{ASKING}{code}", fails=fails, **given)


def join(members: Members, member: Member) -> str:
    """Phase etcd-member, but for its files and its timers."""
    return run(members, member, JOIN.removeprefix(ASKING))


def lose_data(member: Member) -> None:
    """Its disk is another one, and blank."""
    member.kill()
    shutil.rmtree(member.data, ignore_errors=True)
    (member.data / "lost+found").mkdir(parents=True)


def impostor(members: Members, member: Member) -> None:
    """An etcd without data that founded a cluster by itself, as versions before this one let it."""
    lose_data(member)
    (member.shell.state / "etcd.cluster").unlink(missing_ok=True)
    alone = f"ETCD_INITIAL_CLUSTER={member.name}=https://{member.address}:2380\n"
    (member.pki / "bootstrap.env").write_text(f"{alone}ETCD_INITIAL_CLUSTER_STATE=new\n")
    assert member.boot()
    members.wait_healthy(member)
    (member.pki / "bootstrap.env").unlink()


def serves(members: Members, member: Member) -> bool:
    return members.ask(member, "get", "/registry/a", "--consistency=s").returncode == 0


def voters(members: Members, member: Member) -> list[str]:
    rows = members.answer(member, "member", "list", "-w", "simple").splitlines()
    return sorted(row.split(", ")[2] for row in rows if row.endswith(", false"))


ALL = ["master-1", "master-2", "master-3"]
