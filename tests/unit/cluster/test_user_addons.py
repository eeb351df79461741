"""Add-ons of the user's: what is wrong with their files is told before anything is touched, and in words what an edit does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stacks.cluster import user_addons
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.cluster.user_addons import Addon, KubernetesObject
from stacks.config.problems import SpecError
from stacks.edits import memory, transition
from stacks.edits.memory import Memory
from stacks.explain import changes, report, terminal
from stacks.load import load
from stacks.phases import manifests, system_addons
from tests.unit.configs import lab

ROOT = Path(__file__).parents[3]
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: toys}\n"
SPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: toys}\n"
DEFINITION = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
    "metadata: {name: widgets.example.com}\nspec: {pattern: =}\n"
)


def written(folder: Path, *documents: str, name: str = "a.yaml") -> str:
    file = folder / name
    file.write_text("---\n".join(documents))
    return str(file)


def planned(**addons: list[str]) -> Plan:
    return plan(
        load(lab({"addons": {name: {"manifests": files} for name, files in addons.items()}}))
    )


def told(**addons: list[str]) -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as refused:
        planned(**addons)
    return [(path, text) for path, text in refused.value.problems]


def remembered(made: Plan) -> Memory:
    return memory.read(json.loads(json.dumps(memory.of(made))))


def words(before: Plan, after: Plan) -> dict[str, str]:
    return dict(changes.changes(remembered(before), after).addons)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot be read (no such file or directory)"),
        (b"\xff\xfe", "is not text in UTF-8"),
        ("a: [", "is not YAML (line "),
        ("", "holds no object"),
        ("---\n---\n# nothing\n", "holds no object"),
        ("- a\n", "document 1 is not a mapping"),
        (f"{CONFIG_MAP}---\nkind: X\nmetadata: {{name: a}}\n", "document 2 has no apiVersion"),
        ("apiVersion: v1\nmetadata: {name: a}\n", "document 1 has no kind"),
        ("apiVersion: v1\nkind: X\nmetadata: {generateName: a}\n", "1 has no metadata.name"),
        ("apiVersion: v1\nkind: List\nitems: []\n", "is a List; write its items as documents"),
        (f"{CONFIG_MAP}---\n{CONFIG_MAP}", "holds ConfigMap settings twice"),
        (
            "apiVersion: v1\nkind: X\nmetadata: {name: a b}\n",
            "document 1 has a metadata.name that no object can have",
        ),
        (
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {key: hunter2}\n",
            "document 1 is a Secret with its content, which would be in the repository",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_told(
    tmp_path: Path, text: str | bytes | None, problem: str
) -> None:
    file = tmp_path / "a.yaml"
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    ((path, found), *_) = told(ccm=[str(file)])
    assert path == "addons.ccm.manifests[0]"
    assert problem in found
    assert "hunter2" not in found


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    one = written(tmp_path, CONFIG_MAP, name="one.yaml")
    other = written(tmp_path, DEPLOYMENT, CONFIG_MAP, name="other.yaml")
    bad = written(tmp_path, "kind: X\n", name="bad.yaml")
    found = told(coredns=[one], b=[other], c=[bad, bad, "none.yaml"], d=[])
    assert [path for path, _ in found] == [
        "addons.c.manifests[0]",
        "addons.c.manifests[0]",
        "addons.c.manifests[1]",
        "addons.c.manifests[1]",
        "addons.c.manifests[1]",
        "addons.c.manifests[2]",
        "addons.coredns",
        "addons.coredns.manifests[0]",
        "addons.d.manifests",
    ]
    texts = dict(found)
    assert (
        "holds ConfigMap settings, as addons.b.manifests[0] does"
        in texts["addons.coredns.manifests[0]"]
    )
    assert texts["addons.coredns"].startswith("is the name of an add-on that the stack makes")


def test_an_object_of_the_product_is_not_taken_over(tmp_path: Path) -> None:
    text = (
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: coredns, namespace: kube-system}\n"
    )
    assert told(dns=[written(tmp_path, text)]) == [
        (
            "addons.dns",
            "Deployment kube-system/coredns is of add-on coredns, which the stack makes",
        )
    ]


def config_maps(count: int) -> list[str]:
    return [
        f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {'x' * 40}-{number}}}\n"
        for number in range(count)
    ]


def test_more_files_than_one_command_can_name_are_two_add_ons(tmp_path: Path) -> None:
    files = [
        written(tmp_path, one, name=f"{number}.yaml") for number, one in enumerate(config_maps(100))
    ]
    ((path, text),) = told(big=files)
    assert path == "addons.big"
    assert "the list of its 100 files takes" in text
    assert "make two add-ons of it" in text


def test_more_objects_than_one_command_can_name_are_a_file(tmp_path: Path) -> None:
    made = planned(big=[written(tmp_path, *config_maps(200))])
    values = manifests.manifests(made, made.addons[0])
    assert values["OBJECTS"] == ""
    assert values["LIST"].startswith("addon.big.")
    few = planned(small=[written(tmp_path, *config_maps(3))])
    assert "LIST" not in manifests.manifests(few, few.addons[0])


def test_objects_are_known_by_group_kind_namespace_and_name(tmp_path: Path) -> None:
    (addon,) = planned(ccm=[written(tmp_path, CONFIG_MAP, DEPLOYMENT, DEFINITION)]).addons
    assert addon.objects == (
        KubernetesObject("ConfigMap", "default", "settings"),
        KubernetesObject("Deployment.apps", "toys", "web"),
        KubernetesObject(
            "CustomResourceDefinition.apiextensions.k8s.io", "default", "widgets.example.com"
        ),
    )
    ((_, total),) = addon.files
    assert len(total) == 64


def test_a_secret_that_only_names_itself_is_taken(tmp_path: Path) -> None:
    token = "type: kubernetes.io/service-account-token\n"  # filled in by the cluster
    text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n{token}"
    assert planned(ccm=[written(tmp_path, text)]).addons[0].objects


def test_a_plan_where_the_files_are_not_tells_what_is_missing() -> None:
    raw = lab({"addons": {"ccm": {"manifests": ["none.yaml"]}}})
    (addon,) = plan(load(raw, read_keys=False)).addons
    assert addon == Addon(name="ccm", files=(("none.yaml", ""),), objects=())


def test_what_a_stack_remembers_of_them_is_what_they_were(tmp_path: Path) -> None:
    made = planned(ccm=[written(tmp_path, CONFIG_MAP, DEPLOYMENT)])
    kept = remembered(made)
    assert kept.plan == made
    # What is in the files now is another matter.
    written(tmp_path, CONFIG_MAP)
    assert remembered(made).plan == made
    assert "addons" not in memory.of(plan(load(lab())))


def test_the_words_name_what_comes_changes_goes_and_stays(tmp_path: Path) -> None:
    none = plan(load(lab()))
    file = written(tmp_path, SPACE, DEPLOYMENT, DEFINITION, CONFIG_MAP)
    whole = planned(toys=[file])
    all_of_it = (
        "Namespace toys, Deployment toys/web, CustomResourceDefinition widgets.example.com, "
        "ConfigMap settings"
    )
    assert words(none, whole) == {"toys": f"is made: {all_of_it}"}
    assert words(whole, whole) == {}
    written(tmp_path, SPACE, DEFINITION, f"{CONFIG_MAP}data: {{a: b}}\n")
    assert words(whole, planned(toys=[file])) == {
        "toys": f"is applied from {file}, which changed; deleted at the end: Deployment toys/web"
    }
    assert words(whole, none) == {
        "toys": "leaves; deleted at the end: Deployment toys/web, ConfigMap settings; kept, for "
        "you to delete: Namespace toys, CustomResourceDefinition widgets.example.com"
    }


def test_what_another_add_on_takes_over_is_not_said_to_be_deleted(tmp_path: Path) -> None:
    file = written(tmp_path, DEPLOYMENT)
    found = words(planned(old=[file]), planned(young=[file]))
    assert found == {"old": "leaves", "young": "is made: Deployment toys/web"}


def test_a_raised_generation_applies_them_again(tmp_path: Path) -> None:
    file = written(tmp_path, CONFIG_MAP)
    edits = {"addons": {"toys": {"manifests": [file]}}, "converge.generation": 2}
    found = words(planned(toys=[file]), plan(load(lab(edits))))
    assert found["toys"] == "is applied again, nothing restarts"


def test_the_plan_of_a_new_cluster_lists_them(tmp_path: Path) -> None:
    made = planned(toys=[written(tmp_path, CONFIG_MAP)])
    text = terminal.as_text(report.report(None, made, transition.check(None, made)), verbose=True)
    assert "toys is made: ConfigMap settings" in text


def test_the_example_can_be_applied() -> None:
    path = str(ROOT / "examples/addons/defaults.yaml")
    assert len(planned(team=[path]).addons[0].objects) == 3


@pytest.mark.parametrize("network", ["flannel", "cilium", "calico", "none"])
@pytest.mark.parametrize("pki", [{}, {"adminGeneration": 1}])
def test_the_products_own_names_are_those_it_has(network: str, pki: dict[str, int]) -> None:
    spec = load(lab({"network.plugin": network, "pki": pki}))
    assert set(user_addons.own(spec)) == set(system_addons.addons(plan(spec)))
