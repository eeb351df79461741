"""Story: one command makes the cluster of this computer with every add-on that needs no settings: looked at, measured, and taken out again."""

from __future__ import annotations

import re
import subprocess
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Iterator

import pytest

from tests import measures
from tests.e2e.harness import lab, versions
from tests.e2e.harness.clone import Clone, cloned, ready
from tests.e2e.harness.lab import ROOT
from tests.e2e.harness.node import Node
from tests.e2e.harness.waiting import wait_for
from tests.measures import Note

ALONE = "make clean takes the images of lab machines away"
LAB = "test-dev-addons"
NODES = {"master-1", "master-2", "master-3", "worker-1", "worker-2"}
ALL = ("local-path", "logs", "metrics-server", "prometheus", "toolbox")
PORT = 19090
EVIDENCE = ROOT / ".local/log/e2e/dev_with_addons"
# KiB of all processes of a machine, pods too; what several share is shared out between them.
_RESIDENT = (
    "cat /proc/[0-9]*/smaps_rollup 2>/dev/null | awk '$1 == \"Pss:\" {sum += $2} END {print sum}'"
)


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    versions.with_every_addon()
    EVIDENCE.mkdir(parents=True, exist_ok=True)
    (EVIDENCE / measures.FILE).unlink(missing_ok=True)
    with cloned(tmp_path_factory.mktemp("clone") / "kube-ha", LAB, "10.93.105") as made:
        yield made


def resident_mib() -> float:
    """Of all machines together, the mirror's too."""
    mark = f"kube-ha-{LAB}-"
    names = [name.removeprefix(mark) for name in lab.containers(LAB, running=True)]
    return sum(int(Node(LAB, name).run(_RESIDENT)) for name in names) / 2**10


def test_one_command_makes_all_of_it(clone: Clone) -> None:
    shown = clone.types("make dev ADDONS=all")
    assert f"add-ons in Pulumi.dev.yaml from now on: {', '.join(ALL)}" in shown
    assert ready(shown) == NODES
    for command in ("make dashboard", "make logs", "kubectl top nodes"):
        assert command in shown
    (took,) = re.findall(r"Cluster dev is up after (\d+) s", shown)
    measures.add(EVIDENCE, measures.Took(what="make dev ADDONS=all, its up", seconds=float(took)))


def test_nodes_are_measured(clone: Clone) -> None:
    def missing() -> str:
        found = {row.split()[0] for row in clone.types("kubectl top nodes || true").splitlines()}
        return ", ".join(sorted(NODES - found))

    wait_for("kubectl top shows every node", missing, limit_s=120, every_s=5)


def test_logs_of_all_nodes_come_out_of_the_store(clone: Clone) -> None:
    def missing() -> str:
        shown = clone.types("make -s logs UNIT=kubelet SOURCE=store || true")
        return ", ".join(sorted(name for name in NODES if name not in shown))

    wait_for("lines of every node's kubelet", missing, limit_s=120, every_s=5)


def test_the_cluster_is_on_one_screen(clone: Clone) -> None:
    secret = "kubectl -n kube-system get secret prometheus-access"
    password = clone.types(f"{secret} -o go-template='{{{{.data.password | base64decode}}}}'")
    url = f"http://127.0.0.1:{PORT}/consoles/cluster.html"
    request = urllib.request.Request(url)
    words = b64encode(f"prometheus:{password}".encode()).decode()
    request.add_header("Authorization", f"Basic {words}")

    def missing() -> str:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                page = str(answer.read().decode())
        except (OSError, urllib.error.URLError) as error:
            return str(error)
        rows = dict(re.findall(r"<tr><th>([^<]+)</th>(<td>.*?)</tr>", page))
        late = sorted(NODES - {*rows})
        return ", ".join(late + [name for name, cells in rows.items() if "<td>-</td>" in cells])

    command = ["make", "-s", "dashboard", f"PORT={PORT}"]
    with subprocess.Popen(command, cwd=clone.folder, stdout=subprocess.DEVNULL) as held:
        try:
            wait_for("every node on the screen", missing, limit_s=120, every_s=5)
        finally:
            held.terminate()


def test_without_them_only_what_others_may_use_is_left(clone: Clone) -> None:
    with_them = resident_mib()
    file = clone.folder / "Pulumi.dev.yaml"
    more = "".join(f"    {name}: {{}}\n" for name in ALL)
    text = file.read_text()
    assert f"  kube-ha:addons:\n{more}" in text
    file.write_text(text.replace(f"  kube-ha:addons:\n{more}", ""))
    assert ready(clone.types("make dev")) == NODES
    kinds = clone.types("kubectl api-resources --verbs=list -o name").split()
    asked = ",".join(kind for kind in kinds if not kind.startswith("events"))
    every = clone.types(f"kubectl get {asked} --all-namespaces -o name").split()
    words = ("prometheus", "metrics-server", "local-path", "logs-", "toolbox")
    # Of a class there may be claims: it is for people to delete, as the plan says.
    left = [name for name in every if any(word in name for word in words)]
    assert left == ["storageclass.storage.k8s.io/local-path"]
    without = resident_mib()
    text = f"all machines together: {with_them:.0f} MiB resident with all add-ons, {without:.0f} MiB without"
    measures.add(EVIDENCE, Note(text=text))
    assert "everything is as planned" in clone.types("make status")
    clone.types("make clean")
    assert lab.containers(LAB) == []
