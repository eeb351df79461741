"""`python -m operations.report STACK`: one archive of what a supporter needs. Changes nothing.

.local/reports/STACK/STACK-TIME.tar.gz, mode 0600; with a key in KUBE_HA_STATE_KEY sealed with it,
in its place STACK-TIME.tar.gz.sealed, which `--open FILE` opens again.
In it: the config without its secrets, the change plan, status, drift, versions, the last update,
and of each machine the last hour of its journals, logs of phases, etcd and the cluster.
Every text is searched for the stack's secrets before it is written.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import platform
import sys
import tarfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import yaml
from cryptography.fernet import InvalidToken

from operations import drift, preview, sealed_state, status
from operations.engine import sealing, stack, update
from operations.engine.engine import Engine, StackError
from operations.observe import observation
from operations.observe.observation import Look
from operations.observe.status_document import document
from operations.reports import machines
from operations.reports.secrets import Secrets
from stacks.config import redaction, stack_file
from stacks.config.stack_file import StackFileError
from stacks.version import VERSION

FOLDER = Path(".local/reports")
_SEALED = ".sealed"
_CLOUDS = ("pulumi-gcp", "pulumi-aws", "pulumi-hcloud")
_PACKAGES = ("pulumi", "pulumi-command", "pulumi-tls", *_CLOUDS)
_LAST_UPDATE_BYTES = 1024 * 1024


def main(arguments: list[str]) -> int:
    """Print the archive's name, what is in it and what is not; exit code 1 where there is none."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("--open", type=Path, metavar="FILE", help="a sealed report")
    given = parser.parse_args(arguments)
    try:
        if given.open:
            print(opened(given.open))
        else:
            print("\n".join(report(given.stack)))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return 0


def report(name: str) -> Iterator[str]:
    """Write the archive; lines about it. Raises StackError."""
    engine, now = Engine(name), datetime.now(UTC)
    found = stack.read(name, applied=False, whole=False)
    state = engine.state(clear=True)
    secrets = Secrets.of(state, _others(engine, found))
    seen = observation.of(name, found)
    taken = machines.take(found, seen)
    texts = {**_own(engine, seen), **taken.files}
    cut = {path: secrets.without(text) for path, text in texts.items()}
    cut["about.json"] = _json(
        {
            "stack": name,
            "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "versions": _versions(state),
            "leftOut": {node: secrets.without(why) for node, why in taken.left_out.items()},
        }
    )
    found_still = sorted(path for path, text in cut.items() if secrets.are_in(text))
    if found_still:
        raise StackError(
            f"nothing was written: {', '.join(found_still)} would hold a secret of this stack\n"
            "  do: tell who maintains kube-ha in which file, and what kind of text it is in"
        )
    file = _kept(FOLDER / name / f"{name}-{now:%Y%m%dT%H%M%SZ}.tar.gz", _packed(cut))
    yield str(file)
    width = max(map(len, cut))
    yield from (f"  {path.ljust(width)}  {len(text):8}" for path, text in sorted(cut.items()))
    yield from (f"left out: {node}: {why}" for node, why in sorted(taken.left_out.items()))


def opened(file: Path) -> Path:
    """What a sealed report holds, beside it. Raises StackError."""
    try:
        content = sealing.key(sealed_state.KEY).decrypt(file.read_bytes())
    except OSError as error:
        raise StackError(f"{file} cannot be read: {error.strerror}") from None
    except InvalidToken:
        raise StackError(
            f"{file} does not open: it was sealed with another {sealed_state.KEY}, or is damaged\n"
            "  do: take the key that was set when it was made"
        ) from None
    return sealing.put(file.with_name(file.name.removesuffix(_SEALED)), content)


def _own(engine: Engine, seen: Look) -> dict[str, str]:
    """What this computer knows, by path in the archive."""
    last = update.LOGS / f"up-{engine.stack}.log"
    return {
        "config.yaml": _config(engine.stack),
        "plan.json": preview.document(engine),
        "status.json": _json(document(seen)),
        "status.txt": "\n".join([*status.screen(seen), ""]),
        "drift.json": _json(drift.document(seen)),
        "drift.txt": "\n".join([*drift.head(seen), *drift.table(seen.plan.nodes, seen.report), ""]),
        **({"last-update.txt": _end(last)} if last.is_file() else {}),
    }


def _config(name: str) -> str:
    """Keys of kube-ha with hosts of files, and *** for what is encrypted. Raises StackError."""
    try:
        said = stack_file.look(Path(f"Pulumi.{name}.yaml")).config
    except StackFileError as error:
        raise StackError(f"Pulumi.{name}.yaml: {error}") from None
    return yaml.safe_dump(redaction.of_value(_unsealed(said)), sort_keys=False)


def _unsealed(value: object) -> object:
    if isinstance(value, Mapping):
        if set(value) == {"secure"}:
            return {"secure": "***"}
        return {key: _unsealed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_unsealed(item) for item in value]
    return value


def _others(engine: Engine, found: stack.Stack) -> Iterator[str]:
    """Secrets that are one line each: of the config, of snapshots, and the stack's passphrase."""
    yield from (found.backup_key, *found.backup_keys.values())
    done = engine.run("config", "--show-secrets", "--json")
    if not done.returncode:
        for entry in json.loads(done.stdout).values():
            if entry.get("secret"):
                texts = _texts(entry.get("objectValue", entry.get("value", "")))
                yield from (line for text in texts for line in text.splitlines())
    yield engine.environment.get("PULUMI_CONFIG_PASSPHRASE", "")
    passphrase = Path(engine.environment.get("PULUMI_CONFIG_PASSPHRASE_FILE", "") or os.devnull)
    yield passphrase.read_text().strip() if passphrase.is_file() else ""
    keys = [
        hop.key for target in found.targets.values() for hop in (target.hop, target.bastion) if hop
    ]
    yield from (line for key in keys if key for line in key.splitlines() if " " not in line)


def _texts(value: object) -> Iterator[str]:
    """Of a mapping those of its values: the engine hands all of it over as one."""
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    else:
        yield str(value)


def _versions(state: Mapping[str, Mapping[str, object]]) -> dict[str, str]:
    """Of what runs here, and of the engine that wrote the state."""
    packages = {}
    for name in _PACKAGES:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = "not installed"
    manifest = state.get("deployment", {}).get("manifest")
    engine = str(manifest.get("version", "")) if isinstance(manifest, Mapping) else ""
    return {"kube-ha": VERSION, "python": platform.python_version(), "engine": engine, **packages}


def _end(file: Path) -> str:
    text = file.read_bytes()[-_LAST_UPDATE_BYTES:]
    return text.decode(errors="replace")


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _packed(files: Mapping[str, str]) -> bytes:
    """A tar of them, compressed."""
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w") as tar,
    ):
        for path, text in sorted(files.items()):
            content = text.encode()
            entry = tarfile.TarInfo(f"report/{path}")
            entry.size, entry.mode = len(content), 0o600
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _kept(file: Path, content: bytes) -> Path:
    """Sealed where there is a key. Raises StackError."""
    if not os.environ.get(sealed_state.KEY):
        return sealing.put(file, content)
    sealed = sealing.key(sealed_state.KEY).encrypt(content)
    return sealing.put(file.with_name(f"{file.name}{_SEALED}"), sealed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
