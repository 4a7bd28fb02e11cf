"""What the build box hands out is read as hostile: one fixed form, or refused."""

import io
import struct

import pytest

from evaluator_svc.toolchains.extension_archive import RefusedArchive, read

LIBRARY = b"\x7fELF\x02\x01\x01 and more"


def archive(*entries, count=None):
    data = b"KEEXT001" + struct.pack("<I", len(entries) if count is None else count)
    for key, name, library, size in entries:
        data += struct.pack("<64sHQ", key, len(name), len(library) if size is None else size) + name + library
    return data


def entry(key=b"a" * 64, name=b"fast", library=LIBRARY, size=None):
    return key, name, library, size


def test_libraries_come_out_under_key_and_name_whatever_follows_them():
    data = archive(entry(), entry(key=b"0f" * 32, name=b"slow_1")) + bytes(1000)
    assert read(io.BytesIO(data)) == {f"{'a' * 64}.fast.so": LIBRARY, f"{'0f' * 32}.slow_1.so": LIBRARY}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "handed out no extensions"),
        (bytes(100), "handed out no extensions"),
        (archive(count=17), "17 extensions, more than 16"),
        (archive(count=1), "break off"),
        (archive(entry(key=b"../" * 21 + b"x")), "without a proper name"),
        (archive(entry(key=b"A" * 64)), "without a proper name"),
        (archive(entry(name=b"../../x")), "without a proper name"),
        (archive(entry(name=b"")), "without a proper name"),
        (archive(entry(name=b"a" * 101)), "without a proper name"),
        (archive(entry(library=b"#!/bin/sh")), "extension `fast` is no shared library of at most 64 MiB"),
        (archive(entry(size=1000)), "no shared library"),
        (archive(entry(size=(1 << 64) - 1)), "no shared library"),
    ],
)
def test_what_is_of_another_form_is_refused_with_a_reason(data, said):
    with pytest.raises(RefusedArchive, match=said):
        read(io.BytesIO(data))


def test_an_archive_that_breaks_off_in_its_count_is_refused():
    with pytest.raises(RefusedArchive, match="no extensions"):
        read(io.BytesIO(b"KEEXT001\x01"))
