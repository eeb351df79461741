"""Real etcd members as processes of this computer: loopback addresses and folders stand for machines."""

from __future__ import annotations

import ipaddress
import os
import shlex
import subprocess
import tarfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from stacks.render import etcd
from tests.scripts.shell import SCRIPTS, Shell

_BUNDLE = Path(__file__).parents[2] / ".local/bundle"
_READY_S = 30
CLUSTER_ID = "0123456789ab"
BACKUP_KEY = "0f" * 16
# Of this process alone: other tests go on beside it.
LOOPBACK = f"127.{80 + os.getpid() % 100}.{os.getpid() // 100 % 250}"

# Starts and stops what the unit would, with what it runs before and after; everything else that systemctl is asked for is done.
_SYSTEMCTL = """
running() {{ [[ -f {folder}/pid ]] && kill -0 "$(<{folder}/pid)" 2>/dev/null; }}
ours() {{ ROOT={root} HOME_DIR={folder}/home PATH={folder}/bin:$PATH bash {scripts}/"$@" >>{folder}/guard.log 2>&1 7>&- 8>&- 9>&-; }}
case "$1 ${{@: -1}}" in
  "start etcd" | "restart etcd" | "restart etcd.service")
    if running && [[ $1 == restart ]]; then kill -9 "$(<{folder}/pid)"; sleep 0.3; fi
    if ! running; then
      if ! ours etcd-guard.sh before; then
        ours etcd-stopped.sh
        exit 1
      fi
      (set -a; source {pki}/etcd.env; if [[ -f {pki}/bootstrap.env ]]; then source {pki}/bootstrap.env; fi
        exec setsid {programs}/etcd $(sed -n 's/^ExecStart=[^ ]* //p' {unit}) >>{folder}/etcd.log 2>&1 </dev/null 7>&- 8>&- 9>&-) &
      echo $! >{folder}/pid
      # As a unit of Type=notify: with or without a quorum it is started when it serves.
      for _ in {{1..150}}; do
        if (</dev/tcp/{address}/2379) 2>/dev/null; then break; fi
        sleep 0.1
      done
      if ! ours etcd-guard.sh after; then
        kill -9 "$(<{folder}/pid)"
        ours etcd-stopped.sh
        exit 1
      fi
    fi ;;
  "stop etcd")
    if running; then kill -TERM "$(<{folder}/pid)"; while running; do sleep 0.1; done; ours etcd-stopped.sh; fi ;;
  *is-active*) running ;;
esac
"""


@dataclass(slots=True)
class Member:
    """One machine: its shell has stubs for systemd, and real etcd programs on its PATH."""

    name: str
    address: str
    shell: Shell

    @property
    def values(self) -> dict[str, str]:
        return {"NODE": self.name, "ADDRESS": self.address}

    @property
    def data(self) -> Path:
        return self.shell.folder / "home/etcd"

    @property
    def pki(self) -> Path:
        return self.shell.root / "etc/kube-ha/etcd"

    @property
    def backups(self) -> list[str]:
        """Names of snapshots on it, oldest first."""
        folder = self.shell.folder / "home/backups"
        return sorted(p.name for p in folder.glob("*") if not p.name.endswith(".sha256"))

    def run(self, phase: str, code: str = "main", *, fails: bool = False, **values: str) -> str:
        """Run a phase on it."""
        given = {"BACKUP_LOCK": f"{self.shell.folder}/backup.lock", **self.values, **values}
        return self.shell.run(code, phase=phase, values=given, fails=fails)

    def systemctl(self, *words: str) -> None:
        subprocess.run([self.shell.folder / "bin/systemctl", *words], check=True)

    def boot(self) -> bool:
        """What systemd does at boot: whether etcd was started."""
        done = subprocess.run([self.shell.folder / "bin/systemctl", "start", "etcd"], check=False)
        return done.returncode == 0

    @property
    def is_running(self) -> bool:
        command = f"{self.shell.folder}/bin/systemctl"
        return subprocess.run([command, "is-active", "etcd"], check=False).returncode == 0

    def guard(self, when: str) -> subprocess.CompletedProcess[str]:
        """What systemd asks: before, after or running."""
        environment = {
            "ROOT": str(self.shell.root),
            "HOME_DIR": f"{self.shell.folder}/home",
            "PATH": f"{self.shell.folder}/bin:{os.environ['PATH']}",
        }
        command: list[str] = ["bash", str(SCRIPTS / "etcd-guard.sh"), when]
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def refused(self) -> str:
        """Why its etcd may not serve; empty where it may."""
        file = self.shell.state / "etcd.refused"
        return file.read_text() if file.exists() else ""

    def write_guard_values(self, members: str) -> None:
        """As phase etcd-member leaves them."""
        values = {**self.values, "MEMBERS": members, "CLUSTER": "dev", "CLUSTER_ID": CLUSTER_ID}
        text = "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())
        (self.pki / "guard.values").write_text(text)

    def kill(self) -> None:
        """Cut its power."""
        pid = self.shell.folder / "pid"
        if not pid.exists():
            return
        kill = 'kill -9 "$0"; while kill -0 "$0"; do sleep 0.05; done'
        command = ["bash", "-c", kill, pid.read_text().strip()]
        subprocess.run(command, stderr=subprocess.DEVNULL, check=False, timeout=_READY_S)
        pid.unlink()


@dataclass(slots=True)
class Members:
    """A cluster that is not started yet. `stop` ends whatever runs of it."""

    folder: Path
    count: int = 3
    programs: Path = field(init=False)
    authority: Authority = field(init=False)
    all: dict[str, Member] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.programs = programs(self.folder)
        addresses = [self._address(n) for n in range(1, self.count + 1)]
        authority = self.authority = Authority(self.folder, addresses)
        for number in range(1, self.count + 1):
            name = f"master-{number}"
            member = Member(name, self._address(number), Shell(self.folder / name))
            self._machine(member, authority)
            self.all[name] = member
        for member in self.all.values():
            member.write_guard_values(self.words)

    def _address(self, number: int) -> str:
        return f"{LOOPBACK}.{number}"

    @property
    def words(self) -> str:
        return " ".join(f"{m.name}={m.address}" for m in self.all.values())

    def __getitem__(self, number: int) -> Member:
        return self.all[f"master-{number}"]

    def start(self, numbers: Iterable[int] = (1, 2, 3), *, proved: bool = True) -> None:
        """Found a cluster of these members, and wait until each is healthy.

        `proved`: as phase etcd-member leaves them; without it as versions before it did.
        """
        chosen = [self[number] for number in numbers if number <= self.count]
        initial = ",".join(f"{m.name}=https://{m.address}:2380" for m in chosen)
        for member in chosen:
            text = f"ETCD_INITIAL_CLUSTER={initial}\nETCD_INITIAL_CLUSTER_STATE=new\n"
            (member.pki / "bootstrap.env").write_text(text)
        starting = [
            subprocess.Popen([member.shell.folder / "bin/systemctl", "start", "etcd"])
            for member in chosen
        ]
        for process in starting:
            process.wait()
        for member in chosen:
            self.wait_healthy(member)
            (member.pki / "bootstrap.env").unlink()
            if proved:
                (member.shell.state / "etcd.cluster").write_text(f"{self.cluster_id(member)} 1\n")
        if proved:
            self.put(chosen[0], {"/kube-ha/cluster": f"kube-ha-cluster:dev:{CLUSTER_ID};"})

    def cluster_id(self, member: Member) -> str:
        """What its etcd tells, which may be another cluster than that of the others."""
        rows = self.answer(member, "endpoint", "status", "-w", "fields").splitlines()
        return next(row for row in rows if row.startswith('"ClusterID"')).split()[-1]

    def wait_healthy(self, member: Member) -> None:
        end = time.monotonic() + _READY_S
        while self.ask(member, "endpoint", "health").returncode:
            if time.monotonic() > end:
                log = (member.shell.folder / "etcd.log").read_text()[-2000:]
                raise AssertionError(f"{member.name} is not healthy\n{log}")
            time.sleep(0.2)

    def wait_serving(self, member: Member) -> None:
        """Until it answers with a quorum, whatever alarms there are."""
        end = time.monotonic() + _READY_S
        while self.ask(member, "get", "/kube-ha/cluster").returncode:
            assert time.monotonic() < end, member.name
            time.sleep(0.2)

    def ask(self, member: Member, *words: str) -> subprocess.CompletedProcess[str]:
        keys = [f"--{key}={member.pki}/{file}" for key, file in _KEYS.items()]
        where = f"--endpoints=https://{member.address}:2379"
        return subprocess.run(
            [self.programs / "etcdctl", where, *keys, "--command-timeout=5s", *words],
            capture_output=True,
            text=True,
            check=False,
        )

    def answer(self, member: Member, *words: str) -> str:
        """What it says once it has a leader and time: it may elect one, or wait for the disk."""
        end = time.monotonic() + _READY_S
        while (done := self.ask(member, *words)).returncode:
            assert any(word in done.stderr for word in _FOR_NOW), done.stderr
            assert time.monotonic() < end, done.stderr
            time.sleep(0.2)
        return done.stdout

    def put(self, member: Member, pairs: Mapping[str, str]) -> None:
        for key, value in pairs.items():
            self.answer(member, "put", key, value)

    def get(self, member: Member, key: str) -> str:
        return self.answer(member, "get", key, "--print-value-only").strip()

    def revision(self, member: Member) -> int:
        rows = self.answer(member, "get", "/", "-w", "fields").splitlines()
        return int(next(row for row in rows if row.startswith('"Revision"')).split()[-1])

    def leader(self) -> Member:
        for member in self.all.values():
            rows = self.answer(member, "endpoint", "status", "-w", "fields").splitlines()
            known = dict(row.split(" : ") for row in rows if " : " in row)
            if known['"Leader"'] == known['"MemberID"']:
                return member
        raise AssertionError("no member leads")

    def stop(self) -> None:
        for member in self.all.values():
            member.kill()

    def _machine(self, member: Member, authority: Authority) -> None:
        member.pki.mkdir(parents=True)
        for name in ("server", "client", "peer"):
            (member.pki / f"{name}.crt").write_bytes(authority.cert)
            (member.pki / f"{name}.key").write_bytes(authority.key)
        (member.pki / "ca.crt").write_bytes(authority.ca)
        (member.pki / "backup.key").write_text(f"{BACKUP_KEY}\n")
        (member.pki / "etcd.env").write_text(_environment(member))
        unit = member.shell.root / "etc/systemd/system/etcd.service"
        unit.parent.mkdir(parents=True)
        flags = " ".join(f"--{name}={value}" for name, value in _flags(member).items())
        unit.write_text(f"[Service]\nExecStart=/usr/local/bin/etcd {flags}\n")
        member.shell.state.mkdir(parents=True)
        (member.shell.state / "owner").write_text(f"dev {CLUSTER_ID} {member.name}\n")
        values = {
            "folder": member.shell.folder,
            "pki": member.pki,
            "unit": unit,
            "programs": self.programs,
            "address": member.address,
            "root": member.shell.root,
            "scripts": SCRIPTS,
        }
        member.shell.stub("journalctl")
        member.shell.stub("pkill")
        member.shell.stub("systemctl", _SYSTEMCTL.format(**values))
        for program in ("etcd", "etcdctl", "etcdutl"):
            (member.shell.folder / "bin" / program).symlink_to(self.programs / program)


# etcd's words for what may go on in a moment (its package rpctypes). What a test asks of this class may be asked twice.
_FOR_NOW = ("request timed out", "leader changed", "no leader", "too many requests")
_KEYS = {"cacert": "ca.crt", "cert": "client.crt", "key": "client.key"}


def _environment(member: Member) -> str:
    client, peer = f"https://{member.address}:2379", f"https://{member.address}:2380"
    settings = {
        "NAME": member.name,
        "LISTEN_CLIENT_URLS": client,
        "ADVERTISE_CLIENT_URLS": client,
        "LISTEN_PEER_URLS": peer,
        "INITIAL_ADVERTISE_PEER_URLS": peer,
        "INITIAL_CLUSTER_STATE": "existing",
        "STRICT_RECONFIG_CHECK": "true",
    }
    return "".join(f"ETCD_{name}={value}\n" for name, value in settings.items())


def _flags(member: Member) -> dict[str, str]:
    """Those of the product's unit, with this machine's folders."""
    folders = {etcd.DATA: str(member.data), "/etc/kube-ha/etcd": str(member.pki)}
    found = {}
    for name, value in etcd.FLAGS.items():
        folder = next((folder for folder in folders if value.startswith(folder)), "")
        found[name] = value.replace(folder, folders[folder]) if folder else value
    return found


def programs(folder: Path) -> Path:
    """etcd as it is in the bundle that set-up made."""
    (archive,) = (_BUNDLE / "files/github.com/etcd-io/etcd").rglob("etcd-*-linux-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "programs", filter="data")
    return next((folder / "programs").rglob("etcdutl")).parent


class Authority:
    """A CA, and one pair of it that is good for every machine, as server and as client."""

    def __init__(self, folder: Path, addresses: list[str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "etcd-ca")])
        own = ec.generate_private_key(ec.SECP256R1())
        self.key = own.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "member")])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        # Members dial each other from 127.0.0.1, and a peer is asked who it is.
        all_of_them = [*addresses, "127.0.0.1"]
        names = [x509.IPAddress(ipaddress.ip_address(address)) for address in all_of_them]

        def leaf(hours: float) -> bytes:
            builder = self._builder(subject, own.public_key(), hours)
            builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
            return self._signed(builder)

        self.leaf = leaf
        self.cert = leaf(24)

    @cached_property
    def ca(self) -> bytes:
        builder = self._builder(self._name, self._key.public_key())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        return self._signed(builder.add_extension(constraints, critical=True))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, hours: float = 24
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC) - timedelta(minutes=1)
        builder = x509.CertificateBuilder(self._name, subject, key, x509.random_serial_number())
        return builder.not_valid_before(now).not_valid_after(now + timedelta(hours=hours))

    def _signed(self, builder: x509.CertificateBuilder) -> bytes:
        signed = builder.sign(self._key, hashes.SHA256())
        return signed.public_bytes(serialization.Encoding.PEM)
