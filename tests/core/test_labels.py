"""Names beside dots: each where it can be read."""

from __future__ import annotations

from rise_core.charts.labels import place_labels


def test_a_name_alone_stands_at_the_upper_right() -> None:
    (place,) = place_labels([100], [100], ["ERM"], width=400, height=300)
    assert (place.align, place.dx > 0, place.dy < 0) == ("left", True, True)


def test_a_name_at_an_edge_stays_inside() -> None:
    right, low = place_labels(
        [398, 200], [150, 4], ["a long name", "a long name"], width=400, height=300
    )
    assert right.align == "right"
    assert low.dy > 0


def test_names_of_one_spot_spread() -> None:
    places = place_labels([200] * 6, [150] * 6, ["a name"] * 6, width=400, height=300)
    assert len({(place.dx, place.dy) for place in places}) == 6


def test_a_name_keeps_off_another_models_dot() -> None:
    first, _ = place_labels([200, 225], [150, 141], ["a name", "b"], width=400, height=300)
    assert not (first.align == "left" and first.dy == -9)


def test_the_side_that_is_wanted_is_kept() -> None:
    places = place_labels([0, 0], [0, 0], ["x", "y"], width=9, height=9, sides=["right", None])
    assert places[0].align == "right"


def test_a_name_keeps_off_a_line_where_it_can() -> None:
    (place,) = place_labels(
        [200], [150], ["a name"], width=400, height=300, lines=[(150, 140, 300, 140)]
    )
    assert place.dy > 0


def test_no_names_no_places() -> None:
    assert place_labels([], [], [], width=400, height=300) == []
