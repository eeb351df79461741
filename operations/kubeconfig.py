"""`python -m operations.kubeconfig STACK`: a kubeconfig of a stack, as a file with mode 0600.

Without more words the administrator's, .local/outputs/STACK/kubeconfig; `--merge` also puts its
contexts into ~/.kube/config, whose previous text is kept beside it.
`--user NAME`, `--groups`, `--hours`: a person's, .local/outputs/STACK/users/NAME.kubeconfig. The
key is made here; a certificate is asked of the cluster and approved as its administrator. It has
the rights that Roles give to its name and groups, and ends by itself.
`--oidc`: for people of controlPlane.oidc, .local/outputs/STACK/oidc.kubeconfig, without a secret.
Prints the line by which kubectl uses it.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from operations import outputs
from operations.engine import sealing, stack
from operations.engine.engine import Engine, StackError
from operations.users import certificate, issue, oidc, wanted
from operations.users.kubeconfig import Administrators, by_certificate

_LISTS = ("clusters", "contexts", "users")
_HOURS = "12"


def main(arguments: list[str]) -> int:
    """Exit code 1 where there is no cluster, what is asked is refused, or a file is none."""
    given = _arguments().parse_args(arguments)
    try:
        _see_one_kind(given)
        if given.user is not None:
            file = of_user(given)
        elif given.oidc:
            file = of_provider(given)
        else:
            text = outputs.kubeconfig(Engine(given.stack).outputs(), given.stack)
            file = sealing.put(outputs.FOLDER / given.stack / "kubeconfig", text.encode())
        print(f"export KUBECONFIG={shlex.quote(str(file.absolute()))}")
        if given.merge:
            print(merge(text, Path.home() / ".kube" / "config"))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return 0


def of_user(given: argparse.Namespace) -> Path:
    """Have a certificate signed; the file. Raises StackError."""
    found = stack.read(given.stack, applied=True, whole=False)
    user = wanted.user(found.plan, given.user, given.groups or "", given.hours or _HOURS)
    admin = Administrators.of(found.kubeconfig)
    key, name = certificate.new_key(), issue.name_of_request(user)
    asked = issue.body(name, user, certificate.request(user, key))
    issued = issue.issued(found, name, asked)
    ends = certificate.end(issued, user, key, admin.authorities)
    entry = f"{found.plan.spec.cluster.name}-{user.name}"
    text = admin.for_user(entry, by_certificate(issued, certificate.pem(key)))
    groups = f"groups {', '.join(user.groups)}" if user.groups else "no groups"
    sys.stderr.write(
        f"{user.name} ({groups}) until {certificate.moment(ends)}; "
        f"request {name} in the audit log\n"
    )
    folder = outputs.FOLDER / given.stack / "users"
    return sealing.put(folder / f"{user.name}.kubeconfig", text.encode())


def of_provider(given: argparse.Namespace) -> Path:
    """Write what people of an identity provider use; the file. Raises StackError."""
    found = stack.read(given.stack, applied=True, whole=False, connects=False)
    provider = oidc.issuer(found.plan.spec.control_plane, given.oidc)
    entry = f"{found.plan.spec.cluster.name}-oidc"
    credentials = oidc.by_token(provider, (given.scopes or "").split())
    text = Administrators.of(found.kubeconfig).for_user(entry, credentials)
    return sealing.put(outputs.FOLDER / given.stack / "oidc.kubeconfig", text.encode())


def _see_one_kind(given: argparse.Namespace) -> None:
    """Raises StackError with every word that does not fit the others."""
    wrong = []
    if given.user is not None and given.oidc:
        wrong.append("USER and OIDC: one of them at a time")
    if given.merge and (given.user is not None or given.oidc):
        text = "its contexts are called as the administrator's, and would replace them"
        wrong.append(f"MERGE: {text}; set KUBECONFIG to the file")
    if given.user is None:
        wrong += [
            f"{name.upper()}: of a USER alone; say USER=name behind make"
            for name in ("groups", "hours")
            if getattr(given, name)
        ]
    if given.scopes and not given.oidc:
        wrong.append("SCOPES: with OIDC alone")
    if wrong:
        raise StackError("\n  ".join(wrong))


def merge(text: str, file: Path) -> str:
    """Put clusters, contexts and users of a kubeconfig into another; what was done, for a person.

    Entries of the same names are replaced, others stay, and so does the current context, where
    there is one. Raises StackError.
    """
    file = file.resolve()  # a link stays one
    there = file.read_text() if file.exists() else ""
    merged, ours = _read(there, file), _read(text, Path("kubeconfig of the stack"))
    replaced = [name for name in _named(merged, "contexts") if name in _named(ours, "contexts")]
    for part in _LISTS:
        merged[part] = [*(_named(merged, part) | _named(ours, part)).values()]
    current = merged.get("current-context") or ours["current-context"]
    merged["current-context"] = current
    if there:
        sealing.put(file.with_name(f"{file.name}.before-kube-ha"), there.encode())
    new = file.with_name(f".{file.name}.kube-ha")
    sealing.put(new, yaml.safe_dump(merged, sort_keys=False).encode()).replace(file)
    contexts = ", ".join(_named(ours, "contexts"))
    known = f" (replaced: {', '.join(replaced)})" if replaced else ""
    return f"{file} has: {contexts}{known}; current context: {current}"


def _read(text: str, file: Path) -> dict[str, object]:
    """What a kubeconfig holds; a new one where there is no text. Raises StackError."""
    try:
        found = yaml.safe_load(text) if text.strip() else {"apiVersion": "v1", "kind": "Config"}
        if isinstance(found, dict) and found.get("kind") == "Config":
            for part in _LISTS:
                _named(found, part)
            return found
    except (yaml.YAMLError, KeyError, TypeError):
        pass  # told below, without its text: it holds keys
    raise StackError(f"{file} is not a kubeconfig\n  do: fix or move it, or leave MERGE out")


def _named(kubeconfig: Mapping[str, object], part: str) -> dict[str, object]:
    """Entries of one list by name. Raises KeyError, TypeError where it is not such a list."""
    listed = kubeconfig.get(part) or []
    if not isinstance(listed, list):
        raise TypeError(part)
    return {str(entry["name"]): entry for entry in listed}


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m operations.kubeconfig",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("--merge", action="store_true", help="into ~/.kube/config as well")
    parser.add_argument("--user", help="name of a person, as jane or jane@example.com")
    parser.add_argument("--groups", help="of that person, parted by blanks or commas")
    parser.add_argument("--hours", help=f"how long it is good; default: {_HOURS}")
    parser.add_argument("--oidc", help="1, or of several identity providers the issuer's URL")
    parser.add_argument("--scopes", help="more scopes of that provider, as groups")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
