"""A cluster as kubectl shows it: objects that are applied, looked for and deleted, by kind, namespace and name."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tests.scripts.shell import Shell

# Names are taken behind a `--` alone. Every kind is called by its plural, KINDs, in paths. State in objects.json (by "Kind.group namespace name"), in stuck (words of those whose finalizers nobody removes) and in down (how many calls find no
# API). Kinds whose group is example.com are known once their definition is there. Each call is a line in `calls`.
_KUBECTL = rf"""#!{sys.executable}
import json, pathlib, sys, yaml
here = pathlib.Path(__file__).parents[1]
words = sys.argv[1:]
with open(here / "calls", "a") as log:
    log.write(" ".join(["kubectl", *words]) + "\n")
def option(name, otherwise=""):
    return words[words.index(name) + 1] if name in words else otherwise
def refuse(text):
    print(text, file=sys.stderr)
    sys.exit(1)
read = lambda name: json.loads((here / name).read_text())
write = lambda name, value: (here / name).write_text(json.dumps(value))
if read("down"):
    write("down", read("down") - 1)
    refuse("The connection to the server 127.0.0.1:3446 was refused")
objects, namespace = read("objects.json"), option("-n", "default")
def known(kind):
    return not kind.endswith(".example.com") or any("widgets.example.com" in key for key in objects)
def spaces():
    return {{"default", "kube-system"}} | {{key.split()[2] for key in objects if key.startswith("Namespace ")}}
def key_of(one):
    group, slash, _ = one["apiVersion"].rpartition("/")
    kind = one["kind"] + ("." + group if slash else "")
    return kind, one["metadata"].get("namespace", "default"), one["metadata"]["name"]
def found(kind, name):
    kinds = {{"configmap": "ConfigMap"}}
    kind = kinds.get(kind, kind)
    if not known(kind):
        refuse(f'error: the server doesn\'t have a resource type "{{kind}}"')
    return f"{{kind}} {{namespace}} {{name}}"
if "apply" in words:
    files = [words[i + 1] for i, word in enumerate(words) if word == "-f"]
    wrong = []
    for file in files:
        text = sys.stdin.read() if file == "-" else pathlib.Path(file).read_text()
        mapped = []
        for one in yaml.safe_load_all(text):
            kind = key_of(one)[0]
            if known(kind):
                mapped.append(one)
            else:
                wrong.append(f'error: resource mapping not found for name: "{{one["metadata"]["name"]}}": no matches for kind "{{one["kind"]}}"')
        for one in mapped:
            key = key_of(one)
            if key[1] not in spaces():
                wrong.append(f'Error from server (NotFound): namespaces "{{key[1]}}" not found')
                continue
            if "dta" in one:
                wrong.append("Error from server: failed to create typed patch object: .dta: field not declared in schema")
                continue
            # Of an object that says no more than its name nobody owns a field.
            if set(one) - {{"apiVersion", "kind", "metadata"}} or set(one["metadata"]) - {{"name", "namespace"}}:
                one["metadata"]["managedFields"] = [{{"manager": option("--field-manager")}}]
            one["metadata"]["uid"] = "uid-" + key[2]
            one["metadata"]["namespace"] = key[1]
            objects[" ".join(key)] = one
            print("/".join(key[::2]), "serverside-applied")
    write("objects.json", objects)
    if wrong:
        refuse("\n".join(wrong))
elif "api-resources" in words:
    for kind in sorted({{key.split()[0] for key in objects}}):
        name, _, group = kind.partition(".")
        print(name.lower() + "s", "sh,short", group + "/v1" if group else "v1", "true", name)
elif "annotate" in words:
    kind, name, said = words[words.index("--") + 1 :]
    one = objects[found(kind, name)]
    marks = one["metadata"].setdefault("annotations", {{}})
    if said.endswith("-"):
        marks.pop(said[:-1], None)
    else:
        marks.update([said.split("=")])
    write("objects.json", objects)
elif "get" in words and "-f" in words:
    files = [words[i + 1] for i, word in enumerate(words) if word == "-f"]
    named = [one for file in files for one in yaml.safe_load_all(pathlib.Path(file).read_text())]
    items = [objects[" ".join(key_of(one))] for one in named]
    print(json.dumps({{"items": items}} if len(items) > 1 else items[0]))
elif "get" in words:
    kind, name = words[words.index("--") + 1 :] if "--" in words else (words[words.index("get") + 1], "")
    if "configmap" == kind and not name:
        name = words[words.index("get") + 2]
    if kind == "configmaps":
        label = option("-l")
        items = [one for one in objects.values() if label in one["metadata"].get("labels", {{}})]
        print(json.dumps({{"items": items}}))
    else:
        one = objects.get(found(kind, name))
        if one is None:
            sys.exit(0)
        if option("-o") == "json":
            print(json.dumps(one))
        else:
            print("it is still there, finalizers", one["metadata"].get("finalizers"))
elif "--raw" in words:
    *group, version, _, namespace, plural, name = option("--raw").strip("/").split("/")[1:]
    kind = next(key.split()[0] for key in objects if key.split()[0].partition(".")[0].lower() + "s" == plural)
    key = found(kind, name)
    if json.load(sys.stdin)["preconditions"]["uid"] != objects.get(key, {{}}).get("metadata", {{}}).get("uid"):
        refuse("Error from server (Conflict): the UID in the precondition")
    with open(here / "calls", "a") as log:
        log.write(f"deleted {{kind}} {{name}}\n")
    if name not in read("stuck"):
        objects.pop(key, None)
    write("objects.json", objects)
elif "delete" in words:
    kind, name = words[words.index("--") + 1 :]
    objects.pop(found(kind, name), None)
    write("objects.json", objects)
"""


@dataclass(frozen=True, slots=True)
class KubectlApi:
    """Stands in for kubectl in a shell."""

    shell: Shell

    @classmethod
    def of(cls, shell: Shell) -> KubectlApi:
        kubectl = shell.folder / "bin/kubectl"
        kubectl.parent.mkdir(exist_ok=True)
        kubectl.write_text(_KUBECTL)
        kubectl.chmod(0o755)
        api = cls(shell)
        api._write("objects.json", {})
        api.stick()
        api.down(0)
        return api

    def stick(self, *names: str) -> None:
        """Objects of these names are never gone."""
        self._write("stuck", names)

    def down(self, calls: int) -> None:
        """So many calls find no API."""
        self._write("down", calls)

    def put(self, key: str, *, manager: str, **rest: object) -> None:
        """An object that is there; `manager` owns its fields."""
        kind, namespace, name = key.split()
        metadata = {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "managedFields": [{"manager": manager}],
        }
        group = kind.partition(".")[2]
        one = {"apiVersion": f"{group}/v1" if group else "v1", "metadata": metadata, **rest}
        self._write("objects.json", {**self.objects, key: one})

    @property
    def objects(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = json.loads(
            (self.shell.folder / "objects.json").read_text()
        )
        return found

    @property
    def names(self) -> set[str]:
        """Of the objects that are there, the lists of add-ons left out."""
        return {key for key in self.objects if " kube-ha-addon-" not in key}

    def listed(self, addon: str) -> tuple[list[str], list[str]] | None:
        """What the cluster knows to be of an add-on, and what has left it; None: it knows of none."""
        found = self.objects.get(f"ConfigMap kube-system kube-ha-addon-{addon}")
        if found is None:
            return None
        data = found["data"]
        assert isinstance(data, dict)
        return data["objects"].splitlines(), data["left"].splitlines()

    @property
    def deleted(self) -> Sequence[str]:
        """Kinds and names, in the order in which they were deleted."""
        return [
            call.removeprefix("deleted ")
            for call in self.shell.calls
            if call.startswith("deleted ")
        ]

    def _write(self, name: str, value: object) -> None:
        (self.shell.folder / name).write_text(json.dumps(value))
