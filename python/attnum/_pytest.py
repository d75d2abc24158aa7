# SPDX-License-Identifier: BSD-3-Clause
"""The pytest plugin: a test with the fixture attnum_case and the mark attnum runs once per case.

    @pytest.mark.attnum("sima/code", n=[72, 1000], d=64, heads=4, layout="bnhd")
    def test_my_kernel(attnum_case):
        attnum_case.check(my_kernel(attnum_case.q, attnum_case.k, attnum_case.v), dtype="bf16").assert_ok()

The mark's arguments are those of attnum.cases. `pytest --attnum-seed 7,8 --attnum-n 50000` replaces the marks'."""
import functools

import pytest

_OPTIONS = ("seed", "n", "d", "batch", "heads", "masks", "layout", "dtype")  # that the command line may replace


def pytest_addoption(parser):
    group = parser.getgroup("attnum")
    for name in _OPTIONS:
        group.addoption(f"--attnum-{name}", metavar="LIST", help=f"replaces {name} of the marks attnum")


def pytest_configure(config):
    config.addinivalue_line("markers", "attnum(*operators, **options): the cases of attnum_case, as for attnum.cases")


@functools.cache
def _cases(operators, options):
    import attnum
    return attnum.cases(*operators, **dict(options))


def pytest_generate_tests(metafunc):
    if "attnum_case" not in metafunc.fixturenames:
        return
    mark = metafunc.definition.get_closest_marker("attnum")
    if mark is None or not mark.args:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: attnum_case needs a mark attnum with operators")
    given = {name: metafunc.config.getoption(f"--attnum-{name}") for name in _OPTIONS}
    options = mark.kwargs | {name: value for name, value in given.items() if value is not None}
    try:
        found = _cases(mark.args, tuple((name, tuple(value) if isinstance(value, list) else value)
                                        for name, value in options.items()))
    except ValueError as error:  # attnum.ArgumentError is one
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: mark attnum: {error}") from error
    metafunc.parametrize("_attnum_case", found, ids=[f"{case.name}-seed{case.seed}" for case in found])


@pytest.fixture
def attnum_case(_attnum_case, record_property):
    """A case (attnum.Case). The verdicts of its checks are properties of the test, in JUnit's file too."""
    judge = _attnum_case.check

    def check(*arguments, **options):
        result = judge(*arguments, **options)
        record_property("attnum_verdict", result.verdict)
        record_property("attnum_ratio", result.ratio)
        if result.diagnosis:
            record_property("attnum_diagnosis", "; ".join(result.diagnosis))
        return result

    _attnum_case.check = check
    yield _attnum_case
    del _attnum_case.check
