"""Checks of Secrets that add-ons bring, and of their values, whose texts are never shown."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from stacks.cluster import addon_secrets
from stacks.cluster.plan import Plan
from stacks.config.addon_secrets import AddonSecretSpec
from stacks.config.problems import Problem, dotted, shown
from stacks.config.spec import Spec
from stacks.config.translation import ADDON_SECRETS
from stacks.phases import manifests
from stacks.phases.scripts import STDIN_LIMIT

# Keys that API servers ask of a Secret of that type: all, or one of them.
_NEEDED: Mapping[str, tuple[str, ...]] = {
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_ONE_OF: Mapping[str, tuple[str, ...]] = {"kubernetes.io/basic-auth": ("username", "password")}
_SET = f"pulumi config set --secret --path kube-ha:{ADDON_SECRETS}"
_OTHER_VALUES = 700  # bytes: who the cluster and the node are, and the end of the command


def problems(spec: Spec, raw: Mapping[str, object]) -> list[Problem]:
    """Keys that a type asks for, and values that are not in `raw`.

    One that stands there in plain text is refused elsewhere.
    """
    said = raw.get(ADDON_SECRETS)
    given = {*said} if isinstance(said, Mapping) else set()
    return [
        Problem(dotted(("addons", addon, "secrets", name, *path)), text)
        for addon, settings in sorted(spec.addons.items())
        for name, secret in sorted(settings.secrets.items())
        for path, text in (*_missing(secret), *_unknown(secret, given))
    ]


def _missing(secret: AddonSecretSpec) -> Iterator[tuple[tuple[str, ...], str]]:
    for key in ("namespaces", "data"):
        if not getattr(secret, key):
            yield (key,), "is empty, so there is no Secret; fill it in, or leave the Secret out"
    needed, one_of = _NEEDED.get(secret.type, ()), _ONE_OF.get(secret.type, ())
    for key in needed:
        if key not in secret.data:
            yield ("data",), f"has no key {key}, which type {secret.type} asks for"
    if one_of and not {*one_of} & {*secret.data}:
        yield ("data",), f"has neither key {' nor '.join(one_of)}; type {secret.type} asks for one"


def _unknown(secret: AddonSecretSpec, given: set[str]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, value in sorted(secret.data.items()):
        if value not in given:
            text = f"there is no value {value!r}; `{_SET}.{value}` asks for it"
            yield ("data", key), text


def unusable(plan: Plan, known: Mapping[str, str]) -> list[Problem]:
    """What is wrong with values, by their names, as far as their texts are known by now."""
    out = []
    for addon in plan.addons:
        said = plan.spec.addons[addon.name]
        own = {name: known[name] for name in addon_secrets.values(said) if name in known}
        out += [
            Problem(dotted((ADDON_SECRETS, name)), f"is empty; set it (`{_SET}.{name}`)")
            for name, text in own.items()
            if not text
        ]
        for _, secret in sorted(said.secrets.items()):
            out += _broken(secret, own, said.hosts)
        texts = {name: own.get(name, "") for name in addon_secrets.values(said)}
        told = manifests.manifests(plan, addon)
        size = len(addon_secrets.manifest(said, texts)) if said.secrets else 0
        whole = size + _OTHER_VALUES + sum(len(text.encode()) for text in told.values())
        if size and whole > STDIN_LIMIT:
            text = (
                f"its Secrets take {size} bytes in base64, where "
                f"{STDIN_LIMIT - whole + size} are left; make two add-ons of it"
            )
            out.append(Problem(dotted(("addons", addon.name, "secrets")), text))
    return out


def _broken(
    secret: AddonSecretSpec, known: Mapping[str, str], hosts: Sequence[str]
) -> Iterator[Problem]:
    """A login at registries that is none: a kubelet would pull without it, and not say why.

    `hosts`: registries, as host or host:port, that there has to be one for.
    """
    if secret.type != "kubernetes.io/dockerconfigjson":
        return
    name = secret.data.get(".dockerconfigjson", "")
    if not known.get(name):
        return
    try:
        found = json.loads(known[name])
    except (ValueError, RecursionError):
        found = None
    path, again = dotted((ADDON_SECRETS, name)), f"set it again (`{_SET}.{name}`)"
    if not isinstance(found, dict) or not isinstance(found.get("auths"), dict):
        text = "is not a login at registries: JSON with auths, as in ~/.docker/config.json"
        yield Problem(path, f"{text}; {again}")
        return
    for host, login in sorted(found["auths"].items()):
        if not _is_login(login):
            text = (
                f"has no login at {shown(host)}: auth, or username and password; docker leaves "
                "them out where a helper keeps them"
            )
            yield Problem(path, f"{text}; {again}")
    for missing in sorted({*hosts} - {*map(_host, found["auths"])}):
        yield Problem(path, f"has no login at {missing}, which hosts of its add-on names; {again}")


def _is_login(login: object) -> bool:
    """Whether kubelets can use it, which know no token of a helper."""
    if not isinstance(login, Mapping):
        return False
    auth = login.get("auth")
    if not auth:
        return all(
            isinstance(login.get(key), str) and login[key] for key in ("username", "password")
        )
    try:
        user, _, password = base64.b64decode(str(auth), validate=True).partition(b":")
    except ValueError:
        return False
    return bool(user and password)


def _host(said: str) -> str:
    """A key of auths as the host[:port] of an image's name, as registry-login.sh reads it."""
    bare = re.sub(r"/(v[12]/?)?$", "", re.sub("^https?://", "", said))
    return "docker.io" if bare == "index.docker.io" else bare
