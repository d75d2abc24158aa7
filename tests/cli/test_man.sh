#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_man.sh PROGRAM ATTNUM.1: compares the manual page with the program: every verb, and every option with
# the verbs that take it; and nothing that does not exist.
set -u
page=$(realpath "$2")
. "$(dirname "$0")/checks.sh"

# The names of long options in what is read.
options() {
    grep -oE -e '--[a-z][a-z0-9-]*' | sort -u
}

# expect_same NAME: whether `page` and `program` hold the same lines.
expect_same() {
    diff of_page of_program >stdout
    check "$1" $?
}

# mdoc's "Fl -seed , -quick" as "--seed", "--quick"
sed -E '/^\.Dl /!s/(Fl|,) -([a-z])/\1 --\2/g' "$page" >text
: >stderr
command=man

# ---- verbs ----
"$program" --help | sed -n 's/^  attnum \([a-z][a-z]*\) .*/\1/p' | sort >verbs
sed -n 's/^\.Ss //p' text | sort >of_page
cp verbs of_program
expect_same "a section for every verb, and no more"
awk '/^\.Sh SYNOPSIS/ { on = 1 } /^\.Sh DESC/ { on = 0 } on && $1 == ".Cm" { print $2 }' text | sort >of_page
expect_same "every verb in the synopsis, and no more"

# ---- the options of each verb ----
while read -r verb; do
    awk -v verb="$verb" '/^\.S[sh]/ { on = $0 == ".Ss " verb; takes = 0 } /(^| )(T|t)ake/ { takes = 1 }
        on && takes && /^\.Fl|^Fl/' text | options >of_page
    "$program" "$verb" --help | sed -n 's/^  \(--[a-z][a-z0-9-]*\).*/\1/p' | options >of_program
    expect_same "the options of $verb"
    [ -s of_page ]
    check "some options of $verb" $?
done <verbs

# ---- the subjects of bench ----
awk '/^\.Ss/ { on = $2 == "bench" } on && /^\.Cm .* ,/' "$page" | tr ' ' '\n' | grep '^[a-z]' | sort >of_page
"$program" bench --help | sed '/^options/,$d; s/^  \([a-z]*\)  .*/\1/p; d' | sort >of_program
expect_same "the subjects of bench"

# ---- every option, with its argument ----
{
    while read -r verb; do
        "$program" "$verb" --help
    done <verbs
    "$program" run all --help
    echo '  --version  here'
} >help
sed -n 's/^  \(--[a-z][a-z0-9-]*\) .*/\1/p' help | options >of_program
sed -n 's/^\.It Fl \(--[a-z][a-z0-9-]*\).*/\1/p' text | sort >of_page
expect_same "every option is explained once, and no more"
sed -n 's/^  \(--[a-z][a-z0-9-]*\) [A-Z].*/\1/p' help | options >of_program
sed -n 's/^\.It Fl \(--[a-z][a-z0-9-]*\) Ar .*/\1/p' text | sort >of_page
expect_same "those with an argument"
options <text >of_page
sed -n 's/^  \(--[a-z][a-z0-9-]*\) .*/\1/p' help | options >of_program
expect_same "no other option is mentioned"
sort -c of_program && [ "$(sed -n 's/^\.It Fl -//p' "$page" | sort -c 2>&1)" = '' ]
check "options in alphabetical order" $?

# ---- what the examples and references name ----
sed -n 's/^\.Dl attnum //p' "$page" | sed 's/ --help$//' >examples
[ -s examples ]
check "there are examples" $?
while read -r words; do
    # word splitting is wanted: options are words; --help has the line parsed and nothing run
    attnum ${words%%|*} --help
    expect_exit 0
done <examples
"$program" list claims --format csv | cut -d, -f2 | sort -u >statements
for id in $(grep '^claims' examples | grep -oE '[A-Z][0-9]+'); do
    grep -qx "$id" statements
    check "$id is a statement" $?
done
command=man
for kind in $(awk '/Cm list Cm/ { print $4 }' "$page"); do
    attnum list "$kind" --format csv
    expect_exit 0
done

# ---- exit codes, and the page's form ----
"$program" --help | grep -oE '[0-9]+ (all|a|the)' | grep -oE '^[0-9]+' | sort >of_program
awk '/^\.Sh EXIT/ { on = 1; next } /^\.Sh/ { on = 0 } on && $1 == ".It" { print $2 }' "$page" | sort >of_page
expect_same "the exit codes"
if command -v mandoc >/dev/null; then
    mandoc -T lint -W warning "$page" >stdout 2>&1
    check "mandoc finds no fault" $?
fi
if command -v groff >/dev/null; then
    groff -ww -mdoc -T utf8 "$page" 2>stdout >/dev/null
    [ ! -s stdout ]
    check "groff has no warning" $?
fi
finish
