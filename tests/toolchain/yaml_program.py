"""The program of examples/yaml with sections of a test's own, on the real engine and YAML's own language host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from tests.toolchain.project import Project, Ran
from toolchain import unpack, yaml_host

ROOT = Path(__file__).resolve().parents[2]
URN = "urn:pulumi:test::tiny::kube-ha:index:KubernetesCluster"
_EXAMPLE = ROOT / "examples/yaml/Pulumi.yaml"


@dataclass(frozen=True, slots=True)
class YamlProgram:
    """In a project of another name and folder, with one stack."""

    project: Project

    @classmethod
    def make(cls, folder: Path, *, limit_s: int) -> YamlProgram:
        """As the example has it. Skips the test where the language host was not made."""
        host = yaml_host.found(unpack.cache_folder())
        if host is None:
            pytest.skip("no language host of YAML in the cache: python -m toolchain.yaml_host")
        project = Project.make(folder, "")
        (project.folder / "__main__.py").unlink()
        path = f"{host}:{project.environment['PATH']}"
        environment = {**project.environment, "PATH": path}
        made = cls(replace(project, environment=environment, limit_s=limit_s))
        made.write()
        return made

    def write(self, sections: Mapping[str, object] | None = None, **resources: object) -> None:
        """With these in place of the example's; `resources` are others of the program."""
        program = yaml.safe_load(_EXAMPLE.read_text(encoding="utf-8"))
        program["name"] = "tiny"
        program["packages"] = {"kube-ha": str(ROOT / "provider")}
        program["resources"].update(resources)
        if sections is not None:
            program["resources"]["kubernetes"]["properties"] = sections
        text = yaml.safe_dump(program, sort_keys=False)
        (self.project.folder / "Pulumi.yaml").write_text(text, encoding="utf-8")

    def up(self, *words: str) -> Ran:
        """An update without a preview before it."""
        return self.project.pulumi("up", "--yes", "--skip-preview", "--suppress-progress", *words)

    def refused(self, *words: str) -> str:
        """What is told of an update that is refused."""
        ran = self.project.pulumi(*words)
        assert ran.code != 0, ran.text
        assert "Traceback" not in ran.text
        return ran.text[ran.text.rindex("Diagnostics:") :]

    def remembered(self) -> dict[str, object]:
        """What the component remembers of its last success."""
        exported = self.project.pulumi("stack", "export", "--show-secrets").succeeded().text
        state = json.loads(exported[exported.index("{") :])["deployment"]["resources"]
        (found,) = [one for one in state if one["urn"] == f"{URN}::kubernetes"]
        told = json.loads(json.loads(found["outputs"]["applied"]["plaintext"]))
        assert isinstance(told["config"], dict)
        return told["config"]


def example() -> dict[str, object]:
    """Its sections."""
    program = yaml.safe_load(_EXAMPLE.read_text(encoding="utf-8"))
    return dict(program["resources"]["kubernetes"]["properties"])
