"""API servers as kubelets ask them, and the identity that a machine joins by."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

from tests.e2e.harness.hollow.machines import PhaseError

JOIN_S = 120  # as long as a phase waits for the API
REQUEST_S = 30
CONNECT_S = 2  # as the HAProxy of a worker
OUT_S = 10
_REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
Object = dict[str, object]


@dataclass(slots=True)
class Api:
    """API servers, "host:port" each, asked in turn until one answers.

    One that did not is asked last for a while, by all: a worker's HAProxy takes it out by its checks.
    """

    servers: Sequence[str]
    http: aiohttp.ClientSession
    _back_at: dict[str, float] = field(default_factory=dict)  # seconds of the loop's clock

    def order(self, first: int) -> list[str]:
        """The servers as they are to be asked, from number `first` on."""
        now = asyncio.get_running_loop().time()
        turns = [
            self.servers[(first + turn) % len(self.servers)] for turn in range(len(self.servers))
        ]
        return sorted(turns, key=lambda server: self._back_at.get(server, 0) > now)

    def failed(self, server: str) -> None:
        """It gave no answer."""
        self._back_at[server] = asyncio.get_running_loop().time() + OUT_S

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        trust: ssl.SSLContext,
        token: str = "",
        form: str = "application/json",
        first: int = 0,
        limit_s: float = REQUEST_S,
    ) -> tuple[int, Object]:
        """HTTP status and answer; status 0 when no server answers, with the last error as message."""
        headers = {"Content-Type": form} | ({"Authorization": f"Bearer {token}"} if token else {})
        error = ""
        for server in self.order(first):
            try:
                async with self.http.request(
                    method,
                    f"https://{server}{path}",
                    data=None if body is None else json.dumps(body),
                    headers=headers,
                    ssl=trust,
                    timeout=aiohttp.ClientTimeout(total=limit_s, sock_connect=CONNECT_S),
                ) as answer:
                    return answer.status, await answer.json()
            except (OSError, aiohttp.ClientError, TimeoutError) as failed:
                error = f"{server}: {failed!r}"
                self.failed(server)
        return 0, {"message": error}


async def identity(
    api: Api, node: str, authority: str, token: str, *, first: int
) -> ssl.SSLContext:
    """What the API knows that node by, signed on a request by `token`, and trust in `authority`.

    Raises PhaseError when it is not signed within JOIN_S.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    trust = ssl.create_default_context(cadata=authority)
    body = _request(node, key)
    path, status, answer = "", 0, dict[str, object]()
    end = asyncio.get_running_loop().time() + JOIN_S
    while asyncio.get_running_loop().time() < end:
        if path:
            status, answer = await api.ask("GET", path, trust=trust, token=token, first=first)
            signed = _at(answer, "status", "certificate")
            if isinstance(signed, str):
                return _context(authority, base64.b64decode(signed), key)
        else:
            status, answer = await api.ask(
                "POST", _REQUESTS, body, trust=trust, token=token, first=first
            )
            if status == 201:
                path = f"{_REQUESTS}/{_at(answer, 'metadata', 'name')}"
        await asyncio.sleep(0.5)
    said = answer.get("message") or answer.get("status")
    raise PhaseError(f"{node}: no certificate within {JOIN_S} s: HTTP {status} {said}")


def _request(node: str, key: ec.EllipticCurvePrivateKey) -> Object:
    """For a certificate by which a kubelet is known, as kubelets ask for it."""
    # Go writes these names as PrintableString, and the approver compares every byte.
    form = _ASN1Type.PrintableString
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes", _type=form),
            x509.NameAttribute(NameOID.COMMON_NAME, f"system:node:{node}", _type=form),
        ]
    )
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "node-csr-"},
        "spec": {
            "request": base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
            "usages": ["digital signature", "client auth"],
        },
    }


def _context(authority: str, certificate: bytes, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    made = ssl.create_default_context(cadata=authority)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    # The library reads them from files alone.
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(certificate + private)
        made.load_cert_chain(file.name)
    return made


def _at(found: Object, *path: str) -> object:
    deep: object = found
    for key in path:
        deep = deep.get(key) if isinstance(deep, dict) else None
    return deep
