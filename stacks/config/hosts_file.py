"""Hosts of pools in files of their own, CSV or YAML, beside the stack file that names them.

They are put into the config as if they stood in it: `hosts` in place of `hostsFile`. So plan,
memory and every check see a config of one kind, and to move a host into a file changes nothing.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from stacks.config import engine_yaml, local_file, translation
from stacks.config.engine_yaml import NoYamlError
from stacks.config.pools import HostSpec
from stacks.config.problems import Problem, dotted
from stacks.config.values import PATH

KEY = "hostsFile"
_HOSTS = "hosts"
_FIELDS = {field.alias or name: field for name, field in HostSpec.model_fields.items()}
_NUMBERS = ("port",)  # a cell is a text; these hold whole numbers
_ENDINGS = (".csv", ".yaml", ".yml")
# `pools.worker.hosts[3].address`, and `pools.worker.hostsFile[5]`, which is a line of the file.
_ITEM = re.compile(r"(pools\.[^.\[\]]+)\.(hosts|hostsFile)\[([0-9]+)\](?:\.([A-Za-z]+))?")


class Lines(NamedTuple):
    """Where the hosts of one pool were read."""

    file: str  # as the config names it
    of_hosts: tuple[int, ...]  # by index


Origins = Mapping[str, Lines]  # by the pool's config path


class Opened(NamedTuple):
    """A config with the hosts of its files."""

    config: dict[str, object]
    problems: list[Problem]
    origins: Origins


class _Content(NamedTuple):
    """The hosts of one file; with a problem the rest of them."""

    hosts: list[object]
    lines: list[int]
    problems: list[tuple[int, str, str]]  # line, what is below it in a host, text; line 0: of all


class _NoHostsError(ValueError):
    """A file of which nothing can be taken; says why."""


def named(config: Mapping[str, object]) -> list[str]:
    """The files that a config names, as it names them."""
    return [name for _, _, name in _named(config)]


def opened(config: Mapping[str, object], folder: Path) -> Opened:
    """`config` with `hosts` in the place of each `hostsFile`, which is in `folder` or below it."""
    kept, found, origins = dict(config), list[Problem](), dict[str, Lines]()
    pools = dict(_mapping(config.get("pools")))
    for pool, said, name in _named(config):
        path = dotted(("pools", pool))
        if _HOSTS in said:
            text = "and hosts are both there; the machines are in one of them, so leave one out"
            found.append(Problem(f"{path}.{KEY}", text))
            pools[pool] = {key: value for key, value in said.items() if key != KEY}
            continue
        try:
            content = _content(folder, name)
        except _NoHostsError as error:
            found.append(Problem(f"{path}.{KEY}", f"{name!r} {error}"))
            continue
        # In the same place, so that the order of keys is the file's.
        pools[pool] = {
            _HOSTS if key == KEY else key: content.hosts if key == KEY else value
            for key, value in said.items()
        }
        origins[path] = Lines(name, tuple(content.lines))
        for line, below, text in content.problems:
            found.append(Problem(f"{path}.{KEY}[{line}]{below and '.'}{below}", text))
    if origins or found:
        kept["pools"] = pools
    return Opened(kept, found, origins)


def located(found: Iterable[tuple[str, str]], origins: Origins) -> list[Problem]:
    """Problems with `hosts.csv:17: address` for `pools.worker.hosts[15].address`, in texts too."""
    if not origins:
        return [Problem(*one) for one in found]
    return [Problem(placed(path, origins), placed(text, origins)) for path, text in found]


def placed(text: str, origins: Origins) -> str:
    """A path, or a text with paths, where each host of a file is named by that and its line."""

    def place(match: re.Match[str]) -> str:
        pool, key, number, field = match.groups()
        lines = origins.get(pool)
        if lines is None or (key == _HOSTS and int(number) >= len(lines.of_hosts)):
            return match[0]
        line = int(number) if key == KEY else lines.of_hosts[int(number)]
        return f"{lines.file}:{line}" + (f": {field}" if field else "")

    text = _ITEM.sub(place, text)
    for pool in origins:
        if text == f"{pool}.{_HOSTS}":
            return f"{pool}.{KEY}"
    return text


def _named(config: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object], str]]:
    """Pools with a file: name, content, path of the file. What is not a path is for the model."""
    for pool, said in _mapping(config.get("pools")).items():
        name = _mapping(said).get(KEY)
        if isinstance(name, str) and PATH.fullmatch(name):
            yield pool, _mapping(said), name


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _content(folder: Path, name: str) -> _Content:
    """Raises _NoHostsError."""
    try:
        data = local_file.read(_place(folder, name), local_file.CONFIG_MOST)
    except OSError as error:
        where = "it is searched in the folder of the stack file"
        raise _NoHostsError(f"cannot be read ({local_file.why(error)}); {where}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _NoHostsError(f"is not text in UTF-8 (line {line}); save it as that") from None
    return _of_csv(text) if name.endswith(".csv") else _of_yaml(text)


def _place(folder: Path, name: str) -> Path:
    """Where a file is. Raises OSError, and _NoHostsError for what nobody may name."""
    if not name.endswith(_ENDINGS):
        raise _NoHostsError(f"is a file of another kind; its name ends in {', '.join(_ENDINGS)}")
    # A config comes out of a pull request: it must not show what is elsewhere on this computer.
    root = folder.resolve()
    file = (root / name).resolve()
    if name.startswith("~") or not file.is_relative_to(root):
        raise _NoHostsError("is not below the folder of the stack file; put it beside that")
    return file


def _of_yaml(text: str) -> _Content:
    try:
        read = engine_yaml.read(text)
    except NoYamlError as error:
        raise _NoHostsError(str(error)) from None
    if not isinstance(read.value, list):
        raise _NoHostsError("is not a list of hosts; write lines that start with '- name:'")
    lines = list(read.lines)
    misread = [
        (lines[at[0]] if at and isinstance(at[0], int) else 1, dotted(at[1:]), words)
        for at, words in read.problems
    ]
    return _Content(read.value, lines, misread)


def _of_csv(text: str) -> _Content:
    """The first line names the fields, each other line is a host; empty cells say nothing."""
    rows = _rows(text)
    line, header = next(rows, (1, []))
    names, problems = _columns(line, header)
    hosts, lines = list[object](), list[int]()
    for at, cells in rows:
        surplus = [cell for cell in cells[len(names) :] if cell]
        if len(cells) < len(names) or surplus:
            text = f"has {len(cells)} cells, the first line names {len(names)}"
            problems.append((at, "", text))
            continue
        pairs = zip(names, cells, strict=False)
        hosts.append({name: _value(name, cell) for name, cell in pairs if cell and name in _FIELDS})
        lines.append(at)
    return _Content(hosts, lines, problems)


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not empty, each with its first line. Raises _NoHostsError."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    first = 1
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                yield first, cells
            first = reader.line_num + 1
    except csv.Error as error:
        raise _NoHostsError(f"is not CSV (line {first}: {error})") from None


def _columns(line: int, header: Sequence[str]) -> tuple[list[str], list[tuple[int, str, str]]]:
    """The names of the columns, and what is wrong with them. Raises _NoHostsError."""
    names = [*header]
    while names and not names[-1]:
        names.pop()
    required = [name for name, field in _FIELDS.items() if field.is_required()]
    if missing := [name for name in required if name not in names]:
        known = ",".join(_FIELDS)
        raise _NoHostsError(
            f"has no column {' and no column '.join(missing)}; its first line names the columns, "
            f"with commas between them: {known}"
        )
    problems = []
    for index, name in enumerate(names):
        if name not in _FIELDS:
            what = translation.unknown(name, [*_FIELDS], what="column")
            problems.append((line, "", what))
        elif name in names[:index]:
            problems.append((line, "", f"column `{name}` is there twice"))
    return names, problems


def _value(name: str, cell: str) -> object:
    is_number = name in _NUMBERS and cell.isascii() and cell.isdigit()
    # Python refuses to read a number of thousands of digits; the model refuses long ones.
    return int(cell) if is_number and len(cell) < 10 else cell
