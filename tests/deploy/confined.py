"""Starts a program as a container runtime does: confined.py SECCOMP FOLDER UID PROGRAM ARGUMENT..

All file systems are read-only for it but FOLDER, it runs as UID without capabilities, can gain no rights, and makes no
system calls but those of SECCOMP (the OCI runtime specification's format). Without root only the last two hold: UID is "-" then.
The process stays the same, so its signals and output are the program's. libseccomp makes the filter.
"""

import ctypes
import ctypes.util
import json
import os
import sys

CLONE_NEWNS = 0x00020000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
PR_SET_NO_NEW_PRIVS = 38
ALLOW, ERRNO = 0x7FFF0000, 0x00050000

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result != 0:
        sys.exit(f"confined: {what}: {os.strerror(ctypes.get_errno())}")


def mount(source, target, flags):
    check(libc.mount(source, target.encode(), None, ctypes.c_ulong(flags), None), f"mount {target}")


def make_read_only(folder, program):
    check(libc.unshare(CLONE_NEWNS), "unshare")
    mount(None, "/", MS_REC | MS_PRIVATE)
    mount(folder.encode(), folder, MS_BIND)
    # The user may not have the right to look into the program's folder.
    inside = os.path.join(folder, "program")
    open(inside, "w").close()
    mount(program.encode(), inside, MS_BIND)
    with open("/proc/self/mounts") as mounts:
        places = [line.split()[1].encode().decode("unicode_escape") for line in mounts]
    for place in places:
        if place != folder:
            # Those that are covered by others, or are gone, cannot be changed, nor be reached.
            libc.mount(None, place.encode(), None, ctypes.c_ulong(MS_REMOUNT | MS_BIND | MS_RDONLY), None)
    for place in ["/", "/tmp"]:
        if os.access(place, os.W_OK) and not os.path.samefile(place, folder):
            sys.exit(f"confined: {place} is not read-only")
    return inside


def filter_of(file):
    seccomp = ctypes.CDLL(ctypes.util.find_library("seccomp"))
    seccomp.seccomp_init.restype = ctypes.c_void_p
    with open(file) as text:
        profile = json.load(text)
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO", profile["defaultAction"]
    context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(ERRNO | profile["defaultErrnoRet"])))
    for group in profile["syscalls"]:
        assert group["action"] == "SCMP_ACT_ALLOW", group["action"]
        for name in group["names"]:
            number = seccomp.seccomp_syscall_resolve_name(name.encode())
            assert number >= 0, f"unknown system call {name}"
            result = seccomp.seccomp_rule_add(context, ctypes.c_uint32(ALLOW), number, 0)
            assert result == 0, f"{name}: {result}"
    return seccomp, context


def main(file, folder, user, program, *arguments):
    seccomp, context = filter_of(file)
    if user != "-":
        program = make_read_only(folder, program)
        os.chdir(folder)
        os.setgroups([])
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    result = seccomp.seccomp_load(context)
    assert result == 0, f"seccomp_load: {result}"
    os.execv(program, [program, *arguments])


main(*sys.argv[1:])
