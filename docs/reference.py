#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""reference.py SOURCE PAGE.html: the public headers and the Python package's docstrings as one page, which needs no
other file and has a field to search in. `ninja -C build docs/reference.html` makes it."""
import ast
import base64
import hashlib
import html
import pathlib
import re
import sys
import textwrap

STYLE = """:root{color-scheme:light dark;--bg:#fff;--fg:#1d2433;--soft:#5b6577;--line:#dfe3ea;--card:#f6f7f9;--note:#0b62a8}
@media(prefers-color-scheme:dark){:root{--bg:#14171d;--fg:#e6e9ef;--soft:#a2acbd;--line:#333a47;--card:#1d222b;
--note:#5aaef2}}
*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--fg);font:1rem/1.5 system-ui,sans-serif}
main{max-width:66rem;margin:0 auto;padding:20px 16px 48px}a{color:var(--note)}
h1{font-size:1.6rem;margin:.2em 0}h2{font-size:1.3rem;margin:2em 0 .5em;border-top:1px solid var(--line);padding-top:.6em}
h3{font-size:1.05rem;margin:1.2em 0 .3em;overflow-wrap:anywhere}p{margin:.4em 0;max-width:50rem}
pre{font-size:.85rem;line-height:1.4;overflow-x:auto;margin:.5em 0}
pre.code{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.5em .8em}
form{position:sticky;top:0;background:var(--bg);padding:8px 0;border-bottom:1px solid var(--line)}
input{font:inherit;width:100%;padding:.4em .6em;border:1px solid var(--soft);border-radius:6px;background:var(--card);
color:inherit}:focus-visible{outline:2px solid var(--note);outline-offset:2px}
:target{scroll-margin-top:5rem}.soft{color:var(--soft)}summary{cursor:pointer;padding:.3em 0}
.names{columns:15rem;font-size:.9rem;list-style:none;padding:0;margin:.3em 0}.names li{overflow-wrap:anywhere}
.scroll{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}td{padding:.2em .8em .2em 0;vertical-align:top}"""
# Shows the entries that have every word; of a group without one its heading goes, too.
SCRIPT = """const field=document.querySelector('input'),count=document.querySelector('output');
const groups=[...document.querySelectorAll('section')];
function search(){const words=field.value.toLowerCase().split(/\\s+/).filter(Boolean);let found=0;
for(const group of groups){let any=0;for(const entry of group.querySelectorAll('article')){
const text=entry.textContent.toLowerCase();entry.hidden=!words.every(word=>text.includes(word));any+=!entry.hidden}
group.hidden=any===0;found+=any}count.textContent=words.length?found+' of them':''}
field.addEventListener('input',search);field.form.addEventListener('submit',event=>event.preventDefault());search();"""


def prose(text):
    """Paragraphs; what is indented or set in columns stays as it is."""
    parts = []
    for part in re.split(r"\n\s*\n", textwrap.dedent(text).strip("\n")):
        columns = re.search(r"^ |\S   +\S|\S  \S", part, flags=re.M)
        text = html.escape(part)
        text = text if columns else re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
        parts.append(f"<pre>{text}</pre>" if columns else f"<p>{text}</p>")
    return "\n".join(parts)


def entry(names, body):
    """An entry that a link to any of its names leads to; the first one is its heading."""
    heading = f"<h3>{html.escape(names[0])}</h3>" if names else ""
    others = "".join(f'<a id="{html.escape(name)}"></a>' for name in names[1:])
    first = f' id="{html.escape(names[0])}"' if names else ""
    return f"<article{first}>{others}{heading}\n{body}\n</article>", names


# ---- C ----

def declared(code):
    """The names that a piece of a header declares: functions and types first, then lists and enumerators."""
    code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    first = re.findall(r"\b(atn_\w+)\([^)]*\)\s*;", code) + re.findall(r"\b(atn_\w+);", re.sub(r"\([^)]*\)", "", code))
    bodies = "".join(re.findall(r"enum \{(.*?)\}", code, flags=re.S))
    rest = re.findall(r"#\s*define (ATN_\w+)", code) + re.findall(r"\b(ATN_\w+)\b(?!\()", bodies)
    found = dict.fromkeys(first + rest + re.findall(r"X\((ATN_\w+),", code))
    return [name for name in found if name != "ATN_NAMED_ENTRY"]  # which is not declared for others


def listed(code):
    """The rows of a list X(code, name, description), and the code without them."""
    found = re.search(r"#define ATN_\w+_LIST\(X\).*?[^\\]\n(?!.*\\\n)", code + "\n", flags=re.S)
    if not found:
        return "", code
    text = found[0].replace("\\\n", "\n")
    rows = re.findall(r'X\((\w+),\s*("[^"]*"|-?\d+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', text)
    cells = [(code_name, ast.literal_eval(name), ast.literal_eval(f"({words})")) for code_name, name, words in rows]
    table = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>\n" for row in cells)
    return f'<div class="scroll"><table>\n{table}</table></div>', code.replace(found[0].rstrip("\n"), "", 1)


def header(path):
    """(title, introduction, entries) of a header: pieces between empty lines, a comment and what it is about."""
    text = re.sub(r"(?m)^#ifdef __cplusplus\n.*\n#endif\n|^#(?:ifndef|define) ATTNUM_\w+_H$|^#(?:endif|undef|include).*|"
                  r"^#define ATN_\w+_ENTRY\(.*", "", path.read_text())
    introduction, entries = "", []
    for piece in re.findall(r"(?:/\*(?:(?!\*/).)*\*/[^\n]*\n|[^\n]+\n)+", text, flags=re.S):
        comment = re.match(r"\s*(?:/\* SPDX[^\n]*\*/\n)?/\*(.*?)\*/\n?", piece, flags=re.S)
        code = piece[comment.end():] if comment else piece
        words = re.sub(r"(?m)^ \* ?", "", comment[1].strip() if comment else "")
        if not code.strip() and not entries and not introduction:
            introduction = words
            continue
        title = re.match(r"-{2,} (.*?) -{2,}\s*", words)
        words = words[title.end():] if title else words
        names = declared(code) or ([title[1]] if title else [])
        rows, code = listed(code)
        body = (prose(words) if words.strip() else "") + rows
        entries.append(entry(names, body + (f'<pre class="code">{html.escape(code.strip())}</pre>' if code.strip() else "")))
    return f"&lt;attnum/{path.name}&gt;", introduction, entries


# ---- Python ----

def signature(function, name):
    """The call as the source has it, broken after commas alone; of a property its name."""
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    if any("property" in ast.unparse(decorator) for decorator in function.decorator_list):
        return name + returns
    a = function.args
    before = [None] * (len(a.args) - len(a.defaults)) + a.defaults
    shown = [(x, default) for x, default in zip(a.args, before) if x.arg not in ("self", "cls")]
    words = [ast.unparse(x) + (f" = {ast.unparse(default)}" if default else "") for x, default in shown]
    words += [f"*{ast.unparse(a.vararg)}"] if a.vararg else ["*"] if a.kwonlyargs else []
    words += [ast.unparse(x) + (f" = {ast.unparse(default)}" if default else "")
              for x, default in zip(a.kwonlyargs, a.kw_defaults)]
    words += [f"**{ast.unparse(a.kwarg)}"] if a.kwarg else []
    lines = [f"{name}("]
    for i, word in enumerate(words):
        word += ", " if i + 1 < len(words) else ")" + returns
        if len(lines[-1] + word) > 100:
            lines.append(" " * (len(name) + 1))
        lines[-1] += word
    return "\n".join(line.rstrip() for line in lines) + ("" if words else ")" + returns)


def object_entries(name, node, source):
    """A function, or a class: how it is made, its fields, and its public methods."""
    says, code = prose(ast.get_docstring(node) or ""), ""
    if isinstance(node, ast.FunctionDef):
        code = signature(node, name)
    else:
        makes = next((inner for inner in node.body if getattr(inner, "name", "") == "__init__"), None)
        if makes and all(argument.annotation for argument in makes.args.args[1:]):  # others are made by the package
            code = signature(makes, name)
        code += "\n".join(source.splitlines()[inner.lineno - 1].strip() for inner in node.body
                          if isinstance(inner, ast.AnnAssign))
    yield entry([name], (f'<pre class="code">{html.escape(code)}</pre>\n' if code else "") + says)
    for inner in getattr(node, "body", []):
        public = isinstance(inner, ast.FunctionDef) and (not inner.name.startswith("_") or inner.name == "__call__")
        if isinstance(node, ast.ClassDef) and public and ast.get_docstring(inner):
            yield from object_entries(f"{name}.{inner.name}", inner, source)


def module(package, title, path):
    """(title, introduction, entries) of what a module offers in __all__, wherever in the package it is defined."""
    tree = ast.parse(path.read_text())
    offered = next(ast.literal_eval(node.value) for node in tree.body
                   if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    homes = {alias.name: package / f"{node.module}.py" for node in tree.body if isinstance(node, ast.ImportFrom)
             and node.level == 1 for alias in node.names}
    entries = []
    for name in offered:
        home = homes.get(name, path)
        text = home.read_text() if home.exists() else ""  # Status is made by bind.py
        node = next((node for node in ast.parse(text).body if getattr(node, "name", "") == name), None)
        entries += object_entries(f"{title}.{name}", node, text) if node else [entry([f"{title}.{name}"], prose(
            "The codes of attnum/status.h as an enum.IntEnum: OK, NOT_CONVERGED, ERR_VALUE, ..."))]
    return title, ast.get_docstring(tree), entries


def groups(source):
    package, headers = source / "python/attnum", source / "lib/attnum"
    yield module(package, "attnum", package / "__init__.py")
    yield module(package, "attnum.torch", package / "torch.py")
    yield "pytest", ast.get_docstring(ast.parse((package / "_pytest.py").read_text())), []
    first = headers / "attnum.h"
    for path in [first, *sorted(set(headers.glob("*.h")) - {first})]:
        yield header(path)


def page(source):
    found = [(title, [entry([], prose(introduction)), *entries]) for title, introduction, entries in groups(source)]
    names = [name for _, entries in found for _, of_entry in entries for name in of_entry]
    version = re.search(r"version: '(.*?)'", (source / "meson.build").read_text())[1]
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    index = "".join(f'<li><a href="#{html.escape(name)}">{html.escape(name)}</a></li>' for name in names)
    sections = "\n".join(f'<section>\n<h2>{title}</h2>\n' + "\n".join(text for text, _ in entries) + "\n</section>"
                         for title, entries in found)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'"/>
<title>attnum {version}: reference</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<h1>attnum {version}: reference</h1>
<p>The module for Python and the C library, as their docstrings and headers describe them.</p>
<form><label>Search <output class="soft"></output><input type="search" placeholder="words, such as: inverse residual"/>
</label></form>
<details><summary>All {len(names)} names</summary><ul class="names">{index}</ul></details>
{sections}
</main>
<script>{SCRIPT}</script>
</body>
</html>
"""


if __name__ == "__main__":
    pathlib.Path(sys.argv[2]).write_text(page(pathlib.Path(sys.argv[1])), encoding="utf-8")
