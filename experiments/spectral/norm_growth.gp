# SPDX-License-Identifier: BSD-3-Clause
# SOFT (IJCV) Fig. 6b: norms against m, a column per input, a row per sampling, the legend below.
set encoding utf8

# The inputs and samplings in the order of the file, inputs each in quotes: a file's name may hold
# spaces. present lists the pairs (input, sampling) of the CSV. floored lists the (input, sampling,
# m, flag) whose rows include a lower bound: their mean has no meaning, and the line ends before
# them.
inputs = ""
samplings = ""
present = ""
floored = ""
item(name, p, m, flag) = sprintf('"%s %s %d %s" ', name, p, m, flag)
pair(name, p) = sprintf('"%s %s" ', name, p)
add_input(name) = strstrt(inputs, '"'.name.'"') ? 0 : (inputs = inputs.'"'.name.'" ', 0)
add_sampling(p) = strstrt(" ".samplings, " ".p." ") ? 0 : (samplings = samplings.p." ", 0)
add_pair(name, p) = strstrt(present, pair(name, p)) ? 0 : (present = present.pair(name, p), 0)
add_floored(name, p, m, flag) = strcol(flag) eq "false" || strstrt(floored, item(name, p, m, flag)) \
  ? 0 : (floored = floored.item(name, p, m, flag), 0)
plain_floor = "pinv_below_floor"
normalised_floor = "normalised_below_floor"
stats csv using (add_input(strcol("input")) + add_sampling(strcol("sampling")) \
  + add_pair(strcol("input"), strcol("sampling")) \
  + add_floored(strcol("input"), strcol("sampling"), column("m"), plain_floor) \
  + add_floored(strcol("input"), strcol("sampling"), column("m"), normalised_floor)) nooutput
stats csv using "m" name "M" nooutput
stats csv using "pinv_norm" name "EXACT" nooutput
# The norm of an iterate may be 0, which has no place on a logarithmic axis.
stats csv using (column("normalised_iterate_norm") > 0 ? column("normalised_iterate_norm") : 1) \
  name "ITERATE" nooutput

plain = "#0072B2"
normalised = "#D55E00"
grey = "#777777"
norm_of(name, p, quantity) = \
  strcol("input") eq name && strcol("sampling") eq p ? column(quantity) : NaN
# Certified values have an enclosure.
above(name, p, quantity, flag, enclosure) = strcol(flag) eq "false" && strcol(enclosure) eq "" \
  ? norm_of(name, p, quantity) : NaN
certified(name, p, quantity, enclosure) = \
  strcol(enclosure) ne "" ? norm_of(name, p, quantity) : NaN
below(name, p, quantity, flag) = strcol(flag) eq "true" ? norm_of(name, p, quantity) : NaN
clear(name, p, quantity, flag) = strstrt(floored, item(name, p, column("m"), flag)) ? NaN \
  : norm_of(name, p, quantity)
row_title(p) = p eq "pool" ? "pooled landmarks" : p eq "published" ? "the published operator" \
  : p eq "published-centred" ? "the same, tokens centred" : p

across = words(inputs)
down = words(samplings)
wide = across < 3 ? 2 * across : across
legend_height = across < 4 ? 180 : 135
set terminal @terminal size 330 + 215 * wide, 75 + legend_height + 260 * down font ",12"
set output out

set logscale xy
set format y "10^{%T}"
set xrange [M_min * 0.8:M_max * 1.25]
highest = EXACT_max > M_max ** 2 ? EXACT_max : M_max ** 2
set yrange [10 ** floor(log10(ITERATE_min)):10 ** (floor(log10(highest)) + 1)]
set xtics (4, 16, 64, 256, 1024, 4096)
set ytics 1e4
set mytics 1
set grid xtics ytics linetype 1 linecolor rgb "#e4e4e4" linewidth 0.7
set border 3
set tics nomirror
unset key

# In pixels, so that the strip for the legend has the same height for any number of rows.
height = 75.0 + legend_height + 260 * down
top = 1 - 75 / height
bottom = legend_height / height
left = 95.0 / (330 + 215 * wide)
step = (0.99 - left) / across
strip = (top - bottom) / down

set multiplot title \
  "Norm of the inverse of the bottleneck matrix A against the number of landmarks m" font ",16"
do for [r = 1:down] {
  p = word(samplings, r)
  do for [i = 1:across] {
    name = word(inputs, i)
    set lmargin at screen left + (i - 1) * step
    set rmargin at screen left + i * step - 0.015
    set tmargin at screen top - (r - 1) * strip - 12 / height
    set bmargin at screen top - r * strip + 22 / height
    set title (r == 1 ? name : "") noenhanced offset 0, -0.5
    set xlabel (r == down ? "landmarks m" : "") offset 0, 0.3
    set ylabel (i == 1 ? row_title(p) : "")
    set format y (i == 1 ? "10^{%T}" : "")
    set format x (r == down ? "%g" : "")
    if (!strstrt(present, pair(name, p))) {
      set label 1 "no grid" at graph 0.5, 0.5 center
    } else {
      unset label 1
    }
    plot x ** 2 with lines linecolor rgb grey linewidth 1.5 dashtype 3, \
         x with lines linecolor rgb grey linewidth 1.5 dashtype 4, \
         csv using "m":(norm_of(name, p, "iterate_norm")) smooth unique \
           with lines linecolor rgb plain linewidth 2 dashtype 2, \
         csv using "m":(norm_of(name, p, "normalised_iterate_norm")) smooth unique \
           with lines linecolor rgb normalised linewidth 2 dashtype 2, \
         csv using "m":(clear(name, p, "pinv_norm", plain_floor)) smooth unique \
           with lines linecolor rgb plain linewidth 2, \
         csv using "m":(clear(name, p, "normalised_norm", normalised_floor)) smooth unique \
           with lines linecolor rgb normalised linewidth 2, \
         csv using "m":(above(name, p, "pinv_norm", plain_floor, "pinv_lower")) \
           with points pointtype 1 pointsize 0.8 linewidth 1 linecolor rgb plain, \
         csv using "m":(above(name, p, "normalised_norm", normalised_floor, "normalised_lower")) \
           with points pointtype 1 pointsize 0.8 linewidth 1 linecolor rgb normalised, \
         csv using "m":(certified(name, p, "pinv_norm", "pinv_lower")) \
           with points pointtype 12 pointsize 1.2 linewidth 1.5 linecolor rgb plain, \
         csv using "m":(certified(name, p, "normalised_norm", "normalised_lower")) \
           with points pointtype 12 pointsize 1.2 linewidth 1.5 linecolor rgb normalised, \
         csv using "m":(below(name, p, "pinv_norm", plain_floor)):(0):(29 * column("pinv_norm")) \
           with vectors size graph 0.02, 25 filled linewidth 1.2 linecolor rgb plain, \
         csv using "m":(below(name, p, "normalised_norm", normalised_floor)):(0):(29 * column("normalised_norm")) \
           with vectors size graph 0.02, 25 filled linewidth 1.2 linecolor rgb normalised
  }
}

# The legend, in a strip of its own.
reset
set lmargin at screen 0.02
set rmargin at screen 0.99
set tmargin at screen (legend_height - 50) / height
set bmargin at screen 0
unset border
unset tics
set xrange [0:1]
set yrange [0:1]
eval footer
set key at screen 0.5, screen (legend_height - 47) / height center top horizontal maxrows (across < 4 ? 4 : 2) \
  Left reverse width 1 samplen 3 spacing 1.3
plot 2 with linespoints linecolor rgb plain linewidth 2 pointtype 1 title "|A^{-1}|_2: samples, mean", \
     2 with linespoints linecolor rgb normalised linewidth 2 pointtype 1 title "|D^{-1/2} A^{-1} D^{-1/2}|_2", \
     2 with points pointtype 12 pointsize 1.2 linewidth 1.5 linecolor rgb grey title "certified: f64 cannot tell", \
     2 with points pointtype 9 pointsize 1 linewidth 1 linecolor rgb grey title "arrow: at least the value at its foot", \
     2 with lines linecolor rgb plain linewidth 2 dashtype 2 title "|X_{20}|_2 (iterate): mean", \
     2 with lines linecolor rgb normalised linewidth 2 dashtype 2 title "|D^{-1/2} X_{20} D^{-1/2}|_2", \
     2 with lines linecolor rgb grey linewidth 1.5 dashtype 3 title "m^2 (Prop. 5, constant 1)", \
     2 with lines linecolor rgb grey linewidth 1.5 dashtype 4 title "m (Prop. 6, constant 1)"
unset multiplot
