"""The whole of a cluster: config -> plan -> checks -> machines -> cluster -> outputs.

The program of this project makes one by `prepared` and `built`; another Pulumi program, by a
KubernetesCluster for each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

import pulumi
from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions, RunError

from components import last_applied, machines, outputs
from components.cluster import Cluster, ClusterArgs
from components.last_applied import Last
from components.pki.authority import Pki
from components.protection import Protection
from components.ssh import reach
from stacks.checks import addon_secrets as check_addon_secrets
from stacks.cluster import artifacts, outside
from stacks.cluster.addon_secrets import of_spec
from stacks.cluster.artifacts import File
from stacks.cluster.plan import Node, Plan
from stacks.config import stack_file
from stacks.config.problems import SpecError
from stacks.config.spec import Spec
from stacks.config.stack_file import StackFile
from stacks.config.translation import ADDON_SECRETS
from stacks.edits import silence, transition
from stacks.edits.memory import Memory
from stacks.explain import formats, report, terminal
from stacks.explain.report import Report
from stacks.load import load, planned

SECRET = "backupSecretKey"  # noqa: S105 (a key of the config beside its sections)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Secrets of the user's, beside the config; each text, or what will be one."""

    store: Input[str] | None = None  # of the object store that snapshots of etcd go to
    addons: Mapping[str, Input[str]] = field(default_factory=dict)  # values of Secrets, by name

    def config(self) -> dict[str, object]:
        """What stands for them in the config."""
        hidden = {name: {"secure": ""} for name in self.addons}
        return {
            **({} if self.store is None else {SECRET: {"secure": ""}}),
            **({ADDON_SECRETS: hidden} if hidden else {}),
        }

    def known(self, spec: Spec) -> dict[str, str]:
        """Texts of those that somebody gets, by what they are known by; "": not known by now."""
        known = self.known_of_addons
        named = {outside.name_of_value(name): known.get(name, "") for name in of_spec(spec)}
        if spec.etcd.backup.object_store and isinstance(self.store, str):
            named[outside.SECRET_NAME] = self.store
        return named

    @property
    def known_of_addons(self) -> dict[str, str]:
        """Those of add-ons, by name."""
        return {name: text for name, text in self.addons.items() if isinstance(text, str)}


_NONE = Given()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A cluster that may be made, of which nothing is registered yet."""

    plan: Plan
    last: Mapping[str, object] | None  # the memory as it is stored
    before: Memory | None  # the same, read; None: there was no success yet
    said: Report  # the change plan
    files: Mapping[str, Mapping[str, File]]  # what nodes fetch, by architecture and name


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A cluster whose resources are registered."""

    cluster: Cluster
    args: ClusterArgs
    ingress_address: Input[str] | None  # of a cloud's load balancer for what runs in the cluster


def prepared(
    given: StackFile,
    *,
    where: str,
    memory: Callable[[], Last] = last_applied.read,
    secrets: Given = _NONE,
    has_lab: bool = False,
) -> Prepared:
    """What a config makes of what the stack remembers, and of which machines answer.

    `where` names the config in errors; `memory` reads what is remembered; `secrets` are used as
    far as they are known by now; `has_lab`: the program is that of the
    checkout, which has the lab's scripts. Raises RunError with all problems at once, when nothing
    of the cluster has been registered, so nothing is touched.
    """
    try:
        spec = load(given.config, misread=given.problems)
        last = memory()
        before = transition.remembered(last.memory)
        plan = planned(spec, before)
        found = check_addon_secrets.unusable(plan, secrets.known_of_addons)
        if found:
            raise SpecError(found)
        # That one is another one is told.
        sums = outside.with_secrets(plan.outside, secrets.known(spec), spec.cluster.name)
        plan = replace(plan, outside=sums)
        verdict = transition.check(before, plan)
        if plan.local and not has_lab:
            raise RunError(f"{where}: machines of the lab need the program of kube-ha's checkout")
        said = report.report(before, plan, verdict)
        if not said.is_empty:  # an update with nothing to do opens no connection
            silent = _silent(last, silence.asked(before, plan), plan)
            answering = silence.seen(before, plan, silent, said.changes.edit.dialled)
            if answering is not plan:
                plan, verdict = answering, transition.check(before, answering)
                said = report.report(before, plan, verdict)
        files = artifacts.by_arch(plan)
    except (SpecError, transition.TransitionError) as error:
        raise RunError(formats.problems(where, given.located(error.problems))) from None
    except artifacts.ArtifactError as error:
        raise RunError(str(error)) from None
    return Prepared(plan=plan, last=last.memory, before=before, said=said, files=files)


def _silent(last: Last, asked: Sequence[Node], plan: Plan) -> frozenset[str]:
    """Names of those that do not answer just now."""
    silent = reach.silent(silence.doors(asked, last.doors))
    behind = silence.behind_bastion(plan, asked, last.behind)
    if last.jump is None or not behind:
        return silent
    return silent | reach.silent_behind(last.jump, behind)


def tell(cluster: Prepared, given: StackFile) -> None:
    """The change plan, unless who called has shown it, and warnings."""
    now = datetime.now(UTC)
    if "KUBE_HA_PLAN_SHOWN" not in os.environ:
        pulumi.info(terminal.as_text(cluster.said, now=now))
    for path, warning in given.located(report.warnings(cluster.said, now)):
        pulumi.warn(f"{path}: {warning}")


def built(cluster: Prepared, secrets: Given, opts: ResourceOptions | None = None) -> Built:
    """Registers machines and cluster, each with `opts`.

    Raises RunError where the SDK of a cloud is missing.
    """
    plan, name = cluster.plan, cluster.plan.spec.cluster.name
    pki = cache(lambda: Pki(f"{name}-pki", plan, opts))  # nothing of it before the SDKs are found
    made = machines.of(plan, lambda: pki().service_account_public, opts)
    args = ClusterArgs(
        plan=plan,
        files=cluster.files,
        machine=made.machine,
        api_door=made.api_door,
        pki=pki(),
        before=cluster.before,
        api_address=made.api_address,
        store_secret=None if secrets.store is None else Output.secret(secrets.store),
        addon_secrets={name: Output.secret(secrets.addons[name]) for name in of_spec(plan.spec)},
    )
    whole = Cluster(name, args, opts)
    if not plan.local:
        ground = [made] if isinstance(made, Resource) else []
        Protection(name, [whole, args.pki, *ground], opts)
    return Built(cluster=whole, args=args, ingress_address=made.ingress_address)


class KubernetesCluster(ComponentResource):
    """A cluster in a program of somebody else's.

    `config` holds the sections of a stack file, without `kube-ha:`. The stack gets one output,
    `<name>Applied`: what the component remembers of its last success. Every other output is an
    attribute. Raises RunError with all problems at once, before anything is registered.
    """

    kubeconfig: Output[str]  # of an administrator, secret
    endpoint: Input[str]  # URL of the API; an output where only a cloud knows its address
    cluster_id: Output[str]
    backup_key: Output[str]  # opens snapshots of etcd, secret

    def __init__(
        self,
        name: str,
        config: Mapping[str, object],
        *,
        backup_secret_key: Input[str] | None = None,
        addon_secrets: Mapping[str, Input[str]] | None = None,
        opts: ResourceOptions | None = None,
    ) -> None:
        secrets = Given(store=backup_secret_key, addons=addon_secrets or {})
        given = stack_file.of_program({**config, **secrets.config()}, Path())
        memory = partial(last_applied.read, f"{name}Applied")
        wanted = prepared(given, where=name, memory=memory, secrets=secrets)
        super().__init__("kube-ha:index:KubernetesCluster", name, None, opts)
        tell(wanted, given)
        made = built(wanted, secrets, ResourceOptions(parent=self))
        self.kubeconfig = outputs.kubeconfig_of(made.args)
        self.endpoint = outputs.endpoint_of(made.args)
        self.cluster_id = made.args.pki.cluster_id
        self.backup_key = Output.secret(made.args.pki.backup_key())
        pulumi.export(f"{name}Applied", outputs.applied(made.cluster, made.args, wanted.last))
        self.register_outputs(
            {
                "kubeconfig": self.kubeconfig,
                "endpoint": self.endpoint,
                "clusterId": self.cluster_id,
                "backupKey": self.backup_key,
            }
        )
