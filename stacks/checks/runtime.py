"""Checks of containerd's settings: mirrors that would never be asked."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from stacks.config.problems import Problem, dotted
from stacks.config.spec import Spec
from stacks.networks import registry as networks
from stacks.providers import registry as providers

_DOCKER_HUB = "docker.io"
# Names of the same registry that no image has in its name.
_NOT_IN_IMAGE_NAMES = ("hub.docker.com", "index.docker.io", "registry-1.docker.io")


def problems(spec: Spec) -> list[Problem]:
    """Registries that images do not name, or whose images come from somewhere else."""
    mirrored = (spec.mirror or providers.of(spec).mirror(spec)) is not None
    out = []
    for registry, urls in spec.runtime.registry_mirrors.items():
        path = dotted(("runtime", "registryMirrors", registry))
        if registry in _NOT_IN_IMAGE_NAMES:
            out.append(Problem(path, f"no image has this in its name; write {_DOCKER_HUB}"))
        if mirrored and registry in networks.registries(spec):
            text = "images of it come from the mirror of this stack alone; leave it out"
            out.append(Problem(path, text))
        out += _mirrors(path, registry, urls)
    return out


def _mirrors(path: str, registry: str, urls: Sequence[str]) -> list[Problem]:
    if not urls:
        return [Problem(path, "names no mirror; leave the registry out")]
    out = [
        Problem(f"{path}[{index}]", f"{url} is the registry itself, which is asked last anyhow")
        for index, url in enumerate(urls)
        # By HTTP it is not asked, unless it is named so: one without a certificate.
        if (urlsplit(url).scheme, urlsplit(url).netloc) == ("https", registry)
    ]
    out += [
        Problem(f"{path}[{index}]", f"{url} is there twice")
        for index, url in enumerate(urls)
        if url in urls[:index]
    ]
    return out
