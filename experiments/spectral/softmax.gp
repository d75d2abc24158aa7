# SPDX-License-Identifier: BSD-3-Clause
# SOFT (IJCV) Prop. 3: the norm of softmax attention against n (left), and with one dominant token
# against the norm of that token (right).
set encoding utf8
set terminal @terminal size 1500,680 font ",13"
set output out

inputs = ""
counts = ""
add_input(name) = name eq "dominant" || strstrt(inputs, '"'.name.'"') ? 0 \
  : (inputs = inputs.'"'.name.'" ', 0)
add_count(name, n) = name ne "dominant" || strstrt(" ".counts, sprintf(" %d ", n)) ? 0 \
  : (counts = counts.sprintf("%d ", n), 0)
stats csv using (add_input(strcol("input")) + add_count(strcol("input"), column("n"))) nooutput
stats csv using "n" name "N" nooutput
stats csv using (strcol("input") eq "dominant" ? column("r") : NaN) name "R" nooutput

of(i, keys) = strcol("input") eq word(inputs, i) && strcol("keys") eq keys ? column("norm") : NaN
farthest(unused) = strcol("input") eq "dominant" && column("r") == R_max ? column("norm") : NaN
measured(i) = strcol("input") eq "dominant" && column("n") == int(word(counts, i)) \
  ? column("norm_over_root") : NaN
closed(i) = strcol("input") eq "dominant" && column("n") == int(word(counts, i)) \
  ? column("closed_form") / sqrt(column("n")) : NaN

set datafile missing NaN # rows of others do not interrupt a line
set grid xtics ytics linetype 1 linecolor rgb "#e4e4e4" linewidth 0.7
set border 3
set tics nomirror
set multiplot layout 1, 2 title "The spectral norm of softmax attention matrices, and the bound √n that it reaches" font ",16"

set logscale xy
set lmargin at screen 0.06
set rmargin at screen 0.38
set tmargin at screen 0.84
set bmargin at screen 0.15
set xrange [N_min * 0.85:N_max * 1.2]
set yrange [0.9:sqrt(N_max) * 1.3]
set xlabel "tokens n"
set ylabel "spectral norm |S|_2" offset 1, 0
set xtics (2, 4, 16, 64, 256, 1024, 4096)
set ytics (1, 2, 4, 8, 16, 32, 64)
set title "lines: means over samples; hollow: K ≠ Q" offset 0, -0.4
set key at screen 0.39, screen 0.84 left top vertical Left reverse samplen 2.5 spacing 1.3 noenhanced
plot sqrt(x) with lines dashtype 3 linewidth 1.5 linecolor rgb "#444444" title "√n", \
     csv using "n":(farthest(0)) with points pointtype 1 linewidth 2 pointsize 1.4 \
       linecolor rgb colour_of("dominant") title sprintf("dominant, r = %g", R_max), \
     for [i = 1:words(inputs)] csv using "n":(of(i, "tokens")) smooth unique with lines linewidth 2 \
       linecolor rgb colour_of(word(inputs, i)) notitle, \
     for [i = 1:words(inputs)] csv using "n":(of(i, "tokens")) with points pointtype mark_of(word(inputs, i)) pointsize 0.8 \
       linecolor rgb colour_of(word(inputs, i)) title word(inputs, i), \
     for [i = 1:words(inputs)] csv using "n":(of(i, "other")) with points pointtype 6 pointsize 1 \
       linewidth 1.3 linecolor rgb colour_of(word(inputs, i)) notitle

unset logscale y
set lmargin at screen 0.565
set rmargin at screen 0.885
set xrange [R_min * 0.93:R_max * 1.1]
set yrange [0:1.03]
set xlabel "norm r of the dominant token, others 1"
set ylabel "|S|_2 / √n"
set xtics (1, 2, 4, 8, 16, 32)
set ytics 0.2
set title "one dominant token, K = Q; lines: the closed form" offset 0, -0.4
set key at screen 0.895, screen 0.84 left top vertical Left reverse samplen 2.5 spacing 1.3 noenhanced
eval footer
plot 1 with lines dashtype 3 linewidth 1.5 linecolor rgb "#444444" notitle, \
     for [i = 1:words(counts)] csv using "r":(closed(i)) with lines linewidth 1.5 \
       linecolor rgb step_colour(i) notitle, \
     for [i = 1:words(counts)] csv using "r":(measured(i)) with points pointtype step_mark(i) pointsize 0.8 \
       linecolor rgb step_colour(i) title "n = ".word(counts, i)
unset multiplot
