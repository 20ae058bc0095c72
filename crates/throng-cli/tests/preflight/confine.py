"""Runs a command under a system-call filter like that of a container.

A thread cannot have its own fd table and, with `--without-netlink`, no netlink socket.
Usage: confine.py [--without-netlink] COMMAND..."""

import ctypes
import os
import platform
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD_WORD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | 1  # EPERM
AF_NETLINK = 16
# (unshare, socket)
CALLS = {"x86_64": (272, 41), "aarch64": (97, 198)}


def instruction(code, value, if_true=0, if_false=0):
    return struct.pack("=HBBI", code, if_true, if_false, value)


def program(without_netlink):
    unshare, socket = CALLS[platform.machine()]
    lines = [
        instruction(LOAD_WORD, 0),  # the number of the call
        instruction(JUMP_IF_EQUAL, unshare, 0, 1),
        instruction(RETURN, REFUSE),
    ]
    if without_netlink:
        lines += [
            instruction(JUMP_IF_EQUAL, socket, 0, 3),
            instruction(LOAD_WORD, 16),  # the low half of its first argument
            instruction(JUMP_IF_EQUAL, AF_NETLINK, 0, 1),
            instruction(RETURN, REFUSE),
        ]
    return b"".join(lines + [instruction(RETURN, ALLOW)])


def confine(without_netlink):
    filter_bytes = program(without_netlink)
    kept = ctypes.create_string_buffer(filter_bytes)
    header = struct.pack("HxxxxxxP", len(filter_bytes) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in [(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, header, 0, 0)]:
        if libc.prctl(*arguments) != 0:
            sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    words = sys.argv[1:]
    without_netlink = words[:1] == ["--without-netlink"]
    confine(without_netlink)
    command = words[1:] if without_netlink else words
    os.execvp(command[0], command)
