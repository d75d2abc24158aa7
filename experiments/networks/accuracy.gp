# SPDX-License-Identifier: BSD-3-Clause
# The accuracy of trained networks that are changed after training: a column per network, a line per change. A bar is two
# standard errors of the difference from the unchanged network, whose accuracy is the vertical line.
set encoding utf8

stats csv using (pictures = column("pictures"), 0) nooutput
names = ""
found = ""
stats csv using (names = listed(names, strcol("network")), found = listed(found, strcol("change")), 0) nooutput
across = words(names)
array own[across] # the unchanged network's accuracy
array operator[across]
do for [k = 1:across] {
  stats csv using (strcol("network") ne word(names, k) ? 0 : strcol("change") eq "none" ? \
    (own[k] = column("accuracy"), operator[k] = strcol("operator"), 0) : 0) nooutput
}

# Changes from top to bottom, as the figure has them in words; an empty name is a gap.
said = "steps-2 '2 steps of the inverse' steps-3 '3 steps' steps-5 '5 steps' steps-10 '10 steps' exact 'exact inverse' '' '' \
gaussian 'exact Gaussian attention' '' '' pool 'landmarks: averages' random 'random tokens' first 'first tokens' '' '' \
l2 'ℓ2 norms' no-norm 'no norms' '' '' side-56 '56 × 56 pixels' side-56-same-m 'with the same m' '' '' \
bf16 'bf16' f16 'f16' '' '' noise-0.25 'noise of 0.25 σ on pixels' noise-0.5 '0.5 σ' noise-1 '1 σ'"
change(i) = word(said, 2 * i - 1)
changes = words(said) / 2
array line[changes]
y = 0
gap = 0
do for [i = 1:changes] {
  shown = change(i) ne "" && strstrt(found, '"'.change(i).'"')
  gap = change(i) eq "" && y > 0 ? 0.6 : gap
  y = shown ? y + 1 + gap : y
  gap = shown ? 0 : gap
  line[i] = shown ? y : -1
}
height(name) = (at_line = NaN, sum [i = 1:changes] (change(i) eq name ? (at_line = line[i], 1) : 0), at_line)
unsaid = ""
do for [i = 1:words(found)] {
  name = word(found, i)
  unsaid = name eq "none" || height(name) > 0 ? unsaid : listed(unsaid, name)
}
said_so = leave_out(unsaid eq "" ? "" : joined(unsaid, 1))

left = 255.0
panel = 250.0
size_across = left + panel * across + 20
size_down = 180 + 26 * y
set terminal @terminal size size_across, size_down font ",13" background rgb "white"
set output out
set xrange [0:1]
set yrange [y + 0.8:0.2]
set xtics nomirror ("0" 0, "25" 0.25, "50" 0.5, "75" 0.75, "100" 1) scale 0.5
set grid xtics linetype 1 linecolor rgb "#e4e4e4" linewidth 0.7
set border 1
set ytics scale 0 ()
do for [i = 1:changes] { if (line[i] > 0) { set ytics add (word(said, 2 * i) line[i]) } }
unset key
set tmargin at screen 1 - 84.0 / size_down
set bmargin at screen 96.0 / size_down
set multiplot title sprintf("{/:Bold Trained networks with a change: test accuracy in %%, %d pictures}", pictures) font ",16"
of(k) = strcol("network") eq word(names, k) && strcol("change") ne "none"
hollow(k) = of(k) && strcol("verdict") eq "no difference"
at(name) = height(strcol("change"))
do for [k = 1:across] {
  if (k == 2) { do for [i = 1:changes] { if (line[i] > 0) { set ytics add ("" line[i]) } } }
  set lmargin at screen (left + panel * (k - 1)) / size_across
  set rmargin at screen (left + panel * k - 35) / size_across
  set title sprintf("%s: %.1f", word(names, k), 100 * own[k]) noenhanced offset 0, -0.4
  set arrow 1 from own[k], graph 0 to own[k], graph 1 nohead linewidth 1.2 linecolor rgb "#888888" back
  colour = colour_of(operator[k])
  if (k == across) {
    set label 1 "line: as trained; bars: two standard errors of the difference from it; hollow: no difference by the sign test" \
      at screen 0.5, screen 50.0 / size_down center font ",12"
    eval footer
  }
  plot csv using (of(k) ? column("accuracy") : NaN):(at(0)):(column("accuracy") - 2 * column("difference_error")):\
         (column("accuracy") + 2 * column("difference_error")) with xerrorbars pointtype 7 pointsize 0.01 linewidth 1.6 \
         linecolor rgb colour, \
       csv using (of(k) ? column("accuracy") : NaN):(at(0)):(hollow(k) ? 0xffffff : int("0x".colour[2:7])) with points \
         pointtype 7 pointsize 1.1 linecolor rgb variable, \
       csv using (of(k) ? column("accuracy") : NaN):(at(0)) with points pointtype 6 pointsize 1.1 linewidth 1.8 \
         linecolor rgb colour
}
unset multiplot
