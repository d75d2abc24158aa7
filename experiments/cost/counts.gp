# SPDX-License-Identifier: BSD-3-Clause
# Flops and exps of a forward call against n, a line per operator's default variant.
set encoding utf8
set terminal @terminal size 1500,820 font ",14"
set output out
set datafile missing NaN # rows of other operators do not interrupt a line

# Operators with the first variant and, of several m, the first one in the file.
operators = ""; variants = ""; landmarks = ""
add(name) = strstrt(" ".operators, " ".name." ") ? 0 : (operators = operators.name." ", \
  variants = variants.strcol("variant")." ", landmarks = landmarks."m".strcol("m")." ", 0)
stats csv using (add(strcol("operator"))) nooutput
stats csv using "n" name "N" nooutput
stats csv using "d" name "D" nooutput
stats csv using "heads" name "H" nooutput
of(i) = strcol("operator") eq word(operators, i) && strcol("variant") eq word(variants, i) \
  && "m".strcol("m") eq word(landmarks, i)
chosen(i, what) = of(i) && column(what) > 0 ? column(what) : NaN
none = ""
note(i) = of(i) && column("exps") == 0 ? (none = none.(none eq "" ? "; none in " : ", ").word(operators, i), 0) : 0
do for [i = 1:words(operators)] {
  stats csv using (column("n") == N_min ? note(i) : 0) nooutput
}

# Lines that lie on each other differ in the size of their marks.
size(i) = 0.8 + 0.4 * ((i - 1) % 4)
name(i) = word(operators, i).(word(landmarks, i) eq "m" ? "" : " (m = ".word(landmarks, i)[2:*].")")

set logscale xy
set xrange [N_min * 0.9:N_max * 1.1]
array ticks[4] = [N_min, 2 * N_min, 4 * N_min, N_max]
set xtics ("" 0)
do for [i = 1:4] { set xtics add (sprintf("%d", ticks[i]) ticks[i]) }
set xlabel "tokens n"
set format y "10^{%T}"
set grid xtics ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set border 3
set tics nomirror
set tmargin at screen 0.86
set bmargin at screen 0.155
set multiplot title sprintf("Exact counts of a forward call, d = %d, h = %d", D_max, H_max) font ",17"

set lmargin at screen 0.05
set rmargin at screen 0.385
set title "number of additions and multiplications"
unset key
plot for [i = 1:words(operators)] csv using "n":(chosen(i, "flops")) with linespoints \
  linewidth 1.8 pointtype mark_of(word(operators, i)) pointsize size(i) linecolor rgb colour_of(word(operators, i)) notitle

set lmargin at screen 0.45
set rmargin at screen 0.785
set title "number of exponentials, sines and cosines".none noenhanced
ms = ""
stats csv using (strcol("m") eq "" ? 0 : (ms = listed(ms, strcol("m")), 0)) nooutput
said = leave_out("variants other than each operator's first")
said = leave_out(words(ms) > 1 ? "m = ".joined(ms, 2) : "")
eval footer
set key at screen 0.995, screen 0.86 right top vertical Left reverse samplen 2.5 spacing 1.35 noenhanced
plot for [i = 1:words(operators)] csv using "n":(chosen(i, "exps")) with linespoints \
  linewidth 1.8 pointtype mark_of(word(operators, i)) pointsize size(i) linecolor rgb colour_of(word(operators, i)) notitle, \
  for [i = 1:words(operators)] NaN with linespoints \
  linewidth 1.8 pointtype mark_of(word(operators, i)) pointsize size(i) linecolor rgb colour_of(word(operators, i)) title name(i)
unset multiplot
