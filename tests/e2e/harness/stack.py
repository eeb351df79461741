"""A stack of its own for each story: config file, backend, passphrase, lab."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Protocol

import yaml

from tests import measures
from tests.e2e.harness import lab
from tests.e2e.harness.config import Config
from tests.e2e.harness.lab import ROOT, LabError
from tests.e2e.harness.node import Node
from tests.e2e.harness.update import Update
from tests.e2e.harness.waiting import wait_for
from tests.measures import Measure, Note, Served, Took

log = logging.getLogger("e2e")

# Of the caller's environment: what would lead a story to another stack than its own.
_FOREIGN = ("KUBECONFIG", "KUBE_HA_FAULTS", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_STACK")


class Seen(Protocol):
    """What a client counted, by whichever program."""

    @property
    def requests(self) -> int: ...
    @property
    def failed(self) -> int: ...
    @property
    def failed_twice(self) -> int: ...
    @property
    def longest_gap_ms(self) -> int: ...


class Stack:
    """Stack `test-<story>` of the story in test_<story>.py. A context at whose end nothing of it is left."""

    there: ClassVar[list[Stack]] = []  # for the evidence of a failure

    def __init__(self, story: str, config: Config) -> None:
        self.story = story
        self.name = lab.PREFIX + story.replace("_", "-")
        self.config = config
        self.file = ROOT / f"Pulumi.{self.name}.yaml"
        self.folder = ROOT / ".local/test" / story
        self.evidence = ROOT / ".local/log/e2e" / story
        self.environment = self._variables()
        self._updates: list[Update] = []
        self._allowed: list[str] = []

    def __enter__(self) -> Stack:
        self._remove()
        shutil.rmtree(self.evidence, ignore_errors=True)
        self.evidence.mkdir(parents=True)
        (self.folder / "state").mkdir(parents=True)
        (self.folder / "passphrase").write_text(f"of {self.name}")
        self.write()
        self.pulumi("stack", "init", self.name, "--no-select")
        self.there.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.there.remove(self)
        for update in self._updates:
            update.stop()  # one that continues would make machines again
        self._remove()

    def __repr__(self) -> str:
        return f"Stack({self.name})"

    @property
    def lab(self) -> str:
        """Lab machines are called after the cluster, which is called as the stack."""
        return str(self.config["cluster"]["name"])

    def write(self) -> None:
        """Put the config into the stack's file; the key that the engine made stays."""
        known = yaml.safe_load(self.file.read_text()) if self.file.exists() else {}
        every = {**self.config, **({"allow": self._allowed} if self._allowed else {})}
        known["config"] = {f"kube-ha:{key}": value for key, value in every.items()}
        self.file.write_text(yaml.safe_dump(known, sort_keys=False))

    def edit(self, path: str, value: object) -> None:
        """Set one value, as `pulumi config set --path` does; None takes the key out."""
        section, *parents, last = path.split(".")
        below = self.config.setdefault(section, {})
        for key in parents:
            deeper = below.setdefault(key, {})
            if not isinstance(deeper, dict):
                raise TypeError(f"{path}: {key} is not a section")
            below = deeper
        if value is None:
            del below[last]
        else:
            below[last] = value
        self.write()

    def set_nodes(self, exceptions: dict[str, object]) -> None:
        """Replace the section `nodes`: what is different on which node."""
        self.config["nodes"] = exceptions
        self.write()

    def allow(self, refusals: Iterable[str]) -> None:
        """Replace the section `allow`: refusals that are passed over."""
        self._allowed = list(refusals)
        self.write()

    def start(self, *words: str, checkout: Path = ROOT) -> Update:
        """A run of the engine that continues while the test looks; `checkout`: whose program it runs."""
        file = self.evidence / f"{len(self._updates) + 1:02d}-{words[0]}.log"
        options = ["--stack", self.name, "--non-interactive"]
        if words[0] != "preview":
            options += ["--yes", "--skip-preview"]
        command = [*words, *options]
        self._updates.append(Update(command, self.environment, file, checkout=checkout))
        return self._updates[-1]

    def start_up(self) -> Update:
        return self.start("up")

    def up(self, *, fails: bool = False, checkout: Path = ROOT) -> Update:
        """`pulumi up` to its end. Raises AssertionError when it ends otherwise than it should."""
        return self._ended(self.start("up", checkout=checkout), fails=fails)

    def preview(self, *, fails: bool = False) -> Update:
        """`pulumi preview --diff` to its end."""
        return self._ended(self.start("preview", "--diff"), fails=fails)

    def destroy(self) -> Update:
        """`pulumi destroy` to its end, of a cluster that may be protected."""
        self.unprotect()
        return self._ended(self.start("destroy"), fails=False)

    def unprotect(self) -> None:
        """Let a destroy have the cluster."""
        self.pulumi("state", "unprotect", "--all", "--yes", "--stack", self.name)

    def cancel(self) -> None:
        """Take the lock away that a killed engine left."""
        self.pulumi("cancel", "--stack", self.name, "--yes")

    def pulumi(self, *words: str, limit_s: float = 60) -> str:
        """Stdout of a short pulumi command. Raises LabError."""
        done = subprocess.run(
            ["pulumi", *words, "--non-interactive"],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
        if done.returncode:
            raise LabError(f"pulumi {words[0]}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def output(self, name: str) -> object:
        """An output of the stack, secret ones in plain text."""
        value: object = json.loads(
            self.pulumi("stack", "output", name, "--stack", self.name, "--show-secrets", "--json")
        )
        return value

    def export(self) -> dict[str, object]:
        """The deployment with secrets in plain text."""
        text = self.pulumi("stack", "export", "--stack", self.name, "--show-secrets")
        deployment: object = json.loads(text)["deployment"]
        return deployment if isinstance(deployment, dict) else {}

    def resources(self) -> list[dict[str, object]]:
        """All resources of the state."""
        listed = self.export().get("resources")
        return listed if isinstance(listed, list) else []

    @property
    def state_file(self) -> Path:
        """The state as it is in the backend."""
        (file,) = (self.folder / "state/.pulumi/stacks").rglob(f"{self.name}.json")
        return file

    def node(self, name: str) -> Node:
        return Node(self.lab, name)

    def nodes(self) -> list[Node]:
        """Every machine that runs, by name."""
        mark = f"kube-ha-{self.lab}-"
        names = [name.removeprefix(mark) for name in lab.containers(self.lab, running=True)]
        return [self.node(name) for name in names if name != "mirror"]

    def kubectl(self, *words: str, context: str = "", stdin: str = "", limit_s: float = 30) -> str:
        """Stdout of kubectl on this computer, with the stack's own kubeconfig. Raises LabError."""
        options = ["--kubeconfig", str(self.kubeconfig()), "--request-timeout", "10s"]
        options += ["--context", context] if context else []
        command = [str(ROOT / ".local/bin/kubectl"), *options, *words]
        return lab.shell(command, stdin=stdin, timeout_s=limit_s)

    def kubeconfig(self) -> Path:
        """The stack's kubeconfig, as it was when it was first asked for."""
        file = self.folder / "kubeconfig"
        if not file.exists():
            text = str(self.output("kubeconfig"))
            file.touch(mode=0o600)
            file.write_text(text)
        return file

    def forget_kubeconfig(self) -> None:
        """Masters of the day it was made may be gone: take the one of now from here on."""
        (self.folder / "kubeconfig").unlink(missing_ok=True)

    def ready(self, context: str = "") -> dict[str, bool]:
        """Kubernetes nodes and whether they are Ready."""
        path = '{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status}{"\\n"}{end}'
        rows = self.kubectl("get", "nodes", "-o", f"jsonpath={path}", context=context).split()
        return {name: status == "True" for name, _, status in (row.partition("=") for row in rows)}

    def wait_healthy(self, names: set[str], *, limit_s: float = 180) -> float:
        """Seconds until exactly these nodes are registered and Ready, and every etcd member votes and is healthy."""

        def missing() -> str:
            try:
                ready, sick = self.ready(), self._sick_members()
            except LabError as error:
                return str(error)
            if set(ready) != names or not all(ready.values()):
                return f"nodes (Ready or not): {ready}, wanted {sorted(names)}"
            return sick

        return wait_for(f"cluster {self.name} healthy", missing, limit_s=limit_s)

    def settled(self) -> None:
        """Wait until the test pods of the acceptance check are gone, which end after the update."""

        def left() -> str:  # nothing is printed where it is gone
            return self.kubectl("get", "namespace", "kube-ha-acceptance", "--ignore-not-found")

        wait_for("pods of the acceptance check gone", left, limit_s=90)

    def members(self) -> list[Node]:
        """Machines on which etcd runs with data; a decommissioned one has data, and nothing runs."""
        there = "test -d /var/lib/kube-ha/etcd/member && pgrep -x etcd || true"
        return [node for node in self.nodes() if node.asked(there).strip()]

    def member_addresses(self) -> list[str]:
        """Where the etcd members of the last success answer."""
        nodes = self.output("nodes")
        assert isinstance(nodes, dict)
        return [str(node["address"]) for node in nodes.values() if "etcd" in node["roles"]]

    def make_leader(self, name: str) -> None:
        """Make that master's member the leader of etcd: its going is then the worst one."""
        member = self.node(name)
        rows = [row.split(", ") for row in member.etcdctl("member list -w simple").splitlines()]
        (number,) = [row[0] for row in rows if row[2] == name]
        for node in self.members():
            # Only the leader moves leadership; the others say so and nothing happens.
            with contextlib.suppress(LabError):
                node.etcdctl(f"move-leader {number}")
        status = member.etcdctl("endpoint status -w fields").splitlines()
        leader = next(row for row in status if row.startswith('"Leader"'))
        assert f"{int(leader.rpartition(' ')[2]):x}" == number

    def keep_journals(self) -> None:
        """Journal and phase logs of every machine, into the story's folder of evidence."""
        script = (
            "journalctl -b -q --no-pager -n 4000 -o short-precise; "
            "tail -n 200 /var/lib/kube-ha/state/*.log 2>/dev/null || true"
        )
        for node in self.nodes():
            (self.evidence / f"{node.name}.journal").write_text(node.asked(script))
        log.info("%s: engine output and journals are in %s", self.story, self.evidence)

    def took(self, what: str, seconds: float) -> None:
        """Keep how long something took; as all measures it is part of the record of a story that passes."""
        self._keep(Took(what=what, seconds=round(seconds, 1)))

    def served(self, during: str, client: str, seen: Seen) -> None:
        """Keep what a client felt meanwhile."""
        self._keep(
            Served(
                during=during,
                client=client,
                requests=seen.requests,
                failed=seen.failed,
                failed_twice=seen.failed_twice,
                gap_ms=seen.longest_gap_ms,
            )
        )

    def measured(self, text: str) -> None:
        """Keep another number."""
        self._keep(Note(text=text))

    def _keep(self, measure: Measure) -> None:
        log.info("%s: %s", self.story, measures.sentence(measure))
        measures.add(self.evidence, measure)

    def _ended(self, update: Update, *, fails: bool) -> Update:
        code = update.end()
        assert (code != 0) == fails, f"pulumi {update.words[0]}: exit {code}\n{update.tail()}"
        return update

    def _sick_members(self) -> str:
        members = self.members()
        if not members:
            return "no etcd member"
        rows = members[0].etcdctl("member list -w simple").strip().splitlines()
        if len(rows) != len(members) or not all(row.endswith(", false") for row in rows):
            return f"etcd members: {rows}"
        members[0].etcdctl("endpoint health --cluster")
        return ""

    def _variables(self) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
        path = f"{ROOT}/.local/bin:{ROOT}/.venv/bin:{os.environ['PATH']}"
        return kept | {
            "PATH": path,
            "PULUMI_HOME": str(ROOT / ".local/pulumi"),
            # As lab/environment.sh: side files would not survive a kill -9 of the engine.
            "PULUMI_BACKEND_URL": f"file://{self.folder}/state?metadata=skip",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.folder / "passphrase"),
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_DEBUG_COMMANDS": "true",  # allows --event-log
        }

    def _remove(self) -> None:
        lab.free(self.lab)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.file.unlink(missing_ok=True)
