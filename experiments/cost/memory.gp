# SPDX-License-Identifier: BSD-3-Clause
# SOFT (IJCV) Fig. 1b, UFO-ViT Fig. 8: memory of a forward call beyond its inputs and output: measured
# (lines), and as the papers' descriptions hold it (dashed). Left the operators of Fig. 1b, right the
# others; above the papers' n, below far beyond.
set encoding utf8
set terminal @terminal size 1500,1150 font ",13"
set output out
set datafile missing NaN # rows of other operators do not interrupt a line

figure = "softmax linformer performer nystromformer soft"
operators = figure." "; variants = "- - - - - "
known(name) = strstrt(" ".operators, " ".name." ")
add(name) = known(name) ? 0 : (operators = operators.name." ", variants = variants.strcol("variant")." ", 0)
stats csv using (add(strcol("operator"))) nooutput
split = words(figure)
stats csv using "heads" name "H" nooutput

# The first variant of an operator in the file is its default.
do for [i = 1:words(operators)] {
  first = ""
  note(i) = strcol("operator") eq word(operators, i) && first eq "" ? (first = strcol("variant"), 0) : 0
  stats csv using (note(i)) nooutput
  chosen = i == 1 ? first." " : chosen.first." "
}
mebi = 2.0 ** 20
of(i, h, mode) = strcol("operator") eq word(operators, i) && strcol("variant") eq word(chosen, i) \
  && column("heads") == h && strcol("mode") eq mode
bytes(i, h, what) = of(i, h, "forward") && column(what) > 0 ? column(what) / mebi : NaN
io(h) = of(1, h, "forward") || of(split + 1, h, "forward") ? column("bytes_io") / mebi : NaN

array colours[8] = ["#D55E00", "#E69F00", "#009E73", "#CC79A7", "#0072B2", "#56B4E9", "#8B5A2B", "#000000"]
colour(i) = colours[((i > split ? i - split : i) - 1) % 8 + 1]
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
set multiplot title "Memory of a forward call beyond its inputs and output, f32, batch 1, m = 49\n{/*0.85 lines: resident memory measured in streamed calls; dashed: the arrays the papers' descriptions hold}" font ",16"
stats csv using (column("heads") == H_max ? column("n") : NaN) name "NEAR" nooutput
stats csv using (column("heads") == H_min ? column("n") : NaN) name "FAR" nooutput
stats csv using (column("bytes_measured") > 0 ? column("bytes_measured") / mebi : NaN) name "LOW" nooutput
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
    set title sprintf("%s; h = %d, d = %d", side == 1 ? "the operators of SOFT's Fig. 1b" : "the others", heads, 32 * heads) offset 0, -0.4
    if (row == 1 && side == 1) {
      set key at screen 0.995, screen 0.43 right top vertical Left reverse samplen 2.5 spacing 1.3 noenhanced
    } else { if (row == 1) {
      set key at screen 0.995, screen 0.885 right top vertical Left reverse samplen 2.5 spacing 1.3 noenhanced
    } else { unset key } }
    plot for [i = first_of(side):last_of(side)] csv using "n":(bytes(i, heads, "bytes_materialised")) \
           with lines linewidth 1.6 dashtype 2 linecolor rgb colour(i) notitle, \
         for [i = first_of(side):last_of(side)] csv using "n":(bytes(i, heads, "bytes_measured")) \
           with linespoints linewidth 1.8 pointtype mark(i) pointsize 1 linecolor rgb colour(i) notitle, \
         for [i = first_of(side):last_of(side)] NaN with linespoints linewidth 1.8 pointtype mark(i) \
           pointsize 1 linecolor rgb colour(i) title word(operators, i)
  }
}
unset multiplot
