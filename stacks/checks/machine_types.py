"""Machine types of the clouds, as far as their names tell what they are."""

from __future__ import annotations

import re
from collections.abc import Collection

from stacks.config.fields import Role

# Google: family, kind, size (cloud.google.com/compute/docs/machine-resource).
_GCP = re.compile(
    r"(?P<family>[a-z][0-9]{1,2}[a-z]?|t2[ad])-"
    r"((?P<shared>micro|small|medium)|custom-[0-9]+-[0-9]+(-ext)?"
    r"|(standard|highmem|highcpu|megamem|ultramem|hypermem|highgpu|megagpu|ultragpu|edgegpu"
    r"|maxgpu)-[0-9]+(g|t)?(-(lssd|standardlssd|highlssd|metal|nolssd))?)"
)
# AWS: family and generation, then size (docs.aws.amazon.com/ec2, "Instance types").
_AWS = re.compile(
    r"(?P<family>[a-z]+-?[0-9]+[a-z0-9-]*)\."
    r"(?P<size>nano|micro|small|medium|large|xlarge|[0-9]+xlarge|metal(-[a-z0-9]+)?)"
)
# Built on Xen: disks come under other names, and this program finds etcd's by that of Nitro.
_XEN = re.compile(r"c[134]|cc2|cg1|cr1|d2|f1|g[23]s?|h1|hs1|i[23]|m[1234]|p[23]|r[34]|t[12]|x1e?")
_LITTLE = ("nano", "micro")  # 1 GiB of memory or less


def unfit(type_: str, provider: str, roles: Collection[Role]) -> str:
    """Why no machine of these roles should be of a type; empty where nothing is against it."""
    if provider == "gcp":
        found = _GCP.fullmatch(type_)
        if found is None:
            return "is not a machine type of Google; write family-kind-size, as 'e2-standard-4'"
        if found["shared"] == "micro":
            return _small(roles)
        return ""
    found = _AWS.fullmatch(type_)
    if found is None:
        return "is not an instance type of AWS; write family.size, as 'm6i.large'"
    if _XEN.fullmatch(found["family"]) and not found["size"].startswith("metal"):
        return "is not a Nitro type, and disks of others have other names; take one as 'm6i.large'"
    return _small(roles) if found["size"] in _LITTLE else ""


def _small(roles: Collection[Role]) -> str:
    what = "an API server and etcd" if "master" in roles else "a node"
    return f"has 1 GiB of memory or less, too little for {what}; take a bigger one"
