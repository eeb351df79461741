"""Write down which flags and feature gates a version of Kubernetes knows, as its own programs say.

    python -m artifacts.known_flags VERSION FOLDER

FOLDER holds kube-apiserver, kube-controller-manager, kube-scheduler and kubelet of that version,
for this computer; artifacts/build/kubernetes/ makes them. The result is flags/<minor version>.json,
which the checks of a config read. Two programs are started at 127.0.0.1 for some seconds.

Flags and their types come from --help, without those that are deprecated and hidden. Feature gates
come from the controller manager's metrics, which name those that --help leaves out; which of them
are locked is asked of the scheduler, one by one.
"""

from __future__ import annotations

import json
import re
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from artifacts.lock import HERE

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
FOLDER = HERE / "flags"
_PORT = 39257  # of the controller manager while it is asked
_WAIT_S = 60

_FLAG = re.compile(
    r" {2,6}(?:-\w, |    )?--(?P<name>[a-z0-9-]+)(?: (?P<type>[A-Za-z0-9]+))? {2,}(?P<help>.*)"
)
_CHOICES = re.compile(r"(?:Possible|Preferred|Insecure) values: ([A-Za-z0-9_, ]+)")
_GATE = re.compile(
    r'kubernetes_feature_enabled\{name="(?P<name>\w+)",stage="(?P<stage>\w*)"\} (?P<on>[01])'
)


def main(arguments: list[str]) -> int:
    """Make the file of one version."""
    version, folder = arguments[0], Path(arguments[1])
    found: dict[str, object] = {"version": version}
    for program in PROGRAMS:
        text = _said(folder / program, "--help")
        found[program] = flags(text)
        found["choices"] = choices(text) | dict(found.get("choices") or {})  # type: ignore[call-overload]
    found["gates"] = _gates(folder)
    target = FOLDER / f"{'.'.join(version.split('.')[:2])}.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(written(found))
    print(target)
    return 0


def written(found: Mapping[str, object]) -> str:
    """JSON with a line for each name, so that a new version shows as lines of a diff."""
    return json.dumps(found, indent=1, sort_keys=True) + "\n"


def flags(text: str) -> dict[str, str]:
    """Type by name, of a --help; those without a type are true or false."""
    lines = (_FLAG.match(line) for line in text.splitlines())
    return {line["name"]: line["type"] or "bool" for line in lines if line}


def choices(text: str) -> dict[str, list[str]]:
    """The values that a flag takes, where its help lists them all."""
    out: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        flag = _FLAG.match(line)
        name = flag["name"] if flag else name
        for listed in _CHOICES.findall(line):
            out.setdefault(name, []).extend(word.strip() for word in listed.split(","))
    return out


def _gates(folder: Path) -> dict[str, str]:
    """By name: stage, `on` or `off` by default, `locked` where it cannot be switched.

    Only those that all of the control plane knows, for a config switches them for all of it;
    `not-kubelet` where the kubelet knows it not.
    """
    met = {name: (stage, on) for name, stage, on in _of_metrics(folder / "kube-controller-manager")}
    for program in ("kube-apiserver", "kube-scheduler"):
        while strange := _unknown(folder / program, met):
            del met[strange]
    kubelet = _said(folder / "kubelet", "--help")
    out = {}
    for name, (stage, on) in sorted(met.items()):
        other = "false" if on == "1" else "true"
        said = _said(folder / "kube-scheduler", f"--feature-gates={name}={other}")
        words = [stage.lower() or "ga", "on" if on == "1" else "off"]
        words += ["locked"] if f"cannot set feature gate {name} to {other}" in said else []
        # Its help lists what is not general yet.
        words += ["not-kubelet"] if stage in ("ALPHA", "BETA") and f"{name}=" not in kubelet else []
        out[name] = " ".join(words)
    return out


def _unknown(program: Path, gates: Mapping[str, tuple[str, str]]) -> str | None:
    """The first of some gates, each as it is by default, that a program does not know."""
    usual = ",".join(
        f"{name}={'true' if on == '1' else 'false'}" for name, (_, on) in gates.items()
    )
    found = re.search(
        r"unrecognized feature gate: (\w+)", _said(program, f"--feature-gates={usual}")
    )
    return found[1] if found else None


def _of_metrics(program: Path) -> Iterator[tuple[str, str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(str(program), "--master=http://127.0.0.1:9", "--leader-elect=false"),
            *("--bind-address=127.0.0.1", f"--secure-port={_PORT}", f"--cert-dir={folder}"),
            "--authorization-always-allow-paths=/metrics",
        ]
        started = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            for found in _GATE.finditer(_metrics()):
                yield found["name"], found["stage"], found["on"]
        finally:
            started.kill()
            started.wait()


def _metrics() -> str:
    trusting = ssl.create_default_context()  # its certificate is its own, made just now
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    url, until, last = f"https://127.0.0.1:{_PORT}/metrics", time.monotonic() + _WAIT_S, ""
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(url, context=trusting, timeout=5) as answer:
                text = answer.read().decode()
        except (OSError, urllib.error.URLError) as error:
            last = str(error)
        else:
            if "kubernetes_feature_enabled{" in text:
                return str(text)
        time.sleep(0.5)
    raise SystemExit(f"no feature gates at {url} within {_WAIT_S} s; last: {last}")


def _said(program: Path, argument: str) -> str:
    # A scheduler that takes its flags ends for want of a cluster.
    done = subprocess.run(
        [program, argument], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=_WAIT_S, check=False, env={"HOME": "/nonexistent", "KUBERNETES_SERVICE_HOST": ""},
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
