# SPDX-License-Identifier: BSD-3-Clause
# A panel per input, at its largest m, first sample: the residual iterate by iterate, a curve per
# precision. Discs: the best iterate; rings: what the stopping rule returned; crosses: the
# hypothesis for numerically rank-deficient A.

set encoding utf8
if (!exists("csv2")) csv2 = sibling("_curves")
inputs = ""; precisions = ""; count = 0; seed = ""; last = 1
has(list, word) = strstrt(" ".list, " ".word." ") > 0
with_word(list, word) = has(list, word) ? list : list.word." "
# The inputs, each in quotes: a file's name may hold spaces.
note(name) = strstrt(inputs, '"'.name.'"') ? 0 : (inputs = inputs.'"'.name.'" ', 0)
stats csv using (seed = seed eq "" ? stringcolumn("seed") : seed, note(stringcolumn("input")), \
    precisions = with_word(precisions, stringcolumn("precision")), \
    last = column("law_iteration") > last ? column("law_iteration") : last, 0) nooutput
shown = words(inputs) < 8 ? words(inputs) : 8
across = shown > 3 ? (shown + 1) / 2 : shown
down = shown > 3 ? 2 : 1

array sizes[shown]
do for [i = 1:shown] {
    stats csv using (stringcolumn("input") eq word(inputs, i) ? column("m") : NaN) name "OF_INPUT" \
        nooutput
    sizes[i] = OF_INPUT_max
}

here(i, p) = stringcolumn("input") eq word(inputs, i) && column("m") == sizes[i] && \
    stringcolumn("precision") eq p
shown_first(i, p) = here(i, p) && stringcolumn("sample") eq "0" && stringcolumn("seed") eq seed
x(ok, name) = ok ? column(name) : NaN
deficient(i, p) = shown_first(i, p) && column("rank") < column("m") && \
    stringcolumn("coincident") eq "false"

height = down == 1 ? 585 : 925
set terminal @terminal size 1480,height font "Sans,14"
set output out
set multiplot title "The residual of Newton-Raphson iterates in five precisions: ".\
    "best iterate, stopping rule, hypothesis" font ",17" offset 0,0.3
set grid xtics ytics lt 1 lw 0.6 lc rgb "#dddddd"
set border 3
set tics nomirror
set logscale y
set yrange [1e-17:10]
set ytics 1e-16,1e4,1
unset mytics
set xrange [0:1.5 * last]
unset key

strip = 130.0 / height
top = 1 - 65.0 / height
step = (top - strip - 0.06) / down
do for [i = 1:shown] {
    row = (i - 1) / across
    col = (i - 1) % across
    set tmargin at screen top - row * step - (row > 0 ? 0.05 : 0)
    set bmargin at screen top - (row + 1) * step - (row > 0 ? 0.02 : -0.03)
    set lmargin at screen 0.068 + col * 0.93 / across
    set rmargin at screen 0.068 + (col + 1) * 0.93 / across - 0.02
    set format y col > 0 ? "" : "10^{%T}"
    set ylabel col > 0 ? "" : "‖A X_k A − A‖_2 / ‖A‖_2" offset 1.2,0
    set xlabel (i + across > shown) ? "iteration k" : "" offset 0,0.4
    set title sprintf("%s, m = %.0f", word(inputs, i), sizes[i]) offset 0,-0.6 noenhanced
    plot for [j = 1:words(precisions)] csv2 using \
            (x(here(i, word(precisions, j)), "iteration")):(column("residual")) \
            with lines lw 2 lc rgb colour_of(word(precisions, j)), \
        for [j = 1:words(precisions)] csv using \
            (x(deficient(i, word(precisions, j)), "law_iteration")):(column("law_floor")) \
            with points pt 2 ps 1.4 lw 2.5 lc rgb colour_of(word(precisions, j)), \
        for [j = 1:words(precisions)] csv using \
            (x(shown_first(i, word(precisions, j)), "stop_iteration")):(column("stop_residual")) \
            with points pt 6 ps 1.9 lw 1.8 lc rgb colour_of(word(precisions, j)), \
        for [j = 1:words(precisions)] csv using \
            (x(shown_first(i, word(precisions, j)), "best_iteration")):(column("floor")) \
            with points pt 7 ps 0.9 lc rgb colour_of(word(precisions, j))
}

all_samples = ""; all_seeds = ""; others = 0
do for [i = 1:shown] {
    stats csv using (stringcolumn("input") eq word(inputs, i) && column("m") != sizes[i] ? (others = 1, 0) : 0) nooutput
}
stats csv using (all_samples = listed(all_samples, stringcolumn("sample")), \
    all_seeds = listed(all_seeds, stringcolumn("seed")), 0) nooutput
said = leave_out(words(inputs) > shown ? "inputs ".joined(inputs, shown + 1) : "")
said = leave_out(others ? "m below an input's largest" : "")
said = leave_out(words(all_samples) > 1 ? "samples after the first" : "")
said = leave_out(words(all_seeds) > 1 ? "seeds after the first" : "")

# The legend, in a strip of its own.
reset
set lmargin at screen 0.05
set rmargin at screen 0.99
set tmargin at screen 100.0 / height
set bmargin at screen 0.00
unset border
unset tics
set xrange [0:1]
set yrange [0:1]
eval footer
set key at screen 0.5, screen 95.0 / height center top horizontal maxrows 2 Left reverse width -3 \
    samplen 2.5
plot for [j = 1:words(precisions)] NaN with lines lw 4 lc rgb colour_of(word(precisions, j)) title word(precisions, j), \
    NaN with points pt 7 ps 0.9 lc rgb "#444444" title "best iterate k*", \
    NaN with points pt 6 ps 1.9 lw 1.8 lc rgb "#444444" title "returned by best", \
    NaN with points pt 2 ps 1.4 lw 2.5 lc rgb "#444444" title "hypothesis (rank < m)"
unset multiplot
