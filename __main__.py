"""One stack, one cluster: config -> plan -> checks -> machines -> cluster -> outputs."""

import os
import sys

import pulumi

from components import last_applied, machines, outputs
from components.cluster import Cluster, ClusterArgs
from components.pki import Pki
from stacks import artifacts, object_store, report, stack_file, text, transition
from stacks.plan import plan
from stacks.spec import SpecError, load

try:
    wanted = plan(load(stack_file.of_engine(os.environ)))
    last = last_applied.read()
    before = transition.remembered(last)
    verdict = transition.check(before, wanted)
    files = artifacts.by_arch(wanted)
    secret = object_store.secret(wanted.spec, os.environ)
except (SpecError, transition.TransitionError) as error:
    # Nothing has been registered yet, so nothing is touched.
    sys.exit(text.problems(f"Pulumi.{pulumi.get_stack()}.yaml", error.problems))
except artifacts.ArtifactError as error:
    sys.exit(str(error))
pulumi.info(report.as_text(report.report(before, wanted, verdict)))
for path, warning in (*wanted.warnings, *verdict.warnings):
    pulumi.warn(f"{path}: {warning}")

made = machines.of(wanted)
args = ClusterArgs(
    plan=wanted,
    files=files,
    machine=made.machine,
    api_door=made.api_door,
    pki=Pki(f"{wanted.spec.cluster.name}-pki", wanted),
    before=before,
    store_secret=None if secret is None else pulumi.Output.secret(secret),
)
if made.api_address is not None:
    pulumi.export("apiAddress", made.api_address)
outputs.export(Cluster(wanted.spec.cluster.name, args), args, last)
