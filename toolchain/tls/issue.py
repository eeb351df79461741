"""X.509: subjects, names, certificates and requests, put together as Go's crypto/x509 does."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeGuard

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from toolchain.resources import OperationError
from toolchain.tls.keys import PrivateKey
from toolchain.values import Properties, Value, plain

_KEY_USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "cert_signing", "crl_signing", "encipher_only", "decipher_only"),
)
_EXTENDED_USES: Mapping[str, ObjectIdentifier] = {
    "any_extended": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "server_auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client_auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code_signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email_protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "ipsec_end_system": ObjectIdentifier("1.3.6.1.5.5.7.3.5"),
    "ipsec_tunnel": ObjectIdentifier("1.3.6.1.5.5.7.3.6"),
    "ipsec_user": ObjectIdentifier("1.3.6.1.5.5.7.3.7"),
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp_signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "microsoft_server_gated_crypto": ObjectIdentifier("1.3.6.1.4.1.311.10.3.3"),
    "netscape_server_gated_crypto": ObjectIdentifier("2.16.840.1.113730.4.1"),
    "microsoft_commercial_code_signing": ObjectIdentifier("1.3.6.1.4.1.311.2.1.22"),
    "microsoft_kernel_code_signing": ObjectIdentifier("1.3.6.1.4.1.311.61.1.1"),
}
USES = (*_KEY_USES, *_EXTENDED_USES)

# In the order in which a subject is written.
_SUBJECT: Mapping[str, ObjectIdentifier] = {
    "country": NameOID.COUNTRY_NAME,
    "organization": NameOID.ORGANIZATION_NAME,
    "organizationalUnit": NameOID.ORGANIZATIONAL_UNIT_NAME,
    "locality": NameOID.LOCALITY_NAME,
    "province": NameOID.STATE_OR_PROVINCE_NAME,
    "streetAddresses": NameOID.STREET_ADDRESS,
    "postalCode": NameOID.POSTAL_CODE,
    "commonName": NameOID.COMMON_NAME,
    "serialNumber": NameOID.SERIAL_NUMBER,
    "emailAddress": NameOID.EMAIL_ADDRESS,
}


@dataclass(frozen=True, slots=True)
class Template:
    """What a certificate will say, apart from keys and issuer."""

    subject: x509.Name
    names: list[x509.GeneralName]
    uses: list[str]
    validity: timedelta
    is_ca: bool
    max_path_length: int | None
    with_subject_key_id: bool
    with_authority_key_id: bool

    @classmethod
    def of(cls, inputs: Properties, subject: x509.Name, names: list[x509.GeneralName]) -> Template:
        """From the inputs of a certificate. Raises OperationError for a CA without a subject."""
        is_ca = plain(inputs.get("isCaCertificate")) is True
        if is_ca and not list(subject):
            raise OperationError(
                "Invalid Certificate Subject: "
                "Must contain at least one Distinguished Name "
                "when creating Certificate Authority (CA)"
            )
        hours, uses = plain(inputs.get("validityPeriodHours")), plain(inputs.get("allowedUses"))
        longest = plain(inputs.get("maxPathLength"))
        return cls(
            subject=subject,
            names=names,
            uses=[use for use in uses if isinstance(use, str)] if isinstance(uses, list) else [],
            validity=timedelta(hours=hours if isinstance(hours, float) else 0.0),
            is_ca=is_ca,
            # Of a certificate that is not a CA the length says nothing, and the encoder refuses it.
            max_path_length=int(longest) if is_ca and isinstance(longest, float) else None,
            with_subject_key_id=is_ca or plain(inputs.get("setSubjectKeyId")) is True,
            with_authority_key_id=plain(inputs.get("setAuthorityKeyId")) is True,
        )


def subject(value: Value) -> x509.Name:
    """A subject from the input of that name; empty when there is none."""
    given = value if isinstance(value, dict) else {}
    found: list[x509.NameAttribute[str | bytes]] = []
    for key, oid in _SUBJECT.items():
        item = given.get(key)
        texts = item if isinstance(item, list) else [item]
        try:
            found += [x509.NameAttribute(oid, text) for text in texts if _is_filled(text)]
        except ValueError as error:
            raise OperationError(f"Invalid Certificate Subject: {key}: {error}") from None
    return x509.Name(found)


def alternative_names(inputs: Properties) -> list[x509.GeneralName]:
    """DNS names, IP addresses and URIs, in this order. Raises OperationError for a wrong one."""

    def listed(key: str) -> list[str]:
        value = plain(inputs.get(key))
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    try:
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in listed("dnsNames")]
        uris = [x509.UniformResourceIdentifier(uri) for uri in listed("uris")]
    except ValueError as error:
        raise OperationError(f"Invalid DNS name or URI: {error}") from None
    for text in listed("ipAddresses"):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(text)))
        except ValueError:
            message = f'Invalid IP address: Failed to parse "{text}"'
            raise OperationError(message) from None
    return [*names, *uris]


def requested_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """The alternative names a request asks for."""
    try:
        return list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def sign(
    template: Template,
    public_key: CertificatePublicKeyTypes,
    ca: x509.Certificate | None,
    key: PrivateKey,
) -> x509.Certificate:
    """A certificate; without `ca` it is signed by itself. Extensions come in Go's order."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(template.subject)
        .issuer_name(ca.subject if ca else template.subject)
        .public_key(public_key)
        .serial_number(secrets.randbits(127) or 1)
        .not_valid_before(now)
        .not_valid_after(now + template.validity)
    )
    if usage := _key_usage(template.uses):
        builder = builder.add_extension(usage, critical=True)
    if extended := [_EXTENDED_USES[use] for use in template.uses if use in _EXTENDED_USES]:
        builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
    constraints = x509.BasicConstraints(template.is_ca, template.max_path_length)
    builder = builder.add_extension(constraints, critical=True)
    own = _key_id(public_key)
    if template.with_subject_key_id:
        builder = builder.add_extension(x509.SubjectKeyIdentifier(own), critical=False)
    authority = _authority_key_id(template, ca, own)
    if authority is not None:
        identifier = x509.AuthorityKeyIdentifier(authority, None, None)
        builder = builder.add_extension(identifier, critical=False)
    if template.names:
        names = x509.SubjectAlternativeName(template.names)
        builder = builder.add_extension(names, critical=not list(template.subject))
    return builder.sign(key, _hash_for(key))


def request(
    subject_name: x509.Name, names: list[x509.GeneralName], key: PrivateKey
) -> tuple[str, str]:
    """A signing request: the SHA-1 of its bytes, and its PEM."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject_name)
    if names:
        critical = not list(subject_name)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=critical)
    made = builder.sign(key, _hash_for(key))
    digest = hashlib.sha1(made.public_bytes(Encoding.DER), usedforsecurity=False).hexdigest()
    return digest, made.public_bytes(Encoding.PEM).decode()


def load_certificate(text: str) -> x509.Certificate:
    """The certificate in a PEM. Raises OperationError."""
    try:
        return x509.load_pem_x509_certificate(text.encode())
    except ValueError as error:
        raise OperationError(f"Failed to parse CA certificate PEM: {error}") from None


def load_request(text: str) -> x509.CertificateSigningRequest:
    """The request in a PEM. Raises OperationError."""
    try:
        return x509.load_pem_x509_csr(text.encode())
    except ValueError as error:
        raise OperationError(f"Failed to parse certificate request PEM: {error}") from None


def is_ca(certificate: x509.Certificate) -> bool:
    """Whether the certificate says that it may sign others."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    return found.value.ca


def pem(certificate: x509.Certificate) -> str:
    """PEM, with a newline at its end."""
    return certificate.public_bytes(Encoding.PEM).decode()


def _is_filled(value: Value) -> TypeGuard[str]:
    return isinstance(value, str) and value != ""


def _key_usage(uses: list[str]) -> x509.KeyUsage | None:
    if not any(use in _KEY_USES for use in uses):
        return None
    agreement = "key_agreement" in uses
    return x509.KeyUsage(
        digital_signature="digital_signature" in uses,
        content_commitment="content_commitment" in uses,
        key_encipherment="key_encipherment" in uses,
        data_encipherment="data_encipherment" in uses,
        key_agreement=agreement,
        key_cert_sign="cert_signing" in uses,
        crl_sign="crl_signing" in uses,
        # These two mean something with key agreement only, and the encoder refuses them without it.
        encipher_only=agreement and "encipher_only" in uses,
        decipher_only=agreement and "decipher_only" in uses,
    )


def _key_id(public_key: CertificatePublicKeyTypes) -> bytes:
    """SHA-1 of the public key's bits (RFC 5280, 4.2.1.2, method 1)."""
    if isinstance(public_key, ed25519.Ed25519PublicKey):
        # The official provider hashes these 32 bytes as an OCTET STRING, header included.
        raw = public_key.public_bytes(Encoding.Raw, PublicFormat.Raw)
        return hashlib.sha1(b"\x04\x20" + raw, usedforsecurity=False).digest()
    return x509.SubjectKeyIdentifier.from_public_key(public_key).digest


def _authority_key_id(template: Template, ca: x509.Certificate | None, own: bytes) -> bytes | None:
    """The issuer's key ID: always where the issuer has one, of itself only when asked for."""
    if ca is None:
        return own if template.with_authority_key_id and template.with_subject_key_id else None
    try:
        return ca.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


def _hash_for(key: PrivateKey) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    if isinstance(key, rsa.RSAPrivateKey):
        return hashes.SHA256()
    if isinstance(key, ec.EllipticCurvePrivateKey):
        if key.curve.name == "secp384r1":
            return hashes.SHA384()
        return hashes.SHA512() if key.curve.name == "secp521r1" else hashes.SHA256()
    return None
