"""The texts that name things of the kernel: each function returns the value or says why not.

As in values.py. They end in files that modprobe and sysctl read as root.
"""

from __future__ import annotations

import re

from stacks.config.values import short

MODULE = re.compile(r"[a-z0-9][a-z0-9_]{0,54}")
# Of networks alone; others belong to the whole machine. No globs: a line sets what it names.
SETTING = re.compile(r"net(\.[a-z0-9][A-Za-z0-9_-]{0,62}){1,6}")
VALUE = re.compile(r"-?[0-9]{1,10}( -?[0-9]{1,10}){0,3}")


def module(text: str) -> str:
    """Name of a module, as lsmod shows it."""
    if not MODULE.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a kernel module; write it as lsmod does, as 'ip_vs'"
        )
    return text


def setting(text: str) -> str:
    """A kernel setting below net."""
    if not SETTING.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a kernel setting of networks; write it as "
            "'net.ipv4.conf.all.rp_filter'"
        )
    return text


def value(text: str) -> str:
    """What it is set to: a number, or several."""
    if not VALUE.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a value of a kernel setting; write a number as '0', or several "
            "as '4096 87380 6291456'"
        )
    return text
