# SPDX-License-Identifier: BSD-3-Clause
# The first input of the CSV. Samplings are blocks of columns, and stages are the columns of a
# block. Rows from the top: the papers' metric, as in SOFT (IJCV) Fig. 5; the same iterates in the
# range residual, at the same scale; and the error that they cause in the attention matrix.
set encoding utf8

# Collected from the rows of that input: its samplings, stages, variants and dtypes in order of
# appearance, the variants that have iterates, those that find no start for some matrices, and the
# range of the values.
pick = ""; inputs = ""; m_text = ""; count = 0; last = 1; bottom = 0.1; top = 1.0
samplings = ""; stages = ""; variants = ""; dtypes = ""; started = ""; failed = ""
has(list, word) = strstrt(" ".list, " ".word." ") > 0
with_word(list, word) = has(list, word) ? list : list.word." "
lower(a, b) = (b > 1e-18 && b < a) ? b : a
upper(a, b) = (b > a && b < 1e18) ? b : a
scan(ok) = !ok ? 0 : ( \
    samplings = with_word(samplings, stringcolumn("sampling")), \
    stages = with_word(stages, stringcolumn("stage")), \
    variants = with_word(variants, stringcolumn("variant")), \
    dtypes = with_word(dtypes, stringcolumn("dtype")), \
    started = column("samples") > 0 ? with_word(started, stringcolumn("variant")) : started, \
    failed = column("samples_without_start") > 0 ? with_word(failed, stringcolumn("variant")) : failed, \
    m_text = stringcolumn("m"), \
    count = upper(count, column("samples")), \
    last = upper(last, column("iteration")), \
    bottom = lower(lower(bottom, column("residual_min")), column("attention_error_mean")), \
    top = upper(upper(top, column("residual_max")), column("range_residual_max")), 0)
set table $nothing
plot csv using (pick = pick eq "" ? stringcolumn("input") : pick, \
    inputs = listed(inputs, stringcolumn("input")), \
    scan(stringcolumn("input") eq pick)):(0) with table
unset table
bottom = 10 ** floor(log10(bottom))
top = 10 ** ceil(log10(top) - 1e-9)
columns = words(samplings) * words(stages)

# Curves that coincide stay visible: the ones drawn first are the widest.
place(v) = strstrt(" ".variants, " ".v." ")
number(v) = place(v) > 1 ? words(variants[1:place(v) - 1]) + 1 : 1
colour(v) = colour_of(v)
width(v) = 1.6 + 0.7 * (words(variants) - number(v))
main = has(dtypes, "f64") ? "f64" : word(dtypes, 1)
dash(d) = d eq main ? 1 : 2

here(p, s, v, d) = stringcolumn("input") eq pick && stringcolumn("sampling") eq p && \
    stringcolumn("stage") eq s && stringcolumn("variant") eq v && stringcolumn("dtype") eq d
step(ok) = ok ? column("iteration") : NaN

# Blocks stand a little apart, and columns in them a little less.
block_gap = 0.018
column_gap = 0.008
first = columns > 4 ? 0.068 : 0.092
wide = (0.992 - first - block_gap * (words(samplings) - 1)) / columns
left(b, i) = first + (b - 1) * (block_gap + wide * words(stages)) + (i - 1) * wide
right(b, i) = left(b, i) + wide - column_gap
block_middle(b) = left(b, 1) + (wide * words(stages) - column_gap) / 2

titles_pool = "landmarks by pooling"
titles_published = "the published operator"
titles_centred = "the same, tokens centred"
block_title(p) = p eq "pool" ? titles_pool : p eq "published" ? titles_published : \
    p eq "published-centred" ? titles_centred : p

set terminal @terminal size columns > 4 ? 1720 : 1280,1090 font "Sans,13"
set output out
set multiplot title sprintf("Newton–Raphson inverse of A on %s: %d matrices per panel, m = %s", \
    pick, count, m_text) font ",17" offset 0,0.1
set logscale y
set grid xtics ytics lt 1 lw 0.6 lc rgb "#dddddd"
set border 3
set tics nomirror
set xrange [0:last]
set yrange [bottom:top * 1.6]
unset key

do for [row = 1:3] {
    metric = word("residual range_residual attention_error", row)
    bands = row == 1 ? words(started) : 0 # the CSV has no minimum and no prediction for the others
    set tmargin at screen 0.90 - (row - 1) * 0.25
    set bmargin at screen 0.90 - (row - 1) * 0.25 - 0.218
    set format x (row < 3 ? "" : "%g")
    do for [b = 1:words(samplings)] {
        p = word(samplings, b)
        do for [i = 1:words(stages)] {
            s = word(stages, i)
            set lmargin at screen left(b, i)
            set rmargin at screen right(b, i)
            set format y (b + i == 2 ? "10^{%T}" : "")
            # the last tick label of a column would overlap the first one of the next column
            set xtics 0, (last > 4 ? last / 2.0 : 1), (i == words(stages) ? last : last - 0.5)
            set title row > 1 ? "" : s eq "0" ? "the file's tokens" : "stage ".s offset 0,-0.6
            set xlabel row == 3 ? "iteration k" : "" offset 0,0.3
            if (row == 1 && i == 1) {
                set label 1 block_title(p) at screen block_middle(b), screen 0.942 center \
                    font ",15"
            } else {
                unset label 1
            }
            set ylabel (b + i > 2 ? "" : row == 1 ? "‖A X_k A − A‖_2 / ‖A‖_2" : \
                row == 2 ? "‖Π − A X_k‖_2" : "‖P^T(X_k − A^+)P‖_2 / ‖P^T A^+ P‖_2")
            plot for [j = 1:bands] csv using \
                    (step(here(p, s, word(started, j), main))): \
                    (column("residual_min") > bottom ? column("residual_min") : bottom): \
                    (column("residual_max")) \
                    with filledcurves fs transparent solid 0.16 noborder \
                    lc rgb colour(word(started, j)), \
                for [v in started] for [d in dtypes] csv using \
                    (step(here(p, s, v, d))):(column(metric."_mean")) \
                    with lines lw width(v) dt dash(d) lc rgb colour(v), \
                for [v in started] csv using \
                    (v[1:2] eq "nr" ? NaN : step(here(p, s, v, main))):(column(metric."_mean")) \
                    with points pt 7 ps 1.2 lc rgb colour(v), \
                for [j = 1:bands] csv using \
                    (step(here(p, s, word(started, j), main))): \
                    (column("predicted_residual_mean")) \
                    with lines lw 2.5 dt 3 lc rgb "#000000"
        }
    }
}

# The legend, in a strip of its own.
reset
set lmargin at screen 0.05
set rmargin at screen 0.99
set tmargin at screen 0.11
set bmargin at screen 0.00
unset border
unset tics
set xrange [0:1]
set yrange [0:1]
said = leave_out(words(inputs) > 1 ? (words(inputs) > 2 ? "inputs " : "input ").joined(inputs, 2)." (drawn where --input names it alone)" : "")
eval footer
legend_font = columns > 4 ? ",13" : ",10"
set key at screen 0.5, screen 0.108 center top horizontal maxrows 3 Left reverse width (columns > 4 ? 1 : -4) samplen 3 \
    font legend_font
plot for [v in variants] NaN with lines lw 4 lc rgb colour(v) \
        title v.(!has(started, v) ? " (finds no start)" : has(failed, v) ? " (where it finds a start)" \
        : "").(v eq "nr-softpp" ? " (batch of one)" : ""), \
    for [d in dtypes] NaN with lines lw 2 dt dash(d) lc rgb "#444444" \
        title "mean, ".d.(d eq main ? "" : " (where it differs)"), \
    NaN with filledcurves fs solid 0.25 noborder lc rgb "#444444" title "minimum to maximum, ".main, \
    NaN with lines lw 3 dt 3 lc rgb "#000000" title "mean of the closed form, ".main
unset multiplot
