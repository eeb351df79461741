"""Tools in a container, by the API: it runs for as long as somebody here holds it."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from operations.debug import objects
from operations.debug.wanted import Wanted
from operations.engine.engine import StackError
from operations.engine.kubectl import Kubectl, last_line
from stacks.cluster.plan import Node

_LOOK_S = 0.5
_TAKEN_S = 20  # until the kubelet of a living node has seen a pod
_START_S = 300  # of a pull, too
# A first refusal may be the network's hiccup; kubelets try again within 10 s.
_PATIENCE_S = 25
_LEAVE_S = 15
_UNREACHED = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RegistryUnavailable")
_REFUSED = ("forbidden", "denied", "violates", "admission webhook", "exceeded quota")
_MIRROR = "kubernetes.io/config.mirror"
_DEFAULT = "kubectl.kubernetes.io/default-container"


class NoKubeletError(StackError):
    """No pod can begin on the node, though nobody forbids it; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A container of the tools."""

    namespace: str
    pod: str
    container: str

    @property
    def words(self) -> tuple[str, ...]:
        return ("--namespace", self.namespace, self.pod, "--container", self.container)


def on_node(kubectl: Kubectl, node: Node, wanted: Wanted, image: str) -> int:
    """The exit code of what ran. Raises StackError, NoKubeletError."""
    see_ready(kubectl, node.name)
    _sweep(kubectl)
    name = f"debug-{node.name}-{secrets.token_hex(3)}"
    pod = objects.pod(name, node, image, limit_s=wanted.limit_s)
    done = kubectl.run("create", "--filename", "-", stdin=json.dumps(pod))
    if done.returncode:
        raise _not_taken(f"a pod on {node.name}", done.stderr, _POD_WAY_OUT)
    place = Place(namespace=objects.NAMESPACE, pod=name, container=objects.CONTAINER)
    try:
        _wait(kubectl, place, image)
        with _held(kubectl, place, wanted.limit_s):
            return _exec(kubectl, place, wanted, image)
    except NoKubeletError:
        # No kubelet will say that it ended; one that comes back finds no such pod.
        kubectl.run(*_DELETE, name, "--force", "--grace-period=0")
        raise
    finally:
        _remove(kubectl, name, wanted)


def in_pod(kubectl: Kubectl, wanted: Wanted, image: str) -> int:
    """The exit code of what ran in the pod's namespaces. Raises StackError."""
    target = _target(kubectl, wanted)
    name = f"debug-{secrets.token_hex(3)}"
    place = Place(namespace=wanted.namespace, pod=wanted.pod, container=name)
    with tempfile.TemporaryDirectory(prefix="kube-ha-") as folder:
        custom = Path(folder) / "container.json"
        custom.write_text(json.dumps(objects.IN_A_POD))
        done = kubectl.run(
            "debug", "--namespace", wanted.namespace, wanted.pod, "--image", image,
            "--container", name, "--target", target, "--profile", wanted.profile or "general",
            *([] if wanted.profile else ["--custom", str(custom)]),
            "--quiet", "--stdin", "--attach=false", "--", *objects.life(),
        )  # fmt: skip
    if done.returncode:
        raise _not_taken(f"a container in {wanted.namespace}/{wanted.pod}", done.stderr, _IN_POD)
    _wait(kubectl, place, image)
    with _held(kubectl, place, wanted.limit_s):
        return _exec(kubectl, place, wanted, image)


_POD_WAY_OUT = (
    f"let the policy that answered except pods of {objects.NAMESPACE} with the label "
    f"{objects.LABEL}; or VIA=ssh, which asks no API server"
)
_IN_POD = (
    "PROFILE=restricted or PROFILE=baseline ask for fewer rights, and fewer tools work; or NODE= "
    "of its node, where all its processes are seen"
)


def _not_taken(what: str, stderr: str, way_out: str) -> StackError:
    answer = last_line(stderr)
    if any(word in answer for word in _REFUSED):
        return StackError(f"the cluster refuses {what}: {answer}\n  do: {way_out}")
    return StackError(f"{what} was not made: {answer}\n  do: make status")


def see_ready(kubectl: Kubectl, name: str) -> None:
    """Raises NoKubeletError where the API does not answer, or says that the node is not Ready."""
    try:
        done = kubectl.run(
            "get", "node", name, "--output", "json", "--request-timeout=10s", limit_s=30
        )
    except StackError:
        raise NoKubeletError("the API does not answer") from None
    if done.returncode:
        raise NoKubeletError(f"the API does not tell of the node: {last_line(done.stderr)}")
    conditions = json.loads(done.stdout).get("status", {}).get("conditions", [])
    ready = [one for one in conditions if one.get("type") == "Ready"]
    if not any(one.get("status") == "True" for one in ready):
        why = ready[0].get("message", "") if ready else "no word of it"
        raise NoKubeletError(f"the node is not Ready: {why}")


def _target(kubectl: Kubectl, wanted: Wanted) -> str:
    """The container whose processes are seen. Raises StackError where nothing can be added."""
    where = f"{wanted.namespace}/{wanted.pod}"
    words = ("get", "pod", "--namespace", wanted.namespace, wanted.pod, "--output", "json")
    found = json.loads(kubectl.text(*words))
    spec, meta = found["spec"], found["metadata"]
    node = spec.get("nodeName", "")
    notes = meta.get("annotations", {})
    if _MIRROR in notes:
        raise StackError(
            f"{where} is a static pod of {node}: nothing can be added to those\n"
            f"  do: NODE={node}, where all its processes are seen"
        )
    if found.get("status", {}).get("phase") != "Running":
        raise StackError(
            f"{where} does not run: {found.get('status', {}).get('phase')}\n"
            f"  do: make logs POD={where}" + (f", or NODE={node}" if node else "")
        )
    names = [one["name"] for one in spec["containers"]]
    chosen = wanted.container or notes.get(_DEFAULT) or names[0]
    if chosen not in names:
        raise StackError(f"{where} has no container {chosen}\n  do: CONTAINER={'|'.join(names)}")
    return str(chosen)


def _wait(kubectl: Kubectl, place: Place, image: str) -> None:
    """Until it runs. Raises NoKubeletError, StackError."""
    start, said = time.monotonic(), False
    words = ("get", "pod", "--namespace", place.namespace, place.pod, "--output", "json")
    while True:
        status = json.loads(kubectl.text(*words)).get("status", {})
        state, spent = _state(status, place.container), time.monotonic() - start
        if "running" in state:
            return
        _see_refusal(status, state, image, final=spent > _PATIENCE_S)
        if not status.get("startTime") and spent > _TAKEN_S:
            raise NoKubeletError(f"its kubelet has not taken the pod in {_TAKEN_S} s")
        if spent > _START_S:
            waiting = state.get("waiting") or status.get("conditions") or "nothing"
            raise StackError(
                f"{place.namespace}/{place.pod}: {place.container} does not run after {_START_S} s;"
                f" last seen: {json.dumps(waiting)[:300]}\n  do: make logs POD={place.namespace}/"
                f"{place.pod}; kubectl describe pod"
            )
        if spent > _PATIENCE_S and not said:
            said = True
            sys.stderr.write(f"waiting for {image}\n")
        time.sleep(_LOOK_S)


def _state(status: Mapping[str, object], container: str) -> Mapping[str, object]:
    """Of one container; empty where the kubelet has not said any."""
    for key in ("containerStatuses", "ephemeralContainerStatuses"):
        listed = status.get(key)
        for one in listed if isinstance(listed, list) else ():
            if one.get("name") == container:
                return dict(one.get("state", {}))
    return {}


def _see_refusal(
    status: Mapping[str, object], state: Mapping[str, object], image: str, *, final: bool
) -> None:
    waiting, ended = state.get("waiting"), state.get("terminated")
    if isinstance(waiting, Mapping):
        reason, text = str(waiting.get("reason", "")), str(waiting.get("message", ""))
        if reason in _UNREACHED and final:
            raise StackError(
                f"the node cannot pull {image}: {' '.join(text.split())[-200:] or reason}\n"
                "  do: let nodes reach that registry; where there is a mirror, addons: {toolbox: "
                "{}} and `make bundle ALSO=addon=toolbox`; or IMAGE=another"
            )
        if reason in ("CreateContainerConfigError", "CreateContainerError", "RunContainerError"):
            raise StackError(
                f"the kubelet does not start it: {text or reason}\n  do: IMAGE, PROFILE"
            )
    if isinstance(ended, Mapping):
        raise StackError(
            f"{image} ended at once with exit code {ended.get('exitCode')}: it lacks a shell whose "
            "`read` knows -t\n  do: IMAGE=another, with bash or busybox"
        )
    if status.get("phase") == "Failed":
        text = f"{status.get('reason', 'no reason')}: {status.get('message', '')}"
        raise NoKubeletError(f"its kubelet does not take the pod: {text}")


@contextmanager
def _held(kubectl: Kubectl, place: Place, limit_s: int) -> Iterator[None]:
    """Write to its first process now and then, until the end of the context or the limit."""
    done = threading.Event()
    holder = threading.Thread(target=_beat, args=(kubectl, place, limit_s, done), daemon=True)
    holder.start()
    try:
        yield
    finally:
        done.set()
        holder.join(_LEAVE_S)


def _beat(kubectl: Kubectl, place: Place, limit_s: int, done: threading.Event) -> None:
    end = time.monotonic() + limit_s
    while not done.is_set() and time.monotonic() < end:
        process = subprocess.Popen(
            kubectl.command("attach", "--stdin", "--quiet", *place.words),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is for what runs beside it
        )
        # It ends where its API server does; another one takes the next.
        try:
            _write(process, objects.BEAT)  # first, however short what runs beside it is
            while not done.wait(objects.BEAT_S) and process.poll() is None:
                if time.monotonic() >= end:
                    break
                _write(process, objects.BEAT)
            _write(process, objects.END if process.poll() is None else "")
        except OSError:
            done.wait(1)
        _end(process)


def _write(process: subprocess.Popen[str], text: str) -> None:
    if process.stdin is not None and text:
        process.stdin.write(text)
        process.stdin.flush()


def _end(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(_LEAVE_S / 2)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        try:
            process.stdin.close()
        except OSError:  # what was still in its buffer has no reader
            return


def _exec(kubectl: Kubectl, place: Place, wanted: Wanted, image: str) -> int:
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if terminal and not wanted.command:
        host = f"; the machine's disk is at {objects.HOST}" if wanted.node else ""
        sys.stderr.write(
            f"{place.namespace}/{place.pod}, tools of {image}{host}; ends with this shell, after "
            f"{wanted.limit_s / 3600:g} h at the latest\n"
        )
    words = ["exec", "--stdin", "--quiet", *(["--tty"] if terminal else []), *place.words, "--"]
    return ended(kubectl.command(*words, *objects.shell(wanted.command)), wanted.limit_s)


def ended(command: Sequence[str], limit_s: int) -> int:
    """Run it with this terminal; its exit code, 124 at the limit."""
    # Ctrl-C is for what runs there. The client gets it from the terminal and ends; this process
    # stays until it has, or nothing would be cleaned up.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with subprocess.Popen(command) as process:
            try:
                return process.wait(limit_s)
            except subprocess.TimeoutExpired:
                sys.stderr.write(f"the time is over: {limit_s / 3600:g} h (HOURS)\n")
                return 124
            finally:
                process.kill()
    finally:
        signal.signal(signal.SIGINT, before)


_DELETE = ("delete", "pods", "--namespace", objects.NAMESPACE, "--ignore-not-found", "--wait=false")


def _sweep(kubectl: Kubectl) -> None:
    """Those that ended because nobody held them any more are there by name alone."""
    over = "status.phase!=Running,status.phase!=Pending"
    kubectl.run(*_DELETE, "--selector", objects.LABEL, "--field-selector", over)


def _remove(kubectl: Kubectl, name: str, wanted: Wanted) -> None:
    try:
        done = kubectl.run(*_DELETE, name)
        trouble = last_line(done.stderr) if done.returncode else ""
    except StackError as error:
        trouble = str(error).splitlines()[0]
    if trouble:
        sys.stderr.write(
            f"WARNING pod {objects.NAMESPACE}/{name} was not deleted: {trouble}; it ends by itself "
            f"within {objects.GONE_S} s, and after {wanted.limit_s / 3600:g} h at the latest\n"
        )
