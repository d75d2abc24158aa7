# SPDX-License-Identifier: BSD-3-Clause
# Time (per token, so that linear is level) and memory of one forward call over n, and time over m; "smooth unique" puts
# the points of a line in the order of n or m, whatever that of --n and --m is.
set encoding utf8
if (!exists("csv2")) csv2 = sibling("_fits")
set terminal @terminal size 1700,620 font ",13"
set output out
set datafile missing NaN # rows of other lines do not interrupt a line

# The lines of each panel, in the order of the file.
tokens = ""
landmarks = ""
add_tokens(name) = strstrt(" ".tokens, " ".name." ") ? 0 : (tokens = tokens.name." ", 0)
line_name(i) = strcol("operator").(strcol("inverse") eq "" ? "" : "/".strcol("inverse"))
add_landmarks(name) = strstrt(" ".landmarks, " ".name." ") ? 0 : (landmarks = landmarks.name." ", 0)
stats csv using (strcol("over") eq "n" ? add_tokens(strcol("operator")) : 0) nooutput
stats csv using (strcol("over") eq "m" ? add_landmarks(line_name(0)) : 0) nooutput

taker = 1 # of an operator with k, q, v and the output: the second, if there is one
of_token(i) = word(tokens, i)
of_line(i) = word(landmarks, i)
place(name) = words(tokens[1:strstrt(" ".tokens, " ".name." ")]) + (strstrt(" ".tokens, " ".name." ") == 1 ? 1 : 0)
is(i, threads) = strcol("over") eq "n" && strcol("operator") eq word(tokens, i) && column("threads") == threads
is_line(i, threads) = strcol("over") eq "m" && line_name(0) eq word(landmarks, i) && column("threads") == threads

# Solid and dashed.
stats csv using "threads" name "THREADS" nooutput
few = THREADS_min
many = THREADS_max
threads_of(count) = sprintf("%d thread%s", count, count == 1 ? "" : "s")

# m of the calls over n, d and heads of all.
fixed_m = 0
fixed_d = 0
fixed_heads = 0
take_m(m) = (fixed_m = m > 0 ? m : fixed_m, 0) # none, for most operators
take_d(d) = (fixed_d = d, 0)
take_heads(heads) = (fixed_heads = heads, 0)
stats csv using (strcol("over") eq "n" ? take_m(column("m")) : 0) nooutput
stats csv using (take_d(column("d"))) nooutput
stats csv using (take_heads(column("heads"))) nooutput

# The exponents of n on the fewest threads; missing where there are too few n.
array exponents[words(tokens) > 0 ? words(tokens) : 1]
do for [i = 1:words(tokens)] {
  exponents[i] = "–"
  take(p) = (exponents[i] = sprintf("%.2f", p), 0)
  stats csv2 using (strcol("over") eq "n" && strcol("quantity") eq "seconds" && column("threads") == few \
    && strcol("operator") eq word(tokens, i) && strlen(strcol("exponent")) ? take(column("exponent")) : 0) nooutput
}

set logscale xy
set grid xtics ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set border 3
set tics nomirror
set format x "10^{%T}"
set key noenhanced Left reverse samplen 2 spacing 1.12
set multiplot title sprintf("How one forward call grows: f32, %d heads of %d   {/*0.8 %s}", fixed_heads, fixed_d, \
  few == many ? threads_of(few) : "(solid: ".threads_of(few)."; dashed: ".threads_of(many).")") font ",16"
set tmargin at screen 0.85
set bmargin at screen 0.13

if (words(tokens)) {
  stats csv using (strcol("over") eq "n" ? column("n") : NaN) name "N" nooutput
  set xlabel "tokens n" offset 0, 0.4
  set xrange [N_min * 0.85:N_max * 1.15]
  set lmargin at screen 0.05
  set rmargin at screen 0.29
  set title sprintf("time per token, ns: level is linear%s", fixed_m > 0 ? sprintf("; m = %d", fixed_m) : "")
  set format y "10^{%T}"
  set key title "exponent of n" at screen 0.302, screen 0.84 left top
  plot for [i = 1:words(tokens)] csv using "n":(is(i, many) ? 1e9 * column("seconds") / column("n") : NaN) \
         smooth unique with linespoints linewidth 1 dashtype 2 pointtype 6 pointsize 0.5 linecolor rgb colour_of(of_token(i)) notitle, \
       for [i = 1:words(tokens)] csv using "n":(is(i, few) ? 1e9 * column("seconds") / column("n") : NaN) \
         smooth unique with linespoints linewidth 1.8 pointtype mark_of(of_token(i)) pointsize 0.8 linecolor rgb colour_of(of_token(i)) \
         title sprintf("%s  %s", exponents[i], word(tokens, i))

  set lmargin at screen 0.475
  set rmargin at screen 0.675
  set title "memory beyond inputs and output (grey), KiB"
  unset key
  plot csv using "n":(is(taker, few) ? column("bytes_io") / 1024 : NaN) smooth unique with lines linewidth 3 linecolor rgb "#cccccc", \
       for [i = 1:words(tokens)] csv using "n":(is(i, few) ? column("bytes_measured") / 1024 : NaN) \
         smooth unique with linespoints linewidth 1.8 pointtype mark_of(of_token(i)) pointsize 0.8 linecolor rgb colour_of(of_token(i))
}

if (words(landmarks)) {
  stats csv using (strcol("over") eq "m" ? column("n") : NaN) name "LINE" nooutput
  set lmargin at screen 0.735
  set rmargin at screen 0.975
  set title sprintf("time, ms, n = %d; grey: m and m³", LINE_min)
  set xlabel "landmarks m" offset 0, 0.4
  set xrange [*:*] noextend
  set format x "%g"
  set format y "10^{%T}"
  stats csv using (strcol("over") eq "m" ? column("m") : NaN) name "L" nooutput
  stats csv using (strcol("over") eq "m" && column("n") == LINE_min ? 1e3 * column("seconds") : NaN) name "T" nooutput
  set xtics ("16" 16, "32" 32, "64" 64, "128" 128, "256" 256, "512" 512, "1024" 1024)
  set xrange [L_min * 0.9:L_max * 1.1]
  set yrange [T_min * 0.7:T_max * 1.5]
  set key notitle left top at graph 0.03, graph 0.98
  line_ms(i, threads) = is_line(i, threads) && column("n") == LINE_min ? 1e3 * column("seconds") : NaN
  eval footer
  plot T_min * 0.8 * x / L_min with lines linewidth 1.5 linecolor rgb "#bbbbbb" notitle, \
       T_max * (x / L_max) ** 3 with lines linewidth 1.5 linecolor rgb "#bbbbbb" notitle, \
       for [i = 1:words(landmarks)] csv using "m":(line_ms(i, many)) smooth unique with linespoints linewidth 1 dashtype 2 \
         pointtype 6 pointsize 0.5 linecolor rgb colour_of(of_line(i)) notitle, \
       for [i = 1:words(landmarks)] csv using "m":(line_ms(i, few)) smooth unique with linespoints linewidth 1.8 \
         pointtype mark_of(of_line(i)) pointsize 0.8 linecolor rgb colour_of(of_line(i)) title word(landmarks, i)
}
unset multiplot
