#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""SOURCE PAGE: the reference (docs/reference.py) has every function and type of the public headers and every name of the
Python modules, each of them with words on it, and needs nothing but itself."""
import base64
import hashlib
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

SOURCE, PAGE = pathlib.Path(sys.argv[1]), tree.parse(sys.argv[2]).getroot()  # well-formed, too


def declared():
    """What test_binding.py finds in the headers, too: functions and types; and lists."""
    for path in (SOURCE / "lib/attnum").glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
        yield from re.findall(r"^[a-z][\w \*]*?\b(atn_\w+)\(", text, flags=re.M)
        yield from re.findall(r"(?:^\}|typedef enum \{.*\}|typedef struct \w+) (atn_\w+);", text, flags=re.M)
        yield from re.findall(r"#define (ATN_\w+_LIST)\(", text)


def offered():
    for module, file in (("attnum", "__init__"), ("attnum.torch", "torch")):
        text = (SOURCE / f"python/attnum/{file}.py").read_text()
        names = re.search(r"__all__ = \[(.*?)\]", text, flags=re.S)[1]
        yield from (f"{module}.{name}" for name in re.findall(r'"(\w+)"', names))


def says(entry):
    """Whether an entry has more than its heading and code."""
    return any("".join(part.itertext()).strip() for part in entry
               if part.tag in ("p", "pre") and part.get("class") != "code")


ids = [element.get("id") for element in PAGE.iter() if element.get("id")]
c, python = list(declared()), list(offered())
faults = [f"{name}: is not there" for name in c + python if name not in ids]
faults += [f"{name}: occurs twice" for name in set(ids) if ids.count(name) > 1]
faults += [f"{entry.get('id')}: nothing is said of it" for entry in PAGE.iter("article")
           if (entry.get("id") or "").startswith("attnum.") and not says(entry)]
links = [element.get(name) for element in PAGE.iter() for name in ("href", "src") if element.get(name)]
faults += [f"{link}: leads nowhere in the page" for link in links if link[0] != "#" or link[1:] not in ids]
policy = next(meta.get("content") for meta in PAGE.iter("meta") if meta.get("http-equiv"))
digest = base64.b64encode(hashlib.sha256(next(PAGE.iter("script")).text.encode()).digest()).decode()
if f"script-src 'sha256-{digest}'" not in policy or "default-src 'none'" not in policy:
    faults.append("the page does not allow its script alone")
if len(c) < 130 or len(python) < 25 or len(links) < len(ids):
    faults.append(f"only {len(c)} names of C, {len(python)} of Python and {len(links)} links were found")
print("\n".join(faults) or f"{len(ids)} names")
sys.exit(1 if faults else 0)
