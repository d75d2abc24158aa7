# SPDX-License-Identifier: BSD-3-Clause
# SOFT's bottleneck matrix through training: a row of panels per run, a line per block, through medians over heads and
# pictures; bars are from the smallest to the largest. Dashed lines, with hollow marks, are the second measure of a panel.
set encoding utf8
if (!exists("csv2")) csv2 = sibling("_blocks")

runs = ""
last_block = 0
first = 1e9
last = -1
undated = 0
stats csv2 using (runs = listed(runs, strcol("run")), \
  last_block = column("block") > last_block ? column("block") : last_block, \
  epoch = strcol("epoch") eq "" ? (undated = 1, NaN) : column("epoch"), \
  first = epoch < first ? epoch : first, last = epoch > last ? epoch : last, 0) nooutput
stats csv using (m = column("m"), steps = column("steps"), 0) nooutput
down = words(runs) < 4 ? words(runs) : 4
said = leave_out(words(runs) > down ? "runs ".joined(runs, down + 1) : "")
said = leave_out(undated ? "networks without an epoch" : "")
blocks = int(last_block) + 1

array title[4] = ["condition number of A\ndashed: of A + ρI", \
  sprintf("‖I − (A + ρI) X‖ after %d steps\ndashed: the papers’ metric, ‖A X A − A‖/‖A‖", steps), \
  "steps until ‖I − (A + ρI) X‖ < 10^{−3}\n ", \
  "relative error of Eq. 12\ndashed: as the derivative of the exact inverse"]
main = "condition inverse_residual inverse_steps eq12_error"
second = "ridge_condition residual inverse_steps eq12_exact_error" # panel 3 has one alone
array line[4] = [1 / (m * 2.0 ** -24), 1e-3, steps, 1]
array said_line[4] = ["singular\nin f32\nabove", "converged\nbelow", "taken", ""]
most_steps = 60
late = 66 # where medians that were not reached are drawn

wide = 1680
tall = 370 * down + 120
set terminal @terminal size wide, tall font ",13" background rgb "white"
set output out
set grid xtics ytics linetype 1 linewidth 0.6 linecolor rgb "#e0e0e0"
set border 3
set tics nomirror
set datafile missing NaN # lines pass over other blocks' rows
set xrange [first - 0.5:last + 0.5 + 0.4 * (last - first + 1)] # room for what the grey lines mean
if (last - first < 12) { set xtics first, 1, last } else { set xtics 0, 5, last }
unset key
shift(b) = 0.014 * (last - first + 3) * (b - 0.5 * (blocks - 1)) # so that bars do not hide each other
of(i, b, name) = strcol("run") eq word(runs, i) && column("block") == b && strcol("measure") eq name && strcol("epoch") ne ""
at(b) = column("epoch") + shift(b)
middle(ok, k) = ok ? (strcol("median") eq "" ? (k == 3 ? late : NaN) : column("median")) : NaN
most(ok, k) = ok ? (k == 3 && column("missing") > 0 ? late : column("most")) : NaN

set multiplot title "{/:Bold The bottleneck matrix of SOFT, its inverse and Eq. 12 in training}" font ",16" offset 0, 0.2
do for [i = 1:down] {
  do for [k = 1:4] {
    set lmargin at screen 0.045 + (k - 1) * 0.245
    set rmargin at screen 0.045 + k * 0.245 - 0.035
    set tmargin at screen 1 - (95.0 + 370 * (i - 1)) / tall
    set bmargin at screen 1 - (95.0 + 370 * (i - 1) + 255) / tall
    set xlabel i == down ? "epoch" : "" offset 0, 0.4
    set title title[k] font ",12" offset 0, -0.4
    if (words(runs) > 1 && k == 1) { set label 3 word(runs, i) at graph -0.13, graph 1.28 left noenhanced font ",14" } else { unset label 3 }
    if (k == 3) { unset logscale y; set yrange [0:70]; set format y "%g"; set ytics 0, 20, 60 } else {
      set logscale y; set yrange [*:*]; set format y "10^{%T}"; set ytics autofreq }
    unset label 1
    set label 1 said_line[k] at graph 1, first line[k] right offset 0, (k == 1 ? 2.6 : k == 2 ? 1.6 : 0.6) font ",11" textcolor rgb "#666666"
    if (k == 3) { set label 2 sprintf("not within %d", most_steps) at graph 0.01, first late offset 0, 0 font ",11" \
      textcolor rgb "#666666" } else { unset label 2 }
    if (i == down && k == 4) {
      eval footer
      set key at screen 0.99, screen 72.0 / tall right top horizontal samplen 2
    }
    plot line[k] with lines linewidth 1.2 linecolor rgb "#999999" notitle, \
      for [b = 0:last_block] csv2 using (ok = of(i, b, word(second, k)), ok ? at(b) : NaN):(middle(ok, 0)) smooth unique \
        with linespoints linewidth 1.4 dashtype 2 pointtype step_mark(b + 1) - 1 pointsize 0.8 \
        linecolor rgb step_colour(b + 1) notitle, \
      for [b = 0:last_block] csv2 using (ok = of(i, b, word(main, k)), ok ? at(b) : NaN):(middle(ok, k)) smooth unique \
        with lines linewidth 2 linecolor rgb step_colour(b + 1) notitle, \
      for [b = 0:last_block] csv2 using (ok = of(i, b, word(main, k)), ok ? at(b) : NaN):(middle(ok, k)):\
        (ok ? column("least") : NaN):(most(ok, k)) with yerrorbars pointtype step_mark(b + 1) pointsize 0.9 linewidth 1 \
        linecolor rgb step_colour(b + 1) title sprintf("block %d", b)
  }
}
unset multiplot
