"""Secrets that add-ons bring: what is wrong with them is told, their values never; what an edit does to them."""

from __future__ import annotations

import base64
import dataclasses
import json

import pytest

from stacks.checks import addon_secrets as check
from stacks.cluster import addon_secrets, outside
from stacks.cluster.plan import Plan
from stacks.cluster.resolve import plan
from stacks.config.problems import SpecError
from stacks.edits import memory, transition
from stacks.explain import report
from stacks.load import load
from tests.unit.configs import lab

LOGIN = "kubernetes.io/dockerconfigjson"
NAMES = ("registry", "token", "other")
GIVEN: dict[str, object] = {"addonSecrets": {name: {"secure": "v1:x"} for name in NAMES}}
PULL = {"namespaces": ["b", "a"], "type": LOGIN, "data": {".dockerconfigjson": "registry"}}
KEY = {"namespaces": ["a"], "data": {"key": "token", "more": "other"}}


def planned(secrets: dict[str, object], **values: str) -> Plan:
    made = plan(load(lab({"addons": {"team": {"secrets": secrets}}, **GIVEN}), read_keys=False))
    known = {outside.name_of_value(name): text for name, text in values.items()}
    return dataclasses.replace(made, outside=outside.with_secrets((), known, "dev"))


@pytest.mark.parametrize(
    ("secrets", "more", "problem"),
    [
        ({"pull": {**PULL, "data": {"key": "registry"}}}, {}, f"addons.team.secrets.pull.data: has no key .dockerconfigjson, which type {LOGIN} asks for"),
        ({"login": {"namespaces": ["a"], "type": "kubernetes.io/basic-auth", "data": {"key": "token"}}}, {}, "addons.team.secrets.login.data: has neither key username nor password; type kubernetes.io/basic-auth asks for one"),
        ({"key": {**KEY, "data": {"key": "tokn"}}}, {}, "addons.team.secrets.key.data.key: there is no value 'tokn'; `pulumi config set --secret --path kube-ha:addonSecrets.tokn` asks for it"),
        ({"key": {**KEY, "data": {"a/b": "token"}}}, {}, 'addons.team.secrets.key.data."a/b": \'a/b\' is not a key of a Secret; use up to 253 letters, digits and - _ .'),
        ({"key": {**KEY, "namespaces": []}}, {}, "addons.team.secrets.key.namespaces: is empty, so there is no Secret; fill it in, or leave the Secret out"),
        ({"key": {**KEY, "type": "kubernetes.io/service-account-token"}}, {}, "addons.team.secrets.key.type: \"kubernetes.io/service-account-token\" is not one of 'Opaque', 'kubernetes.io/dockerconfigjson', 'kubernetes.io/tls', 'kubernetes.io/basic-auth', 'kubernetes.io/ssh-auth'"),
        ({"key": {**KEY, "data": {"key": {"secure": "v1:x"}}}}, {}, "addons.team.secrets.key.data.key: is encrypted; plans and previews show this value, so write it in plain text"),
        ({}, {"addonSecrets": {"token": "hunter2"}}, "addonSecrets.token: is a secret and stands here in plain text: replace it where it is from, then `pulumi config set --secret --path kube-ha:addonSecrets.token`"),
        ({}, {"addonSecrets": {"secure": "v1:x"}}, "addonSecrets: holds a value by name, each encrypted by itself: `pulumi config set --secret --path kube-ha:addonSecrets.NAME`"),
        ({"key": KEY}, {"addons.else": {"secrets": {"key": KEY}}}, "addons.team.secrets.key: Secret a/key is of addons.else.secrets.key, too; take it out of one"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_and_no_value(
    secrets: object, more: dict[str, object], problem: str
) -> None:
    own = {"metrics-server": {}} if not secrets else {"team": {"secrets": secrets}}
    with pytest.raises(SpecError) as refused:
        load(lab({"addons": own, **GIVEN, **more}))
    assert [f"{path}: {text}" for path, text in refused.value.problems] == [problem]


@pytest.mark.parametrize(
    ("texts", "path"),
    [
        ({"registry": "{}"}, "addonSecrets.registry"),
        # As docker writes it where a helper keeps the login.
        ({"registry": '{"auths": {"a": {}}, "credsStore": "hunter2"}'}, "addonSecrets.registry"),
        ({"registry": '{"auths": {"a": {"identitytoken": "hunter2"}}}'}, "addonSecrets.registry"),
        ({"registry": '{"auths": {"a": {"auth": "hunter2"}}}'}, "addonSecrets.registry"),
        ({"registry": '{"auths": {"a": {"auth": "aHVudGVyMg=="}}}'}, "addonSecrets.registry"),
        ({"registry": '{"auths": {"a": {"username": "hunter2"}}}'}, "addonSecrets.registry"),
        ({"registry": '{"auths": {"a": "hunter2"}}'}, "addonSecrets.registry"),
        ({"registry": "hunter2"}, "addonSecrets.registry"),
        ({"registry": ""}, "addonSecrets.registry"),
        ({"registry": json.dumps({"auths": {}}), "token": "hunter2" * 1000}, "addons.team.secrets"),
    ],
)
def test_a_value_that_cannot_be_used_is_told_and_not_shown(
    texts: dict[str, str], path: str
) -> None:
    ((found, text),) = check.unusable(planned({"pull": PULL, "key": KEY}), texts)
    assert found == path
    assert "hunter2" not in text


def test_what_is_not_known_yet_is_no_problem() -> None:
    assert check.unusable(planned({"pull": PULL, "key": KEY}), {}) == []
    for login in ({"auth": "b3BzOmh1bnRlcjI="}, {"username": "ops", "password": "hunter2"}):
        said = {"registry": json.dumps({"auths": {"a": login}})}
        assert check.unusable(planned({"pull": PULL}), said) == []


def test_each_is_made_in_each_namespace_with_its_values() -> None:
    said = planned({"pull": PULL, "key": KEY}).spec.addons["team"]
    assert addon_secrets.values(said) == ("other", "registry", "token")
    made = json.loads(addon_secrets.manifest(said, {name: f"the {name}" for name in NAMES}))
    places = [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in made["items"]]
    assert places == [("a", "key"), ("a", "pull"), ("b", "pull")]
    first, second, _ = made["items"]
    assert (first["type"], second["type"]) == ("Opaque", LOGIN)
    opened = {key: base64.b64decode(text).decode() for key, text in first["data"].items()}
    assert opened == {"key": "the token", "more": "the other"}


def remembered_words(before: Plan, after: Plan) -> tuple[tuple[str, ...], dict[str, str]]:
    known = memory.read(json.loads(json.dumps(memory.of(before))))
    said = report.report(known, after, transition.check(known, after))
    assert not [one for one in said.headline.disruption if one.notices]
    return said.headline.edits, dict(said.changes.addons)


@pytest.mark.parametrize(
    ("after", "values", "edits", "told"),
    [
        ({"pull": PULL, "key": KEY}, {"token": "new", "other": "x"}, ("Change value token of addonSecrets",), "Secret a/key changes"),
        ({"pull": PULL, "key": {**KEY, "data": {"key": "token"}}}, {}, ("Change add-on team",), "Secret a/key changes"),
        ({"pull": {**PULL, "namespaces": ["a"]}, "key": KEY}, {}, ("Change add-on team",), "is applied again; deleted at the end: Secret b/pull"),
        ({"pull": {**PULL, "namespaces": ["a", "b", "c"]}, "key": KEY}, {}, ("Change add-on team",), "new: Secret c/pull"),
        ({"pull": PULL}, {}, ("Change add-on team",), "is applied again; deleted at the end: Secret a/key"),
    ],
)  # fmt: skip
def test_what_an_edit_does_to_them_is_told(after: dict[str, object], values: dict[str, str], edits: tuple[str, ...], told: str) -> None:  # fmt: skip
    before = planned({"pull": PULL, "key": KEY}, registry="r", token="t", other="x")
    assert remembered_words(before, planned(after, **values)) == (edits, {"team": told})


def test_a_type_that_changes_is_refused() -> None:
    before = planned({"key": KEY})
    known = memory.read(json.loads(json.dumps(memory.of(before))))
    after = planned(
        {"key": {**KEY, "type": "kubernetes.io/basic-auth", "data": {"password": "token"}}}
    )
    with pytest.raises(
        transition.TransitionError, match=r"addons\.team\.secrets\.key\.type: .* take another name"
    ):
        transition.check(known, after)
