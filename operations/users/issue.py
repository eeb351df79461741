"""A client certificate from the cluster's own signer, approved as the administrator on a master."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping

from operations.engine import asker
from operations.engine.engine import StackError
from operations.engine.stack import Stack
from operations.ssh import client
from operations.users.wanted import User

SIGNER = "kubernetes.io/kube-apiserver-client"
_LIMIT_S = 180
_MADE = "requested"  # the line after which no other master would do better


def name_of_request(user: User) -> str:
    """It says whose it is wherever it is seen: in the audit log too, without bodies."""
    return f"user-{user.name}-{secrets.token_hex(4)}"


def body(name: str, user: User, request: bytes) -> dict[str, object]:
    """The object that asks."""
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "annotations": {asker.ANNOTATION: asker.name()}},
        "spec": {
            "request": base64.b64encode(request).decode(),
            "signerName": SIGNER,
            "expirationSeconds": user.life_s,
            "usages": ["digital signature", "client auth"],
        },
    }


def issued(found: Stack, name: str, asked: Mapping[str, object]) -> bytes:
    """The certificate, PEM, by the first master that can; any of them acts. Raises StackError."""
    troubles = []
    for node in found.plan.masters:
        if node.name not in found.targets:
            continue
        values = {**found.identity(node), "NAME": name, "REQUEST": json.dumps(asked)}
        answer = client.run(
            found.targets[node.name], "client-certificate", values, limit_s=_LIMIT_S
        )
        rows = [line.split("\t") for line in answer.text.splitlines()]
        for row in rows:
            if row[0] == "certificate" and len(row) == 2:
                return _decoded(row[1])
        troubles.append(f"{node.name} ({node.address}): {answer.text or 'no answer'}")
        if [_MADE] in rows:
            break
    raise StackError("\n".join(["no master had the certificate signed", *troubles]))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return b""  # said by who reads it
