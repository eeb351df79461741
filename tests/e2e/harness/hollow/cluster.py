"""A stack of three real masters and many hollow workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.harness import config, lab
from tests.e2e.harness.hollow import latency, workers
from tests.e2e.harness.hollow.latency import Latency
from tests.e2e.harness.hollow.machines import PORT
from tests.e2e.harness.hollow.workers import HollowWorkers
from tests.e2e.harness.lab import ROOT, LabError
from tests.e2e.harness.machines import Machines
from tests.e2e.harness.stack import Stack

# One more door of SSH: the port is one for all hosts of a stack, and 22 may be this computer's.
_SSH_TOO = (
    f"printf 'Port 22\\nPort {PORT}\\n' >/etc/ssh/sshd_config.d/hollow.conf && "
    "systemctl restart ssh"
)


@dataclass(slots=True)
class Felt:
    """How the API servers that run answered, and whether a node was taken for dead."""

    kinds: list[Latency] = field(default_factory=list)
    beats: int = 0
    missed: int = 0  # leases that no API server took
    ready: Counter[bool] = field(default_factory=Counter)  # of the workers

    def __str__(self) -> str:
        return "; ".join(self.words())

    def words(self) -> tuple[str, str]:
        """How long requests took; what became of the nodes."""
        return (
            "; ".join(map(str, self.kinds)),
            f"{self.missed} of {self.beats} leases were not taken; {self.ready[False]} of "
            f"{self.ready.total()} workers are not Ready",
        )


@dataclass(frozen=True, slots=True)
class HollowCluster:
    """What a story or a measurement works with."""

    stack: Stack
    workers: HollowWorkers
    real: Machines
    masters: Mapping[str, int]  # number of the address, by name

    @property
    def hosts(self) -> Path:
        """The pool's hostsFile."""
        return self.stack.folder / "workers.csv"

    def ready(self) -> Counter[bool]:
        """How many hollow workers are Ready, and how many are not."""
        found = self.stack.ready(context=self.context())
        return Counter(is_ready for name, is_ready in found.items() if name not in self.masters)

    def context(self) -> str:
        """Of a master that answers, for kubectl."""
        return next(self._answering("/livez"), ("", ""))[0]  # kubectl then says what is wrong

    def latency(self) -> latency.Seen:
        """What API servers that answer have been asked so far."""
        return latency.read(text for _, text in self._answering("/metrics"))

    def _answering(self, path: str) -> Iterator[tuple[str, str]]:
        """Context and answer of each master that answers, one after another."""
        running = {node.name for node in self.stack.nodes()}
        for name in self.masters:
            context = f"{self.stack.lab}-{name}"
            if name in running:
                with suppress(LabError):
                    yield context, self.stack.kubectl("get", "--raw", path, context=context)

    def want(self, count: int) -> None:
        """So many workers from the next update on."""
        self.workers.write_hosts(self.hosts, count)

    def rebuild(self, master: str) -> None:
        """Another machine under its name and address, from the next update on."""
        entry = self.real.start(master, self.masters[master], generation=2)
        self.stack.node(master).run(_SSH_TOO)
        pool = _mapping(self.stack.config["pools"]["master"])
        hosts = pool["hosts"]
        assert isinstance(hosts, list)
        pool["hosts"] = [entry if host["name"] == master else host for host in hosts]
        self.stack.config["pools"]["master"] = pool
        self.stack.set_nodes({master: {"generation": 2}})

    def forget_checkpoints(self) -> None:
        """From here on the engine writes its state at the end alone: with them it would write all of it 800 times."""
        self.stack.environment["PULUMI_SKIP_CHECKPOINTS"] = "true"

    @contextmanager
    def felt(self, during: str) -> Iterator[list[Latency]]:
        """Every lease is renewed meanwhile; how long requests took, once it is over."""
        with self.meanwhile() as felt:
            yield felt.kinds
        for words in felt.words():
            self.stack.measured(f"{during}: {words}")
        assert felt.missed == 0

    @contextmanager
    def meanwhile(self) -> Iterator[Felt]:
        """What API servers and nodes felt, once it is over."""
        asked, before, felt = self.latency(), self.workers.leases(), Felt()
        yield felt
        felt.beats, felt.missed = (
            now - then for now, then in zip(self.workers.leases(), before, strict=True)
        )
        felt.kinds += latency.between(asked, self.latency())
        felt.ready = self.ready()


@contextmanager
def hollow_cluster(
    name: str, subnet: str, machines: int, *, masters: int = 3
) -> Iterator[HollowCluster]:
    """So many machines for workers are there, none is in the config yet, and nothing is applied."""
    story = name.removeprefix(lab.PREFIX).replace("-", "_")
    real = Machines(name, subnet, ROOT / ".local/test" / f"{story}-machines")
    lab.free(name)
    try:
        empty = config.adopted(name, real.mirror, real.user_key, {})
        with Stack(story, empty) as stack:
            real.start_lab()
            numbers = {f"master-{number + 1}": 11 + number for number in range(masters)}
            hosts = [real.start(master, number) for master, number in numbers.items()]
            for master in numbers:
                stack.node(master).run(_SSH_TOO)
            wanted = config.adopted(name, real.mirror, real.user_key, {"master": hosts})
            stack.config = _with_workers(wanted, stack)
            folder, user = stack.folder / "hollow", real.user_key.with_suffix(".pub")
            servers = [f"{real.address(number)}:6443" for number in numbers.values()]
            with workers.running(folder, machines, user, servers) as there:
                cluster = HollowCluster(stack, there, real, numbers)
                cluster.want(0)
                stack.write()
                yield cluster
    finally:
        lab.free(name)


def _with_workers(wanted: config.Config, stack: Stack) -> config.Config:
    file = (stack.folder / "workers.csv").relative_to(ROOT)
    machines = wanted["machines"]
    ssh = {**_mapping(machines["ssh"]), "port": PORT}
    return {
        **wanted,
        "machines": {**machines, "ssh": ssh},
        "cluster": {**wanted["cluster"], "podCidr": "10.128.0.0/13"},
        # Nobody carries packets to pods that do not run.
        "network": {"plugin": "none"},
        "kubelet": {"servingCertificates": "self-signed"},
        "pools": {
            **wanted["pools"],
            "worker": {"roles": ["worker"], "hostsFile": str(file)},
        },
    }


def _mapping(value: object) -> dict[str, object]:
    assert isinstance(value, dict)
    return value
