"""The providers that there are. What registers the resources of each: components/machines."""

from __future__ import annotations

from stacks.config.spec import Spec
from stacks.providers import adopt, lab
from stacks.providers.aws import provider as aws
from stacks.providers.gcp import provider as gcp
from stacks.providers.hcloud import provider as hcloud
from stacks.providers.provider import Cloud, Provider
from stacks.providers.store_identity import StoreIdentity, store

OTHERS: dict[str, Provider] = {
    "lab": lab,
    "adopt": adopt,
}
CLOUDS: dict[str, Cloud] = {
    "gcp": gcp,
    "aws": aws,
    "hcloud": hcloud,
}


def all_() -> dict[str, Provider]:
    """By the name that the config has for each."""
    return {**OTHERS, **CLOUDS}


def of(spec: Spec) -> Provider:
    """The one that the config names."""
    return all_()[spec.machines.provider]


def cloud(spec: Spec) -> Cloud | None:
    """The cloud that machines are made in; None: they are made in none."""
    return CLOUDS.get(spec.machines.provider)


def explained(text: str) -> list[str]:
    """What to do about refusals in it by policies of an organisation, of whatever cloud."""
    return [line for one in CLOUDS.values() for line in one.explained(text)]


def store_identity(spec: Spec) -> StoreIdentity | None:
    """How its object store knows its machines; None: by a key, or there is no store."""
    made = cloud(spec)
    return made.STORE if made and store(spec) else None


def is_local(name: object) -> bool:
    """Whether that is a provider whose machines live on this computer."""
    found = all_().get(str(name))
    return found is not None and found.LOCAL
