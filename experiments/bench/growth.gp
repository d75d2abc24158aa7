# SPDX-License-Identifier: BSD-3-Clause
# SOFT (IJCV) Fig. 1b, UFO-ViT Fig. 8: memory of a forward call beyond its inputs and output: measured
# (lines), and as the papers' descriptions hold it (dashed). Left the operators of Fig. 1b, right the
# others; above the papers' n, below far beyond.
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
taker = 2 # of an operator that takes k and goes far
of(i, h, mode) = strcol("operator") eq word(operators, i) && strcol("variant") eq word(chosen, i) \
  && column("heads") == h && strcol("mode") eq mode
bytes(i, h, what) = of(i, h, "forward") && column(what) > 0 ? column(what) / mebi : NaN

array colours[10] = ["#D55E00", "#E69F00", "#009E73", "#CC79A7", "#0072B2", "#56B4E9", "#8B5A2B", "#000000", "#6A3D9A", "#A6A600"]
colour(i) = colours[((i > split ? i - split : i) - 1) % 10 + 1]
width(i) = 1.4 + 1.4 * (i % 2) # of two that lie on each other both are seen
array marks[5] = [6, 4, 8, 12, 10]
mark(i) = marks[(i - 1) % 5 + 1]
last_of(side) = side == 1 ? split : words(operators)
first_of(side) = side == 1 ? 1 : split + 1

set logscale xy
set xlabel "tokens n" offset 0, 0.4
set format y "10^{%T}"
set format x "10^{%T}"
set grid xtics ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set border 3
set tics nomirror
set multiplot title sprintf("Memory of a forward call beyond its inputs and output, f32, batch 1, m = %d\n{/*0.85 lines: resident memory measured in streamed calls; dashed: the arrays the papers' descriptions hold; grey: q, k, v and the output themselves}", M_max) font ",16"
stats csv using (column("heads") == H_max ? column("n") : NaN) name "NEAR" nooutput
stats csv using (column("heads") == H_min ? column("n") : NaN) name "FAR" nooutput
stats csv using (column("bytes_workspace") / mebi) name "LOW" nooutput # measured may be missing
stats csv using (column("bytes_materialised") / mebi) name "HIGH" nooutput
set yrange [10 ** floor(log10(LOW_min)):10 ** ceil(log10(HIGH_max))]

do for [row = 1:2] {
  heads = row == 1 ? H_max : H_min
  low = row == 1 ? NEAR_min : FAR_min
  high = row == 1 ? NEAR_max : FAR_max
  set xrange [low * 0.9:high * 1.12]
  if (row == 1) {
    set xtics ("" 0)
    do for [k = 0:3] { set xtics add (sprintf("%d", low * 2 ** k) low * 2 ** k) }
  } else {
    set xtics autofreq
  }
  set tmargin at screen (row == 1 ? 0.885 : 0.43)
  set bmargin at screen (row == 1 ? 0.545 : 0.09)
  do for [side = 1:2] {
    set lmargin at screen (side == 1 ? 0.06 : 0.49)
    set rmargin at screen (side == 1 ? 0.40 : 0.83)
    set ylabel (side == 1 ? "MiB" : "")
    set title sprintf("%s; h = %d, d = %d", side == 1 ? "the operators of SOFT's Fig. 1b" : "the others", heads, row == 1 ? D_max : D_min) offset 0, -0.4
    unset key
    if (row == 1) {
      set key title (side == 1 ? "left" : "right") left at screen 0.99, screen (side == 1 ? 0.43 : 0.885) \
        right top vertical Left reverse samplen 2.5 spacing 1.3 noenhanced
    }
    plot csv using "n":(bytes(taker, heads, "bytes_io")) with lines linewidth 2.5 \
           linecolor rgb "#bbbbbb" notitle, \
         for [i = first_of(side):last_of(side)] csv using "n":(bytes(i, heads, "bytes_materialised")) \
           with lines linewidth width(i) dashtype 2 linecolor rgb colour(i) notitle, \
         for [i = first_of(side):last_of(side)] csv using "n":(bytes(i, heads, "bytes_measured")) \
           with linespoints linewidth 1.8 pointtype mark(i) pointsize 1 linecolor rgb colour(i) notitle, \
         for [i = first_of(side):last_of(side)] NaN with linespoints linewidth 1.8 pointtype mark(i) \
           pointsize 1 linecolor rgb colour(i) title word(operators, i)
  }
}
unset multiplot
