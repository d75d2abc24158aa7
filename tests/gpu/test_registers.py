#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""registers.py with logs made up for it: that it passes what fits the table and nothing else."""
import unittest

import registers

NAME = ("_Z8run_passIXadL_ZN37_INTERNAL_{hash}_7_sima_cu_ab00fe759sum_normsERK4headEELb0EE"
        "v9head_calll")
LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'first' for 'sm_80'
ptxas info    : Function properties for first
    {stack} bytes stack frame, {stores} bytes spill stores, {loads} bytes spill loads
ptxas info    : Used {registers} registers, used 1 barriers, 2504 bytes cmem[0]
ptxas info    : Function properties for helper
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Compiling entry function 'first' for 'sm_90'
ptxas info    : Function properties for first
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 32 registers
"""
USUAL = {"stack": 8, "stores": 4, "loads": 12, "registers": 40}


def rows_of(text=LOG, **changes):
    return registers.read_log("sima_f32", text.format(**(USUAL | changes)))[0]


class Logs(unittest.TestCase):
    def test_numbers(self):
        rows, warnings = registers.read_log("sima_f32", LOG.format(**USUAL))
        self.assertEqual(warnings, [])
        self.assertEqual(rows, {
            ("sima_f32", "first", "sm_80"):
                {"registers": 40, "stack": 8, "spill_stores": 4, "spill_loads": 12},
            ("sima_f32", "helper", "sm_80"):
                {"registers": 0, "stack": 0, "spill_stores": 0, "spill_loads": 0},
            ("sima_f32", "first", "sm_90"):
                {"registers": 32, "stack": 0, "spill_stores": 0, "spill_loads": 0},
        })

    def test_warnings(self):
        for line in ("sima.cu(3): warning #177-D: unused", "ptxas warning : Stack size",
                     "Warning: old"):
            self.assertEqual(registers.read_log("sima_f32", line)[1], [f"sima_f32: {line}"])

    def test_names_do_not_hold_hashes(self):
        names = [NAME.format(hash=h) for h in ("3f5ba896", "00000000")]
        texts = set(registers.demangled(names).values())
        self.assertEqual(len(texts), 1)
        self.assertNotIn("INTERNAL", texts.pop())


class Judge(unittest.TestCase):
    def complaints(self, same=True, **changes):
        return registers.judge(rows_of(**changes), rows_of(), same)

    def test_the_same_passes(self):
        self.assertEqual(self.complaints(), [])
        self.assertEqual(self.complaints(registers=48, stores=0, loads=0, stack=0), [])

    def test_more_fails(self):
        for change in ({"registers": 49}, {"stores": 5}, {"loads": 13}, {"stack": 9}):
            self.assertEqual(len(self.complaints(**change)), 1, change)

    def test_another_compiler_is_judged_by_spills_alone(self):
        self.assertEqual(self.complaints(same=False, registers=200, stack=99), [])
        self.assertEqual(len(self.complaints(same=False, stores=5)), 1)
        more = rows_of() | {("sima_f32", "new", "sm_80"): dict.fromkeys(registers.NUMBERS, 0)}
        self.assertEqual(registers.judge(more, rows_of(), False), [])
        more["sima_f32", "new", "sm_80"]["spill_loads"] = 1
        self.assertEqual(len(registers.judge(more, rows_of(), False)), 1)

    def test_kernels_come_and_go_in_both_places(self):
        more = rows_of() | {("sima_f32", "new", "sm_80"): dict.fromkeys(registers.NUMBERS, 0)}
        self.assertEqual(len(registers.judge(more, rows_of(), True)), 1)
        self.assertEqual(len(registers.judge(rows_of(), more, True)), 1)

    def test_architectures_that_are_not_in_both_do_not_count(self):
        only = {key: row for key, row in rows_of(loads=99).items() if key[2] == "sm_90"}
        self.assertEqual(registers.judge(only, rows_of(), True), [])
        self.assertEqual(len(registers.judge({}, rows_of(), True)), 1)


if __name__ == "__main__":
    unittest.main()
