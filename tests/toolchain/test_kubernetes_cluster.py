"""A cluster in a program of somebody else's, by the real engine: a project of another name and folder."""

from __future__ import annotations

import json
from pathlib import Path

from tests.toolchain.project import Project
from tests.unit.configs import adopted

ROOT = Path(__file__).parents[2]
OUTER = f"""
import pulumi
from components.kubernetes_cluster import KubernetesCluster

network = pulumi.ComponentResource("shop:index:Network", "network")
cluster = KubernetesCluster(
    "kubernetes", {adopted()!r}, opts=pulumi.ResourceOptions(depends_on=[network])
)
pulumi.export("url", cluster.endpoint)
"""


def test_a_program_of_another_project_previews_a_whole_cluster(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project", OUTER)
    ran = project.pulumi("preview", "--json", PYTHONPATH=str(ROOT)).succeeded()
    steps = json.loads(ran.text[ran.text.index("{") :])["steps"]
    urns = {step["urn"] for step in steps}
    inner = "urn:pulumi:test::tiny::kube-ha:index:KubernetesCluster$kube-ha:index:"
    assert f"{inner}Cluster$kube-ha:index:Acceptance$command:remote:Command::prod-gate" in urns
    assert f"{inner}Pki$tls:index/privateKey:PrivateKey::prod-pki-kubernetes-ca-key" in urns
    (copied,) = [one for one in steps if one["urn"].endswith("::prod-worker-1-scripts")]
    # From where the package is, not from the folder of the project.
    assert str(ROOT / "components/scripts") in json.dumps(copied)
