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

# Okabe and Ito's palette; black stands for what is not an input.
array colours[8] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B5A2B", "#6A3D9A"]
colour(i) = colours[(i - 1) % 8 + 1]
u = 2.0 ** -53
floor_line = M_max * u * LAMBDA_max

chosen(i) = strcol("input") eq word(inputs, i) && column("m") == largest[i] \
  && column("sample") == 0 && column("seed") == SEED_min
above(i) = chosen(i) && strcol("below_floor") eq "false" ? column("eigenvalue") : NaN
below(i) = chosen(i) && strcol("below_floor") eq "true" && column("eigenvalue") > 0 \
  ? column("eigenvalue") : NaN

label_of(i) = word(inputs, i).(largest[i] == M_max ? "" : sprintf(" (m = %d)", largest[i]))

set title sprintf("Eigenvalues of the bottleneck matrix A, m = %d", M_max)
set xlabel "index i"
set ylabel "eigenvalue λ_i"
set logscale xy
set format y "10^{%T}"
set xrange [1:M_max * 1.1]
set yrange [floor_line / 3e4:LAMBDA_max * 3]
set grid xtics ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set key outside right top vertical Left reverse samplen 2 spacing 1.2 noenhanced
set border 3
set tics nomirror

plot for [i = 1:words(inputs)] csv using "index":(below(i)) \
       with points pointtype 6 pointsize 0.4 linewidth 1 linecolor rgb "#999999" notitle, \
     for [i = 1:words(inputs)] csv using "index":(above(i)) \
       with lines linewidth 3 linecolor rgb colour(i) title label_of(i), \
     floor_line with lines dashtype 2 linewidth 2 linecolor rgb "#000000" title "floor: m u max λ₁", \
     NaN with points pointtype 6 pointsize 0.8 linewidth 1 linecolor rgb "#999999" title "below the floor"
