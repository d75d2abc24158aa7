# SPDX-License-Identifier: BSD-3-Clause
# Runs before every figure's script: the variables that it reads, the colours and marks, and how a figure says what it
# leaves out. The program sets the variables; by hand (docs/README.md) csv is enough:
#
#   gnuplot -e "csv='curves.csv'" common/plots.gp convergence/curves.gp

if (!exists("csv")) { print "csv: not set; expected -e \"csv='FILE.csv'\""; exit status 1 }
if (!exists("terminal")) terminal = "pngcairo"
if (!exists("out")) out = csv.".".(terminal eq "pngcairo" ? "png" : terminal)
if (!exists("run")) run = csv
# Another file of the experiment, next to csv: sibling("_fit") of time.csv is time_fit.csv.
sibling(suffix) = csv[1:strlen(csv) - 4].suffix.".csv"
set datafile separator comma
set datafile columnheaders

# A name has one colour and one mark (gnuplot's pointtype) in every figure. The first eight colours are Okabe
# and Ito's but for yellow, which is too pale on white; the others are chosen to stay apart from them with and
# without red or green cones (by CIELAB distance), and where two come close their marks differ. No two names
# of a group share a colour; the groups are the operators, the lines of one operator, the methods, the inputs and
# the types, which never meet in a panel.
styles = " \
soft #0072B2 7  softpp #D55E00 8  gaussian #000000 5  softmax #CC79A7 2  sima #009E73 6 \
xnorm #56B4E9 4  linformer #E69F00 9  performer #6D19FF 13  rff #8B5A2B 11  nystromformer #5F0F58 10 \
xca #999933 14  efficient #7F7F7F 12  elu #00129A 1  cosformer #34DB7F 15  lsh #A58FD0 3 \
\
soft/m49 #0072B2 7  soft/stride2 #56B4E9 6  softpp/m49 #D55E00 5  softpp/stride4 #E69F00 9 \
softpp/stride2 #8B5A2B 11 \
soft/nr-paper #0072B2 7  soft/pivoted-cholesky #00129A 6  softpp/nr-softpp #D55E00 8 \
\
nr #E69F00 5  nr-paper #009E73 7  nr-adaptive #CC79A7 13  nr-soft #0072B2 9  nr-softpp #D55E00 11 \
newton-schulz #6D19FF 15  hyperpower-3 #56B4E9 6  hyperpower-7 #00129A 4  hyperpower-9 #34DB7F 12 \
chebyshev-2 #8B5A2B 11  chebyshev-3 #999933 9  chebyshev-9 #7F7F7F 13  eig #000000 1 \
\
photos #0072B2 7  smooth #D55E00 5  smooth:8 #E69F00 9  noisy #CC79A7 13  iid #009E73 11 \
iid:0.3 #56B4E9 15  clusters #8B5A2B 7  constant #6D19FF 5  duplicates #999933 9  circulant #00129A 13 \
iid-norms #5F0F58 11  pair #7F7F7F 15  dominant #000000 1 \
\
f64 #000000 7  f32 #0072B2 5  tf32 #009E73 9  f16 #D55E00 13  bf16 #E69F00 11 "

# What has no row, such as a file of tokens, takes the next of these when it is met.
spare_colours = "#C2185B #5F5F00 #7B9EA8 #2E5A1C #B07AA1 #FF9DA7 #B8860B #4B2E2B"
met = ""
row_of_style(name) = strstrt(styles, " ".name." ")
meet(name) = met = strstrt(met, '"'.name.'"') ? met : met.'"'.name.'" '
spare_place(name) = (meet(name), words(met[1:strstrt(met, '"'.name.'"') - 1]) + 1)
colour_of(name) = row_of_style(name) ? word(styles[row_of_style(name):*], 2) \
  : word(spare_colours, (spare_place(name) - 1) % 8 + 1)
mark_of(name) = row_of_style(name) ? int(word(styles[row_of_style(name):*], 3)) : 1 + spare_place(name) % 3

# Values of one quantity (n, m, d) from the first to the last.
step_colours = "#0072B2 #D55E00 #009E73 #CC79A7 #E69F00 #56B4E9 #8B5A2B #000000"
step_marks = "7 5 9 13 11 15 6 4"
step_colour(k) = word(step_colours, (k - 1) % 8 + 1)
step_mark(k) = int(word(step_marks, (k - 1) % 8 + 1))

# Lists of names in quotes, since a file's name may hold spaces.
listed(list, name) = strstrt(list, '"'.name.'"') ? list : list.'"'.name.'" '
joined(list, first) = first > words(list) ? "" \
  : word(list, first).(first < words(list) ? ", ".joined(list, first + 1) : "")

# Below a figure: what its CSV has that the figure does not draw, which leave_out() collects, and the run.
# A script says "eval footer" before its last plot; names of columns are known until "reset".
left_out = ""
leave_out(text) = left_out = text eq "" ? left_out : left_out.(left_out eq "" ? "" : "; ").text
footer = 'set label 999 (left_out eq "" ? "" : "in the CSV, not drawn: ".left_out."\n").run \
  at screen 0.008, character (left_out eq "" ? 0.6 : 1.6) left noenhanced font ",11" textcolor rgb "#444444"'

# Colours of attention maps over a picture; least[i] and largest[i] are map i's. Maps without negative weights go from
# their least weight, the bare picture, to their largest; others from blue over 0, the bare picture, to red.
signed(i) = least[i] < 0
extent(i) = largest[i] > -least[i] ? largest[i] : -least[i]
span(i) = largest[i] > least[i] ? largest[i] - least[i] : 1
scaled(i, w) = signed(i) ? w / extent(i) : (w - least[i]) / span(i)
between(t, a, b, c, d) = t < 1.0 / 3 ? a + 3 * t * (b - a) : t < 2.0 / 3 ? b + (3 * t - 1) * (c - b) : c + (3 * t - 2) * (d - c)
red(diverging, t) = diverging ? (t > 0 ? 230 : 20) : between(t, 70, 170, 245, 255)
green(diverging, t) = diverging ? (t > 0 ? 40 : 100) : between(t, 10, 30, 125, 245)
blue(diverging, t) = diverging ? (t > 0 ? 30 : 255) : between(t, 120, 95, 20, 90)
alpha(diverging, t) = diverging ? 235 * abs(t) ** 0.7 : 255 * (t < 0.25 ? 3.2 * t : 0.8)
