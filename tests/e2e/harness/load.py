"""Clients that go on while a cluster is changed, and what they and etcd's own members say about it afterwards.

They run in machines that stay, by themselves, and write down what they see there: nothing that is measured passes
through the container engine of this computer, which may stall for seconds.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.e2e.harness import history, members
from tests.e2e.harness.history import Attempt, Seen
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.node import Node
from tests.e2e.harness.stack import Stack
from tests.e2e.harness.waiting import wait_for

_PROGRAMS = ROOT / "tests/e2e/harness/clients"
_FOLDER = "/run/kube-ha-test"
_PAUSE_S = "0.2"  # several clients on a small computer: they must not be the load that is measured
_LOCAL_API = "127.0.0.1:3446"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """PEM texts by which a client is let in."""

    ca: str
    certificate: str
    key: str


class Client:
    """A program of tests/e2e/harness/clients in a machine, from `start` to `stop`; `lines` are what it wrote down.

    `kinds`: of what it does, all have to have been seen good before it counts as begun.
    """

    def __init__(
        self,
        node: Node,
        name: str,
        program: str,
        evidence: Path,
        *,
        kinds: Collection[str] = ("read", "write"),
    ) -> None:
        self._kinds = set(kinds)
        self._node = node
        self._name = name
        self._program = program
        self._folder = f"{_FOLDER}/{name}"
        self._evidence = evidence / f"{name}.lines"
        self.lines: list[str] = []

    def start(self, keys: Keys, doors: Iterable[str]) -> None:
        self._node.run(f"rm -rf {self._folder}")
        program, *arguments = self._program.split()
        files = {
            "program": (_PROGRAMS / program).read_text(),
            "ca.crt": keys.ca,
            "client.crt": keys.certificate,
            "client.key": keys.key,
            "key": f"kube-ha-test-{self._name}",
            "pause": _PAUSE_S,
        }
        for file, text in files.items():
            self._node.put(f"{self._folder}/{file}", text)
        self.go_by(doors)
        words = shlex.join(["bash", f"{self._folder}/program", *arguments, self._folder])
        # `ended` tells that there is nothing more to come, and whether the program was well to its end.
        self._node.start_program(
            f"{words} >{self._folder}/lines 2>{self._folder}/errors; "
            f"echo exit $? >{self._folder}/ended"
        )

    def go_by(self, doors: Iterable[str]) -> None:
        """Let it ask at these doors (host:port) from now on."""
        self._node.put(f"{self._folder}/doors", " ".join(doors) + "\n")

    def is_silent(self) -> str:
        """What is missing until it has seen something good; empty when it has."""
        lines = self._node.asked(f"tail -n 20 {self._folder}/lines; cat {self._folder}/errors")
        good = {one.kind for one in history.attempts(lines.splitlines()) if one.good}
        if good == self._kinds or any(look.members for look in members.looks(lines.splitlines())):
            return ""
        return f"{self._name} on {self._node.name}: {lines[-400:] or 'nothing yet'}"

    def stop(self) -> None:
        """Let it end, and fetch its lines."""
        self._node.asked(f"touch {self._folder}/stop")
        ended = f"cat {self._folder}/ended"
        wait_for(
            f"client {self._name} ended",
            lambda: "" if self._node.asked(ended) else "not yet",
            limit_s=60,
        )
        code = self._node.run(ended).strip()
        text = self._node.run(f"cat {self._folder}/lines")
        errors = self._node.run(f"cat {self._folder}/errors")
        self._evidence.write_text(text + errors)
        # One that had died on the way would have seen nothing of what came later.
        assert code == "exit 0", f"client {self._name}: {code}\n{errors[-800:]}"
        self.lines = text.splitlines()


class Load:
    """Use as a context. One client asks the API through a worker's own HAProxy, one from outside by the contexts of the stack's
    kubeconfig, one asks etcd itself, and one looks at who is a member of it. `service`: one more asks the API at this door
    (host:port), on that worker. `outside`: the doors of the one outside, in place of the contexts."""

    def __init__(
        self,
        stack: Stack,
        name: str,
        *,
        worker: str = "worker-1",
        service: str = "",
        outside: Sequence[str] = (),
    ) -> None:
        self._stack = stack
        self.name = name
        slug = re.sub(
            "[^a-z0-9]+", "-", name.lower()
        )  # names of files and of objects in the cluster
        evidence = stack.evidence / slug
        evidence.mkdir(parents=True, exist_ok=True)
        # The mirror is a machine of the lab that no edit touches, and no node.
        far = stack.node("mirror")
        self._outside = outside
        self._counting = {
            "API by a worker's HAProxy": Client(
                stack.node(worker), f"{slug}-inside", "count.sh api", evidence
            ),
            "API from outside": Client(far, f"{slug}-outside", "count.sh api", evidence),
            "etcd": Client(far, f"{slug}-etcd", "count.sh etcd", evidence),
        }
        self._service = service
        if service:
            node = stack.node(worker)
            self._counting["API by its Service"] = Client(
                node, f"{slug}-service", "count.sh api", evidence
            )
        self._looking = Client(far, f"{slug}-members", "members.sh", evidence)
        self._ended = False

    def __enter__(self) -> Load:
        inside, outside, etcd, *service = self._counting.values()
        voters = [f"{address}:2379" for address in self._stack.member_addresses()]
        inside.start(self._admin(), [_LOCAL_API])
        outside.start(self._admin(), self._outside or self._contexts())
        etcd.start(self._etcd_client(), voters)
        for client in service:
            client.start(self._admin(), [self._service])
        self._looking.start(self._etcd_client(), voters)
        for client in self._clients():
            wait_for("first answers", client.is_silent, limit_s=60)
        return self

    def __exit__(self, *_: object) -> None:
        if not self._ended:
            self.end()

    def end(self) -> None:
        """Let all of them end; from here on there is something to judge."""
        self._ended = True
        for client in self._clients():
            client.stop()
        for place, seen in self.seen().items():
            self._stack.served(self.name, place, seen)

    def read_kubeconfig_again(self) -> None:
        """The client outside takes the stack's kubeconfig as it is now."""
        self._stack.forget_kubeconfig()
        self._counting["API from outside"].go_by(self._contexts())

    def seen(self) -> dict[str, Seen]:
        """By client."""
        return {
            place: history.seen(history.attempts(client.lines))
            for place, client in self._counting.items()
        }

    def attempts(self) -> dict[str, list[Attempt]]:
        """Each of them, by client."""
        return {place: history.attempts(client.lines) for place, client in self._counting.items()}

    def assert_unharmed(self, *, longest_gap_ms: int | None = None) -> None:
        """Nothing acknowledged was lost, nothing went back, a retry always helped, etcd was safe at every moment."""
        for place, seen in self.seen().items():
            assert seen.requests > 10, f"{place}: too few requests to tell anything: {seen}"
            assert (seen.lost, seen.stale, seen.failed_twice) == (0, 0, 0), f"{place}: {seen}"
            if longest_gap_ms is not None:
                gap = seen.longest_gap_ms
                assert gap <= longest_gap_ms, f"{place}: {seen}"
        self.assert_etcd_safe()

    def assert_served_again(self, *, within_ms: int) -> None:
        """For what nobody announces, as a power cut: what was in hand with it may fail twice, and nothing more."""
        for place, seen in self.seen().items():
            assert (seen.lost, seen.stale) == (0, 0), f"{place}: {seen}"
            assert seen.failed_twice <= 1, f"{place}: {seen}"
            gap = seen.longest_gap_ms
            assert gap <= within_ms, f"{place}: {seen}"
        self.assert_etcd_safe()

    def assert_etcd_safe(self) -> None:
        """Its members had a quorum at every look, and changed one at a time."""
        looks = members.looks(self._looking.lines)
        assert len(looks) > 5, f"{len(looks)} looks at the members"
        problems = members.problems(looks)
        assert not problems, "etcd was not safe at every moment:\n" + "\n".join(problems)

    def _clients(self) -> list[Client]:
        return [*self._counting.values(), self._looking]

    def _admin(self) -> Keys:
        user = _only(self._kubeconfig(), "users", "user")
        cluster = _only(self._kubeconfig(), "clusters", "cluster")
        return Keys(
            ca=_text(cluster["certificate-authority-data"]),
            certificate=_text(user["client-certificate-data"]),
            key=_text(user["client-key-data"]),
        )

    def _contexts(self) -> list[str]:
        clusters = self._kubeconfig()["clusters"]
        assert isinstance(clusters, list)
        return [str(entry["cluster"]["server"]).removeprefix("https://") for entry in clusters]

    def _kubeconfig(self) -> Mapping[str, object]:
        found: Mapping[str, object] = yaml.safe_load(self._stack.kubeconfig().read_text())
        return found

    def _etcd_client(self) -> Keys:
        """Those of any member; they are good for all."""
        member = self._stack.members()[0]
        ca, certificate, key = (
            member.run(f"cat /etc/kube-ha/etcd/{file}")
            for file in ("ca.crt", "client.crt", "client.key")
        )
        return Keys(ca=ca, certificate=certificate, key=key)


def _only(config: Mapping[str, object], section: str, part: str) -> Mapping[str, object]:
    """What the first entry of a section of a kubeconfig holds."""
    entries = config[section]
    assert isinstance(entries, list)
    found: Mapping[str, object] = entries[0][part]
    return found


def _text(data: object) -> str:
    return base64.b64decode(str(data)).decode()
