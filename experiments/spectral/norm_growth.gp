# SPDX-License-Identifier: BSD-3-Clause
# SOFT (IJCV) Fig. 6b: norms against m, a panel per input, the legend in a cell of its own.
set encoding utf8
set terminal @terminal size 1500,850 font ",13"
set output out

# The inputs in the order of the file, each in quotes: a file's name may hold spaces. floored lists
# (input, m, flag) with lower bounds among their rows: a mean over these would say nothing.
inputs = ""
floored = ""
item(name, m, flag) = sprintf('"%s %d %s" ', name, m, flag)
add_input(name) = strstrt(inputs, '"'.name.'"') ? 0 : (inputs = inputs.'"'.name.'" ', 0)
add_floored(name, m, flag) = strcol(flag) eq "false" || strstrt(floored, item(name, m, flag)) ? 0 \
  : (floored = floored.item(name, m, flag), 0)
plain_floor = "pinv_below_floor"
normalised_floor = "normalised_below_floor"
stats csv using (add_input(strcol("input")) \
  + add_floored(strcol("input"), column("m"), plain_floor) \
  + add_floored(strcol("input"), column("m"), normalised_floor)) nooutput
stats csv using "m" name "M" nooutput
stats csv using "pinv_norm" name "EXACT" nooutput
# An iterate may be 0.
stats csv using (column("normalised_iterate_norm") > 0 ? column("normalised_iterate_norm") : 1) \
  name "ITERATE" nooutput

plain = "#0072B2"
normalised = "#D55E00"
grey = "#777777"
norm_of(name, quantity) = strcol("input") eq name ? column(quantity) : NaN
# Certified values have an enclosure.
above(name, quantity, flag, enclosure) = strcol(flag) eq "false" && strcol(enclosure) eq "" \
  ? norm_of(name, quantity) : NaN
certified(name, quantity, enclosure) = strcol(enclosure) ne "" ? norm_of(name, quantity) : NaN
below(name, quantity, flag) = strcol(flag) eq "true" ? norm_of(name, quantity) : NaN
clear(name, quantity, flag) = strstrt(floored, item(name, column("m"), flag)) ? NaN \
  : norm_of(name, quantity)

cells = words(inputs) + 1
across = cells < 4 ? cells : 4
down = (cells + across - 1) / across

set logscale xy
set format y "10^{%T}"
set xrange [M_min * 0.8:M_max * 1.25]
highest = EXACT_max > M_max ** 2 ? EXACT_max : M_max ** 2
set yrange [10 ** floor(log10(ITERATE_min)):10 ** (floor(log10(highest)) + 1)]
set xtics (4, 16, 64, 256, 1024, 4096)
set ytics 1e2
set mytics 1
set grid xtics ytics linetype 1 linecolor rgb "#e4e4e4" linewidth 0.7
set border 3
set tics nomirror
unset key

set multiplot layout down, across margins 0.06, 0.985, 0.08, 0.89 spacing 0.045, 0.12 \
  title "Norm of the inverse of the bottleneck matrix A against the number of landmarks m" font ",16"
do for [i = 1:words(inputs)] {
  name = word(inputs, i)
  set title name noenhanced offset 0, -0.5
  set xlabel (i + across > words(inputs) ? "landmarks m" : "") offset 0, 0.3
  set ylabel (i % across == 1 || across == 1 ? "spectral norm" : "")
  plot x ** 2 with lines linecolor rgb grey linewidth 1.5 dashtype 3, \
       x with lines linecolor rgb grey linewidth 1.5 dashtype 4, \
       csv using "m":(norm_of(name, "iterate_norm")) smooth unique \
         with lines linecolor rgb plain linewidth 2 dashtype 2, \
       csv using "m":(norm_of(name, "normalised_iterate_norm")) smooth unique \
         with lines linecolor rgb normalised linewidth 2 dashtype 2, \
       csv using "m":(clear(name, "pinv_norm", plain_floor)) smooth unique \
         with lines linecolor rgb plain linewidth 2, \
       csv using "m":(clear(name, "normalised_norm", normalised_floor)) smooth unique \
         with lines linecolor rgb normalised linewidth 2, \
       csv using "m":(above(name, "pinv_norm", plain_floor, "pinv_lower")) \
         with points pointtype 1 pointsize 1 linewidth 1 linecolor rgb plain, \
       csv using "m":(above(name, "normalised_norm", normalised_floor, "normalised_lower")) \
         with points pointtype 1 pointsize 1 linewidth 1 linecolor rgb normalised, \
       csv using "m":(certified(name, "pinv_norm", "pinv_lower")) \
         with points pointtype 12 pointsize 1.2 linewidth 1.5 linecolor rgb plain, \
       csv using "m":(certified(name, "normalised_norm", "normalised_lower")) \
         with points pointtype 12 pointsize 1.2 linewidth 1.5 linecolor rgb normalised, \
       csv using "m":(below(name, "pinv_norm", plain_floor)) \
         with points pointtype 8 pointsize 1.2 linewidth 1 linecolor rgb plain, \
       csv using "m":(below(name, "normalised_norm", normalised_floor)) \
         with points pointtype 8 pointsize 1.2 linewidth 1 linecolor rgb normalised
}
unset title
unset xlabel
unset ylabel
unset tics
unset border
unset grid
unset logscale
set xrange [0:1]
set yrange [0:1]
set key inside left center Left reverse vertical samplen 3 spacing 1.5 height 1
plot 2 with linespoints linecolor rgb plain linewidth 2 pointtype 1 title "|A^{-1}|_2: samples, mean", \
     2 with linespoints linecolor rgb normalised linewidth 2 pointtype 1 title "|D^{-1/2} A^{-1} D^{-1/2}|_2", \
     2 with points pointtype 12 pointsize 1.2 linewidth 1.5 linecolor rgb grey title "certified: f64 cannot tell", \
     2 with points pointtype 8 pointsize 1.2 linewidth 1 linecolor rgb grey title "a lower bound only", \
     2 with lines linecolor rgb plain linewidth 2 dashtype 2 title "|X_{20}|_2 (iterate): mean", \
     2 with lines linecolor rgb normalised linewidth 2 dashtype 2 title "|D^{-1/2} X_{20} D^{-1/2}|_2", \
     2 with lines linecolor rgb grey linewidth 1.5 dashtype 3 title "m^2 (Prop. 5, constant 1)", \
     2 with lines linecolor rgb grey linewidth 1.5 dashtype 4 title "m (Prop. 6, constant 1)"
unset multiplot
