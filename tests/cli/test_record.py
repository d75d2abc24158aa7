#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SOURCE: scripts/performance-record, with a program in the place of attnum and of Python that writes, instead of measured
times, the files of tests/cli/tables."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(SOURCE / "bench/peers"))
import turns  # noqa: E402

MAKER = SOURCE / "tests/cli/tables/performance/maker-a"
README = "<!-- times: begin -->\n<!-- times: end -->\n<!-- growth: begin -->\n<!-- growth: end -->\n"
NAMES = {"bench.csv", "bench_ratios.csv", "peers.csv", "crossover.csv", "bench_growth.csv", "bench_growth_fits.csv", "growth.png"}
STUB = f"""#!{sys.executable}
import json, os, pathlib, shutil, sys
maker, words = pathlib.Path({str(MAKER)!r}), sys.argv[1:]
with open(pathlib.Path(__file__).parent / "said", "a") as said:
    said.write(json.dumps(words) + "\\n")
if set(words) & set(os.environ.get("STUB_FAILS", "").split()):
    sys.exit(3)
after = dict(zip(words, words[1:]))
names = {{"operators": ["bench.csv", "bench_ratios.csv"], "memory": ["bench_growth.csv", "bench_growth_fits.csv"]}}
if "--emit-tokens" in words:
    pathlib.Path(after["--emit-tokens"]).mkdir()
elif words[0] == "bench":
    for name in names[words[1]]:
        shutil.copyfile(maker / name, pathlib.Path(after["--out"]) / name)
    if words[1] == "memory" and not os.environ.get("STUB_NO_PICTURE"):
        shutil.copyfile(maker / "growth.png", pathlib.Path(after["--out"]) / "bench_growth.png")
else:
    assert pathlib.Path(words[-1]).is_dir(), words
    shutil.copyfile(maker / pathlib.Path(after["--out"]).name, after["--out"])
    sys.exit(int(os.environ.get("STUB_CODE", 0)))
"""
failed = 0


def check(what, right):
    global failed
    failed += not right
    print(f"{'ok  ' if right else 'FAIL'}  {what}")


class Place:
    """A folder with the program, a page and what is recorded there."""

    def __init__(self, folder):
        self.folder, self.said = folder, folder / "build/experiments/said"
        self.program = folder / "build/experiments/attnum"
        self.program.parent.mkdir(parents=True)
        self.program.write_text(STUB)
        self.program.chmod(0o755)
        (folder / "made.md").write_text(README)

    def record(self, *words, **environment):
        """The exit code, what is said on stderr and the commands."""
        self.said.write_text("")
        results = tempfile.mkdtemp(dir=self.folder)
        command = [sys.executable, SOURCE / "scripts/performance-record", "--build", self.folder / "build",
                   "--results", results, "--data", self.folder / "kept", "--readme", self.folder / "made.md",
                   "--python", self.program, *words]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
        return done.returncode, done.stderr, [json.loads(line) for line in self.said.read_text().splitlines()]

    def kept(self, processor):
        return {path.name: path.read_bytes() for path in (self.folder / "kept" / processor).glob("*")}


def names_processors(folder):
    """Virtual machines may hide the number of a model."""
    said = {"Maker(R) 6338 @ 2.00GHz": "Maker(R) 6338 @ 2.00GHz", "Maker X": "Maker X, family 25 model 17"}
    for name, wanted in said.items():
        (folder / "cpuinfo").write_text(f"cpu family\t: 25\nmodel\t\t: 17\nmodel name\t: {name}\n" * 2)
        check(f"the name of {name}", turns.processor(folder / "cpuinfo") == wanted)


def main():
    recorded = {name: (MAKER / name).read_bytes() for name in NAMES}
    with tempfile.TemporaryDirectory(prefix="attnum-record-") as name:
        place = Place(pathlib.Path(name))
        names_processors(place.folder)
        code, said, commands = place.record("--processor", "Maker(R) A CPU @ 2.00GHz")
        check("everything is recorded", code == 0 and place.kept("maker-a") == recorded)
        made = (place.folder / "made.md").read_text()
        check("the tables are made", "its processor" in made and "kept" not in made and "growth.png" in made)
        timed = [words for words in commands if words[0].endswith("bench/peers/torch_peers.py")]
        check("PyTorch's forms are timed forward and in training, on one and two threads",
              [("forward,training" in words, "1,2" in words, "--no-compiled" in words) for words in timed] ==
              [(True, True, False), (False, True, True)])

        code, _, commands = place.record("--processor", "another (TM) maker", "--parts", "operators")
        check("a part of another processor has its own folder",
              code == 0 and set(place.kept("another-maker")) == {"bench.csv", "bench_ratios.csv"} and len(commands) == 1)
        check("and leaves the first as it was", place.kept("maker-a") == recorded)

        for path in (place.folder / "kept/maker-a").iterdir():
            path.write_text("before")
        code, said, commands = place.record("--processor", "Maker A", STUB_FAILS="memory --work")
        after = place.kept("maker-a")
        check("parts that fail leave what was there, the others are kept", code != 0 and len(commands) == 6 and
              {key for key, value in after.items() if value == b"before"} == NAMES - {"bench.csv", "bench_ratios.csv",
                                                                                    "crossover.csv"})
        check("which is said", said.count("that ended with 3") == 2 and "peers.csv was not written" in said)
        code, said, _ = place.record("--processor", "b", "--parts", "growth", STUB_NO_PICTURE="1")
        check("a file that is missing is said, the others are kept", code == 1 and "bench_growth.png was not" in said and
              set(place.kept("b")) == {"bench_growth.csv", "bench_growth_fits.csv"})
        code, said, _ = place.record("--processor", "c", "--parts", "peers", STUB_CODE="1")
        check("a form that is another formula is a failure, the times of the others are kept",
              code == 1 and "that ended with 1" in said and set(place.kept("c")) == {"peers.csv"})
        code, said, commands = place.record("--parts", "none")
        check("an unknown part is refused", code == 2 and "no 'none'" in said and not commands)
        place.program.unlink()
        code, said, commands = place.record()
        check("so is a build that is not there", code == 3 and "scripts/build" in said and not commands)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
