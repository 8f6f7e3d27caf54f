"""Where the heads of a model go."""

from __future__ import annotations

from app.widgets.head_grid_layout import by_layer


def test_layers_stand_in_stacks_where_that_makes_heads_larger() -> None:
    narrow, wide = (by_layer((30, 9), 3, width=width, height=500, left=20, header=30, gap=2) for width in (220, 560))
    assert (narrow.stacks, wide.stacks) == (1, 2)
    assert wide.side > narrow.side
    assert wide.height <= 500
    places = [wide.rect(layer, head) for layer in range(30) for head in range(9)]
    assert not any(a.intersects(b) for at, a in enumerate(places) for b in places[at + 1 :])
    assert wide.layers_between(wide.header, wide.header + wide.pitch) == [0, 15]
