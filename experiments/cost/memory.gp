# SPDX-License-Identifier: BSD-3-Clause
# SOFT (IJCV) Fig. 1b, UFO-ViT Fig. 8: memory of a forward call beyond its inputs and output:
# measured (lines), and that of the arrays in the papers' descriptions (dashed, small marks). Left:
# the operators of Fig. 1b, right: the others. Upper row: the papers' n, lower row: far larger n.
set encoding utf8
set terminal @terminal size 1500,1150 font ",13"
set output out
set datafile missing NaN # rows of other operators do not interrupt a line

figure = "softmax linformer performer nystromformer soft"
operators = figure." "
add(name) = strstrt(" ".operators, " ".name." ") ? 0 : (operators = operators.name." ", 0)
stats csv using (add(strcol("operator"))) nooutput
split = words(figure)
stats csv using "heads" name "H" nooutput
stats csv using "d" name "D" nooutput
stats csv using "m" name "M" nooutput

# The first variant of an operator in the file is its default.
chosen = ""
note(i) = strcol("operator") eq word(operators, i) && first eq "" ? (first = strcol("variant"), 0) : 0
do for [i = 1:words(operators)] {
  first = ""
  stats csv using (note(i)) nooutput
  chosen = chosen.first." "
}
mebi = 2.0 ** 20
taker = 2 # index of an operator that has K and is measured at large n
of(i, h, mode) = strcol("operator") eq word(operators, i) && strcol("variant") eq word(chosen, i) \
  && column("heads") == h && strcol("mode") eq mode
bytes(i, h, what) = of(i, h, "forward") && column(what) > 0 ? column(what) / mebi : NaN

last_of(side) = side == 1 ? split : words(operators)
first_of(side) = side == 1 ? 1 : split + 1

set logscale xy
set xlabel "tokens n" offset 0, 0.4
set format y "10^{%T}"
set format x "10^{%T}"
set grid xtics ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set border 3
set tics nomirror
set multiplot title sprintf("Memory of a forward call beyond its inputs and output, f32, batch 1, m = %d", M_max) font ",16"
stats csv using (column("heads") == H_max ? column("n") : NaN) name "NEAR" nooutput
stats csv using (column("heads") == H_min ? column("n") : NaN) name "FAR" nooutput
stats csv using (column("bytes_workspace") / mebi) name "LOW" nooutput # measured may be missing
stats csv using (column("bytes_materialised") / mebi) name "HIGH" nooutput
set yrange [10 ** floor(log10(LOW_min)):10 ** ceil(log10(HIGH_max))]

# Operators of a side without a measured call in these heads: quadratic ones stop at the papers' n.
measured = ""
mark_measured(heads) = bytes_of_any(heads) ? (measured = listed(measured, strcol("operator")), 0) : 0
bytes_of_any(heads) = strcol("mode") eq "forward" && column("heads") == heads && column("bytes_measured") > 0
unmeasured(i, last) = i > last ? "" : (strstrt(measured, '"'.word(operators, i).'"') ? "" \
  : " ".word(operators, i)).unmeasured(i + 1, last)
set label 1 at graph 0.03, graph 0.96 left noenhanced font ",11"

do for [row = 1:2] {
  heads = row == 1 ? H_max : H_min
  low = row == 1 ? NEAR_min : FAR_min
  high = row == 1 ? NEAR_max : FAR_max
  set xrange [low * 0.9:high * 1.12]
  if (row == 1) {
    set xtics ("" 0)
    do for [k = 0:3] { set xtics add (sprintf("%d", low * 2 ** k) low * 2 ** k) }
    set xtics add (sprintf("%d", high) high)
  } else {
    set xtics autofreq
  }
  set tmargin at screen (row == 1 ? 0.885 : 0.43)
  set bmargin at screen (row == 1 ? 0.545 : 0.09)
  do for [side = 1:2] {
    set lmargin at screen (side == 1 ? 0.06 : 0.45)
    set rmargin at screen (side == 1 ? 0.39 : 0.78)
    set ylabel (side == 1 ? "MiB" : "")
    set title sprintf("%s; h = %d, d = %d", side == 1 ? "the operators of SOFT's Fig. 1b" : "the others", heads, row == 1 ? D_max : D_min) offset 0, -0.4
    unset key
    measured = ""
    stats csv using (mark_measured(heads)) nooutput
    none = unmeasured(first_of(side), last_of(side))
    set label 1 none eq "" ? "" : "not run at such n:".none
    plot csv using "n":(bytes(taker, heads, "bytes_io")) with linespoints linewidth 2.5 pointtype 7 pointsize 0.6 \
           linecolor rgb "#bbbbbb", \
         for [i = first_of(side):last_of(side)] csv using "n":(bytes(i, heads, "bytes_materialised")) \
           with linespoints linewidth 1.5 dashtype 2 pointtype mark_of(word(operators, i)) pointsize 0.6 \
           linecolor rgb colour_of(word(operators, i)), \
         for [i = first_of(side):last_of(side)] csv using "n":(bytes(i, heads, "bytes_measured")) \
           with linespoints linewidth 1.8 pointtype mark_of(word(operators, i)) pointsize 1.1 \
           linecolor rgb colour_of(word(operators, i))
  }
}

# One legend for all panels, in a separate cell.
reset
set lmargin at screen 0.80
set rmargin at screen 0.995
set tmargin at screen 0.885
set bmargin at screen 0.09
unset border
unset tics
set xrange [0:1]
set yrange [0:1]
said = leave_out("forward+backward; variants other than each operator's default")
eval footer
set key at screen 0.80, screen 0.885 left top vertical maxrows 40 Left reverse samplen 2.5 spacing 1.45 noenhanced
plot for [i = 1:split] NaN with linespoints linewidth 1.8 pointtype mark_of(word(operators, i)) pointsize 1.1 \
       linecolor rgb colour_of(word(operators, i)) title word(operators, i), \
     NaN with lines linecolor rgb "#ffffff" title " ", \
     for [i = split + 1:words(operators)] NaN with linespoints linewidth 1.8 pointtype mark_of(word(operators, i)) \
       pointsize 1.1 linecolor rgb colour_of(word(operators, i)) title word(operators, i), \
     NaN with lines linecolor rgb "#ffffff" title " ", \
     NaN with lines linewidth 1.8 linecolor rgb "#444444" title "measured", \
     NaN with lines linewidth 1.5 dashtype 2 linecolor rgb "#444444" title "the papers' arrays", \
     NaN with lines linewidth 2.5 linecolor rgb "#bbbbbb" title "q, k, v and the output"
unset multiplot
