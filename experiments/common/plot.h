/* SPDX-License-Identifier: BSD-3-Clause */
/* Plots: an experiment's gnuplot script turns its CSV into <name>.png and <name>.svg.
 *
 * The script runs in the folder of the CSV, once per format, with these strings set:
 *
 *   csv        the CSV's name; csv2, csv3, ... those of the experiment's further outputs
 *   terminal   "pngcairo" or "svg", for: set terminal @terminal size 1200,800
 *   out        for: set output out
 *   run        the experiment's name and the options that its results depend on
 *
 * and with the data file settings for our CSVs (comma, column headers). common/plots.gp, which
 * holds the colours, runs before it. */
#ifndef EXPERIMENTS_PLOT_H
#define EXPERIMENTS_PLOT_H

#include <stdbool.h>

#include "experiment.h"

/* Plots e's CSVs, of a run with these settings, in folder, after removing old plots. *made: whether
 * all plots are there now; if not, lines on stderr say why. Returns an exit code: EXIT_ENVIRONMENT
 * if a plot could not be written, but EXIT_PASS without gnuplot, or if it fails on the script. */
int plot_experiment(const experiment *e, const program_options *s, const char *folder, bool *made);

/* Whether e's plots are in folder. */
bool plot_is_there(const experiment *e, const char *folder);

#endif
