"""The ingress tier: certificates, then a HAProxy of its own, on one machine after another."""

from __future__ import annotations

from collections.abc import Mapping

from pulumi import Input, Output, Resource
from pulumi_command import remote

from components.pki import key_files
from components.pki.authority import Pki
from components.ssh.commands import Identity, Machine, after, attempted
from stacks.cluster import digests
from stacks.cluster.certificates import INGRESS
from stacks.cluster.plan import Plan
from stacks.phases import front_doors
from stacks.render import ingress_certificates


def end_tls(
    cluster: str,
    plan: Plan,
    machines: Mapping[str, Machine],
    pki: Pki,
    *,
    identity: Identity,
    parent: Resource,
    out: Resource,
    ready: Mapping[str, Resource],
) -> list[remote.Command]:
    """Resources `<cluster>-<node>-ingress` and before it `-ingress-<file>` for each certificate.

    `out`: who leaves is no node any more, and nothing is led there from now on. `ready`: load
    balancers, by name.
    """
    made: list[remote.Command] = []
    for node in plan.ingress:
        name, machine = f"{cluster}-{node.name}-ingress", machines[node.name]
        made_ready = ready.get(node.name)
        files = key_files.of_ingress(pki, plan)
        placed = [
            key_files.place(
                f"{name}-{file.name}",
                machine,
                [file],
                generation=plan.spec.converge.generation,
                identity=identity,
                opts=after(out, made_ready, *made[-1:], parent=parent),
            )
            for file in files
        ]
        values: dict[str, Input[str]] = {
            **front_doors.of_ingress(plan),
            "PEMS": " ".join(f"{file.name}.pem" for file in files),
            "CERTIFICATES": _shown(pki, plan),
        }
        made.append(
            attempted(
                name,
                machine,
                "ingress",
                values,
                identity=identity,
                parts=[values[key] for key in sorted(values)],
                opts=after(out, *made[-1:], *placed, parent=parent),
            )
        )
    return made


def _shown(pki: Pki, plan: Plan) -> Output[str]:
    """Hash of the certificates, which are public."""
    wanted = plan.spec.front_doors.ingress
    own = [pki.leafs[INGRESS].cert] if wanted and wanted.hosts else []
    given = [ingress_certificates.chain(one) for one in wanted.certificates] if wanted else []
    return Output.all(*own, *given).apply(lambda texts: digests.digest(*map(str, texts)))
