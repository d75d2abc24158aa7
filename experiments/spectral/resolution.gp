# SPDX-License-Identifier: BSD-3-Clause
# SOFT (IJCV) Tab. 6, App. D: norms of attention matrices against the number of tokens: a column per
# input, a row per view.
set encoding utf8
inputs = ""
present = ""
pair(name, view) = '"'.name.'|'.view.'"'
stats csv using (inputs = listed(inputs, strcol("input")), present = listed(present, strcol("input").'|'.strcol("view")), 0) nooutput
stats csv using "n" name "N" nooutput
stats csv using "norm" name "NORM" nooutput
across = words(inputs)
views = "enlarged cropped"
set terminal @terminal size 330 * across + 480, 940 font ",13"
set output out

# A line per operator, inverse and rule of landmarks; "-": the exact matrix has no inverse.
operators = "gaussian soft soft softpp softpp softpp softmax"
inverses = "- nr-soft nr-soft nr-softpp nr-softpp nr-softpp -"
rules = "none m49 stride2 m49 stride4 stride2 none"
names = '"exact Gaussian: |S|_2" "SOFT, m = 49: |Ŝ|_2" "SOFT, stride 2, m = n/4" "SOFT++, m = 49" \
"SOFT++, stride 4, m = n/16" "SOFT++, stride 2, m = n/4" "softmax, the same tokens"'
lines = words(operators)
styled = "gaussian soft/m49 soft/stride2 softpp/m49 softpp/stride4 softpp/stride2 softmax"
colour(k) = k == 1 ? "#c8c8c8" : colour_of(word(styled, k))
mark(k) = mark_of(word(styled, k))
rest = 0
is_drawn(k) = strcol("operator") eq word(operators, k) && strcol("landmarks") eq word(rules, k) && \
  (word(inverses, k) eq "-" || strcol("inverse") eq word(inverses, k) || (k > 3 && strcol("inverse") eq "exact"))
stats csv using ((sum [k = 1:lines] is_drawn(k)) ? 0 : (rest = rest + 1, 0)) nooutput
said = leave_out(rest ? sprintf("%d rows of other operators, inverses or landmarks", rest) : "")
array widths[7] = [9, 2, 2, 2, 2, 2, 2]
array dashes[7] = [1, 1, 2, 1, 1, 1, 1]
chosen(i, view, k) = strcol("input") eq word(inputs, i) && strcol("view") eq word(views, view) \
  && strcol("operator") eq word(operators, k) && strcol("landmarks") eq word(rules, k)
shown(i, view, k) = chosen(i, view, k) && (word(inverses, k) eq "-" \
  || strcol("inverse") eq word(inverses, k)) ? column("norm") : NaN
exact(i, view, k, floored) = chosen(i, view, k) && strcol("inverse") eq "exact" \
  && strcol("below_floor") eq floored ? column("norm") : NaN

set datafile missing NaN # rows of others do not interrupt a line
set logscale xy
set xrange [N_min * 0.8:N_max * 1.25]
set yrange [NORM_min * 0.7:N_max * 1.6]
set xtics ("" 0)
do for [side in "14 28 56 112"] { set xtics add (side.'^2' side ** 2) }
set ytics 10
set mytics 1
set grid xtics ytics linetype 1 linecolor rgb "#e4e4e4" linewidth 0.7
set border 3
set tics nomirror
unset key

left = 95.0 / (330 * across + 480)
panel = 330.0 / (330 * across + 480)
set multiplot title "Spectral norms as the input grows\n{/*0.85 SOFT and SOFT++ as published: 20 Newton–Raphson steps; lines: means over samples}" font ",16"
do for [view = 1:2] {
  set tmargin at screen (view == 1 ? 0.87 : 0.465)
  set bmargin at screen (view == 1 ? 0.545 : 0.125)
  do for [i = 1:across] {
    set lmargin at screen left + (i - 1) * panel
    set rmargin at screen left + (i - 0.1) * panel
    set title word(inputs, i).", ".word(views, view) noenhanced offset 0, -0.5
    if (strstrt(present, pair(word(inputs, i), word(views, view)))) {
      unset label 1
    } else {
      set label 1 "no such view" at graph 0.5, 0.15 center textcolor rgb "#666666"
    }
    set xlabel (view == 2 ? "tokens n" : "") offset 0, 0.3
    set ylabel (i == 1 ? "spectral norm" : "") offset 1, 0
    set format y (i == 1 ? "10^{%T}" : "")
    plot for [k = 1:lines] csv using "n":(shown(i, view, k)) smooth unique with lines \
           linewidth widths[k] dashtype dashes[k] linecolor rgb colour(k), \
         for [k = 2:lines] csv using "n":(shown(i, view, k)) with points pointtype mark(k) \
           pointsize 0.5 linecolor rgb colour(k), \
         for [k = 4:6] csv using "n":(exact(i, view, k, "false")) with points pointtype 2 \
           pointsize 0.8 linewidth 1.3 linecolor rgb colour(k), \
         for [k = 4:6] csv using "n":(exact(i, view, k, "true")) with points pointtype 8 \
           pointsize 1 linewidth 1.3 linecolor rgb colour(k), \
         x with lines linewidth 1.2 dashtype 3 linecolor rgb "#444444", \
         sqrt(x) with lines linewidth 1.2 dashtype 4 linecolor rgb "#888888"
  }
}

# The legend, in a cell of its own.
set lmargin at screen left + across * panel
set rmargin at screen 1
set tmargin at screen 0.87
set bmargin at screen 0.09
unset title
unset xlabel
unset ylabel
unset tics
unset border
unset grid
unset logscale
set xrange [0:1]
set yrange [0:1]
eval footer
set key inside left top Left reverse vertical samplen 3 spacing 1.5
plot for [k = 1:lines] 2 with linespoints linewidth widths[k] dashtype dashes[k] pointtype mark(k) \
       pointsize 0.8 linecolor rgb colour(k) title word(names, k), \
     2 with points pointtype 2 pointsize 1 linewidth 1.3 linecolor rgb "#444444" \
       title "SOFT++ with A^+ itself", \
     2 with points pointtype 8 pointsize 1.1 linewidth 1.3 linecolor rgb "#444444" \
       title "the same, hangs on A^+'s cut", \
     2 with lines linewidth 1.2 dashtype 3 linecolor rgb "#444444" title "n", \
     2 with lines linewidth 1.2 dashtype 4 linecolor rgb "#888888" title "√n"
unset multiplot
