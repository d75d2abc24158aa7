#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# skip.sh REASON: a test that says why it is not run.
echo "skipped: $1"
exit 77
