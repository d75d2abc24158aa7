# SPDX-License-Identifier: BSD-3-Clause
# What one patch of a picture attends to in trained networks: a row of tiles per network and head, a tile per block, drawn
# over the picture in grey. Of several pictures the last is shown.
set encoding utf8
if (!exists("csv2")) csv2 = sibling("_picture")
# Otherwise svg writes its images to separate files.
embed = terminal eq "svg" ? "standalone" : ""

stats csv using (sample = column("sample"), seed = column("seed"), picture = column("picture"), 0) nooutput
pictures = ""
stats csv using (pictures = listed(pictures, strcol("sample")." ".strcol("seed")), 0) nooutput
said = leave_out(words(pictures) > 1 ? "pictures before the last" : "")
shown(line) = column("sample") == sample && column("seed") == seed

# Maps in the order of their first rows, the ranges of their weights, and their grids, which differ with networks' patches.
maps = 0
blocks = 0
down = 0
array network[1024]
array block[1024]
array head[1024]
array least[1024]
array largest[1024]
array first[1024]
array side[1024]
array query_row[1024]
array query_col[1024]
begins(line) = column("row") == 0 && column("col") == 0
add_map(line) = (maps = maps + 1, network[maps] = strcol("network"), block[maps] = column("block"), \
  head[maps] = column("head"), least[maps] = column("weight"), largest[maps] = column("weight"), first[maps] = line, \
  query_row[maps] = column("query_row"), query_col[maps] = column("query_col"), down = down + (block[maps] == 0), 0)
extend(w) = (least[maps] = w < least[maps] ? w : least[maps], largest[maps] = w > largest[maps] ? w : largest[maps], \
  side[maps] = column("row") + 1, blocks = column("block") + 1 > blocks ? column("block") + 1 : blocks, 0)
stats csv using (shown(0) ? (begins(0) ? add_map(column(0)) : 0) + extend(column("weight")) : 0) nooutput

blocks = int(blocks)
set terminal @terminal size 210 * (blocks + 1) + 30, 248 * down + 162 @embed font ",12" background rgb "white"
set output out

stats csv2 using "row" name "PIXEL" nooutput
pixels = int(PIXEL_max) + 1
first_pixel = -1
stats csv2 using (column("picture") == picture && first_pixel < 0 ? (first_pixel = column(0), 0) : 0) nooutput
at(i, patch) = (patch + 0.5) * pixels / side[i] - 0.5 # where a patch of map i is in pixels
edge(i, patch) = at(i, patch - 0.5)

# Colours as in attention/maps: from the least weight to the largest, or from blue over 0 to red.
signed(i) = least[i] < 0
extent(i) = largest[i] > -least[i] ? largest[i] : -least[i]
span(i) = largest[i] > least[i] ? largest[i] - least[i] : 1
scaled(i, w) = signed(i) ? w / extent(i) : (w - least[i]) / span(i)
between(t, a, b, c, d) = t < 1.0 / 3 ? a + 3 * t * (b - a) : t < 2.0 / 3 ? b + (3 * t - 1) * (c - b) : c + (3 * t - 2) * (d - c)
red(diverging, t) = diverging ? (t > 0 ? 230 : 20) : between(t, 70, 170, 245, 255)
green(diverging, t) = diverging ? (t > 0 ? 40 : 100) : between(t, 10, 30, 125, 245)
blue(diverging, t) = diverging ? (t > 0 ? 30 : 255) : between(t, 120, 95, 20, 90)
alpha(diverging, t) = diverging ? 235 * abs(t) ** 0.7 : 255 * (t < 0.25 ? 3.2 * t : 0.8)
grey(b) = 60 + 140 * b

set xrange [-0.5:pixels - 0.5]
set yrange [pixels - 0.5:-0.5]
set size ratio -1
unset tics
unset key
unset colorbox
set border 15 linewidth 0.5 linecolor rgb "#888888"

set multiplot layout down, blocks + 1 margins 0.01, 0.99, 122.0 / (248 * down + 162), 1 - 78.0 / (248 * down + 162) \
  spacing 0.01, 42.0 / (248 * down + 162) title "{/:Bold What one patch attends to in trained networks}" font ",16" offset 0, 0.3
do for [i = 1:maps] {
  set object 1 rectangle from edge(i, query_col[i]), edge(i, query_row[i]) to edge(i, query_col[i] + 1), edge(i, query_row[i] + 1) \
    front fillstyle empty border rgb "black" linewidth 3.5
  set object 2 rectangle from edge(i, query_col[i]), edge(i, query_row[i]) to edge(i, query_col[i] + 1), edge(i, query_row[i] + 1) \
    front fillstyle empty border rgb "white" linewidth 1.5
  if (block[i] == 0) {
    if (i > 1) { do for [j = block[i - 1] + 2:blocks] { set multiplot next } }
    set title sprintf("{/:Bold %s}\nhead %d", network[i], head[i]) offset 0, -0.7
    plot csv2 every ::first_pixel::(first_pixel + pixels * pixels - 1) using "col":"row":(255 * column("brightness")):\
      (255 * column("brightness")):(255 * column("brightness")) with rgbimage
  }
  set title sprintf("block %d\n{/*0.8 %.2g … %.2g}", block[i], least[i], largest[i]) offset 0, -0.7
  d = signed(i)
  plot csv2 every ::first_pixel::(first_pixel + pixels * pixels - 1) using "col":"row":(grey(column("brightness"))):\
         (grey(column("brightness"))):(grey(column("brightness"))) with rgbimage, \
       csv every ::first[i]::(first[i] + side[i] * side[i] - 1) using (at(i, column("col"))):(at(i, column("row"))):(t = scaled(i, column("weight")), \
         red(d, t)):(green(d, t)):(blue(d, t)):(alpha(d, t)) with rgbalpha
}

# ---- The scales, over the pictures' middle grey ----
set print $ramp
print "x,y"
do for [i = 0:300] { do for [j = 0:1] { print sprintf("%g,%d", i / 300.0, j) } }
set print
unset title
unset object
set size noratio
set xrange [0:1]
set yrange [0:1]
do for [d = 0:1] {
  set lmargin at screen (d ? 0.66 : 0.16)
  set rmargin at screen (d ? 0.84 : 0.34)
  set bmargin at screen 78.0 / (248 * down + 162)
  set tmargin at screen 92.0 / (248 * down + 162)
  set label 1 (d ? "negative" : "least weight") at graph -0.03, graph 0.5 right
  set label 2 (d ? "positive weight" : "largest") at graph 1.03, graph 0.5 left
  if (d) { set label 3 "0" at graph 0.5, graph 0.5 center front }
  if (d) {
    eval footer
  }
  set label 4 (d ? "" : "Each tile has a scale of its own. Networks in miniature, trained on Fashion-MNIST.") at screen 0.5, \
    screen 58.0 / (248 * down + 162) center
  plot $ramp using 1:2:(150):(150):(150) with rgbimage, \
       $ramp using 1:2:(t = d ? 2 * $1 - 1 : $1, red(d, t)):(green(d, t)):(blue(d, t)):(alpha(d, t)) with rgbalpha
}
unset multiplot
