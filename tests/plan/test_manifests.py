"""Add-ons of the user's in the program: files that are copied, a command each, and what an edit of them changes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from stacks.cluster import charts
from stacks.cluster.resolve import plan
from stacks.load import load
from stacks.phases.scripts import STDIN_LIMIT
from stacks.phases.system_addons import GUARDS
from tests.plan.graph import Graph
from tests.plan.recording import Engine, RunError
from tests.plan.settled import Stacks
from tests.unit.charts import SETTINGS, packed
from tests.unit.configs import lab

GATE = ["! dev-acceptance-attempt", "~ dev-nodes", "~ dev-gate"]
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {0}}}\ndata: {{a: {1}}}\n"


@pytest.fixture(scope="module")
def born(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """A cluster with two add-ons, the second of two files."""
    folder: Path = tmp_path_factory.mktemp("checkout")
    for name in ("ccm", "csi", "crd"):
        (folder / f"{name}.yaml").write_text(CONFIG_MAP.format(name, "x"))
    engine = Stacks(folder).new(lab({"addons": ADDONS}))
    engine.up(lab({"addons": ADDONS}))
    return engine


ADDONS = {
    "storage": {"manifests": ["crd.yaml", "csi.yaml"]},
    "cloud": {"manifests": ["ccm.yaml"]},
}


def changes(engine: Engine, addons: object) -> list[str]:
    fork = engine.fork()
    found = [str(change) for change in fork.up(lab({"addons": addons})).changes]
    # Whatever it was, it is done.
    assert fork.up(lab({"addons": addons})).changes == []
    return found


def again(*names: str, mark: str = "~", files: Sequence[int] = (1,)) -> list[str]:
    copied = "!" if mark == "~" else mark
    found = []
    for name in names:
        found += [f"{copied} dev-addon-{name}-file-{number}" for number in files]
        found.append(f"{mark} dev-addon-{name}")
    return found


def test_each_is_applied_after_those_of_the_product_and_the_one_before_and_before_the_list_of_nodes(
    born: Engine,
) -> None:
    graph = Graph(born.fork().up(lab({"addons": ADDONS})))
    own = {
        f"dev-addon-{name}"
        for name in ("admission-policies", "coredns", "flannel", "kube-proxy", "lost-nodes")
    }
    assert own <= graph.before("dev-addon-cloud")
    assert graph.needs("dev-addon-storage") >= {
        "dev-addon-cloud",
        "dev-addon-storage-file-1",
        "dev-addon-storage-file-2",
        # Workers join meanwhile: an add-on may wait for its own pods.
        "dev-join-token",
    }
    assert {"dev-addon-cloud", "dev-addon-storage"} <= graph.before("dev-nodes")
    # But for what bounds a worker.
    guards = {f"dev-addon-{name}{part}" for name in GUARDS for part in ("", "-attempt")}
    assert {n for n in graph.before("dev-worker-1-join") if "-addon-" in n} == guards


def test_a_stack_without_them_has_no_resource_more(stacks: Stacks) -> None:
    _, run = stacks.settled(lab())
    assert not [one.name for one in run.custom if "file" in one.name]
    assert "ADDONS" not in run.named("dev-nodes").text("stdin")


def test_a_file_of_any_size_travels_as_a_file(born: Engine) -> None:
    big = CONFIG_MAP.format("big", "y" * 1_000_000)
    (born.folder / "big.yaml").write_text(big)
    run = born.fork().up(lab({"addons": {"big": {"manifests": ["big.yaml"]}}}))
    (born.folder / "big.yaml").unlink()
    stdin = run.named("dev-addon-big").text("stdin")
    assert len(stdin) < 2000 < STDIN_LIMIT
    assert "OBJECTS='ConfigMap default big'" in stdin
    copied = run.named("dev-addon-big-file-1")
    # The state holds its hash, not its text.
    assert "yyy" not in str(copied.inputs)
    assert copied.text("remotePath").split(".")[-2] in stdin


def test_what_the_catalogue_makes_travels_as_a_file_too(tmp_path: Path) -> None:
    chosen = lab({"addons": {"metrics-server": {}}})
    engine = Stacks(tmp_path).new(chosen)  # with a bundle that has its image
    engine.up(lab())
    run = engine.up(chosen)
    found = sorted(str(change) for change in run.changes)
    assert found == sorted([*again("metrics-server", mark="+"), *GATE])
    (addon,) = plan(load(chosen, read_keys=False)).addons
    copied = run.named("dev-addon-metrics-server-file-1")
    assert addon.text in str(copied.inputs["source"]).replace("\\n", "\n")
    stdin = run.named("dev-addon-metrics-server").text("stdin")
    assert hashlib.sha256(addon.text.encode()).hexdigest() in stdin
    assert "PodDisruptionBudget.policy kube-system metrics-server" in stdin
    assert engine.up(chosen).changes == []
    gone = sorted(str(change) for change in engine.up(lab()).changes)
    assert gone == sorted([*again("metrics-server", mark="-"), *GATE])


def test_a_chart_travels_as_a_file_and_the_state_has_its_hash_alone(tmp_path: Path) -> None:
    (tmp_path / ".local/bin").mkdir(parents=True)
    (tmp_path / ".local/bin/helm").symlink_to(charts.PROGRAM.resolve())
    many = "".join(
        f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {'n' * 100}-{n}}}\n"
        for n in range(200)
    )
    said = packed(tmp_path / "x.tgz", {"x": many, "settings": SETTINGS})
    chosen = lab({"addons": {"web": {"chart": said}}})
    engine = Stacks(tmp_path).new(chosen)
    engine.up(lab())
    run = engine.up(chosen)
    found = sorted(str(change) for change in run.changes)
    assert found == sorted([*again("web", mark="+", files=(1, 2)), *GATE])
    copied, listed = (run.named(f"dev-addon-web-file-{number}") for number in (1, 2))
    assert "nnnn" not in str(copied.inputs) + str(listed.inputs)
    stdin = run.named("dev-addon-web").text("stdin")
    assert len(stdin) < STDIN_LIMIT
    for name in (copied, listed):
        assert name.text("remotePath").rpartition("/")[2] in stdin
        file = tmp_path / ".local/contents" / name.text("remotePath").rpartition("/")[2]
        assert file.stat().st_mode & 0o777 == 0o600
        assert hashlib.sha256(file.read_bytes()).hexdigest() in stdin
    assert engine.up(chosen).changes == []
    edited = lab({"addons": {"web": {"chart": {**said, "values": {"colour": "blue"}}}}})
    again_listed = [*again("web", files=(1, 2)), *GATE]
    assert sorted(str(change) for change in engine.up(edited).changes) == sorted(again_listed)


def test_a_changed_file_is_copied_and_its_add_on_applied(born: Engine) -> None:
    file = born.folder / "ccm.yaml"
    before = file.read_text()
    file.write_text(CONFIG_MAP.format("ccm", "other"))
    try:
        assert sorted(changes(born, ADDONS)) == sorted([*again("cloud"), *GATE])
    finally:
        file.write_text(before)


@pytest.mark.parametrize(
    ("addons", "wanted"),
    [
        pytest.param(ADDONS, [], id="no edit, no change"),
        pytest.param(
            {**ADDONS, "more": {"manifests": ["ccm2.yaml"]}},
            [*again("more", mark="+"), *GATE],
            id="one more is applied alone",
        ),
        pytest.param(
            {"cloud": ADDONS["cloud"]},
            [*again("storage", mark="-", files=(1, 2)), *GATE],
            id="one that leaves: the list of nodes deletes its objects",
        ),
        pytest.param(
            {},
            [*again("storage", mark="-", files=(1, 2)), *again("cloud", mark="-"), *GATE],
            id="all leave",
        ),
        pytest.param(
            {**ADDONS, "storage": {"manifests": ["crd.yaml"]}},
            [*again("storage"), "- dev-addon-storage-file-2", *GATE],
            id="a file is taken out",
        ),
    ],
)
def test_an_edit_changes_these_and_nothing_more(
    born: Engine, addons: object, wanted: list[str]
) -> None:
    (born.folder / "ccm2.yaml").write_text(CONFIG_MAP.format("ccm2", "x"))
    assert sorted(changes(born, addons)) == sorted(wanted)


def test_those_that_are_wanted_are_told_to_the_list_of_nodes(born: Engine) -> None:
    run = born.fork().up(lab({"addons": ADDONS}))
    assert "ADDONS='cloud storage'" in run.named("dev-nodes").text("stdin")


def test_they_go_to_another_master_when_the_first_one_leaves(born: Engine) -> None:
    fork = born.fork()
    fork.up(lab({"addons": ADDONS, "nodes.master-1.state": "lost"}))
    run = fork.up(lab({"addons": ADDONS, "nodes.master-1.state": "lost"}))
    copied = run.named("dev-addon-cloud-file-1")
    applied = run.named("dev-addon-cloud")
    assert "master-2" in str(copied.value("triggers"))
    assert copied.value("connection") == applied.value("connection")


def test_a_change_that_fails_is_taken_back_for_certain(born: Engine) -> None:
    file = born.folder / "ccm.yaml"
    before = file.read_text()
    fork = born.fork()
    file.write_text(CONFIG_MAP.format("ccm", "other"))
    try:
        with pytest.raises(RunError):
            fork.up(lab({"addons": ADDONS}), failing=["dev-addon-cloud"])
    finally:
        file.write_text(before)
    taken_back = {str(change) for change in fork.up(lab({"addons": ADDONS})).changes}
    assert {"! dev-addon-cloud-file-1", "~ dev-addon-cloud", "~ dev-nodes"} <= taken_back


def test_a_refused_file_stops_everything(born: Engine) -> None:
    with pytest.raises(RunError, match=r"addons\.cloud\.manifests\[0\]: 'none\.yaml' cannot be"):
        born.fork().up(lab({"addons": {"cloud": {"manifests": ["none.yaml"]}}}))
