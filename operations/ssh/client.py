"""Runs one phase on one machine with this computer's SSH client, outside of any `pulumi up`."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from components.ssh import hop, script
from components.ssh.hop import Hop
from stacks.cluster.plan import Bastion, Ssh
from stacks.phases import scripts

_HANDSHAKE_S = 60  # beyond a phase's own limit: bastion and machine, keys, an agent that asks
_MOST = 8 * 2**20  # characters of an answer; a probe of a thousand nodes has about 200,000
_CONTROL = re.compile(r"[^\n\t -~]")
_COMMAND = re.compile(r"^([ \t]*)::|##\[", re.MULTILINE)
_MACHINE = "machine"
UNREACHABLE = 255  # ssh's own exit code; the phases end with others


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A machine, and the jump host before it, where there is one."""

    hop: Hop
    bastion: Hop | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a phase printed, and whether the machine could be reached at all."""

    status: int
    text: str
    asked_at_s: float  # this computer's clock when it was asked
    took_s: float = 0.0

    @property
    def reached(self) -> bool:
        return self.status != UNREACHABLE

    @property
    def last_line(self) -> str:
        return self.text.splitlines()[-1] if self.text else "no answer"


def of_config(ssh: Ssh) -> Target:
    """The target of an adopted machine. Raises OSError when a key file cannot be read."""
    hop = Hop(
        address=ssh.address,
        port=ssh.port,
        user=ssh.user,
        host_key=ssh.host_key,
        key=_key(ssh.private_key_file),
    )
    return Target(hop=hop, bastion=_bastion(ssh.bastion) if ssh.bastion else None)


def _bastion(bastion: Bastion) -> Hop:
    return Hop(
        address=bastion.address,
        port=bastion.port,
        user=bastion.user,
        host_key=bastion.host_key,
        key=_key(bastion.private_key_file),
    )


def _key(path: str | None) -> str | None:
    return Path(path).expanduser().read_text() if path else None


def run(
    target: Target,
    phase: str,
    values: Mapping[str, str],
    *,
    limit_s: int,
    texts: Mapping[str, str] | None = None,
) -> Answer:
    """Run a phase with these values; the scripts travel along, so none need to be there.

    `texts`: values that may be as long as they like.
    """
    long = "".join(f"{name}={shlex.quote(text)}\n" for name, text in (texts or {}).items())
    text = "".join([script.render(values), long, scripts.whole(phase), "\nmain </dev/null\n"])
    return send(target, text, limit_s=limit_s)


def send(target: Target, text: str, *, limit_s: int) -> Answer:
    """Run a bash script of this computer as root there."""
    shell = "bash -s" if target.hop.user == "root" else "sudo -n bash -s"
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        asked_at_s = time.time()
        command = [*client(target, Path(folder)), f"timeout {limit_s} {shell}"]
        status, said = ended(command, text, limit_s=limit_s + _HANDSHAKE_S)
    return Answer(
        status=status, text=said.strip(), asked_at_s=asked_at_s, took_s=time.time() - asked_at_s
    )


def ended(command: list[str], text: str, *, limit_s: int) -> tuple[int, str]:
    """Exit code and output of the SSH client; a machine may hang at any point of the handshake."""
    try:
        done = subprocess.run(
            command,
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return UNREACHABLE, f"no answer within {limit_s} s"
    return done.returncode, plain(done.stdout)


def plain(text: str) -> str:
    """What a machine printed, as a terminal and the log of a CI may show it.

    Printable ASCII alone, for whoever has the machine could clear the screen with the rest; and no
    line is what GitHub takes for a command (`::add-mask::x`, `##[group]x`).
    """
    kept = _CONTROL.sub(" ", text[:_MOST])
    return _COMMAND.sub(lambda found: f"{found[1]}: :" if found[1] is not None else "# [", kept)


def client(target: Target, folder: Path, *, terminal: bool = False) -> list[str]:
    """The SSH client's command, by way of the bastion. Keys are in `folder` for its one use.

    `terminal`: the session has one, as a login shell needs.
    """
    words = hop.client(target.hop, folder / _MACHINE)
    if target.bastion:
        through = hop.client(target.bastion, folder / "bastion")
        # The client splits this by a shell: none of the words holds a blank (user, address and
        # path are checked with the config).
        proxy = " ".join([*through, "-W", "%h:%p", target.bastion.address])
        words += ["-o", f"ProxyCommand={proxy}"]
    return [*words, *(["-t"] if terminal else []), "--", target.hop.address]


def known_hosts(folder: Path) -> Path:
    """Where the command of `client` keeps the machine's host key."""
    return folder / _MACHINE / hop.KNOWN
