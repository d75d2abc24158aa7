# SPDX-License-Identifier: BSD-3-Clause
# Counted over printed, a line per row of the papers' tables: parameters, and multiply-adds with and
# without the steps of the inverse.
set encoding utf8
set terminal @terminal size 1500,1900 font ",12"
set output out

# Rows from top to bottom as in the file, a gap before each paper.
stats csv using (column("counted_gmacs")) name "ROWS" nooutput
rows = int(ROWS_records)
array paper[rows]
array label[rows]
array height[rows]
k = 0
y = -1
is_new(name) = k == 1 || paper[k - 1] ne name
note(x) = (k = k + 1, paper[k] = strcol("paper"), y = y + (is_new(paper[k]) ? 2.2 : 1), height[k] = y, \
  label[k] = sprintf("%s, %s  {/=10 %s}", strcol("network"), strcol("reading"), strcol("table")), 0)
stats csv using (note(0)) nooutput

counted = "#D55E00"
without = "#0072B2"
at(i) = height[int(column(0)) + 1]

stats csv using (column("params_ratio")) name "P" nooutput
stats csv using (column("gmacs_ratio")) name "G" nooutput
least = P_min < G_min ? P_min : G_min
most = P_max > G_max ? P_max : G_max
set logscale x
set xrange [least / 1.04:most * 1.04]
set xtics nomirror (0.3, 0.5, 0.7, 0.85, 1, 1.2, 1.5, 2)
set yrange [y + 1:0]
set border 1
set grid xtics linetype 1 linecolor rgb "#e4e4e4" linewidth 0.7
set ytics scale 0 ()
do for [i = 1:rows] { set ytics add (label[i] height[i]) }
do for [i = 1:rows] {
  if (i == 1 || paper[i] ne paper[i - 1]) {
    set label i "{/:Bold ".paper[i]."}" at graph -0.02, first height[i] - 1 right
  }
}
# The band within 2 % of the printed number.
set object 1 rectangle from 0.98, graph 0 to 1.02, graph 1 behind fillcolor rgb "#dddddd" fillstyle solid noborder
set arrow 1000 from 1, graph 0 to 1, graph 1 nohead linewidth 1.5 linecolor rgb "#444444"
set tmargin at screen 0.955
set bmargin at screen 0.05
set multiplot title "Networks: parameters and multiply-adds, counted / printed in the papers; grey: within 2 %" font ",17"

set lmargin at screen 0.30
set rmargin at screen 0.63
set title "parameters"
unset key
plot csv using (column("params_ratio")):(at(0)) with points pointtype 6 pointsize 0.9 linewidth 1.6 \
  linecolor rgb counted

set lmargin at screen 0.66
set rmargin at screen 0.99
set title "multiply-adds (the papers' FLOPs)"
unset ytics
do for [i = 1:rows] { unset label i }
set key at screen 0.99, screen 0.024 right top horizontal Left reverse samplen 1
eval footer
plot csv using (column("no_inverse_ratio")):(at(0)) with points pointtype 7 pointsize 0.9 linecolor rgb without \
    title "without the steps of the inverse", \
  csv using (column("gmacs_ratio")):(at(0)) with points pointtype 6 pointsize 0.9 linewidth 1.6 linecolor rgb counted \
    title "all"
unset multiplot
