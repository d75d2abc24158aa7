# SPDX-License-Identifier: BSD-3-Clause
# SOFT (IJCV) section 3.2: a column per input; above the trace error over that of the best matrix of
# rank m, below A's condition number, one place per sampler, one colour per m.
set encoding utf8
if (!exists("csv2")) csv2 = sibling("_summary")
set terminal @terminal size 1700,930 font ",13"
set output out

inputs = ""
samplers = ""
sizes = ""
add(list, name) = strstrt(list, '"'.name.'"') ? list : list.'"'.name.'" '
note(name, with, m) = (inputs = add(inputs, name), samplers = add(samplers, with), sizes = add(sizes, m), 0)
stats csv using (note(strcol("input"), strcol("sampler"), strcol("m"))) nooutput
stats csv using "kappa" name "KAPPA" nooutput
# Missing where the best matrix leaves nothing, perhaps everywhere: gnuplot 6 leaves out a row as soon as
# column() meets what is missing.
ratio(_) = strcol("trace_ratio_max") eq "" ? 2 : column("trace_ratio_max")
stats csv2 using (ratio(0) > 2 ? ratio(0) : 2) name "RATIO" nooutput

place_of(name) = sum [k = 1:words(samplers)] (word(samplers, k) eq name ? k : 0)
spread(k) = words(sizes) > 1 ? -0.16 + 0.32 * (k - 1) / (words(sizes) - 1) : 0
mine(i, k) = strcol("input") eq word(inputs, i) && strcol("m") eq word(sizes, k)
at(i, k) = mine(i, k) ? place_of(strcol("sampler")) + spread(k) : NaN

across = words(inputs)
set logscale y
set xrange [0.4:words(samplers) + 0.6]
set border 3
set tics nomirror
set xtics rotate by 60 right scale 0 noenhanced
set grid ytics xtics linetype 1 linecolor rgb "#e4e4e4" linewidth 0.7
set mytics 10
unset key
do for [k = 1:words(sizes)] {
  set label k sprintf("%s m = %s", word("● ■ ▲ ◆ ▼ ⬟ ○ □", (k - 1) % 8 + 1), word(sizes, k)) at screen 0.055 + 0.07 * (k - 1), screen 0.93 left textcolor rgb step_colour(k)
}
set label 20 "bars: minimum to maximum over samples and draws" at screen 0.055 + 0.07 * words(sizes), screen 0.93 left
set label 21 "- - -  best matrix of rank m (Eckart–Young)" at screen 0.51, screen 0.93 left
set label 22 "○  λ_{min}(A) below m u λ_{max}: κ is at least that" at screen 0.76, screen 0.93 left

set multiplot layout 2, across rowsfirst margins 0.055, 0.99, 0.15, 0.865 spacing 0.012, 0.04 \
  title "Landmarks by every sampler: error of Ŝ against the best matrix of rank m, and the condition of A" font ",16"
set yrange [0.9:10 ** ceil(log10(RATIO_max))]
set xtics ()
do for [k = 1:words(samplers)] { set xtics add ("" k) }
do for [i = 1:across] {
  set title word(inputs, i) noenhanced offset 0, -0.5
  set ylabel (i == 1 ? "tr(S - Ŝ) over that of the best rank m" : "") offset 0.5, 0
  set format y (i == 1 ? "10^{%T}" : "")
  plot 1 with lines linewidth 1.5 dashtype 2 linecolor rgb "#444444", \
       for [k = 1:words(sizes)] csv2 using (at(i, k)):"trace_ratio_median":"trace_ratio_min":"trace_ratio_max" \
         with yerrorbars pointtype step_mark(k) pointsize 1 linewidth 1.5 linecolor rgb step_colour(k)
  if (i == 1) { do for [k = 1:22] { unset label k } }
}
unset title
set yrange [0.7:10 ** ceil(log10(KAPPA_max))]
set xtics ()
do for [k = 1:words(samplers)] { set xtics add (word(samplers, k) k) }
do for [i = 1:across] {
  if (i == across) { eval footer
  }
  set ylabel (i == 1 ? "condition number κ(A)" : "") offset 0.5, 0
  set format y (i == 1 ? "10^{%T}" : "")
  plot for [k = 1:words(sizes)] csv using (strcol("below_floor") eq "false" ? at(i, k) : NaN):"kappa" \
         with points pointtype step_mark(k) pointsize 0.8 linecolor rgb step_colour(k), \
       for [k = 1:words(sizes)] csv using (strcol("below_floor") eq "true" ? at(i, k) : NaN):"kappa" \
         with points pointtype 6 pointsize 1.1 linewidth 1.5 linecolor rgb step_colour(k)
}
unset multiplot
