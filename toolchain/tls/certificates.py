"""`SelfSignedCert`, `LocallySignedCert` and `CertRequest` of the tls package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509

from toolchain.resources import Difference, Operation, OperationError, Problem, compare
from toolchain.tls import issue, keys
from toolchain.values import UNKNOWN, Properties, Secret, Unknown, Value, plain

_SUBJECT_INPUTS = frozenset({"dnsNames", "ipAddresses", "subject", "uris"})
_OWN_KEY = frozenset({"privateKeyPem", "privateKeyPemWo", "privateKeyPemWoVersion"})
_CA_KEY = frozenset({"caPrivateKeyPem", "caPrivateKeyPemWo", "caPrivateKeyPemWoVersion"})
_VALIDITY = frozenset(
    {
        *("allowedUses", "earlyRenewalHours", "isCaCertificate", "maxPathLength"),
        *("setSubjectKeyId", "validityPeriodHours"),
    }
)
_SECRET_INPUTS = ("privateKeyPem", "privateKeyPemWo", "caPrivateKeyPem", "caPrivateKeyPemWo")
_IN_PLACE = frozenset({"earlyRenewalHours"})
_ISSUED = ("certPem", "validityStartTime", "validityEndTime")


@dataclass(frozen=True, slots=True)
class _Certificates:
    """What the three kinds share: inputs, and that almost every change makes a new one."""

    inputs: frozenset[str]
    required: tuple[str, ...]
    defaults: Mapping[str, Value]
    computed: tuple[str, ...]

    def check(self, inputs: Properties) -> tuple[Properties, list[Problem]]:
        """Mark keys as secrets; name what is unknown, missing or not a usage."""
        problems = [Problem(key, "unknown property") for key in sorted(inputs.keys() - self.inputs)]
        problems += [
            Problem(key, "missing required property") for key in self.required if key not in inputs
        ]
        uses = inputs.get("allowedUses")
        problems += [
            Problem("allowedUses", f"{use} is not a usage; known are {', '.join(issue.USES)}")
            for use in (uses if isinstance(uses, list) else [])
            if isinstance(use, str) and use not in issue.USES
        ]
        checked = dict(inputs)
        for name in _SECRET_INPUTS:
            if name in checked and not isinstance(checked[name], Secret):
                checked[name] = Secret(checked[name])
        return checked, problems

    def ignoring(self, names: Iterable[str], inputs: Properties, state: Properties) -> Properties:
        """The engine has put back what is ignored."""
        return inputs

    def diff(self, old: Properties, new: Properties, state: Properties) -> Difference:
        """A change replaces, but of `earlyRenewalHours`; one that is due replaces itself."""
        filled_old = {**self.defaults, **old}
        filled_new = {**self.defaults, **new}
        found = compare(filled_old, filled_new, replacing=self.inputs - _IN_PLACE)
        if not _due(state, filled_new):
            return found
        changes = {**found.changes, "readyForRenewal": "update"}
        return Difference(changes, found.replaces | {"readyForRenewal"})

    def planned(self, inputs: Properties, state: Properties | None) -> Properties:
        """A new certificate is not known before it is issued; one that stays keeps what it has."""
        if state is not None:
            return {**state, **self.defaults, **inputs}
        fresh: Properties = dict.fromkeys(self.computed, UNKNOWN)
        return {**self.defaults, **inputs, **fresh}

    async def update(
        self, operation: Operation, inputs: Properties, state: Properties
    ) -> Properties:
        """Only the time of an early renewal changes in place."""
        return {**state, **self.defaults, **inputs}

    async def delete(self, operation: Operation, state: Properties) -> None:
        """Forgetting it is all there is to do; it stays valid until its time is over."""

    def read(self, state: Properties) -> Properties:
        """What is there is in the state; whether it is due is looked at again."""
        return {**state, "readyForRenewal": True} if _due(state, state) else state


class SelfSignedKind(_Certificates):
    """A certificate signed by the key it is for: the root of a PKI."""

    async def create(self, operation: Operation, inputs: Properties) -> tuple[str, Properties]:
        """Issue it; the ID is the serial number."""
        wanted: Properties = {**self.defaults, **inputs}
        key = keys.load(_key_text(wanted, "privateKeyPem"), "private key PEM")
        subject = issue.subject(plain(wanted.get("subject")))
        names = issue.alternative_names(wanted)
        template = issue.Template.of(wanted, subject, names)
        certificate = issue.sign(template, key.public_key(), None, key)
        return _outputs(wanted, certificate, {"keyAlgorithm": keys.algorithm(key)})


class LocallySignedKind(_Certificates):
    """A certificate for a request, signed by a CA whose key is at hand."""

    async def create(self, operation: Operation, inputs: Properties) -> tuple[str, Properties]:
        """Issue it with the subject and names of the request; the ID is the serial number."""
        wanted: Properties = {**self.defaults, **inputs}
        request = issue.load_request(_text(wanted, "certRequestPem"))
        ca = issue.load_certificate(_text(wanted, "caCertPem"))
        key = keys.load(_key_text(wanted, "caPrivateKeyPem"), "CA private key PEM")
        if not issue.is_ca(ca):
            await operation.warn(
                "Certificate provided as Authority does not appear to be a valid "
                "Certificate Authority. "
                "The resulting certificate might fail certificate validation."
            )
        names = issue.requested_names(request)
        template = issue.Template.of(wanted, request.subject, names)
        certificate = issue.sign(template, request.public_key(), ca, key)
        return _outputs(wanted, certificate, {"caKeyAlgorithm": keys.algorithm(key)})


class RequestKind(_Certificates):
    """A certificate signing request."""

    async def create(self, operation: Operation, inputs: Properties) -> tuple[str, Properties]:
        """Make it; the ID is the SHA-1 of the request."""
        key = keys.load(_key_text(inputs, "privateKeyPem"), "private key PEM")
        subject = issue.subject(plain(inputs.get("subject")))
        made, pem = issue.request(subject, issue.alternative_names(inputs), key)
        outputs: Properties = {"certRequestPem": pem, "keyAlgorithm": keys.algorithm(key)}
        return made, {**inputs, **outputs}


_CERTIFICATE_DEFAULTS: Mapping[str, Value] = {
    "earlyRenewalHours": 0.0,
    "isCaCertificate": False,
    "setSubjectKeyId": False,
}

SELF_SIGNED = SelfSignedKind(
    inputs=_SUBJECT_INPUTS | _OWN_KEY | _VALIDITY | {"setAuthorityKeyId"},
    required=("allowedUses", "validityPeriodHours"),
    defaults={**_CERTIFICATE_DEFAULTS, "setAuthorityKeyId": False},
    computed=(*_ISSUED, "keyAlgorithm", "readyForRenewal"),
)
LOCALLY_SIGNED = LocallySignedKind(
    inputs=_CA_KEY | _VALIDITY | {"caCertPem", "certRequestPem"},
    required=("allowedUses", "caCertPem", "certRequestPem", "validityPeriodHours"),
    defaults=_CERTIFICATE_DEFAULTS,
    computed=(*_ISSUED, "caKeyAlgorithm", "readyForRenewal"),
)
REQUEST = RequestKind(
    inputs=_SUBJECT_INPUTS | _OWN_KEY,
    required=(),
    defaults={},
    computed=("certRequestPem", "keyAlgorithm"),
)


def _due(state: Properties, inputs: Properties) -> bool:
    """Whether the certificate is over, or within its hours of early renewal."""
    end, early = state.get("validityEndTime"), plain_or_none(inputs.get("earlyRenewalHours"))
    if not isinstance(end, str):
        return False
    hours = early if isinstance(early, float) else 0.0
    return datetime.fromisoformat(end) - timedelta(hours=hours) <= datetime.now(UTC)


def plain_or_none(value: Value) -> Value:
    """A value for a comparison that a preview may make with something unknown."""
    return None if isinstance(value, Unknown) else plain(value)


def _outputs(
    wanted: Properties, certificate: x509.Certificate, own: Properties
) -> tuple[str, Properties]:
    issued: Properties = {
        "certPem": issue.pem(certificate),
        "validityStartTime": certificate.not_valid_before_utc.isoformat(),
        "validityEndTime": certificate.not_valid_after_utc.isoformat(),
        "readyForRenewal": False,
    }
    return str(certificate.serial_number), {**wanted, **issued, **own}


def _text(properties: Properties, key: str) -> str:
    value = plain(properties.get(key))
    if isinstance(value, str):
        return value
    raise OperationError(f"{key}: missing required property")


def _key_text(properties: Properties, key: str) -> str:
    """The PEM of a key, given the usual way or as a write-only input."""
    return _text(properties, key if key in properties else key + "Wo")
