# SPDX-License-Identifier: BSD-3-Clause
"""Works timed by turns, and what else the machine did meanwhile. Needs no package."""
import os
import pathlib
import platform
import re
import statistics
import time

WARM_UPS, LEAST, MOST = 2, 5, 200
SHORT = 5e-3  # s: shorter calls are timed in a row
MOST_CALLS = 1000
CLEAN = 0.02


def processor(cpuinfo=pathlib.Path("/proc/cpuinfo")):
    """Its name, as it says itself; where virtual machines hide the number of the model, with its family and model."""
    try:
        said = dict(re.findall(r"^(model name|cpu family|model)\s*: (.*)$", cpuinfo.read_text(), re.M))
        name = said["model name"]
    except (OSError, KeyError):
        return platform.processor()
    hidden = not re.search(r"\d", name) and "cpu family" in said and "model" in said
    return f"{name}, family {said['cpu family']} model {said['model']}" if hidden else name


class Ticks:
    """What other processes and machines take of this one's time between two looks at /proc/stat."""

    def __init__(self):
        self.then = self.look()

    @staticmethod
    def look():
        """Seconds: clock, busy, stolen, this process's own."""
        own = os.times()
        try:
            with open("/proc/stat") as file:
                user, nice, system, _, _, irq, soft, steal, *_ = map(int, file.readline().split()[1:])
        except OSError:
            return None
        tick = os.sysconf("SC_CLK_TCK")
        return time.monotonic(), (user + nice + system + irq + soft) / tick, steal / tick, own.user + own.system

    def shares(self):
        now = self.look()
        if now is None:
            return {}
        clock, busy, stolen, own = (b - a for a, b in zip(self.then, now))
        whole = clock * os.cpu_count()
        return {"foreign_share": max(0, busy - own) / whole, "steal_share": stolen / whole}


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def alternate(clock, works, seconds):
    """Of each: seconds and processors' seconds of a call, repeat by repeat, and the calls in a repeat."""
    calls = []
    for work in works:
        for _ in range(WARM_UPS):
            once, _ = clock.time(work, 1)
        calls.append(min(MOST_CALLS, max(1, round(SHORT / once))))
    rounds, start = [], time.perf_counter()
    while len(rounds) < LEAST or (len(rounds) < MOST and time.perf_counter() - start < seconds * len(works)):
        rounds.append([clock.time(work, count) for work, count in zip(works, calls)])
    return list(zip(*rounds)), calls


def measure(clock, works, seconds):
    """As above, and what else the machine did; once more if that was much."""
    for _ in range(2):
        ticks = Ticks()
        times, calls = alternate(clock, works, seconds)
        shares = ticks.shares()
        dirty = sum(shares.values()) > CLEAN
        if not dirty:
            break
    return times, calls, {**shares, "dirty": "" if not shares else "yes" if dirty else "no"}


def rows_of(names, times, calls):
    """A row for each; ratios are over the first, repeat by repeat."""
    base = [seconds for seconds, _ in times[0]]
    for i, (name, repeats, count) in enumerate(zip(names, times, calls)):
        seconds, processors = zip(*repeats)
        low, middle, high = quartiles(seconds)
        row = {"form": name, "repeats": len(seconds), "calls": count, "seconds": middle, "seconds_low": low,
               "seconds_high": high, "cpu_seconds": statistics.median(processors)}
        if i > 0:
            low, middle, high = quartiles([b / a for a, b in zip(base, seconds)])
            row.update(ratio=middle, ratio_low=low, ratio_high=high)
        yield row


def crossover(rows, form):
    """The least n from which on the form is slower, by its lower quartile, at every n that was timed; None:
    not even at the largest."""
    found = None
    for row in sorted((row for row in rows if row["form"] == form), key=lambda row: -row["n"]):
        if not row.get("ratio_low", 0) > 1:
            break
        found = row["n"]
    return found
