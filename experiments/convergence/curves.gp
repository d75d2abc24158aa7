# SPDX-License-Identifier: BSD-3-Clause
# The first input of the CSV and trained networks after it. Columns of panels are its samplings and
# stages, then the networks' landmarks by pooling and their own, in place of published-centred. Rows
# from the top: the papers' metric, as in SOFT (IJCV) Fig. 5; the same iterates in the range
# residual, at the same scale; and the error that they cause in the attention matrix.
set encoding utf8

# Collected from the rows: the panels, "input|sampling|stage" in quotes, and the samplings and stages
# that they have; the variants and dtypes; the variants that have iterates, those that find no start for
# some matrices, and the range of the values.
inputs = ""; centred = 0; found = ""; samplings = ""; stages = ""; m_text = ""; fewest = 1e9; most = 0; last = 1; bottom = 0.1; top = 1.0
variants = ""; dtypes = ""; started = ""; failed = ""
has(list, word) = strstrt(" ".list, " ".word." ") > 0
with_word(list, word) = has(list, word) ? list : list.word." "
lower(a, b) = (b > 1e-18 && b < a) ? b : a
upper(a, b) = (b > a && b < 1e18) ? b : a
is_network(name) = name[1:8] eq "trained:"
network_panel(sampling) = sampling eq "pool" || sampling eq "trained"
is_drawn(name, sampling) = name eq first_input ? !(several && sampling eq "published-centred") \
    : is_network(name) && network_panel(sampling)
panel(name, sampling, stage) = name."|".sampling."|".stage
scan(ok) = !ok ? 0 : ( \
    samplings = with_word(samplings, stringcolumn("sampling")), \
    stages = with_word(stages, stringcolumn("stage")), \
    found = listed(found, panel(stringcolumn("input"), stringcolumn("sampling"), stringcolumn("stage"))), \
    variants = with_word(variants, stringcolumn("variant")), \
    dtypes = with_word(dtypes, stringcolumn("dtype")), \
    started = column("samples") > 0 ? with_word(started, stringcolumn("variant")) : started, \
    failed = column("samples_without_start") > 0 ? with_word(failed, stringcolumn("variant")) : failed, \
    m_text = with_word(m_text, stringcolumn("m")), \
    most = upper(most, column("samples")), \
    fewest = column("iteration") == 0 && column("samples_without_start") == 0 ? lower(fewest, column("samples")) : fewest, \
    last = upper(last, column("iteration")), \
    bottom = lower(lower(bottom, column("residual_min")), column("attention_error_mean")), \
    top = upper(upper(top, column("residual_max")), column("range_residual_max")), 0)
set table $nothing
plot csv using (inputs = listed(inputs, stringcolumn("input")), \
    centred = centred || stringcolumn("sampling") eq "published-centred"):(0) with table
first_input = word(inputs, 1)
several = strstrt(inputs[2:*], '"trained:') > 0
plot csv using (scan(is_drawn(stringcolumn("input"), stringcolumn("sampling")))):(0) with table
unset table
bottom = 10 ** floor(log10(bottom))
top = 10 ** ceil(log10(top) - 1e-9)

# The columns of panels in the order of samplings, then stages; and the inputs that have none.
panels = ""
undrawn = ""
do for [k = 1:words(inputs)] {
    name = word(inputs, k)
    shown = 0
    do for [p in samplings] {
        do for [s in stages] {
            if (strstrt(found, '"'.panel(name, p, s).'"')) {
                panels = listed(panels, panel(name, p, s))
                shown = 1
            }
        }
    }
    undrawn = shown ? undrawn : listed(undrawn, name)
}
columns = words(panels)

# The parts of a column of panels.
bar(i) = strstrt(word(panels, i), "|")
input_of(i) = word(panels, i)[1:bar(i) - 1]
rest_of(i) = word(panels, i)[bar(i) + 1:*]
sampling_of(i) = rest_of(i)[1:strstrt(rest_of(i), "|") - 1]
stage_of(i) = rest_of(i)[strstrt(rest_of(i), "|") + 1:*]

# Curves that coincide stay visible: the ones drawn first are the widest.
place(v) = strstrt(" ".variants, " ".v." ")
number(v) = place(v) > 1 ? words(variants[1:place(v) - 1]) + 1 : 1
colour(v) = colour_of(v)
width(v) = 1.6 + 0.7 * (words(variants) - number(v))
main = has(dtypes, "f64") ? "f64" : word(dtypes, 1)
dash(d) = d eq main ? 1 : 2

here(i, v, d) = stringcolumn("input") eq input_of(i) && stringcolumn("sampling") eq sampling_of(i) && \
    stringcolumn("stage") eq stage_of(i) && stringcolumn("variant") eq v && stringcolumn("dtype") eq d
step(ok) = ok ? column("iteration") : NaN

# Columns of an input with one sampling are a block, and all those of a network. Blocks stand a
# little apart, and columns in them a little less.
block_of(i) = input_of(i).(is_network(input_of(i)) ? "" : sampling_of(i))
starts(i) = i == 1 || block_of(i) ne block_of(i - 1)
blocks_to(i) = i < 1 ? 0 : starts(i) + blocks_to(i - 1)
size_of(i) = i < columns && !starts(i + 1) ? 1 + size_of(i + 1) : 1
block_gap = 0.018
column_gap = 0.008
margin = columns > 4 ? 0.068 : 0.092
wide = (0.992 - margin - block_gap * (blocks_to(columns) - 1)) / columns
left(i) = margin + (blocks_to(i) - 1) * block_gap + (i - 1) * wide
right(i) = left(i) + wide - column_gap

titles_pool = "landmarks by pooling"
titles_published = "the published operator"
titles_centred = "the same, tokens centred"
sampling_title(p) = p eq "pool" ? titles_pool : p eq "published" ? titles_published : \
    p eq "published-centred" ? titles_centred : p eq "trained" ? "its own landmarks" : p
block_title(i) = is_network(input_of(i)) ? input_of(i) \
    : (several && i == 1 ? input_of(i).": " : "").sampling_title(sampling_of(i))
column_title(i) = is_network(input_of(i)) \
    ? (sampling_of(i) eq "trained" ? "its own" : sampling_of(i) eq "pool" ? "pooling" : sampling_of(i)) \
    .(stage_of(i) eq "0" ? "" : ", stage ".stage_of(i)) \
    : stage_of(i) eq "0" ? "the file's tokens" : "stage ".stage_of(i)

set terminal @terminal size columns > 10 ? 2260 : columns > 4 ? 1720 : 1280,1090 font "Sans,13"
set output out
set multiplot title sprintf("Newton–Raphson inverse of A%s: %s matrices per panel, m = %s", \
    several ? "" : " on ".first_input, fewest < most ? sprintf("%d to %d", fewest, most) : sprintf("%d", most), m_text) noenhanced font ",17" offset 0,0.1
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
    do for [i = 1:columns] {
        set lmargin at screen left(i)
        set rmargin at screen right(i)
        set format y (i == 1 ? "10^{%T}" : "")
        # the last tick label of a column would overlap the first one of the next column
        set xtics 0, (last > 4 ? last / 2.0 : 1), (size_of(i) == 1 ? last : last - 0.5)
        set title (row > 1 ? "" : column_title(i)) noenhanced offset 0,-0.6
        set xlabel row == 3 ? "iteration k" : "" offset 0,0.3
        if (row == 1 && starts(i)) {
            set label 1 block_title(i) at screen (left(i) + right(i + size_of(i) - 1)) / 2, screen 0.942 \
                center noenhanced font ",15"
        } else {
            unset label 1
        }
        set ylabel (i > 1 ? "" : row == 1 ? "‖A X_k A − A‖_2 / ‖A‖_2" : \
            row == 2 ? "‖Π − A X_k‖_2" : "‖P^T(X_k − A^+)P‖_2 / ‖P^T A^+ P‖_2")
        plot for [j = 1:bands] csv using \
                (step(here(i, word(started, j), main))): \
                (column("residual_min") > bottom ? column("residual_min") : bottom): \
                (column("residual_max")) \
                with filledcurves fs transparent solid 0.16 noborder \
                lc rgb colour(word(started, j)), \
            for [v in started] for [d in dtypes] csv using \
                (step(here(i, v, d))):(column(metric."_mean")) \
                with lines lw width(v) dt dash(d) lc rgb colour(v), \
            for [v in started] csv using \
                (v[1:2] eq "nr" ? NaN : step(here(i, v, main))):(column(metric."_mean")) \
                with points pt 7 ps 1.2 lc rgb colour(v), \
            for [j = 1:bands] csv using \
                (step(here(i, word(started, j), main))): \
                (column("predicted_residual_mean")) \
                with lines lw 2.5 dt 3 lc rgb "#000000"
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
said = leave_out(words(undrawn) > 0 ? (words(undrawn) > 1 ? "inputs " : "input ").joined(undrawn, 1)." (drawn where --input names it first)" : "")
said = leave_out(several && centred ? "sampling published-centred (drawn where no network follows the first input)" : "")
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
