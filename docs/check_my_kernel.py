"""Is my kernel right? Prints the verdict, what the mistake is, and where it is."""
import attnum
import numpy

rng = numpy.random.default_rng(1)
q, k, v = (rng.standard_normal((1, 2, 64, 16), numpy.float32) for _ in range(3))
y = q @ k.swapaxes(-1, -2) @ v  # your kernel's output; SimA normalises Q and K, this does not
result = attnum.check(y, op="sima", q=q, k=k, v=v, dtype="f32")
print(result.verdict, result.diagnosis)  # FAIL ['variant sima/none', 'Q and K not normalised', 'norm=none']
print(result.report)  # in a notebook: result
