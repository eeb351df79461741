"""The texts that name a place in an object store: each function returns the accepted value or says
why not.

All of them are in URLs that are signed as they are written, so none holds what would be escaped.
"""

from __future__ import annotations

import re

from stacks.config import redaction
from stacks.config.values import short

BUCKET = re.compile(r"[a-z0-9]([a-z0-9-]|\.(?=[a-z0-9])){1,61}[a-z0-9]")
_PART = r"(?!\.{1,2}(?:/|$))[A-Za-z0-9_.-]{1,64}"
PREFIX = re.compile(rf"(?=.{{0,200}}$)(?:{_PART}(?:/{_PART})*)?")
REGION = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
ACCESS_KEY = re.compile(r"[A-Za-z0-9_.+=@-]{3,128}")


def bucket(text: str) -> str:
    """Name of a bucket, by the rules of AWS."""
    if not BUCKET.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a name of a bucket; use 3 to 63 of a-z, 0-9, '-' and single dots"
        )
    return text


def prefix(text: str) -> str:
    """First parts of the names of objects, without a slash at either end; may be empty."""
    if not PREFIX.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not a prefix; write it as 'clusters/prod': letters, "
            "digits, '_', '.' "
            "and '-', no slash at the ends"
        )
    return text


def region(text: str) -> str:
    """What requests are signed for; other stores than AWS have words of their own."""
    if not REGION.fullmatch(text):
        raise ValueError(f"{short(text)} is not a region; write it as 'eu-central-1' or 'auto'")
    return text


def access_key(text: str) -> str:
    """ID of an access key; no secret."""
    if redaction.is_key(text):
        raise ValueError(
            f"{short(text)} has the shape of the secret; write the ID, AKIA... at AWS, and change "
            "the secret, which is in plain text now"
        )
    if not ACCESS_KEY.fullmatch(text):
        raise ValueError(
            f"{short(text)} is not an ID of an access key; it has 3 to 128 letters, digits "
            "and _ . + = "
            "@ -"
        )
    return text
