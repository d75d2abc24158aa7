# SPDX-License-Identifier: BSD-3-Clause
"""The program attnum: the one that a wheel carries, with its photographs and trained networks, or the one that is
installed; ATTNUM_PROGRAM names another."""
import os
import pathlib
import subprocess
import sys

from ._library import Error, missing_library

_FOLDER = pathlib.Path(__file__).resolve().parent / "program"


def path():
    return os.environ.get("ATTNUM_PROGRAM") or (str(_FOLDER / "attnum") if _FOLDER.exists() else "attnum")


def environment():
    carried = path() == str(_FOLDER / "attnum")
    own = {"ATTNUM_DATADIR": str(_FOLDER)} if carried else {}
    return {"OPENBLAS_NUM_THREADS": "1", **own, **os.environ}


def run(arguments, cwd=None):
    """The finished process; Error if the program could not be started or was ended by a signal."""
    try:
        done = subprocess.run([path(), *arguments], env=environment(), capture_output=True, text=True, cwd=cwd)
    except OSError as error:
        raise Error(f"the program attnum: {error}") from error
    if done.returncode == 127:
        raise Error(missing_library(done.stderr) or done.stderr.strip())
    if done.returncode < 0:
        raise Error(f"the program attnum: ended by signal {-done.returncode}")
    return done


def main():
    """The command `attnum`."""
    os.execvpe(path(), ["attnum", *sys.argv[1:]], environment())
