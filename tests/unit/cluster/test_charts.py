"""Helm charts of add-ons: what helm makes of them is the same everywhere, and what it says is told by its path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stacks.cluster import chart_text, charts
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.cluster.user_addons import Addon
from stacks.config.problems import SpecError
from stacks.load import load
from stacks.phases import manifests
from stacks.phases.scripts import STDIN_LIMIT
from tests.unit.charts import HOOK, ROLE, SETTINGS, WIDGETS, packed
from tests.unit.cluster.test_addon_secrets import remembered_words
from tests.unit.configs import lab

ROOT = Path(__file__).parents[3]


@pytest.fixture
def chart(tmp_path: Path) -> dict[str, object]:
    return packed(
        tmp_path / "web-1.0.0.tgz", {"settings": SETTINGS, "role": ROLE}, crds={"widgets": WIDGETS}
    )


def planned(chart: dict[str, object], **edits: object) -> Plan:
    return plan(load(lab({"addons": {"web": {"chart": chart}}, **edits})))


def addon(chart: dict[str, object], **edits: object) -> Addon:
    (made,) = planned(chart, **edits).addons
    return made


def settings(made: Addon) -> dict[str, str]:
    found = [one for one in yaml.safe_load_all(made.text) if one["kind"] == "ConfigMap"]
    data: dict[str, str] = found[0]["data"]
    return data


def told(chart: dict[str, object]) -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as refused:
        planned(chart)
    return [(path.removeprefix("addons.web.chart"), text) for path, text in refused.value.problems]


def test_definitions_come_first_and_each_object_has_its_namespace(chart: dict[str, object]) -> None:
    made = addon({**chart, "namespace": "shop", "createNamespace": True})
    assert [str(one) for one in made.objects] == [
        "Namespace shop",
        "CustomResourceDefinition widgets.example.com",
        "ServiceAccount elsewhere/account",
        "ConfigMap shop/web-settings",
        "ClusterRole web-reads",
        "Service shop/web",
        "Widget shop/one",
    ]
    spaces = [one["metadata"].get("namespace") for one in yaml.safe_load_all(made.text)]
    assert spaces == [None, None, "elsewhere", "shop", None, "shop", "shop"]
    assert made.files[0][0] == chart["file"]


def test_values_of_the_config_win_over_those_of_files_and_these_over_the_charts(
    chart: dict[str, object], tmp_path: Path
) -> None:
    files = []
    for name in ("a", "b"):
        (tmp_path / name).write_text(f"colour: of {name}\n")
        files.append(str(tmp_path / name))
    assert settings(addon(chart))["colour"] == "red"
    assert settings(addon({**chart, "valuesFiles": files}))["colour"] == "of b"
    own = {"valuesFiles": files, "values": {"colour": "on"}}
    assert settings(addon({**chart, **own}))["colour"] == "on"


def test_it_is_rendered_for_the_version_of_the_cluster_and_the_apis_that_the_config_names(
    chart: dict[str, object],
) -> None:
    found = settings(addon(chart, **{"cluster.kubernetes": "1.35.4"}))
    assert (found["kubernetes"], found["monitored"]) == ("v1.35.4", "false")
    more = settings(addon({**chart, "apiVersions": ["monitoring.coreos.com/v1"]}))
    assert (more["kubernetes"], more["monitored"]) == ("v1.36.3", "true")


def test_it_is_the_same_in_another_place_whatever_the_environment_says(
    chart: dict[str, object], tmp_path: Path
) -> None:
    """As a CI system has it: another home, folders of helm with things in them, a kubeconfig, a time zone."""
    code = (
        "import sys, pathlib\n"
        "from stacks.cluster import charts\n"
        "from stacks.config.charts import ChartSpec\n"
        f"said = ChartSpec(file={chart['file']!r}, sha256={chart['sha256']!r}, namespace='shop')\n"
        "sys.stdout.write(charts.rendered('web', said, '1.36.3', pathlib.Path()))"
    )
    folder = tmp_path / "elsewhere"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/helm").symlink_to((ROOT / charts.PROGRAM).resolve())
    (folder / "repositories.yaml").write_text("not: [YAML")
    environment = {
        "PATH": f"{folder}/bin:{os.defpath}", "HOME": str(folder), "PYTHONPATH": str(ROOT), "TZ": "Asia/Tokyo",
        "HELM_REPOSITORY_CONFIG": str(folder / "repositories.yaml"), "HELM_NAMESPACE": "other", "HELM_DEBUG": "1",
        "KUBECONFIG": str(folder / "none"), "LC_ALL": "C",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, check=True
    )
    assert done.stdout.decode() == addon({**chart, "namespace": "shop"}).text


def test_another_file_under_its_name_is_refused(chart: dict[str, object]) -> None:
    ((path, text),) = told({**chart, "sha256": "0" * 64})
    assert path == ".sha256"
    assert str(chart["sha256"]) in text
    ((path, text),) = told({**chart, "file": "charts/none.tgz"})
    assert (path, text) == (".file", "'charts/none.tgz' cannot be read (no such file or directory)")
    ((path, text),) = told({**chart, "valuesFiles": ["none.yaml"]})
    assert (path, text) == (
        ".valuesFiles[0]",
        "'none.yaml' cannot be read (no such file or directory)",
    )


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ('{{ required "colour is missing" .Values.none }}', "helm: execution error at (web/templates/x.yaml:1:3): colour is missing"),
        ("{{ .Values.a.b }}", "nil pointer evaluating interface {}.b"),
        ("{{ if }}", "missing value for if"),
        ("kind: [", "helm: YAML parse error on web/templates/x.yaml"),
        ("kind: ConfigMap\nmetadata: {name: a}", "document 1 has no apiVersion"),
        ("apiVersion: v1\nkind: List\nitems: []", "document 1 is a List"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_chart_is_told_by_its_path(
    tmp_path: Path, template: str, said: str
) -> None:
    ((path, text),) = told(packed(tmp_path / "x.tgz", {"x": template}))
    assert path == ""
    assert said in text
    assert "/kube-ha-chart-" not in text


def test_hooks_are_refused_unless_they_are_given_up_and_tests_are_none(tmp_path: Path) -> None:
    templates = {"a": HOOK % "pre-install", "b": HOOK % "test", "c": SETTINGS}
    chart = packed(tmp_path / "x.tgz", templates)
    ((path, text),) = told(chart)
    assert path == ".hooks"
    assert (
        "has hooks, which nothing here runs: Job web-migrate (pre-install); switch them off" in text
    )
    assert [one.kind for one in addon({**chart, "hooks": "skip"}).objects] == ["ConfigMap"]


def test_what_is_another_one_each_time_is_refused(tmp_path: Path) -> None:
    template = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: {{ randAlphaNum 9 }}}\n"
    )
    ((path, text),) = told(packed(tmp_path / "x.tgz", {"x": template}))
    assert path == ".values"
    assert "something else each time" in text
    fixed = template.replace("{{ randAlphaNum 9 }}", "b")
    assert str(addon(packed(tmp_path / "y.tgz", {"x": fixed})).objects[0]) == "Secret a"


def test_a_chart_beside_manifests_is_refused(chart: dict[str, object]) -> None:
    own = {"web": {"chart": chart, "manifests": ["examples/addons/defaults.yaml"]}}
    with pytest.raises(SpecError, match="is a chart beside manifests; make two add-ons of them"):
        load(lab({"addons": own}))


def test_objects_that_another_add_on_has_are_refused(tmp_path: Path) -> None:
    first, second = (packed(tmp_path / name, {"x": "apiVersion: v1\nkind: Service\nmetadata: {name: same}\n"}) for name in ("a.tgz", "b.tgz"))  # fmt: skip
    with pytest.raises(SpecError, match="Service same is of add-on"):
        load(lab({"addons": {"a": {"chart": first}, "b": {"chart": second}}}))


@pytest.mark.parametrize("says", ["", "#!/bin/sh\necho v3.0.1\n", "#!/bin/sh\nexit 3\n"])
def test_without_the_very_helm_nothing_is_planned(
    chart: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    program = tmp_path / "helm"
    if says:
        program.write_text(says)
        program.chmod(0o755)
    monkeypatch.setattr(charts, "PROGRAM", program)
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    ((path, text),) = told({**chart, "namespace": f"a{len(says)}"})
    assert path == ""
    wanted = "helm: no output" if "exit" in says else f"needs helm {charts.version()}, and"
    assert text.startswith(wanted)


def test_what_an_edit_does_is_told(tmp_path: Path) -> None:
    chart = packed(tmp_path / "web-1.tgz", {"settings": SETTINGS, "role": ROLE})
    newer = packed(tmp_path / "web-2.tgz", {"settings": SETTINGS}, version="2.0.0")
    words = {
        name: remembered_words(planned(chart), planned(after))
        for name, after in {
            "nothing": chart,
            "value": {**chart, "values": {"colour": "blue"}},
            "version": newer,
        }.items()
    }
    assert words == {
        "nothing": ((), {}),
        "value": (("Change add-on web",), {"web": f"is applied as helm renders {chart['file']} now"}),
        "version": (
            ("Change add-on web",),
            {
                "web": f"is applied as helm renders {newer['file']} now; deleted at the end: ServiceAccount "
                "elsewhere/account, ClusterRole web-reads, Service web, Widget one"
            },
        ),
    }  # fmt: skip


def test_names_that_do_not_fit_into_a_command_are_in_a_file(tmp_path: Path) -> None:
    many = "".join(f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {'n' * 100}-{n}}}\n" for n in range(200))  # fmt: skip
    made = planned(packed(tmp_path / "x.tgz", {"x": many}))
    values = manifests.manifests(made, made.addons[0])
    assert values["OBJECTS"] == ""
    assert sum(map(len, values.values())) < STDIN_LIMIT
    assert values["LIST"].startswith("addon.web.")
    assert manifests.objects(made.addons[0]).count("n-1") > 100


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("kind: A\nmetadata:\n  name: a\n", "kind: A\nmetadata:\n  namespace: x\n  name: a\n"),
        ("kind: A\nmetadata:\n    labels: {}\n    name: a # é\nb: é\n---\nkind: B\nmetadata: {name: b}\n",
         "kind: A\nmetadata:\n    namespace: x\n    labels: {}\n    name: a # é\nb: é\n---\nkind: B\nmetadata: {namespace: x, name: b}\n"),
        ("kind: A\nmetadata: {name: a, namespace: y}\n", None),
        ("kind: Namespace\napiVersion: v1\nmetadata: {name: a}\n", None),
        ('{"kind": "A", "metadata": {"name": "a"}}', '{"kind": "A", "metadata": {namespace: x, "name": "a"}}'),
        ("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n", None),
        ("- a\n---\n", None),
        ("kind: A\nmetadata: {}\n---\nkind: B\nmetadata: x\n", None),
    ],
)  # fmt: skip
def test_a_namespace_is_put_into_the_text_alone(text: str, wanted: str | None) -> None:
    assert chart_text.placed(text, "x") == (text if wanted is None else wanted)


def test_kinds_that_a_chart_defines_are_known() -> None:
    definition = WIDGETS.replace("scope: Namespaced", "scope: Cluster")
    widget = "---\napiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"
    assert chart_text.placed(definition + widget, "x") == definition + widget
