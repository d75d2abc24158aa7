#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SOURCE ATTNUM: every link of a page to a file of the sources, and to a heading there, leads somewhere, and every
experiment of the program has its page, which experiments/README.md lists; the version is one everywhere; the
container's commands are README's; numbers of statements are those of the kept verdicts."""
import collections
import csv
import json
import os
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(sys.argv[1])
FOLDERS = ("", "bench", "data", "docs", "experiments", "lib", "python", "reference", "tests")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")


def anchors(path):
    """The headings' names as links write them: lower case, spaces as hyphens, no punctuation."""
    headings = re.findall(r"(?m)^#+ (.*)$", path.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page):
    for target, anchor in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        file = page.parent / target if target else page
        if not file.exists():
            yield f"{page.relative_to(SOURCE)}: no file {target}"
        elif anchor and anchor not in anchors(file):
            yield f"{page.relative_to(SOURCE)}: no heading {anchor} in {target or 'this page'}"


def listed(kind):
    output = subprocess.run([sys.argv[2], "list", kind, "--format", "json"], check=True, capture_output=True, text=True)
    return [row["name"] for row in json.loads(output.stdout)]


pages = [page for folder in FOLDERS
         for page in (SOURCE / folder).glob("**/*.md" if folder else "*.md") if page.parent.name != "tables"]
faults = [text for page in pages for text in broken(page)]
index = (SOURCE / "experiments/README.md").read_text()
for name in listed("experiments"):
    page = name.replace("-", "_") + ".md"
    if not (SOURCE / "experiments" / page).exists() or f"({page})" not in index:
        faults.append(f"{name}: no page experiments/{page} that experiments/README.md lists")
version = re.search(r"(?m)^ *version: '(.*)'", (SOURCE / "meson.build").read_text())[1]
for name, text in (("CITATION.cff", f"\nversion: {version}\n"), ("CHANGELOG.md", f"\n## {version}")):
    if text not in (SOURCE / name).read_text():
        faults.append(f"{name}: not of version {version}, which meson.build has")
# The container takes README's two commands, and is made by scripts that are here.
commands = re.findall(r"(?m)^(scripts/\w+) +#", (SOURCE / "README.md").read_text().partition("## Two commands")[2])[:2]
recipe = (SOURCE / "Containerfile").read_text()
for place, text in (("Containerfile", recipe), ("docs/README.md", (SOURCE / "docs/README.md").read_text())):
    if re.findall(r"(?m)^(?:# )?podman run (?:-v \S+ )?attnum (.*)$", text) != commands:
        faults.append(f"{place}: its commands are not README's, {' and '.join(commands)}")
if f'CMD ["{commands[0]}"]' not in recipe:
    faults.append(f"Containerfile: does not run {commands[0]}")
faults += [f"Containerfile: no script {name}" for name in re.findall(r"scripts/[\w-]+", recipe)
           if not os.access(SOURCE / name, os.X_OK)]


def verdicts(name):
    with open(SOURCE / "data" / name, newline="") as file:
        return {row["id"]: row["verdict"] for row in csv.DictReader(file)}


golden, evidence = verdicts("golden/verdicts.csv"), verdicts("evidence/claims.csv")
faults += [f"data/evidence/claims.csv: {name} is not as in data/golden/verdicts.csv" for name in sorted({*golden, *evidence})
           if golden.get(name) != evidence.get(name)]
counts = collections.Counter(golden.values())
counted = (f"{counts['holds']} hold, {counts['holds if']} hold under a condition that is not printed, {counts['fails']} fail, "
           f"{counts['observed']} are observations, and {counts['not testable here']} would need training")
for name in ("README.md", "experiments/claims/README.md"):
    words = " ".join((SOURCE / name).read_text().split())
    if f" {sum(counts.values())} statements" not in words or counted not in words:
        faults.append(f"{name}: not the verdicts that are kept: {sum(counts.values())} statements, {counted}")
if "git" not in re.search(r"packages='(.*?)'", (SOURCE / "scripts/setup").read_text(), flags=re.S)[1].split():
    faults.append("scripts/setup: without git, which tests call: the container has no other")
print("\n".join(faults) or f"{len(pages)} pages: links and lists are whole")
sys.exit(1 if faults else 0)
