"""`KubernetesCluster` for programs in other languages: a provider that the engine starts.

The SDK makes the provider's schema of what stands here: of annotations, and of the texts below
them. It reads annotations as they are, so none may be a text, and this module has no
`from __future__ import annotations`. `Any` is the SDK's only word for a value of any form.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from pulumi import ComponentResource, Input, Output, ResourceOptions, RunError
from pulumi.errors import InputPropertiesError
from pulumi.output import Inputs
from pulumi.provider import ConstructResult, main
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from components import last_applied, outputs
from components.kubernetes_cluster import Given, built, prepared, tell
from stacks.config import stack_file
from stacks.config.problems import Problem, dotted
from stacks.version import VERSION

NAME = "kube-ha"
_SECRETS = ("backup_secret_key", "addon_secrets")  # beside sections


class KubernetesClusterArgs(TypedDict):
    """The sections of a stack file, without `kube-ha:`."""

    cluster: dict[str, Any]
    """What the cluster is: name, Kubernetes version, networks, DNS domain, endpoint."""
    machines: dict[str, Any]
    """Where machines come from, and how they are reached over SSH."""
    pools: dict[str, Any]
    """Groups of equal machines by name: roles, count or hosts, zones, labels, taints."""
    sizing: NotRequired[dict[str, Any]]
    """Number of nodes that the settings are made for."""
    nodes: NotRequired[dict[str, Any]]
    """Exceptions to the pool by node name."""
    network: NotRequired[dict[str, Any]]
    """Pod network and services."""
    load_balancing: NotRequired[dict[str, Any]]
    """HAProxy on every node."""
    front_doors: NotRequired[dict[str, Any]]
    """How clients outside reach the cluster."""
    etcd: NotRequired[dict[str, Any]]
    """Timings, sizes and backups of etcd."""
    control_plane: NotRequired[dict[str, Any]]
    """API server, controller manager, scheduler."""
    kubelet: NotRequired[dict[str, Any]]
    """Settings of the kubelet on every node."""
    runtime: NotRequired[dict[str, Any]]
    """containerd on every node."""
    pki: NotRequired[dict[str, Any]]
    """Lifetimes of CAs and certificates."""
    mirror: NotRequired[dict[str, Any]]
    """Where nodes fetch files and images."""
    proxy: NotRequired[dict[str, Any]]
    """HTTP proxy of the nodes."""
    addons: NotRequired[dict[str, Any]]
    """What else runs in the cluster, by name."""
    rollout: NotRequired[dict[str, Any]]
    """How changes reach the workers."""
    hooks: NotRequired[dict[str, Any]]
    """A webhook that is asked before nodes are drained or released."""
    os: NotRequired[dict[str, Any]]
    """Packages of the operating system, and reboots."""
    converge: NotRequired[dict[str, Any]]
    """Raise generation to run every node's phases again."""
    allow: NotRequired[list[str]]
    """Refusals to pass over, by the id that each of them tells."""
    backup_secret_key: NotRequired[Input[str]]
    """The secret of an object store's key. It is kept as a secret, whatever it is given as."""
    addon_secrets: NotRequired[dict[str, Input[str]]]
    """Values of Secrets of add-ons by name. Each is kept as a secret, whatever it is given as."""


class KubernetesCluster(ComponentResource):
    """A highly available Kubernetes cluster on machines that you own."""

    kubeconfig: Output[str]
    """An administrator's, with a context for each way to the API. Secret."""
    endpoint: Output[str]
    """URL of the API."""
    cluster_id: Output[str]
    """What machines are marked with."""
    backup_key: Output[str]
    """Opens snapshots of etcd. Secret."""

    def __init__(
        self, name: str, args: KubernetesClusterArgs, opts: ResourceOptions | None = None
    ) -> None:
        # Before anything is decided: what was last applied is found by the URN.
        super().__init__(f"{NAME}:index:KubernetesCluster", name, None, opts)
        given = sections(args)
        memory = partial(last_applied.of_component, self, name)
        secrets = _secrets(args)
        wanted = prepared(given, where=name, memory=memory, secrets=secrets)
        tell(wanted, given)
        made = built(wanted, secrets, ResourceOptions(parent=self))
        self.kubeconfig = outputs.kubeconfig_of(made.args)
        self.endpoint = Output.from_input(outputs.endpoint_of(made.args))
        self.cluster_id = made.args.pki.cluster_id
        self.backup_key = Output.secret(made.args.pki.backup_key())
        self.register_outputs(
            {
                "kubeconfig": self.kubeconfig,
                "endpoint": self.endpoint,
                "clusterId": self.cluster_id,
                "backupKey": self.backup_key,
                last_applied.OUTPUT: outputs.applied(made.cluster, made.args, wanted.last),
            }
        )


class Provider(ComponentProvider):
    """The SDK's, but for refusals: it would show a traceback of this program with each."""

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: Inputs,
        options: ResourceOptions | None = None,
    ) -> ConstructResult:
        """Raises InputPropertiesError with all problems at once."""
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if not isinstance(error.inner, RunError):
                raise
            # Without the paths apart: the engine would show the values there as they are.
            raise InputPropertiesError(str(error.inner), []) from None


def sections(args: Mapping[str, object]) -> stack_file.StackFile:
    """The config that a program hands over, by the keys of a stack file.

    What is known only after an update is a problem: a plan needs every value before.
    """
    names = {key: key for key in args if key not in _SECRETS}
    for key in names:
        first, *rest = key.split("_")
        names[key] = first + "".join(word.capitalize() for word in rest)
    config = {names[key]: _plain(args[key]) for key in names}
    given = stack_file.of_program({**config, **_secrets(args).config()}, Path())
    late = [problem for key in names for problem in _unknown(args[key], (names[key],))]
    return given._replace(problems=[*given.problems, *late])


def _secrets(args: Mapping[str, Any]) -> Given:
    store, addons = (args.get(name) for name in _SECRETS)
    # Names have to be known: of a mapping that is an output itself nobody finds one.
    return Given(store=store, addons=addons if isinstance(addons, dict) else {})


def _plain(value: object) -> object:
    """Whole numbers as such: the protocol has none but floating ones."""
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return None if isinstance(value, Output) else value


def _unknown(value: object, at: tuple[str | int, ...]) -> Iterator[Problem]:
    if isinstance(value, Output):
        text = "is a secret, or an output of a resource; write the value itself here"
        yield Problem(dotted(at), text)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _unknown(one, (*at, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _unknown(one, (*at, index))


def serve(arguments: list[str]) -> None:
    """Be the provider until the engine says stop. `arguments`: its address."""
    main(Provider([KubernetesCluster], NAME, version=VERSION), arguments)
