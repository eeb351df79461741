"""One stack, one cluster: config -> plan -> checks -> machines -> cluster -> outputs."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

import pulumi

from components import last_applied, machines, outputs
from components.cluster import Cluster, ClusterArgs
from components.pki.authority import Pki
from components.protection import Protection
from components.ssh import reach
from stacks.checks import object_store
from stacks.cluster import artifacts
from stacks.config import stack_file
from stacks.config.problems import SpecError
from stacks.edits import silence, transition
from stacks.explain import formats, report, terminal
from stacks.load import load, planned

# Tells the language host that the error was shown. With any other code, that of RunError too, the
# engine adds "an unhandled error occurred: Program exited with non-zero exit code".
SHOWN = 32


def refuse(text: str) -> NoReturn:
    """End the program with this error alone."""
    pulumi.log.error(text)
    sys.exit(SHOWN)


file = Path(f"Pulumi.{pulumi.get_stack()}.yaml")
given = stack_file.of_engine(os.environ, stack_file.folder(file))
try:
    config = load(given.config, misread=given.problems)
    last = last_applied.read()
    before = transition.remembered(last.memory)
    wanted = planned(config, before)
    verdict = transition.check(before, wanted)
    said = report.report(before, wanted, verdict)
    if not said.is_empty:  # an update with nothing to do opens no connection
        doors = silence.doors(silence.asked(before, wanted), last.doors)
        silent = reach.silent(doors)
        answering = silence.seen(before, wanted, silent, said.changes.edit.dialled)
        if answering is not wanted:
            wanted, verdict = answering, transition.check(before, answering)
            said = report.report(before, wanted, verdict)
    files = artifacts.by_arch(wanted)
    secret = object_store.secret(wanted.spec, os.environ)
except (SpecError, transition.TransitionError) as error:
    # Nothing has been registered yet, so nothing is touched.
    refuse(formats.problems(str(file), given.located(error.problems)))
except artifacts.ArtifactError as error:
    refuse(str(error))
now = datetime.now(UTC)
if "KUBE_HA_PLAN_SHOWN" not in os.environ:
    pulumi.info(terminal.as_text(said, now=now))
for path, warning in given.located(report.warnings(said, now)):
    pulumi.warn(f"{path}: {warning}")

try:
    made = machines.of(wanted)
except pulumi.RunError as error:
    refuse(str(error))
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
cluster = Cluster(wanted.spec.cluster.name, args)
if not wanted.local:
    ground = [made] if isinstance(made, pulumi.Resource) else []
    Protection(wanted.spec.cluster.name, [cluster, args.pki, *ground])
outputs.export(cluster, args, last.memory)
