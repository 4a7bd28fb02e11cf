"""Index algebra against plain integer arithmetic."""

from hypothesis import given, settings
from hypothesis import strategies as st

from synthesizer_svc.schedule import index as ix
from synthesizer_svc.schedule.index import Axis, Div, Index, Mod


def evaluate(index, values):
    total = index.const
    for term, coefficient in index.terms.items():
        if isinstance(term, Axis):
            total += coefficient * values[term]
        elif isinstance(term, Div):
            total += coefficient * (evaluate(term.inner, values) // term.by)
        elif isinstance(term, Mod):
            total += coefficient * (evaluate(term.inner, values) % term.by)
    return total


@st.composite
def affine(draw):
    axes = [Axis(f"a{n}", draw(st.integers(2, 7))) for n in range(draw(st.integers(1, 3)))]
    index = ix.constant(draw(st.integers(0, 9)))
    for axis in axes:
        index = index + ix.of(axis) * draw(st.integers(0, 12))
    return index, {axis: draw(st.integers(0, axis.extent - 1)) for axis in axes}


@settings(max_examples=300, deadline=None)
@given(affine(), st.integers(1, 12), st.integers(1, 12), st.integers(1, 5))
def test_simplified_divisions_and_remainders_have_the_value_of_plain_ones(case, by, then, factor):
    index, values = case
    number = evaluate(index, values)
    assert evaluate(index // by, values) == number // by
    assert evaluate(index % by, values) == number % by
    assert evaluate((index // by) // then, values) == number // by // then
    assert evaluate((index % by) // then, values) == number % by // then
    assert evaluate((index // by) * (by * factor) + (index % by) * factor, values) == number * factor
    low, high = index.range()
    assert low <= number <= high


def test_a_split_merged_again_is_the_axis_itself():
    axis = Axis("c", 12)
    whole = ix.of(axis)
    assert (whole // 4) * 4 + whole % 4 == whole


def test_a_view_of_a_view_is_a_stride():
    n, c = Axis("n", 5), Axis("c", 6)
    flat = ix.linear((ix.of(n), ix.of(c)), (6, 1))
    assert ix.unravel(flat, (5, 6)) == (ix.of(n), ix.of(c))


def test_axes_of_extent_one_are_zero():
    assert ix.of(Axis("one", 1)) == Index(0, {})
