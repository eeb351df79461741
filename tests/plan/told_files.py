"""Files that drawn configs name: in the folder that stands for the checkout, and a config that names those alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from stacks.catalogue import registry as catalogue
from tests.fuzz.breakage import MARK
from tests.fuzz.clusters import Config

_FUZZ = Path(__file__).parents[1] / "fuzz"
_PAIRS = ("keys/a", "keys/b")  # of a private key, and its certificate beside it
_MANIFEST = ".local/bundle/manifest.json"  # which tests/plan/settled.py writes


def lay(folder: Path) -> None:
    """Make them, where they are not there yet."""
    (folder / "tests").mkdir(exist_ok=True)
    if not (folder / "tests/fuzz").exists():
        (folder / "tests/fuzz").symlink_to(_FUZZ)
    (folder / "keys").mkdir(exist_ok=True)
    for name in _PAIRS:
        if not (folder / name).exists():
            pair(folder / name)


def there(raw: Config) -> Config:
    """The config, which names files that are there in place of those that were drawn."""
    addons = raw.get("addons")
    if isinstance(addons, dict) and all(isinstance(one, dict) for one in addons.values()):
        for addon in addons.values():
            listed = addon.get("manifests") or []
            addon["manifests"] = [path for path in listed if "none" not in path]
        raw["addons"] = {
            name: one
            for name, one in addons.items()
            if one["manifests"] or one.get("secrets") or name in catalogue.ENTRIES
        }
    sealed = raw.get("addonSecrets")
    if isinstance(sealed, dict):  # an engine opens texts alone
        raw["addonSecrets"] = {
            name: {"secure": said["secure"] if isinstance(said["secure"], str) else MARK}
            if isinstance(said, dict) and "secure" in said
            else said  # broken, and refused
            for name, said in sealed.items()
        }
    doors = raw.get("frontDoors")
    ingress = doors.get("ingress") if isinstance(doors, dict) else None
    listed = ingress.get("certificates") if isinstance(ingress, dict) else None
    for given in listed if isinstance(listed, list) else ():
        if isinstance(given, dict):
            name = _of(given.get("certificate"))
            given |= {"certificate": f"{name}.crt", "key": name}
    if isinstance(raw.get("mirror"), dict):
        raw["mirror"] = {**raw["mirror"], "manifest": _MANIFEST}  # type: ignore[dict-item]
    machines = raw.get("machines")
    ssh = machines.get("ssh") if isinstance(machines, dict) else None
    if isinstance(ssh, dict):
        for way in (ssh, ssh.get("bastion")):
            if isinstance(way, dict) and isinstance(way.get("privateKeyFile"), str):
                way["privateKeyFile"] = _of(way["privateKeyFile"])
    return raw


def _of(drawn: object) -> str:
    """One of them; another one for about every other text."""
    return _PAIRS[len(str(drawn)) % len(_PAIRS)]


def pair(file: Path) -> None:
    """A new key there, and its certificate in a file beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, file.name)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    valid = made.not_valid_before(now).not_valid_after(now + timedelta(days=30))
    signed = valid.sign(key, hashes.SHA256())
    file.with_suffix(".crt").write_bytes(signed.public_bytes(Encoding.PEM))
