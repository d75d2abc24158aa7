# SPDX-License-Identifier: BSD-3-Clause
# Correct digits of every operator and variant, in the registry's order, one colour per type. A
# point is an input, a number of tokens and a sample, and a cross where the verdict is FAIL. Rows
# without a verdict (some have error 0 because the answer is a mean) are drawn at random heights in
# a separate strip below the axis, whatever their digits.
set encoding utf8
set terminal @terminal size 1800,900 font ",14"
set output out

# Variants and types in the order of the file.
variants = " "
dtypes = " "
add_variant(name) = strstrt(variants, " ".name." ") ? 0 : (variants = variants.name." ", 0)
add_dtype(name) = strstrt(dtypes, " ".name." ") ? 0 : (dtypes = dtypes.name." ", 0)
stats csv using (add_variant(strcol("operator")."/".strcol("variant"))) nooutput
stats csv using (add_dtype(strcol("dtype"))) nooutput
place(list, name) = words(list[1:strstrt(list, " ".name." ")]) + 1

# The types side by side within a variant's column; the inputs side by side within a type's.
inputs = " "
add_input(name) = strstrt(inputs, " ".name." ") ? 0 : (inputs = inputs.name." ", 0)
stats csv using (add_input(strcol("input"))) nooutput
width = 0.8 / words(dtypes)
x_of(i) = place(variants, strcol("operator")."/".strcol("variant")) - 0.4 + width * (i - 0.9 \
  + 0.8 * place(inputs, strcol("input")) / (words(inputs) + 1.0))
digits_if(i, wanted) = strcol("dtype") eq word(dtypes, i) && wanted ? column("digits") : NaN
is_judged(verdict) = verdict eq "pass" || verdict eq "marginal"

colour(i) = colour_of(word(dtypes, i))
set title "Correct digits of operator/variant against the long double reference: a point per input, number of tokens and sample" font ",16"
set ylabel "−log_{10} relative error"
set xrange [0.5:words(variants) + 0.5]
set yrange [-1.9:16.5]
set object 1 rectangle from graph 0, first -1.9 to graph 1, first -0.6 behind fillcolor rgb "#f2f2f2" \
  fillstyle solid noborder
set label 1 "none" at graph -0.01, first -1.25 right
set xtics rotate by 55 right scale 0 noenhanced font ",12" ()
do for [i = 1:words(variants)] { set xtics add (word(variants, i) i) }
do for [i = 1:words(variants) - 1] {
  first = word(variants, i); second = word(variants, i + 1)
  same = first[1:strstrt(first, "/")] eq second[1:strstrt(second, "/")]
  set arrow from i + 0.5, graph 0 to i + 0.5, graph 1 nohead back \
    linecolor rgb (same ? "#eeeeee" : "#999999") linewidth (same ? 1 : 1.3)
}
set grid ytics linetype 1 linecolor rgb "#dddddd" linewidth 0.7
set ytics 0, 2, 16 nomirror
set border 3
set key outside top center horizontal Left reverse samplen 1 spacing 1.2 noenhanced

eval footer
plot for [i = 1:words(dtypes)] csv using (x_of(i)): \
         (strcol("dtype") eq word(dtypes, i) && strcol("verdict") eq "skipped" ? -1.25 + 0.4 * (2 * rand(0) - 1) : NaN) \
       with points pointtype 6 pointsize 0.45 linewidth 1 linecolor rgb colour(i) notitle, \
     for [i = 1:words(dtypes)] csv using (x_of(i)):(digits_if(i, is_judged(strcol("verdict")))) \
       with points pointtype mark_of(word(dtypes, i)) pointsize 0.6 linecolor rgb colour(i) notitle, \
     for [i = 1:words(dtypes)] csv using (x_of(i)):(digits_if(i, strcol("verdict") eq "FAIL")) \
       with points pointtype 2 pointsize 1.3 linewidth 2.5 linecolor rgb colour(i) notitle, \
     for [i = 1:words(dtypes)] NaN with points pointtype mark_of(word(dtypes, i)) pointsize 1 linecolor rgb colour(i) title word(dtypes, i), \
     NaN with points pointtype 6 pointsize 0.8 linecolor rgb "#444444" title "no verdict (skipped)", \
     NaN with points pointtype 2 pointsize 1.2 linewidth 2 linecolor rgb "#444444" title "FAIL"
