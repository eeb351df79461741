"""One stack, one cluster: config -> plan -> checks -> machines -> cluster -> outputs."""

import os
import sys

import pulumi

from components import last_applied, outputs
from components.cluster import Cluster, ClusterArgs
from components.machines import adopted, lab
from components.pki import Pki
from stacks import artifacts, report, stack_file, text, transition
from stacks.plan import plan
from stacks.spec import SpecError, load

try:
    wanted = plan(load(stack_file.of_engine(os.environ)))
    last = last_applied.read()
    before = transition.remembered(last)
    verdict = transition.check(before, wanted)
    files = artifacts.by_arch(wanted)
except (SpecError, transition.TransitionError) as error:
    # Nothing has been registered yet, so nothing is touched.
    sys.exit(text.problems(f"Pulumi.{pulumi.get_stack()}.yaml", error.problems))
except artifacts.ArtifactError as error:
    sys.exit(str(error))
pulumi.info(report.as_text(report.report(before, wanted, verdict)))
for path, warning in (*wanted.warnings, *verdict.warnings):
    pulumi.warn(f"{path}: {warning}")

args = ClusterArgs(
    plan=wanted,
    files=files,
    machine=(lab.Lab if wanted.in_lab else adopted.Adopted)(wanted).machine,
    pki=Pki(f"{wanted.spec.cluster.name}-pki", wanted),
    before=before,
)
outputs.export(Cluster(wanted.spec.cluster.name, args), args, last)
