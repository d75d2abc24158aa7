# SPDX-License-Identifier: BSD-3-Clause
# A column of panels per input and sampling, for its first stage and sample. Upper row: the relative
# error of Eq. 12 and of the derivative through the steps. Lower row: the cosine of the angle
# between Eq. 12 and the exact derivative.

set encoding utf8
inputs = ""; variants = ""; dtypes = ""; last = 1; seed = ""
has(list, word) = strstrt(" ".list, " ".word." ") > 0
with_word(list, word) = has(list, word) ? list : list.word." "
# The inputs with their samplings, each in quotes: a file's name may hold spaces; and the first stage
# of each.
stages = ""
panel(name) = name.(stringcolumn("sampling") eq "pool" ? "" : ", ".stringcolumn("sampling"))
note(name) = strstrt(inputs, '"'.name.'"') ? 0 : \
    (inputs = inputs.'"'.name.'" ', stages = stages.stringcolumn("stage")." ", 0)
stats csv using (seed = seed eq "" ? stringcolumn("seed") : seed, note(panel(stringcolumn("input"))), \
    variants = with_word(variants, stringcolumn("variant")), \
    dtypes = with_word(dtypes, stringcolumn("dtype")), \
    last = column("iteration") > last ? column("iteration") : last, 0) nooutput
main = has(dtypes, "f64") ? "f64" : word(dtypes, 1)
all_stages = ""; all_seeds = ""; all_samples = ""
stats csv using (all_stages = listed(all_stages, stringcolumn("stage")), \
    all_seeds = listed(all_seeds, stringcolumn("seed")), \
    all_samples = listed(all_samples, stringcolumn("sample")), 0) nooutput
more = (words(all_stages) > 1 ? " stages" : "").(words(all_seeds) > 1 ? " seeds" : "").(words(all_samples) > 1 ? " samples" : "")
shown = words(inputs) < 5 ? words(inputs) : 5

# Where curves coincide the one drawn first is the widest.
colour(j) = colour_of(word(variants, j))
dash(d) = d eq main ? 2 : 3
width(j) = 2.2 + 1.5 * (words(variants) - j)

here(i, j, d) = panel(stringcolumn("input")) eq word(inputs, i) && \
    stringcolumn("stage") eq word(stages, i) && stringcolumn("seed") eq seed && \
    stringcolumn("sample") eq "0" && stringcolumn("variant") eq word(variants, j) && \
    stringcolumn("dtype") eq d
step(ok) = ok ? column("iteration") : NaN
left(i) = 0.085 + (i - 1) * 0.925 / shown
right(i) = left(i + 1) - 0.03

array conditions[shown]
do for [i = 1:shown] {
    stats csv using (here(i, 1, main) ? column("condition") : NaN) name "OF_INPUT" nooutput
    conditions[i] = OF_INPUT_max
}

set terminal @terminal size 1280,800 font "Sans,14"
set output out
set multiplot title "The derivative of the iterate X_k: Eq. 12 and going back through the steps" \
    font ",17" offset 0,0.1
set grid xtics ytics lt 1 lw 0.6 lc rgb "#dddddd"
set border 3
set tics nomirror
set xrange [0:last]
unset key

do for [row = 1:2] {
    set tmargin at screen row == 1 ? 0.855 : 0.475
    set bmargin at screen row == 1 ? 0.520 : 0.195
    set format x row == 1 ? "" : "%g"
    set xlabel row == 1 ? "" : "iteration k" offset 0,0.3
    if (row == 1) {
        set logscale y
        set yrange [1e-17:30]
    } else {
        unset logscale y
        set yrange [-1.08:1.08]
    }
    do for [i = 1:shown] {
        set lmargin at screen left(i)
        set rmargin at screen right(i)
        set format y i > 1 ? "" : row == 1 ? "10^{%T}" : "%g"
        set ylabel i > 1 ? "" : row == 1 ? "relative error" : "cosine of Eq. 12 and truth"
        set title row == 2 ? "" : sprintf("%s\ncondition %.1e", word(inputs, i), \
            conditions[i]) offset 0,-0.6 noenhanced
        if (row == 1) {
            plot for [j = 1:words(variants)] csv using \
                    (step(here(i, j, main))):(column("eq12_error")) \
                    with lines lw width(j) lc rgb colour(j), \
                for [j = 1:words(variants)] for [d in dtypes] csv using \
                    (step(here(i, j, d))):(column("through_steps_error")) \
                    with lines lw 0.6 * width(j) dt dash(d) \
                    lc rgb colour(j)
        } else {
            plot 0 with lines lw 1.2 lc rgb "#888888", \
                for [j = 1:words(variants)] csv using \
                    (step(here(i, j, main))):(column("eq12_cosine")) \
                    with lines lw width(j) lc rgb colour(j)
        }
    }
}

# The legend, in a strip of its own.
reset
set lmargin at screen 0.05
set rmargin at screen 0.99
set tmargin at screen 0.125
set bmargin at screen 0.00
unset border
unset tics
set xrange [0:1]
set yrange [0:1]
said = leave_out(words(inputs) > shown ? "inputs ".joined(inputs, shown + 1) : "")
said = leave_out(more eq "" ? "" : "further".more)
eval footer
set key at screen 0.5, screen 0.122 center top horizontal maxrows 2 Left reverse width 1 samplen 3
plot for [j = 1:words(variants)] NaN with lines lw 4 lc rgb colour(j) \
        title word(variants, j).(word(variants, j) eq "nr-softpp" ? " (batch of one)" : ""), \
    NaN with lines lw 3 lc rgb "#444444" title "Eq. 12, ".main, \
    for [d in dtypes] NaN with lines lw 2 dt dash(d) lc rgb "#444444" \
        title "through the steps, ".d
unset multiplot
