"""Constants of a cost model from measured times: exact ones come back."""

import d2l_ext  # noqa: F401, I001
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d2l_ext.scale import fit
from d2l_ext.scale.step import Link


@settings(max_examples=60)
@given(st.floats(1e-9, 1e-2), st.floats(1e-12, 1e-8))
def test_alpha_and_beta_come_back_from_exact_times(alpha, beta):
    sizes_, link = [0, 10**4, 10**6, 10**8], Link(alpha, beta)
    found, quality = fit.link(sizes_, [link.seconds(n) for n in sizes_])
    assert found.alpha == pytest.approx(alpha, rel=1e-5)
    assert found.beta == pytest.approx(beta, rel=1e-5)
    assert max(map(abs, quality.residuals)) < 1e-5


def test_no_constant_is_negative_even_if_that_would_fit_better():
    found = fit.least_squares([(1, 1), (1, 2), (1, 3)], [1, 3, 5])  # 2x − 1
    assert found.constants[0] == 0
    assert found.constants[1] > 0


def test_errors_are_relative_and_positive_when_the_prediction_is_too_long():
    found = fit.least_squares([(1,), (1,)], [1.0, 3.0])
    assert found.constants == pytest.approx((1.2,))
    assert found.residuals == pytest.approx((0.2, -0.6))


@pytest.mark.parametrize("rows, seconds, message", [
    ([(1, 2)], [1.0], "1 measurements cannot determine 2 constants"),
    ([(1, 2), (1,)], [1.0, 2.0], "of lengths"),
    ([(1,), (1,)], [1.0, 0.0], "above 0")])
def test_a_fit_of_bad_measurements_says_what_is_wrong(rows, seconds, message):
    with pytest.raises(ValueError, match=message):
        fit.least_squares(rows, seconds)
