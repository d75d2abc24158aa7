# SPDX-License-Identifier: BSD-3-Clause
# Products to 1e-6 against the condition number, from alpha A and from alpha I. Upper row: the
# papers' metric; lower row: |I - A X|_2. Lines are dense spectra by the closed form, points are
# rotated matrices of the first seed.

set encoding utf8
set datafile missing NaN # rows of other methods do not break a line
has(list, word) = strstrt(" ".list, " ".word." ") > 0
with_word(list, word) = has(list, word) ? list : list.word." "
methods = ""; dtypes = ""; seed = ""; top = 10.0; least = 1e300; most = 0.0
stats csv using (methods = with_word(methods, stringcolumn("method")), \
    dtypes = stringcolumn("dtype") eq "exact" ? dtypes : with_word(dtypes, stringcolumn("dtype")), \
    seed = seed eq "" ? stringcolumn("seed") : seed, \
    stringcolumn("spectrum") eq "dense" && column("products") > top ? top = column("products") : 0, \
    stringcolumn("spectrum") eq "dense" && column("condition") > most ? most = column("condition") : 0, \
    stringcolumn("spectrum") eq "dense" && column("condition") < least ? least = column("condition") : 0, \
    0) nooutput
main = has(dtypes, "f64") ? "f64" : word(dtypes, 1)

colour(j) = colour_of(word(methods, j))
mark(j) = mark_of(word(methods, j))
main_interval(name) = name[1:9] eq "chebyshev" ? "exact" : "norm"
here(spectrum, name, start, interval, metric) = stringcolumn("spectrum") eq spectrum && \
    (spectrum eq "dense" || (stringcolumn("seed") eq seed && stringcolumn("dtype") eq main)) && \
    stringcolumn("method") eq name && stringcolumn("start") eq start && \
    stringcolumn("interval") eq interval && stringcolumn("metric") eq metric
x(ok) = ok ? column("condition") : NaN

set terminal @terminal size 1280,960 font "Sans,14"
set output out
set multiplot title "Products of m×m matrices until 10^{-6}, by the condition number of A" font ",17"
set grid xtics ytics lt 1 lw 0.6 lc rgb "#dddddd"
set border 3
set tics nomirror
set logscale x
set xrange [least / 1.6:most * 1.6]
set yrange [0:top * 1.06]
set format x "10^{%T}"
unset key
do for [row = 1:2] {
    metric = row == 1 ? "axa" : "i_ax"
    set tmargin at screen row == 1 ? 0.895 : 0.525
    set bmargin at screen row == 1 ? 0.590 : 0.220
    set xlabel row == 1 ? "" : "condition number" offset 0,0.3
    do for [i = 1:2] {
        start = word("A I", i)
        set lmargin at screen 0.075 + (i - 1) * 0.485
        set rmargin at screen 0.505 + (i - 1) * 0.485
        set ylabel i > 1 ? "" : row == 1 ? "products, ‖A X A − A‖_2 / ‖A‖_2" : "products, ‖I − A X‖_2"
        set title row == 2 ? "" : i == 1 ? "from X_0 = α A" : "from X_0 = α I" offset 0,-0.5
        plot for [j = 1:words(methods)] csv using \
                (x(here("dense", word(methods, j), start, main_interval(word(methods, j)), metric))): \
                (column("products")) with lines lw 2.2 lc rgb colour(j), \
            for [j = 1:words(methods)] csv using \
                (x(here("rotated", word(methods, j), start, main_interval(word(methods, j)), metric))): \
                (column("products")) with points pt mark(j) ps 1.1 lc rgb colour(j), \
            for [j = 8:words(methods)] csv using \
                (x(here("rotated", word(methods, j), start, "estimated", metric))): \
                (column("products")) with points pt mark(j) - 1 ps 2.2 lw 1.5 lc rgb colour(j)
    }
}

seeds = ""
stats csv using (stringcolumn("spectrum") eq "rotated" ? (seeds = listed(seeds, stringcolumn("seed")), 0) : 0) nooutput
said = leave_out(words(seeds) > 1 ? "seeds after the first" : "")
said = leave_out(words(dtypes) > 1 ? "dtypes other than ".main : "")

# The legend, in a strip of its own.
reset
set lmargin at screen 0.03
set rmargin at screen 0.99
set tmargin at screen 0.13
set bmargin at screen 0.00
unset border
unset tics
set xrange [0:1]
set yrange [0:1]
eval footer
set key at screen 0.5, screen 0.155 center top vertical maxrows 5 Left reverse width -2 samplen 2.5 font ",13"
plot for [j = 1:words(methods)] NaN with linespoints lw 2.2 pt mark(j) \
        lc rgb colour(j) title word(methods, j), \
    NaN with points pt 10 ps 2.2 lw 1.5 lc rgb "#444444" title "chebyshev, interval estimated", \
    NaN with lines lw 2.2 lc rgb "#444444" title "numbers, ‖A‖_1 = 1.2 λ_{max}", \
    NaN with points pt 7 lc rgb "#444444" title "matrix in ".main.", its own ‖A‖_1"
unset multiplot
