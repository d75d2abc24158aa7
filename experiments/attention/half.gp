# SPDX-License-Identifier: BSD-3-Clause
# SimA's two orders in half precision: how far apart they are (M02), what is left of their digits (M04),
# how many numbers are too small for f16, and how large the products become (M06).
set encoding utf8
set terminal @terminal size 1500,1150 font ",13"
set output out
set datafile missing NaN

# n changes where d is the smallest width that goes with the largest n.
stats csv using "n" name "N" nooutput
stats csv using (column("n") == N_max ? column("d") : NaN) name "D" nooutput
is(input, norm, form, order) = column("d") == D_min && strcol("input") eq input && strcol("norm") eq norm \
  && strcol("norm_form") eq form && strcol("order") eq order
value(input, norm, form, order, storage, name) = is(input, norm, form, order) && strcol("storage") eq storage \
  ? column(name) : NaN
positive(x) = x > 0 ? x : NaN

set logscale x
set xrange [N_min * 0.8:N_max * 1.25]
set xlabel "tokens n" offset 0, 0.3
set format x "10^{%T}"
set grid xtics ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set border 3
set tics nomirror
set key samplen 2.2 spacing 1.2 noenhanced
set multiplot layout 2,2 title sprintf("SimA in half precision, d = %d, one head; lines: (Q̂K̂^T)V, dashed: Q̂(K̂^TV)", D_min) font ",16"

array colours[5] = ["#000000", "#0072B2", "#009E73", "#D55E00", "#CC79A7"]
array storages[4] = ["f64", "f32", "bf16", "f16"]

set title "how far the orders are apart, ℓ1 norms (no line: not finite)"
set ylabel "|Y_{tokens} − Y_{channels}| / |Y|"
set logscale y
set format y "10^{%T}"
set key right center
plot for [i = 1:4] csv using "n":(value("normal", "l1", "wide", "tokens", storages[i], "order_difference")) \
       with linespoints linewidth 1.8 pointtype 7 linecolor rgb colours[i] title storages[i], \
     for [i = 1:4] csv using "n":(value("photos", "l1", "wide", "tokens", storages[i], "order_difference")) \
       with linespoints linewidth 1.2 pointtype 6 linecolor rgb colours[i] title storages[i]." photos"

set title "correct digits in f16, ℓ1 norms"
set ylabel "−log_{10} relative error"
unset logscale y
set format y "%g"
set yrange [-0.15:4.5]
array inputs[5] = ["normal", "normal", "normal", "normal-x64", "dead-channel"]
array forms[5] = ["wide", "stored", "summed", "stored", "stored"]
array names[5] = ["norms wide", "norms stored in f16", "norms summed in f16", "×64, stored in f16", "dead channel, stored in f16"]
set key at graph 0.02, graph 0.5 left top
plot for [i = 1:5] csv using "n":(value(inputs[i], "l1", forms[i], "tokens", "f16", "digits")) \
       with linespoints linewidth 1.8 pointtype 7 linecolor rgb colours[i] title names[i], \
     for [i = 1:5] csv using "n":(value(inputs[i], "l1", forms[i], "channels", "f16", "digits")) \
       with linespoints linewidth 1.8 dashtype 2 pointtype 6 linecolor rgb colours[i] notitle

set title "too small for f16's normal numbers, ℓ1 norms wide"
set ylabel "share of the numbers"
set yrange [-0.02:1.05]
set key left top reset
set key left top samplen 2.2 spacing 1.2
low(order, what) = value("normal", "l1", "wide", order, "f16", what)
plot csv using "n":(low("tokens", "first_subnormal") + low("tokens", "first_vanished")) with linespoints linewidth 1.8 \
       pointtype 7 linecolor rgb colours[2] title "entries of Q̂K̂^T", \
     csv using "n":(low("tokens", "first_vanished")) with linespoints linewidth 1.8 pointtype 6 \
       linecolor rgb colours[2] title "of them 0", \
     csv using "n":(low("tokens", "factors_subnormal") + low("tokens", "factors_vanished")) with linespoints linewidth 1.8 \
       pointtype 7 linecolor rgb colours[4] title "entries of Q̂ and K̂", \
     csv using "n":(low("channels", "first_subnormal") + low("channels", "first_vanished")) with linespoints linewidth 1.8 \
       dashtype 2 pointtype 6 linecolor rgb colours[3] title "entries of K̂^TV"

set title "largest entries, and the largest finite number of f16"
set ylabel ""
unset yrange
set logscale y
set format y "10^{%T}"
set key at graph 0.02, graph 0.62 left top
array norms[2] = ["none", "l1"]
array sizes[2] = ["normal", "normal-x64"]
plot csv using "n":(value("normal", "l1", "wide", "tokens", "f16", "limit")) with lines linewidth 2 \
       linecolor rgb "#999999" title "f16's limit", \
     for [i = 1:2] for [j = 1:2] csv using "n":(value(sizes[j], norms[i], "wide", "tokens", "f64", "first_largest")) \
       with linespoints linewidth 1.8 pointtype (2 * j + 5) linecolor rgb colours[3 * i - 1 - (i == 2)] \
       title (i == 1 ? "QK^T" : "Q̂K̂^T, ℓ1").(j == 2 ? ", ×64" : ""), \
     for [i = 1:2] for [j = 1:2] csv using "n":(value(sizes[j], norms[i], "wide", "channels", "f64", "first_largest")) \
       with linespoints linewidth 1.8 dashtype 2 pointtype (2 * j + 4) linecolor rgb colours[3 * i - 1 - (i == 2)] \
       title (i == 1 ? "K^TV" : "K̂^TV, ℓ1").(j == 2 ? ", ×64" : "")
unset multiplot
