# SPDX-License-Identifier: BSD-3-Clause
# What one patch of a photograph attends to: the photograph, then a tile per map, which lies over
# the photograph in grey. Of several crops the last is shown.
set encoding utf8
if (!exists("csv2")) csv2 = sibling("_image")
if (!exists("csv3")) csv3 = sibling("_summary")
# Otherwise svg writes its images to separate files.
embed = terminal eq "svg" ? "standalone" : ""
set terminal @terminal size 1300,1330 @embed font ",12" background rgb "white"
set output out

# ---- The last crop: its maps, and where their rows are ----
stats csv3 using (stage = column("stage"), sample = column("sample"), seed = column("seed"), \
  photo = strcol("photo"), 0) nooutput
crops = ""
stats csv3 using (crops = listed(crops, strcol("stage")." ".strcol("sample")." ".strcol("seed")), 0) nooutput
said = leave_out(words(crops) > 1 ? "crops before the last" : "")
in_crop(any_stage) = column("sample") == sample && column("seed") == seed && (any_stage || column("stage") == stage)

stats csv3 using (in_crop(0) ? 1 : NaN) name "MAPS" nooutput
array key[MAPS_records]
array title[MAPS_records]
array least[MAPS_records]
array largest[MAPS_records]
array first[MAPS_records]
maps = 0
key_of(kind) = strcol("operator")." ".strcol("variant")." ".kind
title_of(kind) = "{/:Bold ".strcol("operator")."} ".(kind eq "row" ? strcol("variant") : \
  kind eq "pseudo-inverse" ? strcol("variant").", Y V^+" : "|q̂_i| = |k̂_i|")
# With K = Q both norms are one picture.
add_map(kind) = kind eq "key-norm" ? 0 : (maps = maps + 1, key[maps] = key_of(kind), title[maps] = title_of(kind), \
  least[maps] = column("least"), largest[maps] = column("largest"), first[maps] = -1, 0)
stats csv3 using (in_crop(0) ? add_map(strcol("kind")) : 0) nooutput

side = 0
index_of(text) = sum [i = 1:maps] (key[i] eq text ? i : 0)
add_start(i) = i > 0 && first[i] < 0 ? (first[i] = column(0), 0) : 0
add_patch(row) = (side = row + 1 > side ? row + 1 : side, query_row = column("query_row"), query_col = column("query_col"), 0)
# The key is looked up where a map starts.
starts(row, col) = row == 0 && col == 0 ? add_start(index_of(key_of(strcol("kind")))) : 0
stats csv using (in_crop(0) ? add_patch(column("row")) + starts(column("row"), column("col")) : 0) nooutput

# The photograph in grey as a matrix, which is drawn faster than the CSV's columns; with less contrast
# and away from white, so that colours stand out from it.
stats csv2 using "row" name "PIXEL" nooutput
pixels = int(PIXEL_max) + 1
array lines[pixels]
do for [i = 1:pixels] { lines[i] = "" }
first_pixel = -1
grey(r, g, b) = 55 + 0.6 * (0.299 * r + 0.587 * g + 0.114 * b)
add_grey(line) = (first_pixel = first_pixel < 0 ? column(0) : first_pixel, lines[line] = lines[line].(lines[line] eq "" ? "" : ",")\
  .sprintf("%d", grey(column("red"), column("green"), column("blue"))), 0)
stats csv2 using (in_crop(1) ? add_grey(column("row") + 1) : 0) nooutput
set print $grey
do for [i = 1:pixels] { print lines[i] }
set print

at(patch) = (patch + 0.5) * pixels / side - 0.5 # where a patch is in pixels
edge(patch) = at(patch - 0.5)
set xrange [-0.5:pixels - 0.5]
set yrange [pixels - 0.5:-0.5]
set size ratio -1
unset tics
unset key
unset colorbox
set palette grey
set cbrange [0:255]
set border 15 linewidth 0.5 linecolor rgb "#888888"
set object 1 rectangle from edge(query_col), edge(query_row) to edge(query_col + 1), edge(query_row + 1) front \
  fillstyle empty border rgb "black" linewidth 3.5
set object 2 rectangle from edge(query_col), edge(query_row) to edge(query_col + 1), edge(query_row + 1) front \
  fillstyle empty border rgb "white" linewidth 1.5

# "_" would make the next letter a subscript.
file = ""
do for [k = 1:strlen(photo)] { file = file.(photo[k:k] eq "_" ? "\\_" : photo[k:k]) }

across = 5
down = (maps + across) / across
set multiplot layout down, across margins 0.01, 0.99, 0.075, 0.935 spacing 0.008, 0.034 \
  title "{/:Bold What one patch of a photograph attends to}" font ",16" offset 0, 0.3
set title "{/:Bold the query patch}\n{/*0.8 in ".file."}" offset 0, -0.7
plot csv2 every ::first_pixel::(first_pixel + pixels * pixels - 1) \
  using "col":"row":"red":"green":"blue" with rgbimage
do for [i = 1:maps] {
  set title title[i].sprintf("\n{/*0.8 %.2g … %.2g}", least[i], largest[i]) offset 0, -0.7
  d = signed(i)
  plot $grey matrix with image, \
       csv every ::first[i]::(first[i] + side * side - 1) using (at(column("col"))):(at(column("row"))):(t = scaled(i, column("weight")), \
         red(d, t)):(green(d, t)):(blue(d, t)):(alpha(d, t)) with rgbalpha
}

# ---- The scales, over the photograph's middle grey ----
set print $ramp
print "x,y"
do for [i = 0:300] { do for [j = 0:1] { print sprintf("%g,%d", i / 300.0, j) } }
set print
unset title
unset object
set size noratio
set xrange [0:1]
set yrange [0:1]
note = "Each tile has a scale of its own. The tokens are patches under a random projection, not trained features."
do for [d = 0:1] {
  set lmargin at screen (d ? 0.66 : 0.16)
  set rmargin at screen (d ? 0.84 : 0.34)
  set tmargin at screen 0.050
  set bmargin at screen 0.036
  set label 1 (d ? "negative" : "least weight") at graph -0.03, graph 0.5 right
  set label 2 (d ? "positive weight" : "largest") at graph 1.03, graph 0.5 left
  if (d) { set label 3 "0" at graph 0.5, graph 0.5 center front }
  if (d) {
    eval footer
  }
  set label 4 (d ? "" : note) at screen 0.5, screen 0.0245 center
  plot $ramp using 1:2:(150):(150):(150) with rgbimage, \
       $ramp using 1:2:(t = d ? 2 * $1 - 1 : $1, red(d, t)):(green(d, t)):(blue(d, t)):(alpha(d, t)) with rgbalpha
}
unset multiplot
