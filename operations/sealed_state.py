"""`python -m operations.sealed_state STACK`: the whole state of a stack, sealed, to keep elsewhere.

.local/backups/STACK/STACK-TIME.state.sealed    all that the engine knows, secrets readable below
                                                the seal: made with the key in KUBE_HA_STATE_KEY
`--open FILE` makes FILE without `.sealed` of it, mode 0600, for `pulumi stack import`. Where there
is an (empty) stack of that name, its passphrase takes it, whatever that was before.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

from cryptography.fernet import InvalidToken

from operations.engine import sealing
from operations.engine.engine import Engine, StackError

FOLDER = Path(".local/backups")
KEY = "KUBE_HA_STATE_KEY"
_SEALED = ".sealed"
_OURS = "secrets_providers"  # of a deployment: what encrypts its secrets


def main(arguments: list[str]) -> int:
    """Write the file and name it; exit code 1 when there is no stack or no key."""
    parser = argparse.ArgumentParser(
        prog="python -m operations.sealed_state",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack", help="name of the stack, as prod for Pulumi.prod.yaml")
    parser.add_argument("--to", type=Path, help=f"folder; default: {FOLDER}/STACK")
    parser.add_argument("--open", type=Path, metavar="FILE", help="a sealed state")
    given = parser.parse_args(arguments)
    engine = Engine(given.stack)
    try:
        if given.open:
            print(opened(engine, given.open))
        else:
            print(sealed(engine, given.to or FOLDER / given.stack))
    except StackError as error:
        sys.stderr.write(f"ERROR {error}\n")
        return 1
    return 0


def sealed(engine: Engine, folder: Path) -> Path:
    """The state as it is now, in `folder`. Raises StackError."""
    seal = sealing.key(KEY)  # before secrets are asked for
    state = engine.state(clear=True)
    if not has_resources(state):
        raise StackError(
            f"stack {engine.stack} has no resources: there is nothing to keep\n"
            f"  do: make up STACK={engine.stack}"
        )
    name = f"{engine.stack}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.state{_SEALED}"
    return sealing.put(folder / name, seal.encrypt(json.dumps(state).encode()))


def has_resources(state: dict[str, dict[str, object]]) -> bool:
    """An empty stack has a deployment all the same, and one that is not there has no state."""
    return bool(state) and bool(state["deployment"].get("resources"))


def opened(engine: Engine, file: Path) -> Path:
    """What `file` holds, beside it, ready for `pulumi stack import`. Raises StackError."""
    try:
        text = sealing.key(KEY).decrypt(file.read_bytes())
    except OSError as error:
        raise StackError(f"{file} cannot be read: {error.strerror}") from None
    except InvalidToken:
        raise StackError(
            f"{file} does not open: it was sealed with another {KEY}, or is damaged\n"
            "  do: take the key that was set when it was made, or another file"
        ) from None
    state = json.loads(text)
    now = engine.state(clear=False)
    if has_resources(now):
        raise StackError(
            f"stack {engine.stack} has a state of its own, which an import would replace\n"
            "  do: name a backend that has lost it (PULUMI_BACKEND_URL), or move that stack away: "
            f"pulumi stack rename {engine.stack}-old --stack {engine.stack}"
        )
    if now and _OURS in now["deployment"]:
        state["deployment"][_OURS] = now["deployment"][_OURS]
    plain = file.with_name(file.name.removesuffix(_SEALED) + ".json")
    return sealing.put(plain, json.dumps(state).encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
