"""What disks of AWS can do (Amazon EBS user guide, "Amazon EBS volume types")."""

from __future__ import annotations

from collections.abc import Iterator

from stacks.config.clouds import AwsSpec
from stacks.config.problems import Problem
from stacks.config.spec import Spec
from stacks.providers.aws import regions

IOPS = 3000  # of io2, which needs a number; gp3 has these by itself
# Of a type: the fewest and the most operations a second, and the most for each GiB.
_RANGES = {"gp3": (IOPS, 16000, 500), "io2": (100, 64000, 1000)}
_PER_MIB = 4  # operations a second that gp3 needs for each MiB/s


def problems(spec: Spec, aws: AwsSpec) -> Iterator[Problem]:
    """What EBS would refuse, or KMS: a key of another region."""
    low, high, per_gib = _RANGES[aws.etcd_disk_type]
    pools = [pool for pool in spec.pools.values() if "etcd" in pool.roles]
    gib = min((pool.etcd_disk_gib or aws.etcd_disk_gib for pool in pools), default=0)
    most = min(high, per_gib * gib)
    iops, mib = aws.etcd_disk_iops, aws.etcd_disk_throughput
    if iops is not None and pools and not low <= iops <= most:
        text = f"{iops} does not fit {aws.etcd_disk_type} of {gib} GiB; write {low} to {most}"
        yield Problem("machines.aws.etcdDiskIops", text)
    if mib is not None and aws.etcd_disk_type != "gp3":
        text = f"is for gp3; {aws.etcd_disk_type} has it by its etcdDiskIops: leave it out"
        yield Problem("machines.aws.etcdDiskThroughput", text)
    elif mib is not None and mib * _PER_MIB > (iops or IOPS):
        text = f"{mib} MiB/s need etcdDiskIops of {mib * _PER_MIB} or more"
        yield Problem("machines.aws.etcdDiskThroughput", text)
    own = f"arn:{regions.partition(aws.region)}:kms:{aws.region}:"
    if aws.disk_key and not aws.disk_key.startswith(own):
        text = f"{aws.disk_key} is not a key of {aws.region}, where the disks are"
        yield Problem("machines.aws.diskKey", text)
