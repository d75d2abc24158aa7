#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""claims_page.py FOLDER: whether FOLDER/claims.html is well-formed, asks for nothing outside it, leads
to places and files that exist, and has every text of claims.csv in the section of its statement.
Exits 1 and says where not."""
import csv
import html.parser
import pathlib
import re
import sys
import xml.dom.minidom

folder = pathlib.Path(sys.argv[1])
page = (folder / "claims.html").read_text(encoding="utf-8")
with open(folder / "claims.csv", newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))
wrong = []


class Page(html.parser.HTMLParser):
    """The elements with their attributes, and the texts of sections and of the table's rows, by id."""

    def __init__(self):
        super().__init__()
        self.elements, self.open, self.sections, self.rows, self.texts = [], [], {}, {}, {}

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.elements.append((tag, attributes))
        self.open.append(tag)
        if tag == "section":
            self.texts["section"] = self.sections.setdefault(attributes["id"], [])
        if tag == "tr" and "data-id" in attributes:
            self.texts["tr"] = self.rows.setdefault(attributes["data-id"], [])

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            wrong.append(f"</{tag}> at {self.getpos()} ends another element")
        self.texts.pop(tag, None)

    def handle_data(self, data):
        for text in self.texts.values():
            text.append(data)


xml.dom.minidom.parseString(page)
parsed = Page()
parsed.feed(page)
parsed.close()
if parsed.open:
    wrong.append(f"never ended: {parsed.open}")

ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
for name in sorted(set(ids)):
    if ids.count(name) > 1:
        wrong.append(f"id {name}: {ids.count(name)} times")
for tag, attributes in parsed.elements:
    for name in ("href", "src", "srcset", "action", "data", "poster"):
        target = attributes.get(name, "")
        if target.startswith("#"):
            here = target[1:] in ids
        elif tag == "a":
            here = ":" not in target and (folder / target).is_file() if target else True
        else:
            here = not target or re.match(r"data:image/png;base64,[A-Za-z0-9+/]+=*$", target)
        if not here:
            wrong.append(f"<{tag} {name}={target[:80]!r}>")
    if tag in ("link", "iframe", "object", "embed", "base", "img"):
        wrong.append(f"<{tag}>")
if re.search(r"https?:|@import|url\(", page):
    wrong.append("an address outside")

if not list(parsed.sections) == list(parsed.rows) == [row["id"] for row in rows]:
    wrong.append(f"sections {list(parsed.sections)}, rows {list(parsed.rows)}")
for row in rows:
    section = "".join(parsed.sections.get(row["id"], []))
    line = "".join(parsed.rows.get(row["id"], []))
    for name, text in row.items():
        if name == "certified":
            continue  # in other words, and not where it is not needed
        for part in text.split(" ") if name == "evidence_csv" else [text.replace("`", "")]:
            if part not in section:
                wrong.append(f"{row['id']}, {name}: not in its section: {part}")
            if name in ("id", "statement", "source", "verdict") and part not in line:
                wrong.append(f"{row['id']}, {name}: not in the table: {part}")
    if row["certified"] == "yes" and "certified" not in section:
        wrong.append(f"{row['id']}: not called certified")
print("\n".join(wrong) or f"{len(rows)} statements, {len(parsed.elements)} elements")
sys.exit(1 if wrong else 0)
