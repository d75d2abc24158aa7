# SPDX-License-Identifier: BSD-3-Clause
# Each bound of Eq. 15 and Prop. 3 to 6 as measured / bound: a point right of the line at 1 violates
# it.
set encoding utf8
set terminal @terminal size 1500,1000 font ",13"
set output out

# The inputs in the order of the file, each in quotes: a file's name may hold spaces. Pairs of any
# distance count as one.
family(name) = substr(name, 1, 5) eq "pair:" ? "pair" : name
inputs = ""
add_input(name) = strstrt(inputs, '"'.name.'"') ? 0 : (inputs = inputs.'"'.name.'" ', 0)
stats csv using (add_input(family(strcol("input")))) nooutput
stats csv using (column("ratio") > 0 ? column("ratio") : NaN) name "RATIO" nooutput

# In the order of the claims, not in that of the rows.
order = "S06-printed S06-corrected S06-iterate S06-softpp S20-eigenvalue S20-lower S20-norm S20-corrected \
S21-printed S21-corrected S21-lower S22-printed S22-pair S22-corrected S23-printed S23-pair S23-corrected S23-lower"
formula = '"|P^TA^+P|_2 ≤ |P|_2^2 |A^+|_2" "|P^TA^+P|_2 ≤ λ_1(S)" "|P^TX_{20}P|_2 ≤ λ_1(S)" \
"|P^TD^{-½}A^+D^{-½}P|_2 ≤ |P|_2^2 |A^+|_2 / d_{min}" "softmax, Q = K: λ_1 ≤ 1" "softmax, Q = K: 1 - λ_n ≤ 1" \
"softmax, Q = K: |S|_2 ≤ 1" "softmax, Q = K: |S|_2 ≤ √n" "λ_1(S) ≤ n" "λ_1(S) ≤ largest row sum" \
"mean row sum ≤ λ_1(S)" "|A^{-1}|_2 ≤ m^2 (constant 1)" "two tokens, m = 2: |A^{-1}|_2 ≤ m^2 (constant 1)" \
"|A^{-1}|_∞ ≤ 1/(2 - d_{max})" "|D^{-½}A^{-1}D^{-½}|_2 ≤ m (constant 1)" \
"two tokens, m = 2: |D^{-½}A^{-1}D^{-½}|_2 ≤ m (constant 1)" "|D^{-½}A^{-1}D^{-½}|_2 ≤ 1/(d_{min} λ_{min})" \
"1/(d_{max} λ_{min}) ≤ |D^{-½}A^{-1}D^{-½}|_2"'
rows = words(order)

row_of(name) = sum [k = 1:rows] (word(order, k) eq name ? k : 0)

array seen[rows]
array kept[rows]
do for [k = 1:rows] { seen[k] = 0; kept[k] = 0 }
count(k, within) = k == 0 ? 0 : (seen[k] = seen[k] + 1, kept[k] = kept[k] + within, 0)
stats csv using (count(row_of(strcol("statement")), strcol("within") eq "true")) nooutput
# Inputs side by side within a row.
spread(i) = words(inputs) > 1 ? -0.3 + 0.6 * (i - 1) / (words(inputs) - 1) : 0
height(i, within) = family(strcol("input")) eq word(inputs, i) && strcol("within") eq within \
  ? row_of(strcol("statement")) + spread(i) : NaN

set lmargin at screen 0.395
set rmargin at screen 0.79
set tmargin at screen 0.93
set bmargin at screen 0.08
set title "Norm bounds: measured / bound, a point per matrix"
set xlabel "measured / bound"
set logscale x
set format x "10^{%T}"
set xrange [10 ** floor(log10(RATIO_min)):10 ** ceil(log10(RATIO_max))]
set yrange [rows + 0.6:0.4]
set grid xtics linetype 1 linecolor rgb "#e4e4e4" linewidth 0.7
set border 3
set xtics nomirror
set ytics scale 0
set ytics ()
do for [k = 1:rows] {
  set ytics add (sprintf("%s   {/:Bold %s}", word(formula, k), word(order, k)) k)
  set label k sprintf("%d of %d", kept[k], seen[k]) at graph 1.01, first k left \
    textcolor rgb (kept[k] < seen[k] ? "#C00000" : "#000000")
  if (k > 1 && substr(word(order, k), 1, 3) ne substr(word(order, k - 1), 1, 3)) {
    set arrow from graph 0, first k - 0.5 to graph 1, first k - 0.5 nohead linecolor rgb "#bbbbbb"
  }
}
set label 100 "hold" at graph 1.01, screen 0.945 left
set object 1 rectangle from 1, graph 0 to graph 1, graph 1 behind fillcolor rgb "#fdeeee" fillstyle solid noborder
set arrow from 1, graph 0 to 1, graph 1 nohead linewidth 2 linecolor rgb "#444444"
set key at screen 0.862, screen 0.935 left top vertical Left reverse samplen 1 spacing 1.2 noenhanced

eval footer
plot for [i = 1:words(inputs)] csv using "ratio":(height(i, "true")) with points pointtype mark_of(word(inputs, i)) \
       pointsize 0.8 linecolor rgb colour_of(word(inputs, i)) title word(inputs, i), \
     for [i = 1:words(inputs)] csv using "ratio":(height(i, "false")) with points pointtype 2 \
       pointsize 0.9 linewidth 2 linecolor rgb colour_of(word(inputs, i)) notitle, \
          NaN with points pointtype 2 linewidth 2 linecolor rgb "#444444" title "a bound crossed"
