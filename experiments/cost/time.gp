# SPDX-License-Identifier: BSD-3-Clause
# The papers' statements about speed, as ratios of times measured in alternation: medians, and bars
# from the smallest to the largest.
set encoding utf8
if (!exists("csv2")) csv2 = sibling("_fit")
set terminal @terminal size 1600,1050 font ",12"
set output out
set datafile missing NaN

is(statement, work) = strcol("statement") eq statement && strcol("a_work") eq work
pair(statement, a, b) = strcol("statement") eq statement && strcol("a") eq a && strcol("b_work") eq b

# The values of a column in the rows of a statement, as words in the order of the file.
values = " "
add_value(value) = strstrt(values, " ".value." ") ? 0 : (values = values.value." ", 0)

set grid xtics ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set border 3
set tics nomirror
set key Left reverse samplen 2 spacing 1.15 noenhanced
set logscale x
set multiplot title "Times on one thread, f32: A/B of two calls taken side by side (median, smallest and largest of the pairs)" font ",15"
set tmargin at screen 0.87
set bmargin at screen 0.57

set lmargin at screen 0.05
set rmargin at screen 0.22
set title "SOFT's backward:\nthrough the T steps / closed form"
set xlabel "landmarks m" offset 0, 0.4
stats csv using (is("S17", "backward-steps") ? add_value(strcol("n")) : 0) nooutput
set key left top
plot for [i = 1:words(values)] csv using "m":(is("S17", "backward-steps") && strcol("n") eq word(values, i) ? column("ratio_median") : NaN):"ratio_min":"ratio_max" \
       with yerrorlines linewidth 1.6 pointtype step_mark(i) linecolor rgb step_colour(i) title "n = ".word(values, i)

set lmargin at screen 0.28
set rmargin at screen 0.45
set title "SOFT++ / SOFT, forward"
set offsets 0, 0, graph 0.25, 0
plot for [i = 1:words(values)] csv using "m":(is("S29", "forward") && strcol("n") eq word(values, i) ? column("ratio_median") : NaN):"ratio_min":"ratio_max" \
       with yerrorlines linewidth 1.6 pointtype step_mark(i) linecolor rgb step_colour(i) title "n = ".word(values, i)

set lmargin at screen 0.525
set rmargin at screen 0.70
unset offsets
set title "time of the normalisation, T = 0 steps"
set xlabel "m = n" offset 0, 0.4
set ylabel "seconds" offset 1, 0
set logscale y
set format y "10^{%T}"
# A difference of two times may be negative on a busy machine: then the law may be missing, or every
# point.
law = ""
least = 0
stats csv2 using (strcol("quantity") eq "difference_seconds" && column("exponent") == column("exponent") \
                  ? (law = sprintf("∝ m^{%.2f}", column("exponent")), 0) : 0) nooutput
stats csv using (is("S29", "forward-unstepped") && column("difference_seconds") > 0 \
                 ? (least = column("difference_seconds"), 0) : 0) nooutput
if (least == 0) { set yrange [1e-7:1e-5] } # gnuplot finds no range for an empty plot
plot csv using "m":(is("S29", "forward-unstepped") ? column("difference_seconds") : NaN) with linespoints \
       linewidth 1.6 pointtype 7 linecolor rgb step_colour(1) title law enhanced
set yrange [*:*]

set lmargin at screen 0.78
set rmargin at screen 0.97
set title "SimA: (Q̂K̂ᵀ)V / Q̂(K̂ᵀV)"
set xlabel "n / d" offset 0, 0.4
set xrange [*:*] noextend
unset ylabel
set format y "%g"
values = " "
stats csv using (is("M03", "forward") ? add_value(strcol("d")) : 0) nooutput
plot for [i = 1:words(values)] csv using (column("n") / column("d")):(is("M03", "forward") && strcol("d") eq word(values, i) ? column("ratio_median") : NaN):"ratio_min":"ratio_max" \
       with yerrorlines linewidth 1.6 pointtype step_mark(i) linecolor rgb step_colour(i) title "d = ".word(values, i), \
     1 with lines linewidth 1.2 linecolor rgb "#888888" notitle

set xrange [*:*] extend
set tmargin at screen 0.455
set bmargin at screen 0.12
unset logscale y
set yrange [*:1] # on a busy machine a share may be below 0
set lmargin at screen 0.05
set rmargin at screen 0.22
set title "softmax attention: share of its time"
set xlabel "tokens n" offset 0, 0.4
set key left top
plot csv using "n":(pair("M05", "softmax", "forward") ? 1 - 1 / column("ratio_median") : NaN) with linespoints linewidth 1.6 \
       pointtype 7 linecolor rgb step_colour(1) title "beyond SimA, same order", \
     csv using "n":(pair("M05", "softmax", "exps") ? 1 / column("ratio_median") : NaN) with linespoints linewidth 1.6 \
       pointtype 6 linecolor rgb step_colour(2) title "exp alone"

set lmargin at screen 0.28
set rmargin at screen 0.45
set title "XCA: share of its time"
set xlabel "width d" offset 0, 0.4
plot csv using "d":(pair("M05", "xca", "forward") ? 1 - 1 / column("ratio_median") : NaN) with linespoints linewidth 1.6 \
       pointtype 7 linecolor rgb step_colour(1) title "beyond SimA, same order", \
     csv using "d":(pair("M05", "xca", "exps") ? 1 / column("ratio_median") : NaN) with linespoints linewidth 1.6 \
       pointtype 6 linecolor rgb step_colour(2) title "exp alone"

unset logscale x
set yrange [*:*]
set logscale y
set lmargin at screen 0.525
set rmargin at screen 0.97
set title "operator / softmax, forward (hollow: backward)"
unset xlabel
names = " "
add_name(name) = strstrt(names, " ".name." ") ? 0 : (names = names.name." ", 0)
stats csv using (strcol("statement") eq "N05" ? add_name(strcol("a")) : 0) nooutput
values = " "
stats csv using (strcol("statement") eq "N05" ? add_value(strcol("n")) : 0) nooutput
place(name) = words(names[1:strstrt(names, " ".name." ")]) + 1
set xrange [0.4:words(names) + 0.6]
set xtics rotate by 40 right noenhanced scale 0 ()
do for [i = 1:words(names)] { set xtics add (word(names, i) i) }
set key right bottom
eval footer
plot for [i = 1:words(values)] csv using (place(strcol("a"))):(is("N05", "forward") && strcol("n") eq word(values, i) ? column("ratio_median") : NaN):"ratio_min":"ratio_max" \
       with yerrorbars linewidth 1.4 pointtype step_mark(i) linecolor rgb step_colour(i) title "n = ".word(values, i), \
     for [i = 1:words(values)] csv using (place(strcol("a")) + 0.25):(is("N05", "backward-closed") && strcol("n") eq word(values, i) ? column("ratio_median") : NaN):"ratio_min":"ratio_max" \
       with yerrorbars linewidth 1.4 pointtype step_mark(i) - 1 linecolor rgb step_colour(i) notitle, \
     1 with lines linewidth 1.2 linecolor rgb "#888888" notitle
unset multiplot
