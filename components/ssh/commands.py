"""The one door to machines: nothing else builds a command that runs on one."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pulumi
from pulumi import Input, Output, Resource, ResourceOptions
from pulumi_command import remote

from components.ssh import script
from stacks.cluster.plan import Node
from stacks.config import stack_file
from stacks.phases import scripts

# Relative: the state must not depend on where the checkout lies. A program elsewhere has its own.
_SCRIPTS = "components/scripts"
_REMOTE = ".kube-ha"  # in the SSH user's home


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A computer that can be reached over SSH. From here on nobody knows who made it."""

    node: Node
    connection: remote.ConnectionArgs
    user: str
    exists: Resource | None  # what has to be there first; None: the machine was always there
    deleted_with: Resource | None  # deleting this takes all traces on the machine along
    provider_id: Input[str] | None = None  # in a cloud whose controller manager is waited for
    # How long it is dialled, as "20m"; a command that runs is bounded by itself. Empty: by the
    # number of tries. Through a bastion the official plugin gives each try no limit of its own.
    dial_for: str = ""
    keep: bool = False  # when it leaves for good, what is on its disks stays


def patient(machine: Machine, seconds: int) -> Machine:
    """The machine, dialled for as long as a reboot may take, twice that at most; 0: as it is.

    For commands that follow one which may have rebooted it.
    """
    if not seconds:
        return machine
    connection = copy.copy(machine.connection)
    # Tries are 5 s apart in the end, and one that nobody answers ends after 5 s.
    connection.dial_error_limit = seconds // 5
    connection.per_dial_timeout = 5
    return replace(machine, connection=connection)


def _dialled(machine: Machine) -> ResourceOptions:
    """Options of whatever connects to it: also what is done when it is deleted."""
    limit = machine.dial_for
    timeouts = pulumi.CustomTimeouts(create=limit, update=limit, delete=limit) if limit else None
    return ResourceOptions(deleted_with=machine.deleted_with, custom_timeouts=timeouts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Values that every phase gets: which cluster, which node."""

    cluster: str
    cluster_id: Output[str]
    container: bool

    def values(self, node: Node, phase: str) -> dict[str, Input[str]]:
        incarnation = {"INCARNATION": str(node.generation)} if node.generation > 1 else {}
        return {
            "NODE": node.name,
            "CLUSTER": self.cluster,
            "CLUSTER_ID": self.cluster_id,
            **incarnation,
            "CONTAINER": "1" if self.container else "0",
            "SCRIPT_SUM": scripts.script_sum(phase),
        }


def copy_scripts(
    name: str, machine: Machine, *, wanted: Input[str], opts: ResourceOptions
) -> remote.CopyToRemote:
    """Bring the node scripts onto the machine, again for every change of `wanted`.

    `wanted` is a hash of what the machine should be.
    The id of this resource is new with every copy and stored before any command runs: it is the
    attempt stamp
    of what follows, so that a failed change runs again on a retry, and on a revert too.
    """
    return remote.CopyToRemote(
        name,
        connection=machine.connection,
        source=pulumi.FileArchive(_scripts()),
        remote_path=_REMOTE,
        # The folder is in the user's home: another user has none yet.
        triggers=[wanted, machine.user],
        opts=ResourceOptions.merge(opts, _dialled(machine)),
    )


def _scripts() -> str:
    """The folder of node scripts; another program imports this from where it is installed."""
    return _SCRIPTS if pulumi.get_project() == stack_file.PROJECT else str(scripts.FOLDER)


def copy_file(
    name: str,
    machine: Machine,
    file: pulumi.Asset,
    target: str,
    *,
    wanted: Input[str],
    opts: ResourceOptions,
) -> remote.CopyToRemote:
    """Bring a file beside the node scripts, under the name `target`.

    Anew for every change of `wanted`, and for another machine. Of a file of this computer the state
    holds the hash alone; the id is an attempt stamp, as of copy_scripts.
    """
    return remote.CopyToRemote(
        name,
        connection=machine.connection,
        source=file,
        remote_path=f"{_REMOTE}/{target}",
        triggers=[wanted, machine.user, machine.node.name, machine.node.generation],
        opts=ResourceOptions.merge(opts, _dialled(machine)),
    )


def attempt(name: str, *, wanted: Input[str], opts: ResourceOptions) -> pulumi.Stash:
    """A stamp that is new for every change of `wanted`, for all but a machine's first command."""
    return pulumi.Stash(
        name,
        input=uuid.uuid4().hex[:12],
        opts=ResourceOptions.merge(
            opts, ResourceOptions(ignore_changes=["input"], replacement_trigger=wanted)
        ),
    )


def converge(
    name: str,
    machine: Machine,
    phase: str,
    values: Mapping[str, Input[str]],
    *,
    identity: Identity,
    opts: ResourceOptions,
    stamp: pulumi.Stash | Input[str] = "",
    secret: bool = False,
    leave: bool = False,
) -> remote.Command:
    """Run one phase on one machine, and again whenever its values, its script or `stamp` change.

    `secret` hides the values; without it they show as a diff in preview. `leave` wipes the machine
    when the resource is deleted.
    """
    text = _text({**identity.values(machine.node, phase), **values})
    run = "bash" if machine.user == "root" else "sudo -n bash"
    fixed = ResourceOptions.merge(
        _dialled(machine), ResourceOptions(additional_secret_outputs=["stdout", "stderr"])
    )
    return remote.Command(
        name,
        connection=machine.connection,
        # No update: any change runs the same idempotent phase. Short, for failures repeat it.
        create=_create(f"{run} {_REMOTE}/scripts/run.sh {phase} ", stamp),
        delete=_leave(run, machine) if leave else None,
        stdin=Output.secret(text) if secret else text,
        logging=remote.Logging.NONE,
        add_previous_output_in_env=False,
        opts=ResourceOptions.merge(opts, fixed),
    )


def _leave(run: str, machine: Machine) -> str:
    return f"{run} {_REMOTE}/scripts/run.sh leave" + (" keep" if machine.keep else "")


def forget(name: str, survivor: Machine, *, opts: ResourceOptions) -> remote.Command:
    """The command `name` of a dead machine: kept as it is, and deleting it runs nothing any more.

    Nothing about it may change, for any change would run it on the dead machine. Where the machine
    died before it had the command, this one is made on a machine that lives, and does nothing.
    """
    return remote.Command(
        name,
        connection=survivor.connection,
        create="true",
        stdin="",
        logging=remote.Logging.NONE,
        add_previous_output_in_env=False,
        opts=ResourceOptions.merge(
            opts,
            ResourceOptions(
                retain_on_delete=True,
                ignore_changes=[*FROZEN],
                additional_secret_outputs=["stdout", "stderr"],
            ),
        ),
    )


def _create(line: str, stamp: pulumi.Stash | Input[str]) -> Input[str]:
    word = stamp.output if isinstance(stamp, pulumi.Stash) else stamp
    return (
        line + word
        if isinstance(word, str)
        else Output.from_input(word).apply(lambda said: f"{line}{said}")
    )


def _text(values: Mapping[str, Input[str]]) -> Input[str]:
    # The SDK makes some objects and tasks of each value that it is given: a tenth of the program's
    # time, were it given those that are known.
    told = {name: value for name, value in values.items() if not isinstance(value, str)}
    known = {name: value for name, value in values.items() if isinstance(value, str)}
    if not told:
        return script.render(known)
    return Output.all(**told).apply(
        lambda said: script.render(
            {name: known[name] if name in known else said[name] for name in values}
        )
    )


# What makes a command run again; and all that the program may ever add. Written so that the engine
# alone knows the names. The provider would put the state's output in place of the input, and where
# another version of it has stored them differently, the command would run in every update.
ANY_CHANGE = ("*", '["stdin"]', '["create"]', '["connection"]')
# The same, and what deleting it runs.
FROZEN = (*ANY_CHANGE, '["delete"]')


def after(
    *resources: Resource | None, parent: Resource, ignore: Sequence[str] = ()
) -> ResourceOptions:
    """Options of a resource that waits for others; None entries are left out.

    A command that ignores `ANY_CHANGE` runs when it is new, and then never again.
    """
    return ResourceOptions(
        parent=parent,
        depends_on=[resource for resource in resources if resource is not None],
        ignore_changes=list(ignore) or None,
    )
