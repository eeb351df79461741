"""`python -m operations.outputs STACK`: what a cluster gives to other programs, as files.

.local/outputs/STACK/inventory.json    machines, roles, versions, how to reach them; no secret
.local/outputs/STACK/kubeconfig        an administrator's, mode 0600
With KUBE_HA_SEAL_KEY in the environment there is kubeconfig.sealed in the place of the last one:
encrypted with that key, so that it can be handed on; `--unseal` makes kubeconfig of it, for a day.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from cryptography.fernet import InvalidToken

from operations.engine import sealing
from operations.engine.engine import Engine, StackError
from stacks.providers.cloud import LOCAL

FOLDER = Path(".local/outputs")
_LEADS_HERE = f"https://{LOCAL}:"
_KEY = "KUBE_HA_SEAL_KEY"
_SEALED_FOR_S = 24 * 3600


def main(arguments: list[str]) -> int:
    """Write the files and name them; exit code 1 when there is no cluster or no key."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.outputs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("--unseal", action="store_true", help="kubeconfig of kubeconfig.sealed")
    given = parser.parse_args(arguments)
    folder = FOLDER / given.stack
    try:
        written = unseal(folder) if given.unseal else write(given.stack, folder)
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    print("\n".join(str(path) for path in written))
    if any(path.name == "kubeconfig" and _LEADS_HERE in path.read_text() for path in written):
        text = f"make api STACK={given.stack}` in another terminal, and leave it running"
        sys.stderr.write(f"the API has inner addresses; kubectl reaches it by `{text}\n")
    return 0


def write(name: str, folder: Path) -> list[Path]:
    """Inventory, and kubeconfig open or sealed; the paths. Raises StackError."""
    outputs = Engine(name).outputs()
    content = kubeconfig(outputs, name).encode()
    text = json.dumps(inventory(outputs), indent=2, sort_keys=True) + "\n"
    paths = [sealing.put(folder / "inventory.json", text.encode())]
    if not os.environ.get(_KEY):
        return [*paths, sealing.put(folder / "kubeconfig", content)]
    # What an unsealed run left must not be picked up beside it.
    (folder / "kubeconfig").unlink(missing_ok=True)
    return [
        *paths,
        sealing.put(folder / "kubeconfig.sealed", sealing.key(_KEY).encrypt(content)),
    ]


def kubeconfig(outputs: Mapping[str, object], name: str) -> str:
    """The text of an administrator's, secret. Raises StackError."""
    if "kubeconfig" in outputs:
        return str(outputs["kubeconfig"])
    raise StackError(
        f"stack {name} has no kubeconfig: it was never applied to its end\n"
        f"  do: make up STACK={name}"
    )


def inventory(outputs: Mapping[str, object]) -> dict[str, object]:
    """Endpoint, id and machines of a cluster, without keys."""
    nodes, ssh = _mapping(outputs.get("nodes")), _mapping(outputs.get("ssh"))
    return {
        "endpoint": outputs.get("endpoint"),
        "clusterId": outputs.get("clusterId"),
        "nodes": {
            name: {**_mapping(node), "ssh": _reached(_mapping(ssh.get(name)))}
            for name, node in nodes.items()
        },
    }


def unseal(folder: Path) -> list[Path]:
    """kubeconfig of kubeconfig.sealed; the path. Raises StackError."""
    sealed = folder / "kubeconfig.sealed"
    try:
        text = sealing.key(_KEY).decrypt(sealed.read_bytes(), ttl=_SEALED_FOR_S)
    except OSError as error:
        raise StackError(
            f"there is no sealed kubeconfig: {error}\n"
            f"  do: make outputs with {_KEY} set, and bring the file to {sealed}"
        ) from None
    except InvalidToken:
        raise StackError(
            f"{sealed} does not open: it was sealed with another {_KEY}, more than "
            f"{_SEALED_FOR_S // 3600} hours ago, or is damaged\n  do: make outputs again"
        ) from None
    return [sealing.put(folder / "kubeconfig", text)]


def _reached(ssh: Mapping[str, object]) -> dict[str, object]:
    return {key: ssh[key] for key in ("host", "port", "user", "hostKey") if key in ssh}


def _mapping(value: object) -> dict[str, object]:
    return {str(key): entry for key, entry in value.items()} if isinstance(value, dict) else {}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
