# SPDX-License-Identifier: BSD-3-Clause
# A panel per dtype: matrices downwards, rules across; a cell is the residual after 20 steps. Of an
# input with several samples the first one is shown.

has(list, word) = strstrt(" ".list, " ".word." ") > 0
with_word(list, word) = has(list, word) ? list : list.word." "
place(list, word) = words((" ".list)[1:strstrt(" ".list, " ".word." ")]) + 1
name(n) = stringcolumn("matrix").(stringcolumn("stage") eq "" ? " (m = ".stringcolumn("m").")" : \
    stringcolumn("stage") eq "0" ? "" : ", stage ".stringcolumn("stage"))

# Walks down the rows of the CSV: y becomes the number of the matrix; false if it is not shown.
start(x) = (y = 0, before = "", seed = "", x)
shown(n) = (seed = seed eq "" ? stringcolumn("seed") : seed, \
    stringcolumn("seed") eq "" || (stringcolumn("seed") eq seed && stringcolumn("sample") eq "0"))
walk(ok) = !ok ? 0 : (y = name(0) eq before ? y : y + 1, before = name(0), 1)

rules = ""; dtypes = ""; missing = start(0)
set table $nothing
plot csv using (walk(shown(0)), rules = with_word(rules, stringcolumn("rule")), \
    dtypes = with_word(dtypes, stringcolumn("dtype")), 0):(0) with table
unset table
rows = y

exponent(n) = column("residual_t20") > 1e-17 ? log10(column("residual_t20")) : -17
by_rounding(n) = stringcolumn("search_found") eq "true" && stringcolumn("search_exact") eq "false"
tens(r) = floor(log10(r * 1.0526)) # 9.5 and more is 10
power(r) = sprintf("%.0f·10^{%d}", r / 10 ** tens(r), tens(r))
label(n) = stringcolumn("status_t20") eq "no start" ? "none" : \
    stringcolumn("status_t20") eq "overflowed" ? "∞" : \
    (column("residual_t20") == 0 ? "0" : column("residual_t20") >= 0.095 ? \
        sprintf("%.2g", column("residual_t20")) : \
        power(column("residual_t20"))).(by_rounding(0) ? "*" : "")
x(n) = place(rules, stringcolumn("rule"))
this(d) = walk(shown(0)) && stringcolumn("dtype") eq d

set terminal @terminal size 1280,235 + 36 * rows font "Sans,13"
set output out
top = 1 - 75.0 / (235 + 36 * rows)
bottom = 150.0 / (235 + 36 * rows)
set multiplot title "Residual ‖A X A − A‖_2 / ‖A‖_2 after 20 Newton-Raphson steps, by the rule for the start α" \
    font ",16"
set palette defined (-17 "#f7fbff", -8 "#9ecae1", -3 "#fdd0a2", 0 "#e6550d")
set cbrange [-17:0]
unset colorbox
unset key
set border 0
set tics scale 0
set xrange [0.5:words(rules) + 0.5]
set yrange [rows + 0.5:0.5]
unset ytics
set xtics rotate by 35 right ("" 0)
do for [j = 1:words(rules)] { set xtics add (word(rules, j) j) }
set tmargin at screen top
set bmargin at screen bottom
set style fill solid noborder
width = 0.785 / words(dtypes)
do for [i = 1:words(dtypes)] {
    d = word(dtypes, i)
    set lmargin at screen 0.210 + (i - 1) * width
    set rmargin at screen 0.210 + i * width - 0.012
    set title d font ",14" offset 0,-0.5
    if (i == words(dtypes)) {
        samples = 0; seeds = 0 # after the first, of matrices that have them
        stats csv using (samples = samples || column("sample") > 0, \
            seeds = seeds || (stringcolumn("seed") ne "" && stringcolumn("seed") ne seed), 0) nooutput
        said = leave_out(samples ? "samples after the first" : "")
        said = leave_out(seeds ? "seeds after the first" : "")
        set label 1 "*  found only because rounding makes the test true: in exact arithmetic there is none" \
            at screen 0.992, screen 34.0 / (235 + 36 * rows) right font ",12"
        eval footer
    }
    plot missing = start(0), csv using \
            (this(d) ? x(0) : NaN):(y):(x(0) - 0.48):(x(0) + 0.48):(y - 0.46):(y + 0.46): \
            (stringcolumn("status_t20") eq "no start" ? NaN : exponent(0)) \
            with boxxyerror lc palette, \
        missing = start(0), csv using (this(d) ? x(0) : NaN):(y):(label(0)) with labels font ",12", \
        missing = start(0), csv using (this(d) && i == 1 && x(0) == 1 ? 0.5 : NaN):(y):(name(0)) \
            with labels right offset -0.5,0 font ",12"
}
unset multiplot
