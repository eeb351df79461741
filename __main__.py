"""One stack, one cluster: config -> plan -> checks -> machines -> cluster -> outputs."""

import json
import os
import sys

import pulumi

from components import last_applied, outputs
from components.cluster import Cluster, ClusterArgs
from components.machines import adopted, lab
from components.pki import Pki
from stacks import stack_file, text, transition
from stacks.artifacts import ArtifactError
from stacks.plan import plan
from stacks.spec import SpecError, load

try:
    config = json.loads(os.environ.get("PULUMI_CONFIG", "{}"))
    secret = json.loads(os.environ.get("PULUMI_CONFIG_SECRET_KEYS", "[]"))
    wanted = plan(load(stack_file.from_engine(config, secret=secret)))
    previous = last_applied.read()
    transition.check(previous, wanted)
except (SpecError, transition.TransitionError) as error:
    # Nothing has been registered yet, so nothing is touched.
    sys.exit(text.problems(f"Pulumi.{pulumi.get_stack()}.yaml", error.problems))
for path, warning in wanted.warnings:
    pulumi.warn(f"{path}: {warning}")

name = wanted.spec.cluster.name
machines = lab.machines(wanted) if wanted.spec.machines.provider == "lab" else adopted.machines(wanted)
remembered = last_applied.nodes(previous)
try:
    args = ClusterArgs(plan=wanted, machines=machines, pki=Pki(f"{name}-pki", wanted), remembered=remembered)
    outputs.export(Cluster(name, args), args)
except ArtifactError as error:
    sys.exit(str(error))
