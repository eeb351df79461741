"""Add-ons of the user's on a master: applied until nothing is left over, listed in the cluster, deleted when they leave."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from stacks.checks import user_addons as check_user_addons
from stacks.cluster import user_addons as cluster_user_addons
from stacks.cluster.resolve import plan
from stacks.cluster.user_addons import Addon
from stacks.load import load
from stacks.phases import manifests
from tests.scripts.kubectl_api import KubectlApi
from tests.scripts.shell import Shell
from tests.unit.configs import lab

WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
DEFINITION = (
    "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
    "metadata: {name: widgets.example.com}\n"
)
SPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: toys}\n"
ACCOUNT = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: account, namespace: toys}\n"
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: toys}\n"
ALL = [WIDGET, ACCOUNT, DEPLOYMENT, DEFINITION, SPACE]


@pytest.fixture
def api(shell: Shell) -> KubectlApi:
    return KubectlApi.of(shell)


def config_map(name: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"


def addon_of(
    shell: Shell,
    name: str,
    *files: Sequence[str],
    secrets: Mapping[str, Mapping[str, object]] | None = None,
) -> Addon:
    """An add-on of these files, each a list of documents, and their copies on the master."""
    paths = []
    for number, documents in enumerate(files):
        path = shell.folder / f"{name}-{number}.yaml"
        path.write_text("---\n".join(documents))
        paths.append(str(path))
    own = {name: {"manifests": paths, "secrets": secrets or {}}}
    names = {value for one in (secrets or {}).values() for value in one["data"]}  # type: ignore[attr-defined]
    hidden = {"addonSecrets": {value: {"secure": "v1:x"} for value in names}} if names else {}
    spec = load(lab({"addons": own, **hidden}), read_keys=False)
    assert check_user_addons.problems(spec) == []
    (addon,) = plan(spec).addons
    (shell.folder / "copies").mkdir(exist_ok=True)
    for number, name in enumerate(paths):
        copy = shell.folder / "copies" / manifests.shipped(addon, number)
        copy.write_bytes(Path(name).read_bytes())
    if "LIST" in values(addon):
        listed = values(addon)["LIST"].partition(" ")[0]
        (shell.folder / "copies" / listed).write_text(manifests.objects(addon))
    return addon


def values(addon: Addon) -> Mapping[str, str]:
    return manifests.manifests(plan(load(lab())), addon)


def apply(
    shell: Shell,
    addon: Addon,
    *,
    limit_s: int = 20,
    fails: bool = False,
    code: str = "main",
    more: Mapping[str, str] | None = None,
) -> str:
    script = f"COPIES={shell.folder}/copies APPLY_S={limit_s}\n{code}"
    told = {**values(addon), **(more or {})}
    return shell.run(script, phase="manifests", values=told, fails=fails)


def sweep(shell: Shell, *wanted: str, fails: bool = False) -> str:
    """What the list of nodes does about add-ons."""
    copies = shell.folder / "copies"
    copies.mkdir(exist_ok=True)
    code = f"GONE_S=1\nhere={copies}/scripts\nsweep_addons {' '.join(wanted)}"
    return shell.run(f'echo "changes: $changes"; {code}; finish', phase="nodes", fails=fails)


def test_objects_of_a_kind_that_the_same_file_defines_are_applied_when_it_is_there(
    shell: Shell, api: KubectlApi
) -> None:
    apply(shell, addon_of(shell, "toys", ALL))
    assert api.names == {
        "Widget.example.com default w",
        "ServiceAccount toys account",
        "Deployment.apps toys web",
        "CustomResourceDefinition.apiextensions.k8s.io default widgets.example.com",
        "Namespace default toys",
    }
    ours = [call for call in shell.calls if "--field-manager kube-ha-addons" in call]
    applied = [call for call in ours if " apply " in call]
    assert len(applied) == 2
    assert "--server-side --force-conflicts" in applied[0]


def test_definition_and_object_may_be_in_two_files(shell: Shell, api: KubectlApi) -> None:
    apply(shell, addon_of(shell, "toys", [WIDGET], [DEFINITION]))
    assert "Widget.example.com default w" in api.names


def test_an_api_that_is_away_for_a_moment_is_waited_for(shell: Shell, api: KubectlApi) -> None:
    addon = addon_of(shell, "toys", [config_map("a")])
    apply(shell, addon)
    api.down(3)
    apply(shell, addon, code="wait_for 20 applied apply")
    assert api.names == {"ConfigMap default a"}


def test_what_can_never_be_applied_ends_with_the_last_answer_and_what_to_do(
    shell: Shell, api: KubectlApi
) -> None:
    addon = addon_of(shell, "toys", [WIDGET, config_map("a")])
    out = apply(shell, addon, limit_s=1, fails=True)
    assert "add-on toys (" in out
    assert "toys-0.yaml) applied not seen in 1 s" in out
    assert 'no matches for kind "Widget"' in out
    assert "do: fix what it says in" in out
    # Known to the cluster all the same: should it be taken back, what was applied is deleted.
    assert api.listed("toys") == (["Widget.example.com default w", "ConfigMap default a"], [])


def test_what_no_waiting_mends_is_told_at_once(shell: Shell, api: KubectlApi) -> None:
    wrong = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndta: {}\n"
    out = apply(shell, addon_of(shell, "toys", [wrong, config_map("b")]), limit_s=600, fails=True)
    assert "add-on toys: the API refuses Error from server: failed to create typed patch" in out
    assert ".dta: field not declared in schema" in out
    apply(shell, addon_of(shell, "toys", [config_map("a"), config_map("b")]))
    assert api.names == {"ConfigMap default a", "ConfigMap default b"}


def test_it_is_listed_before_the_first_object_is_applied(shell: Shell, api: KubectlApi) -> None:
    apply(shell, addon_of(shell, "toys", ALL))
    kept, applied = (
        next(place for place, call in enumerate(shell.calls) if word in call)
        for word in ("--field-manager kube-ha -f -", "--field-manager kube-ha-addons")
    )
    assert kept < applied


def test_a_copy_that_is_not_of_this_plan_is_not_applied(shell: Shell, api: KubectlApi) -> None:
    addon = addon_of(shell, "toys", [config_map("a")])
    (shell.folder / "copies" / manifests.shipped(addon, 0)).write_text(config_map("b"))
    out = apply(shell, addon, fails=True)
    assert "is not the" in out
    assert "raise converge.generation" in out
    assert api.objects == {}


def test_copies_of_before_are_gone_and_those_of_others_stay(shell: Shell, api: KubectlApi) -> None:
    apply(shell, addon_of(shell, "toys", [config_map("a")]))
    other = addon_of(shell, "toys-2", [config_map("b")])
    now = addon_of(shell, "toys", [config_map("c")])
    apply(shell, now)
    there = {file.name for file in (shell.folder / "copies").iterdir()}
    assert there == {manifests.shipped(now, 0), manifests.shipped(other, 0)}


def test_what_left_the_file_is_deleted_at_the_end_last_applied_first(
    shell: Shell, api: KubectlApi
) -> None:
    apply(shell, addon_of(shell, "toys", ["".join(ALL[4]), ACCOUNT, DEPLOYMENT, config_map("a")]))
    apply(shell, addon_of(shell, "toys", [SPACE, config_map("a")]))
    assert "Deployment.apps toys web" in api.names
    assert api.listed("toys") == (
        ["Namespace default toys", "ConfigMap default a"],
        ["ServiceAccount toys account", "Deployment.apps toys web"],
    )
    sweep(shell, "toys")
    assert api.names == {"Namespace default toys", "ConfigMap default a"}
    assert list(api.deleted) == ["Deployment.apps web", "ServiceAccount account"]
    assert api.listed("toys") == (["Namespace default toys", "ConfigMap default a"], [])


def test_an_object_that_comes_back_before_it_is_deleted_stays(
    shell: Shell, api: KubectlApi
) -> None:
    for documents in ([config_map("a"), config_map("b")], [config_map("a")]):
        apply(shell, addon_of(shell, "toys", documents))
    apply(shell, addon_of(shell, "toys", [config_map("b"), config_map("a")]))
    sweep(shell, "toys")
    assert api.names == {"ConfigMap default a", "ConfigMap default b"}


def test_all_of_an_add_on_that_left_is_deleted_but_for_what_others_may_need(
    shell: Shell, api: KubectlApi
) -> None:
    apply(shell, addon_of(shell, "toys", ALL))
    apply(shell, addon_of(shell, "other", [config_map("a")]))
    out = sweep(shell, "other")
    assert api.names == {
        "CustomResourceDefinition.apiextensions.k8s.io default widgets.example.com",
        "Namespace default toys",
        "ConfigMap default a",
    }
    assert "kept Namespace toys, which is no longer of an add-on" in out
    assert api.listed("toys") is None
    assert api.listed("other") == (["ConfigMap default a"], [])
    # Once told is enough.
    assert "kept" not in sweep(shell, "other")


@pytest.mark.parametrize("kind", cluster_user_addons.KEPT)
def test_the_plan_in_words_and_the_sweep_keep_the_same_kinds(
    shell: Shell, api: KubectlApi, kind: str
) -> None:
    api.put(f"{kind} default x", manager="kube-ha-addons")
    shell.run(f"drop_object {kind} default x", phase="nodes")
    assert api.deleted == []
    kinds = shell.run('printf %s "$KEPT_KINDS"', phase="nodes")
    assert kinds == f" {' '.join(cluster_user_addons.KEPT)} "


def test_what_moves_to_another_add_on_stays(shell: Shell, api: KubectlApi) -> None:
    apply(shell, addon_of(shell, "old", [config_map("a"), config_map("b")]))
    apply(shell, addon_of(shell, "young", [config_map("b")]))
    sweep(shell, "young")
    assert api.names == {"ConfigMap default b"}
    assert list(api.deleted) == ["ConfigMap a"]


def test_what_somebody_else_made_under_that_name_is_not_deleted(
    shell: Shell, api: KubectlApi
) -> None:
    apply(shell, addon_of(shell, "toys", [config_map("a")]))
    api.put("ConfigMap default a", manager="somebody")
    sweep(shell)
    assert api.names == {"ConfigMap default a"}
    assert api.listed("toys") is None


def test_what_says_no_more_than_its_name_is_known_by_a_mark(shell: Shell, api: KubectlApi) -> None:
    """Nobody owns a field of a ServiceAccount: whose it is could not be seen when it leaves."""
    apply(shell, addon_of(shell, "toys", [SPACE, ACCOUNT, DEPLOYMENT]))
    marked = {name for name, one in api.objects.items() if "kube-ha.io/addon" in str(one)}
    assert "ServiceAccount toys account" in marked
    apply(shell, addon_of(shell, "toys", [SPACE]))
    sweep(shell, "toys")
    assert "ServiceAccount toys account" not in api.names
    # One that somebody else has made since, and that says as little, has no mark.
    apply(shell, addon_of(shell, "toys", [SPACE, ACCOUNT]))
    api.put("ServiceAccount toys account", manager="")
    sweep(shell)
    assert "ServiceAccount toys account" in api.names


def test_objects_of_a_kind_that_is_gone_are_gone(shell: Shell, api: KubectlApi) -> None:
    apply(shell, addon_of(shell, "toys", [WIDGET, DEFINITION]))
    objects = {key: one for key, one in api.objects.items() if "widgets" not in key}
    api._write("objects.json", objects)
    sweep(shell)
    assert api.listed("toys") is None


def test_one_that_does_not_go_is_named_with_its_finalizers_and_tried_again(
    shell: Shell, api: KubectlApi
) -> None:
    apply(shell, addon_of(shell, "toys", [config_map("a"), config_map("b")]))
    api.stick("a")
    out = sweep(shell, fails=True)
    assert (
        "end of ConfigMap a (namespace default), which has left its add-on, not seen in 1 s" in out
    )
    assert "it is still there, finalizers" in out
    assert "do: who removes these finalizers?" in out
    assert api.listed("toys") is not None
    api.stick()
    sweep(shell)
    assert api.names == set()
    assert api.listed("toys") is None


def test_nothing_is_deleted_while_the_api_does_not_answer(shell: Shell, api: KubectlApi) -> None:
    apply(shell, addon_of(shell, "toys", [config_map("a")]))
    api.down(1)
    sweep(shell, fails=True)
    assert api.names == {"ConfigMap default a"}


def test_a_second_run_of_both_changes_nothing(shell: Shell, api: KubectlApi) -> None:
    addon = addon_of(shell, "toys", ALL)
    apply(shell, addon)
    before = api.objects
    assert "changes=0" in apply(shell, addon)
    assert "changes=0" in sweep(shell, "toys")
    assert api.objects == before
    assert api.deleted == []


def test_its_files_are_told_by_their_content(shell: Shell) -> None:
    addon = addon_of(shell, "toys", [config_map("a")], [config_map("b")])
    lines = values(addon)["FILES"].splitlines()
    for line, text in zip(lines, (config_map("a"), config_map("b")), strict=True):
        name, total, path = line.split()
        assert total == hashlib.sha256(text.encode()).hexdigest()
        assert total[:12] in name
        assert path.endswith(".yaml")
