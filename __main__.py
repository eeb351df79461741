"""One stack, one cluster, of the sections in the stack's config."""

import os
import sys
from pathlib import Path
from typing import NoReturn

import pulumi

from components import outputs
from components.kubernetes_cluster import SECRET, Given, built, prepared, tell
from components.traces import without_debug
from stacks.checks import object_store
from stacks.cluster.plan import API_ADDRESS
from stacks.config import stack_file
from stacks.config.problems import SpecError
from stacks.explain import formats

# Tells the language host that the error was shown. With any other code, that of RunError too, the
# engine adds "an unhandled error occurred: Program exited with non-zero exit code".
SHOWN = 32


def refuse(text: str) -> NoReturn:
    """End the program with this error alone."""
    pulumi.log.error(text)
    sys.exit(SHOWN)


without_debug()
file = Path(f"Pulumi.{pulumi.get_stack()}.yaml")
given = stack_file.of_engine(os.environ, stack_file.folder(file))
try:
    secrets = Given(
        store=stack_file.secret_of_engine(os.environ, SECRET),
        addons=stack_file.addon_secrets_of_engine(os.environ),
    )
    wanted = prepared(given, where=str(file), secrets=secrets, has_lab=True)
    object_store.secret(wanted.plan.spec, os.environ)  # that it is one
    tell(wanted, given)
    made = built(wanted, secrets)
except SpecError as error:
    refuse(formats.problems(str(file), given.located(error.problems)))
except pulumi.RunError as error:
    refuse(str(error))
if made.args.api_address is not None:
    pulumi.export(API_ADDRESS, made.args.api_address)
if made.ingress_address is not None:
    pulumi.export("ingressAddress", made.ingress_address)
outputs.export(made.cluster, made.args, wanted.last)
