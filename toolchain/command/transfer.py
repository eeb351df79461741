"""Copies over SFTP, with the official rules for files, folders and what is there already."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import asyncssh

from toolchain.resources import OperationError


async def transfer(
    machine: asyncssh.SSHClientConnection, source: Path | bytes, target: str
) -> None:
    """Copy text, a file or a folder. Raises OperationError.

    A file goes into a folder that exists, else it is the target. A folder goes into the target
    under its own name, which is made if need be. Text needs a target that is not a folder.
    """
    try:
        async with machine.start_sftp_client() as sftp:
            if isinstance(source, bytes):
                await _text(sftp, source, target)
            elif source.is_dir():
                await _folder(sftp, source, target)
            else:
                await _file(sftp, source, target)
    except (asyncssh.Error, OSError) as error:
        raise OperationError(f"failed to copy to remote path {target}: {error}") from None


async def _text(sftp: asyncssh.SFTPClient, text: bytes, target: str) -> None:
    if await sftp.isdir(target):
        raise OperationError(
            f"remote path {target} is a directory; "
            "when using a text asset, remotePath must be a file path"
        )
    async with sftp.open(target, "wb") as remote:
        await remote.write(text)


async def _file(sftp: asyncssh.SFTPClient, source: Path, target: str) -> None:
    if await sftp.isdir(target):
        target = str(PurePosixPath(target) / source.name)
    await sftp.put(str(source), target)


async def _folder(sftp: asyncssh.SFTPClient, source: Path, target: str) -> None:
    if not await sftp.exists(target):
        await sftp.mkdir(target)
    inside = str(PurePosixPath(target) / source.name)
    for path in [source, *sorted(source.rglob("*"))]:
        remote = str(PurePosixPath(inside) / path.relative_to(source).as_posix())
        if not path.is_dir():
            await sftp.put(str(path), remote)
        elif not await sftp.exists(remote):
            await sftp.mkdir(remote)
        elif not await sftp.isdir(remote):
            raise OperationError(f"remote path {remote} exists but is not a directory")
