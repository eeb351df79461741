"""A stack of three real etcd members for tests of restores, reached without SSH."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from pathlib import Path

from operations import restore
from operations.engine.stack import Stack
from operations.etcd_snapshots.restore_checks import Wish
from operations.ssh.client import Answer, Target
from tests.scripts.real_etcd import Member, Members

# What the etcd-member phase does between its files and its timer; here both lie elsewhere.
JOIN = """
etcdctl_at() {
  local address=${1/127.0.0.1/$ADDRESS} pki=$ROOT/etc/kube-ha/etcd
  shift
  if [[ $address != *:* ]]; then address+=:2379; fi
  open_port "${address%:*}" "${address##*:}" || return 1
  timeout 12 etcdctl --endpoints "https://$address" --cacert "$pki/ca.crt" --cert "$pki/client.crt" --key "$pki/client.key" --dial-timeout 2s --command-timeout 5s "$@"
}
open_port() { timeout 3 bash -c "</dev/tcp/${1/127.0.0.1/$ADDRESS}/$2" 2>/dev/null; }
settle() { systemctl start etcd; }
before_restart() { :; }
become_member "$PKI/etcd.env"
"""


@dataclasses.dataclass
class Lab:
    """A stack whose machines are members, and a way there that is not an SSH."""

    members: Members
    stack: Stack
    away: set[str] = dataclasses.field(default_factory=set)  # machines that do not answer
    calls: list[str] = dataclasses.field(default_factory=list)  # "node phase[ step]"
    diverted: dict[str, str] = dataclasses.field(default_factory=dict)  # HAProxy, by machine
    breaks_at: str = ""  # the call that the connection breaks in

    def run(self, target: Target, phase: str, values: Mapping[str, str], *, limit_s: int) -> Answer:
        assert limit_s
        if values.get("STEP") == "divert":
            self.diverted[target.hop.user] = values["GONE"]
            return Answer(status=0, text="", asked_at_s=0)
        member = self.members.all[target.hop.user]
        if member.name in self.away:
            return Answer(status=255, text="No route to host", asked_at_s=0)
        call = " ".join([member.name, phase, *([values["STEP"]] if "STEP" in values else [])])
        if "look" not in call:
            self.calls.append(call)
        if call == self.breaks_at:
            self.breaks_at = ""
            return Answer(status=255, text="Connection reset by peer", asked_at_s=0)
        given = dict(values)
        given |= {"ADDRESS": member.address, "DEAD": self._real(values.get("DEAD", ""))}
        given |= {"MEMBERS": self.members.words, "SNAPSHOT": str(there(member))}
        code = JOIN if phase == "etcd-member" else "main"
        code = f"control_plane() {{ :; }}; api_server() {{ :; }}; curl() {{ :; }}; {code}"
        try:
            text = member.run(phase, code, fails=False, **given)
        except AssertionError as error:
            return Answer(status=1, text=str(error.args[0]), asked_at_s=0)
        return Answer(status=0, text=text.strip(), asked_at_s=0)

    def _real(self, addresses: str) -> str:
        """Addresses of the plan as those of the processes."""
        real = {n.address: self.members.all[n.name].address for n in self.stack.plan.etcd}
        return " ".join(real[address] for address in addresses.split())

    def send(self, target: Target, file: Path, path: str) -> None:
        assert path.startswith("/var/lib/kube-ha/restore/")
        place = there(self.members.all[target.hop.user])
        place.parent.mkdir(exist_ok=True)
        shutil.copy(file, place)

    def fetch(self, target: Target, path: str, into: Path) -> None:
        shutil.copy(path, into)

    def restore(
        self, wish: Wish, file: Path | None, folder: Path, *, unauthenticated: bool = False
    ) -> int:
        self.calls.clear()
        folder.mkdir(exist_ok=True)
        return restore.restore(self.stack, wish, file, folder, unauthenticated=unauthenticated)

    def save(self, member: Member, *, encrypt: bool = True) -> Path:
        settings = {"BACKUP_KEEP": "3", "BACKUP_DIRECTORY": "", "BACKUP_ENCRYPT": str(int(encrypt))}
        given = {"REASON": "manual", "MEMBERS": self.members.words, **settings}
        member.run("snapshot", fails=False, **given)
        return member.shell.folder / "home/backups" / member.backups[-1]

    def voters(self, member: Member) -> list[str]:
        rows = self.members.answer(member, "member", "list", "-w", "simple").splitlines()
        return sorted(row.split(", ")[2] for row in rows if row.endswith(", false"))


def there(member: Member) -> Path:
    return member.shell.folder / "home/restore/snapshot.db"
