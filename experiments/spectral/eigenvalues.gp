# SPDX-License-Identifier: BSD-3-Clause
# SOFT (IJCV) Fig. 6a: eigenvalue decay, one line per input (the largest m, the first sample).
set encoding utf8
set terminal @terminal size 1200,750 font ",14"
set output out

# The inputs in the order of the file, each in quotes: a file's name may hold spaces.
inputs = ""
add_input(name) = strstrt(inputs, '"'.name.'"') ? 0 : (inputs = inputs.'"'.name.'" ', 0)
stats csv using (add_input(strcol("input"))) nooutput
stats csv using "m" name "M" nooutput
# Files may have fewer landmarks than the others.
array largest[words(inputs)]
do for [i = 1:words(inputs)] {
  stats csv using (strcol("input") eq word(inputs, i) ? column("m") : NaN) name "OF_INPUT" nooutput
  largest[i] = OF_INPUT_max
}
stats csv using "seed" every ::0::0 name "SEED" nooutput
stats csv using "eigenvalue" name "LAMBDA" nooutput

# An input is drawn at its largest m, with the first sample of the first seed. Values below its own floor, m u lambda_1,
# are dotted with occasional hollow points; values up to 0 have no place on a logarithmic axis and are counted.
chosen(i) = strcol("input") eq word(inputs, i) && column("m") == largest[i] \
  && column("sample") == 0 && column("seed") == SEED_min
above(i) = chosen(i) && strcol("below_floor") eq "false" ? column("eigenvalue") : NaN
below(i) = chosen(i) && strcol("below_floor") eq "true" && column("eigenvalue") > 0 \
  ? column("eigenvalue") : NaN
array floors[words(inputs)]
array lost[words(inputs)]
array deepest[words(inputs)]
least = LAMBDA_max
note(i) = (value = column("eigenvalue"), \
  floors[i] = column("index") == 1 ? largest[i] * 2.0 ** -53 * value : floors[i], \
  lost[i] = lost[i] + !(value > 0), \
  deepest[i] = value > 0 && value < deepest[i] ? value : deepest[i], 0)
do for [i = 1:words(inputs)] {
  floors[i] = 0
  lost[i] = 0
  deepest[i] = LAMBDA_max
  stats csv using (chosen(i) ? note(i) : 0) nooutput
  least = deepest[i] < least ? deepest[i] : least
}
drawn_floor(i) = deepest[i] <= floors[i] ? floors[i] : NaN
label_of(i) = word(inputs, i).(largest[i] == M_max ? "" : sprintf(" (m = %d)", largest[i])) \
  .(lost[i] ? sprintf("; %d values ≤ 0 left out", lost[i]) : "")

# What the CSV has and the figure leaves out.
smaller = 0
seeds = ""
largest_of(name) = (sum [i = 1:words(inputs)] (word(inputs, i) eq name ? largest[i] : 0))
stats csv using (smaller = smaller + (column("m") < largest_of(strcol("input"))), \
  seeds = listed(seeds, strcol("seed")), 0) nooutput
stats csv using "sample" name "SAMPLE" nooutput
said = leave_out(smaller ? "m below an input's largest" : "")
said = leave_out(SAMPLE_max > 0 ? "samples after the first" : "")
said = leave_out(words(seeds) > 1 ? "seeds after the first" : "")

at = strstrt(run, " --scale=")
scale = at ? ", scale ".word(run[at + 9:*], 1) : ""
set title sprintf("Eigenvalues of the bottleneck matrix A, m = %d%s", M_max, scale)
set xlabel "index i"
set ylabel "eigenvalue λ_i"
set logscale xy
set format y "10^{%T}"
set xrange [1:M_max * 1.1]
set yrange [least / 3:LAMBDA_max * 3]
set grid xtics ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set key outside right top vertical Left reverse samplen 2 spacing 1.2 noenhanced
set border 3
set tics nomirror

set bmargin 5
marked = M_max > 32 ? int(M_max / 32) : 1
dotted(i) = int(column("index")) % marked == 0 || column("index") == largest[i] ? below(i) : NaN
eval footer
plot for [i = 1:words(inputs)] csv using "index":(below(i)) \
       with lines dashtype 3 linewidth 1.5 linecolor rgb colour_of(word(inputs, i)) notitle, \
     for [i = 1:words(inputs)] csv using "index":(dotted(i)) \
       with points pointtype 6 pointsize 0.5 linecolor rgb colour_of(word(inputs, i)) notitle, \
     for [i = 1:words(inputs)] csv using "index":(above(i)) \
       with lines linewidth 3 linecolor rgb colour_of(word(inputs, i)) notitle, \
     for [i = 1:words(inputs)] csv using "index":(above(i)) every marked::(marked * i / 8) \
       with points pointtype mark_of(word(inputs, i)) pointsize 0.9 linecolor rgb colour_of(word(inputs, i)) notitle, \
     for [i = 1:words(inputs)] NaN with linespoints linewidth 3 pointtype mark_of(word(inputs, i)) \
       linecolor rgb colour_of(word(inputs, i)) title label_of(i), \
     for [i = 1:words(inputs)] drawn_floor(i) with lines dashtype 2 linewidth 1.5 \
       linecolor rgb colour_of(word(inputs, i)) notitle, \
     NaN with lines dashtype 2 linewidth 1.5 linecolor rgb "#444444" title "floor m u λ₁ of an input", \
     NaN with linespoints dashtype 3 linewidth 1.5 pointtype 6 pointsize 0.5 linecolor rgb "#444444" title "below it: rounding"
