"""Helm charts as manifests: rendered by helm on the computer that plans, the same on each.

helm gets the packed chart whose sum the config has, its values, and the cluster's Kubernetes
version. It asks no cluster and no network: whoever plans with the same files plans the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from stacks.cluster import chart_text
from stacks.config import local_file
from stacks.config.charts import ChartSpec
from stacks.documents import yaml_text
from stacks.releases import versions

PROGRAM = Path(".local/bin/helm")  # of the checkout; else the one of the computer
_LIMIT_S = 60
_BRING = "`make helm` brings it"


class ChartError(ValueError):
    """A chart that cannot be rendered: which key of it is wrong, and what to do."""

    def __init__(self, key: str, text: str) -> None:
        self.key = key
        super().__init__(text)


class _Order(NamedTuple):
    """All that decides what comes out."""

    name: str
    namespace: str
    kubernetes: str
    api_versions: tuple[str, ...]
    skips_hooks: bool
    chart: bytes
    values: tuple[str, ...]  # texts of values files, and those of the config in the end


def version() -> str:
    """The helm that renders charts, as the lock has it."""
    tools = versions.mapping(versions.lock().get("tools"), "tools")
    files = versions.mapping(tools.get("files"), "tools.files")
    return str(versions.mapping(files.get("helm"), "tools.files.helm")["tag"])


def rendered(name: str, said: ChartSpec, kubernetes: str, root: Path) -> str:
    """The manifests of a chart under this name. Raises ChartError."""
    files = [_read(said.values_files, number, root) for number in range(len(said.values_files))]
    order = _Order(
        name=name,
        namespace=said.namespace,
        kubernetes=kubernetes,
        api_versions=said.api_versions,
        skips_hooks=said.hooks == "skip",
        chart=_chart(said, root),
        values=(*files, json.dumps(said.values, sort_keys=True)),
    )
    found = _ordered(order)
    if isinstance(found, ChartError):
        raise found
    return _space(said.namespace) + found if said.create_namespace else found


def _space(name: str) -> str:
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    return yaml_text.documents(made)  # helm begins each of its documents by ---


def _chart(said: ChartSpec, root: Path) -> bytes:
    try:
        content = local_file.read(local_file.place(said.file, root), local_file.CHART_MOST)
    except OSError as error:
        why = local_file.why(error)
        raise ChartError("file", f"{said.file!r} cannot be read ({why})") from None
    total = hashlib.sha256(content).hexdigest()
    if total != said.sha256:
        text = f"is not the sum of {said.file!r}, which is {total}"
        raise ChartError("sha256", f"{text}; write that, or bring back the file that was meant")
    return content


def _read(paths: tuple[str, ...], number: int, root: Path) -> str:
    path, key = paths[number], f"valuesFiles[{number}]"
    try:
        return local_file.read(local_file.place(path, root), local_file.CONFIG_MOST).decode()
    except OSError as error:
        raise ChartError(key, f"{path!r} cannot be read ({local_file.why(error)})") from None
    except UnicodeDecodeError:
        raise ChartError(key, f"{path!r} is not text in UTF-8") from None


@cache
def _ordered(order: _Order) -> str | ChartError:
    """Rendered once, however often a program plans."""
    try:
        with tempfile.TemporaryDirectory(prefix="kube-ha-chart-") as folder:
            return _rendered(order, Path(folder))
    except ChartError as error:
        return error


def _rendered(order: _Order, folder: Path) -> str:
    program = _program()
    # What other programs left in helm's folders, and what the environment says, counts for nothing.
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "HELM_CONFIG_HOME": str(folder / "config"),
        "HELM_CACHE_HOME": str(folder / "cache"),
        "HELM_DATA_HOME": str(folder / "data"),
        "KUBECONFIG": os.devnull,
    }
    said = _helm(program, environment, folder, ["version", "--template", "{{.Version}}"])
    if said.strip().removeprefix("v") != version():
        text = f"needs helm {version()}, and {program} is {said.strip() or 'another one'}"
        raise ChartError("", f"{text}; {_BRING}")
    (folder / "chart.tgz").write_bytes(order.chart)
    words = ["template", order.name, "chart.tgz", "--namespace", order.namespace, "--include-crds"]
    words += ["--kube-version", order.kubernetes]
    for number, text in enumerate(order.values):
        (folder / f"values-{number}.yaml").write_text(text)
        words += ["--values", f"values-{number}.yaml"]
    words += [word for one in order.api_versions for word in ("--api-versions", one)]
    text = _helm(program, environment, folder, [*words, "--no-hooks"])
    whole = _helm(program, environment, folder, [*words, "--skip-tests"])
    # The same again, and hooks behind it.
    if not whole.startswith(text.rstrip("\n")):
        other = "is rendered to something else each time: it makes passwords or keys by chance"
        raise ChartError(
            "values", f"{other}; give it those by values, or by a Secret that it names"
        )
    return _judged(order, text, whole[len(text.rstrip("\n")) :])


def _judged(order: _Order, text: str, rest: str) -> str:
    try:
        hooks = chart_text.hooks(rest)
        if hooks and not order.skips_hooks:
            listed = ", ".join(hooks[:5]) + (f" and {len(hooks) - 5} more" if hooks[5:] else "")
            way = "switch them off by values of the chart, or say hooks: skip to take it without"
            raise ChartError("hooks", f"has hooks, which nothing here runs: {listed}; {way}")
        return chart_text.placed(text, order.namespace)
    except yaml.YAMLError as error:
        what = str(error).splitlines()[0]
        raise ChartError("", f"helm makes something of it that is not YAML ({what})") from None


def _program() -> str:
    if PROGRAM.exists():
        return str(PROGRAM.absolute())
    if found := shutil.which("helm"):
        return found
    raise ChartError("", f"needs helm {version()}, and this computer has none; {_BRING}")


def _helm(program: str, environment: dict[str, str], folder: Path, words: list[str]) -> str:
    """What it prints. Raises ChartError."""
    try:
        done = subprocess.run(  # noqa: S603 (words of this program alone)
            [program, *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ChartError("", f"helm did not end within {_LIMIT_S} s") from None
    except OSError as error:
        raise ChartError("", f"{program} cannot be run ({local_file.why(error)})") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        told = [line for line in lines if line.startswith("Error")] or lines[-1:] or ["no output"]
        text = " ".join(told[0].replace(f"{folder}/", "").split())
        raise ChartError("", f"helm: {text.removeprefix('Error: ')[:400]}")
    return done.stdout.decode(errors="replace")
