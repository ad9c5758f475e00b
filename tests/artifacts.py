#!/usr/bin/env python3
"""Artifacts of a store, for tests that look at them or harm them: those that are files of their own, and those in segments.

artifacts.py <cache>/v1                      lists each: path, offset, bytes
artifacts.py <cache>/v1 holding MEMBER       those whose archive has this member (and `but-not MEMBER` others)
artifacts.py <cache>/v1 [holding ...] harm   flips a bit in the middle of each, and lists them
"""
import glob
import os
import struct
import subprocess
import sys

MAGIC, SKIPPABLE = 0xFD2FB528, 0x184D2A50


def frames(data):
    """(offset, bytes) of each zstd frame (RFC 8878, 3.1.1), skippable ones left out. Ends where something else stands."""
    at = 0
    while at + 8 <= len(data):
        magic, size = struct.unpack_from("<II", data, at)
        if magic & ~0xF == SKIPPABLE:
            at += 8 + size
            continue
        if magic != MAGIC:
            return
        begin, flags = at, data[at + 4]
        content, single, checksum, dictionary = flags >> 6, flags >> 5 & 1, flags >> 2 & 1, flags & 3
        at += 5 + (not single) + (0, 1, 2, 4)[dictionary] + ((1 if single else 0), 2, 4, 8)[content]
        last = False
        while not last and at + 3 <= len(data):
            head = int.from_bytes(data[at : at + 3], "little")
            last, kind, size = head & 1, head >> 1 & 3, head >> 3
            at += 3 + (1 if kind == 1 else size)
        at += 4 * checksum
        if not last or at > len(data):
            return
        yield begin, at - begin


def artifacts(v1):
    found = [(p, 0, os.path.getsize(p)) for p in sorted(glob.glob(os.path.join(v1, "a", "*", "*.tar.zst")))]
    for path in sorted(glob.glob(os.path.join(v1, "s", "*.tar.zst"))):
        with open(path, "rb") as f:
            found += [(path, *frame) for frame in frames(f.read())]
    return found


def bytes_of(path, at, size):
    with open(path, "rb") as f:
        f.seek(at)
        return f.read(size)


def members(artifact):
    tar = subprocess.run(["zstd", "-dcq"], input=bytes_of(*artifact), capture_output=True, check=False).stdout
    return subprocess.run(["tar", "-tf", "-"], input=tar, capture_output=True, check=False).stdout.decode().split("\n")


def write(path, at, data):
    os.chmod(path, 0o644)
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)


def harm(artifact):
    path, at, size = artifact
    middle = at + size // 2
    write(path, middle, bytes([bytes_of(path, middle, 1)[0] ^ 1]))


def main(v1, words):
    found, words = artifacts(v1), iter(words)
    for word in words:
        if word == "harm":
            for a in found:
                harm(a)
        else:
            member, wanted = next(words), word == "holding"
            found = [a for a in found if (member in members(a)) == wanted]
    for a in found:
        print(*a)
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
