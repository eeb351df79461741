"""The stand-in for pulumi-language-python: starts Python programs for the engine.

It reads the project's `virtualenv` option, tells which plugins the installed packages need, and
runs the program with the SDK's own runner script. A plugin written in Python is run as a program of
its own. What it leaves out: making packages and programs, plugins without a __main__.py, and policy
packs.
"""

# ruff: noqa: N802 - methods have the names the protocol gives them.
from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import grpc
from google.protobuf import empty_pb2, struct_pb2

from toolchain import plugin_program
from toolchain.protocol import language_pb2, language_pb2_grpc, plugin_pb2

VERSION = "3.250.0"

_ALREADY_REPORTED = 32
"""Exit code of the runner script for an error that it has shown to the user itself."""

_PARENT_POLL_S = 0.5

_CALLS_AT_ONCE = 32
"""Every plugin is one call for as long as it lives."""

Context = grpc.ServicerContext


@dataclass(frozen=True, slots=True)
class Python:
    """The interpreter of a project: that of its virtual environment, if it names one."""

    executable: Path
    virtualenv: Path | None
    file: str = "Pulumi.yaml"
    """Which file has the option."""

    @classmethod
    def of(cls, info: language_pb2.ProgramInfo) -> Python:
        """From the options in Pulumi.yaml; a relative path counts from there."""
        wanted = _option(info.options, "virtualenv")
        if not wanted:
            return cls(Path("python3"), None)
        folder = Path(info.root_directory) / wanted
        return cls(folder / "bin" / "python", folder)

    @classmethod
    def of_plugin(cls, info: language_pb2.ProgramInfo) -> Python:
        """From PulumiPlugin.yaml: plugins have an environment, `venv` where none is named."""
        wanted = _option(info.options, "virtualenv") or "venv"
        folder = Path(info.root_directory) / wanted
        return cls(folder / "bin" / "python", folder, "PulumiPlugin.yaml")

    def problem(self) -> str | None:
        """Why programs cannot be run by it, if so."""
        if self.virtualenv is None or self.executable.is_file():
            return None
        return (
            f'The "virtualenv" option in {self.file} names {self.virtualenv}, and there is none. '
            f"Run make setup, or make it by hand: python3 -m venv {self.virtualenv} && "
            f"{self.executable} -m pip install -r requirements.txt"
        )

    def environment(self) -> dict[str, str]:
        """The environment of the program: as if the virtual environment were activated."""
        found = dict(os.environ)
        if self.virtualenv is not None:
            found["VIRTUAL_ENV"] = str(self.virtualenv)
            found["PATH"] = f"{self.virtualenv / 'bin'}:{found.get('PATH', '')}"
            found.pop("PYTHONHOME", None)
        return found

    def site_packages(self) -> list[Path]:
        """Folders with installed packages."""
        if self.virtualenv is not None:
            return sorted(self.virtualenv.glob("lib/python3*/site-packages"))
        asked = subprocess.run(
            [self.executable, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=False,
        )
        return [Path(asked.stdout.strip())] if asked.returncode == 0 else []


@dataclass(slots=True)
class LanguageHost(language_pb2_grpc.LanguageRuntimeServicer):
    """The servicer; its state is the programs that run."""

    runner: Path
    """The SDK's script that runs a program."""
    engine_address: str
    running: set[subprocess.Popen[bytes]] = field(default_factory=set)

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: Context
    ) -> language_pb2.LanguageHandshakeResponse:
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Context) -> plugin_pb2.PluginInfo:
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetRequiredPackages(
        self, request: language_pb2.GetRequiredPackagesRequest, context: Context
    ) -> language_pb2.GetRequiredPackagesResponse:
        found = [
            plugin_pb2.PackageDependency(
                name=need.name, kind=need.kind, version=need.version, server=need.server
            )
            for need in _needs(Python.of(request.info))
        ]
        return language_pb2.GetRequiredPackagesResponse(packages=found)

    def GetRequiredPlugins(
        self, request: language_pb2.GetRequiredPluginsRequest, context: Context
    ) -> language_pb2.GetRequiredPluginsResponse:
        return language_pb2.GetRequiredPluginsResponse(plugins=_needs(Python.of(request.info)))

    def Run(self, request: language_pb2.RunRequest, context: Context) -> language_pb2.RunResponse:
        python = Python.of(request.info)
        if problem := python.problem():
            return language_pb2.RunResponse(error=problem)
        environment = python.environment()
        environment["PULUMI_CONFIG"] = json.dumps(dict(request.config))
        environment["PULUMI_CONFIG_SECRET_KEYS"] = json.dumps(list(request.configSecretKeys))
        words = [str(python.executable), "-u", str(self.runner), *self._words(request)]
        program = subprocess.Popen(words, cwd=request.pwd or None, env=environment)
        self.running.add(program)
        code = program.wait()
        self.running.discard(program)
        if code == _ALREADY_REPORTED:
            return language_pb2.RunResponse(bail=True)
        if code:
            return language_pb2.RunResponse(error=f"Program exited with non-zero exit code: {code}")
        return language_pb2.RunResponse()

    def RunPlugin(
        self, request: language_pb2.RunPluginRequest, context: Context
    ) -> Iterator[language_pb2.RunPluginResponse]:
        python = Python.of_plugin(request.info)
        if problem := plugin_program.problem(request) or python.problem():
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, problem)
        program = subprocess.Popen(
            plugin_program.words(python.executable, request),
            cwd=request.pwd or None,
            env=plugin_program.environment(python.environment(), request.env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.running.add(program)
        # The engine ends a plugin by ending this call.
        context.add_callback(program.terminate)
        yield from plugin_program.handed_on(program)
        self.running.discard(program)

    def _words(self, request: language_pb2.RunRequest) -> list[str]:
        info = request.info
        named = {
            "--monitor": request.monitor_address,
            "--engine": self.engine_address,
            "--project": request.project,
            "--root_directory": info.root_directory,
            "--stack": request.stack,
            "--pwd": request.pwd,
            "--dry_run": "true" if request.dryRun else "",
            "--parallel": str(request.parallel),
            "--organization": request.organization,
        }
        words = [word for name, value in named.items() if value for word in (name, value)]
        program = Path(info.program_directory) / info.entry_point
        return [*words, str(program), *request.args]

    def About(
        self, request: language_pb2.AboutRequest, context: Context
    ) -> language_pb2.AboutResponse:
        python = Python.of(request.info)
        asked = subprocess.run(
            [python.executable, "--version"], capture_output=True, text=True, check=False
        )
        version = asked.stdout.strip().removeprefix("Python ")
        return language_pb2.AboutResponse(executable=str(python.executable), version=version)

    def GetProgramDependencies(
        self, request: language_pb2.GetProgramDependenciesRequest, context: Context
    ) -> language_pb2.GetProgramDependenciesResponse:
        found: list[language_pb2.DependencyInfo] = []
        for folder in Python.of(request.info).site_packages():
            for path in sorted(folder.glob("*.dist-info")):
                name, _, version = path.name.removesuffix(".dist-info").partition("-")
                found.append(language_pb2.DependencyInfo(name=name, version=version))
        return language_pb2.GetProgramDependenciesResponse(dependencies=found)

    def InstallDependencies(
        self, request: language_pb2.InstallDependenciesRequest, context: Context
    ) -> Iterator[language_pb2.InstallDependenciesResponse]:
        python = Python.of_plugin(request.info) if request.is_plugin else Python.of(request.info)
        if python.virtualenv is not None and not python.executable.is_file():
            subprocess.run([sys.executable, "-m", "venv", str(python.virtualenv)], check=True)
        words = [str(python.executable), "-m", "pip", "install", "-r", "requirements.txt"]
        done = subprocess.run(words, cwd=request.directory, capture_output=True, check=False)
        yield language_pb2.InstallDependenciesResponse(stdout=done.stdout, stderr=done.stderr)
        if done.returncode:
            text = f"installing dependencies failed: {' '.join(words)} in {request.directory}"
            context.abort(grpc.StatusCode.UNKNOWN, text)

    def RuntimeOptionsPrompts(
        self, request: language_pb2.RuntimeOptionsRequest, context: Context
    ) -> language_pb2.RuntimeOptionsResponse:
        return language_pb2.RuntimeOptionsResponse()

    def Template(
        self, request: language_pb2.TemplateRequest, context: Context
    ) -> language_pb2.TemplateResponse:
        return language_pb2.TemplateResponse()

    def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:
        self.stop()
        return empty_pb2.Empty()

    def stop(self) -> None:
        """End the programs that run."""
        for program in tuple(self.running):
            program.terminate()


def main(arguments: list[str]) -> None:
    """Serve until the engine says stop, or is gone. Wants --runner SCRIPT, and the address last."""
    parser = argparse.ArgumentParser(prog="pulumi-language-python")
    parser.add_argument("--runner", type=Path, required=True)
    # The engine may pass options meant for the official host; what they say arrives in each request
    # too.
    known, rest = parser.parse_known_args(arguments)
    if not rest:
        message = (
            "pulumi-language-python: started by the Pulumi engine, with its address; not by hand"
        )
        raise SystemExit(message)
    host = LanguageHost(known.runner, rest[-1])
    server = grpc.server(ThreadPoolExecutor(max_workers=_CALLS_AT_ONCE))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(host, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    print(port, flush=True)  # the engine reads the port from the first line
    parent = os.getppid()
    while os.getppid() == parent and not stop.wait(_PARENT_POLL_S):
        continue
    host.stop()
    sys.stdout.flush()
    os._exit(0)


def _needs(python: Python) -> list[plugin_pb2.PluginDependency]:
    """Plugins of the installed packages, as the packages themselves say."""
    found: dict[str, plugin_pb2.PluginDependency] = {}
    for folder in python.site_packages():
        for path in sorted(folder.glob("*/pulumi-plugin.json")):
            told = json.loads(path.read_text(encoding="utf-8"))
            if told.get("resource"):
                found[told["name"]] = plugin_pb2.PluginDependency(
                    name=told["name"],
                    kind="resource",
                    version="v" + told["version"].removeprefix("v"),
                    server=told.get("server", ""),
                )
    return list(found.values())


def _option(options: struct_pb2.Struct, name: str) -> str:
    value = options.fields.get(name)
    return value.string_value if value is not None else ""
