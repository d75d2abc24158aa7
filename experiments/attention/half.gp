# SPDX-License-Identifier: BSD-3-Clause
# SimA's two orders in half precision: their difference (M02), their correct digits (M04), how many
# numbers are too small for f16, and how large the products become (M06).
set encoding utf8
set terminal @terminal size 1500,1150 font ",13"
set output out
set datafile missing NaN

# Plots against n are for the smallest d with which the largest n was run.
stats csv using "n" name "N" nooutput
stats csv using (column("n") == N_max ? column("d") : NaN) name "D" nooutput
# Seeds have lines of their own, in the order of n: "for [seed in seeds]" and "smooth unique", which sorts.
seeds = ""
stats csv using (seeds = strstrt(" ".seeds, " ".strcol("seed")." ") ? seeds : seeds.strcol("seed")." ", 0) nooutput
once(name) = seed eq word(seeds, 1) ? name : ""
is(input, norm, form, order) = column("d") == D_min && strcol("seed") eq seed && strcol("input") eq input \
  && strcol("norm") eq norm && strcol("norm_form") eq form && strcol("order") eq order
cell(input, norm, form, order, storage, name) = is(input, norm, form, order) && strcol("storage") eq storage \
  ? column(name) : NaN

set logscale x
set xrange [N_min * 0.8:N_max * 1.25]
set xlabel "tokens n" offset 0, 0.3
set format x "10^{%T}"
set grid xtics ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set border 3
set tics nomirror
set key Left reverse samplen 2.2 spacing 1.15
wider = 0
stats csv using (wider = wider + (column("d") != D_min), 0) nooutput
said = leave_out(wider ? "other widths d" : "")
said = leave_out("inputs aligned, independent, normal-x8; ℓ2 norms; bf16 with norms stored or summed")
set multiplot layout 2,2 margins 0.065, 0.98, 0.085, 0.92 spacing 0.085, 0.11 title sprintf("SimA in half precision, d = %d, one head; solid: (Q̂K̂^T)V, dashed: Q̂(K̂^TV)", D_min) font ",16"

colour(i) = colour_of(storages[i])
array storages[4] = ["f64", "f32", "bf16", "f16"]

set title "how far the orders are apart, ℓ1 norms; hollow: photographs"
set ylabel "|Y_{tokens} − Y_{channels}| / |Y|"
set logscale y
set format y "10^{%T}"
set key at graph 0.04, graph 0.48 left top
plot for [i = 1:4] for [seed in seeds] csv using "n":(cell("normal", "l1", "wide", "tokens", storages[i], "order_difference")) \
       smooth unique with linespoints linewidth 1.8 pointtype mark_of(storages[i]) linecolor rgb colour(i) title once(storages[i]), \
     for [i = 1:4] for [seed in seeds] csv using "n":(cell("photos", "l1", "wide", "tokens", storages[i], "order_difference")) \
       smooth unique with linespoints linewidth 1.2 pointtype 6 linecolor rgb colour(i) notitle

set title "correct digits in f16, ℓ1 norms"
set ylabel "−log_{10} relative error"
unset logscale y
set format y "%g"
set yrange [-0.15:4.5]
array inputs[5] = ["normal", "normal", "normal", "normal-x64", "dead-channel"]
array forms[5] = ["wide", "stored", "summed", "stored", "stored"]
array names[5] = ["norms wide", "norms stored in f16", "norms summed in f16", "×64, stored", "dead channel, stored"]
set key at graph 0.03, graph 0.38 left top
plot for [i = 1:5] for [seed in seeds] csv using "n":(cell(inputs[i], "l1", forms[i], "tokens", "f16", "digits")) \
       smooth unique with linespoints linewidth 1.8 pointtype step_mark(i) linecolor rgb step_colour(i) title once(names[i]), \
     for [i = 1:5] for [seed in seeds] csv using "n":(cell(inputs[i], "l1", forms[i], "channels", "f16", "digits")) \
       smooth unique with linespoints linewidth 1.8 dashtype 2 pointtype 6 linecolor rgb step_colour(i) notitle

set title "too small for f16's normal numbers, ℓ1 norms wide"
set ylabel "share of the entries"
set yrange [-0.02:1.05]

set key at graph 0.02, graph 0.97 left top
low(order, what) = cell("normal", "l1", "wide", order, "f16", what)
plot for [seed in seeds] csv using "n":(low("tokens", "first_subnormal") + low("tokens", "first_vanished")) \
       smooth unique with linespoints linewidth 1.8 pointtype step_mark(2) linecolor rgb step_colour(2) title once("Q̂K̂^T"), \
     for [seed in seeds] csv using "n":(low("tokens", "first_vanished")) \
       smooth unique with linespoints linewidth 1.8 pointtype step_mark(2) - 1 linecolor rgb step_colour(2) title once("of them 0"), \
     for [seed in seeds] csv using "n":(low("tokens", "factors_subnormal") + low("tokens", "factors_vanished")) \
       smooth unique with linespoints linewidth 1.8 pointtype step_mark(4) linecolor rgb step_colour(4) title once("Q̂ and K̂"), \
     for [seed in seeds] csv using "n":(low("channels", "first_subnormal") + low("channels", "first_vanished")) \
       smooth unique with linespoints linewidth 1.8 dashtype 2 pointtype 6 linecolor rgb step_colour(3) title once("K̂^TV")

set title "largest entries, and the largest finite number of f16"
set ylabel "largest absolute value of an entry"
unset yrange
set logscale y
set format y "10^{%T}"
set key at graph 0.03, graph 0.235 left top
array norms[3] = ["none", "none", "l1"]
array sizes[3] = ["normal", "normal-x64", "normal"]
array marks[3] = ["QK^T, K^TV", "the same, tokens ×64", "Q̂K̂^T, K̂^TV"]
eval footer
plot for [seed in seeds] csv using "n":(cell("normal", "l1", "wide", "tokens", "f16", "limit")) \
       smooth unique with lines linewidth 2.5 linecolor rgb "#999999" title once("f16's limit"), \
     for [i = 1:3] for [seed in seeds] csv using "n":(cell(sizes[i], norms[i], "wide", "tokens", "f64", "first_largest")) \
       smooth unique with linespoints linewidth 1.8 pointtype step_mark(i + 1) linecolor rgb step_colour(i + 1) title once(marks[i]), \
     for [i = 1:3] for [seed in seeds] csv using "n":(cell(sizes[i], norms[i], "wide", "channels", "f64", "first_largest")) \
       smooth unique with linespoints linewidth 1.8 dashtype 2 pointtype 6 linecolor rgb step_colour(i + 1) notitle
unset multiplot
