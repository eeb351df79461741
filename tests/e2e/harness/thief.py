"""Whoever has taken a worker: what is on it, used against the cluster."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass

from tests.e2e.harness.node import Node

_API = "https://127.0.0.1:3446"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_IDENTITY = "/var/lib/kubelet/pki/kubelet-client-current.pem"
# Of a pod's folder no more is known than its volumes: a token says itself whose it is.
_FIND_TOKEN = r"""
for token in /var/lib/kubelet/pods/*/volumes/kubernetes.io~projected/kube-api-access-*/token; do
  said=$(cut -d . -f 2 "$token" | tr '_-' '/+')
  while ((${#said} % 4)); do said+="="; done
  if [[ $(base64 -d <<<"$said" | jq -r .sub) == "system:serviceaccount:ACCOUNT" ]]; then cat "$token"; exit; fi
done
exit 1
"""
_KEY = "openssl ecparam -name prime256v1 -genkey -noout"


Request = tuple[str, str, object]  # method, path, body
_AS = f"""
ask() {{ # METHOD PATH KIND BODY-IN-BASE64
  local answer sent=()
  if [[ -n $4 ]]; then sent=(-H "Content-Type: application/$3" --data-binary "$(base64 -d <<<"$4")"); fi
  answer=$(curl -sS --max-time 20 --cacert /etc/kube-ha/ca.crt "${{who[@]}}" "${{sent[@]}}" -X "$1" -w '\\n%{{http_code}}' "{_API}$2")
  printf '%s %s\\n' "${{answer##*$'\\n'}}" "$(base64 -w0 <<<"${{answer%$'\\n'*}}")"
}}"""
_AS_KUBELET = f"who=(--cert {_IDENTITY})"
_AS_TOKEN = "who=(-H 'Authorization: Bearer {}')"


def _line(request: Request) -> str:
    method, path, body = request
    kind = "merge-patch+json" if method == "PATCH" else "json"
    text = "" if body is None else base64.b64encode(json.dumps(body).encode()).decode()
    return f"ask {method} '{path}' {kind} '{text}'"


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    text: str


@dataclass(frozen=True, slots=True)
class Thief:
    """Acts from `node` with what it has found there."""

    node: Node

    def token_of(self, account: str) -> str:
        """Of a pod of this ServiceAccount, `namespace:name`, that runs there."""
        return self.node.run(_FIND_TOKEN.replace("ACCOUNT", account)).strip()

    def ask(self, method: str, path: str, body: object = None, *, token: str = "") -> Answer:
        """As the node's kubelet, or with a token. A PATCH is a merge patch."""
        (answer,) = self.ask_all([(method, path, body)], token=token)
        return answer

    def ask_all(self, requests: Sequence[Request], *, token: str = "") -> list[Answer]:
        """One after another."""
        script = "\n".join(
            [f"{_AS}\n{_AS_TOKEN.format(token) if token else _AS_KUBELET}", *map(_line, requests)]
        )
        found = []
        for row in self.node.run(script, timeout_s=120).splitlines():
            status, _, text = row.partition(" ")
            found.append(Answer(int(status), base64.b64decode(text).decode()))
        return found

    def request(
        self,
        name: str,
        subject: str,
        names: str = "",
        *,
        signer: str = "kubelet-serving",
        token: str = "",
    ) -> Answer:
        """Ask for a certificate; `names` are alternative ones, as openssl takes them."""
        more = f"-addext subjectAltName={names}" if names else ""
        config = "-config <(printf '[req]\\ndistinguished_name=dn\\nstring_mask=default\\n[dn]\\n')"
        pem = self.node.run(f"openssl req -new -key <({_KEY}) {config} -subj '{subject}' {more}")
        use = "server auth" if signer == "kubelet-serving" else "client auth"
        body = {
            "apiVersion": "certificates.k8s.io/v1",
            "kind": "CertificateSigningRequest",
            "metadata": {"name": name},
            "spec": {
                "request": base64.b64encode(pem.encode()).decode(),
                "signerName": f"kubernetes.io/{signer}",
                "usages": ["digital signature", use],
            },
        }
        return self.ask("POST", REQUESTS, body, token=token)

    def keep_writing(self, body: object, seconds: int) -> None:
        """Write that into its own Node again and again; the statuses are in /run/thief/statuses."""
        self.node.put("/run/thief/loop", json.dumps(body))
        self.node.start_program(
            f"end=$((SECONDS + {seconds})); while ((SECONDS < end)); do "
            f"curl -s --max-time 5 --cacert /etc/kube-ha/ca.crt --cert {_IDENTITY} -X PATCH "
            "-H 'Content-Type: application/merge-patch+json' --data-binary @/run/thief/loop "
            f"-o /dev/null -w '%{{http_code}}\\n' {_API}/api/v1/nodes/{self.node.name} "
            ">>/run/thief/statuses; sleep 0.2; done"
        )

    def statuses(self) -> dict[str, int]:
        """How often which answer came to what it kept writing."""
        rows = self.node.run("sort /run/thief/statuses | uniq -c").splitlines()
        return {status: int(count) for count, status in map(str.split, rows)}
