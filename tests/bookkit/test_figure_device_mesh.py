"""The figure of a mesh shows the library's groups and bytes, from any side."""

import pytest
from figure_checks import State

import d2l_ext  # noqa: F401  (before mxnet)
from bookkit.figures import device_mesh, frame
from d2l_ext.meshes.mesh import Mesh

SCRIPT = frame.Script("device_mesh", "mesh", device_mesh.data())


@pytest.mark.parametrize("name", device_mesh.MESHES)
def test_groups_and_places_are_the_librarys(name):
    mesh = Mesh(range(8), **dict(zip(device_mesh.AXES, device_mesh.MESHES[name])))
    for i in range(8):
        d = State(SCRIPT, {"mesh": name, "device": i})
        assert SCRIPT.ask(d.choice, f"place(d, {i})") == [*mesh.where(i).values()]
        for a, axis in enumerate(device_mesh.AXES):
            mine = SCRIPT.ask(d.choice, f"group(d, {i}, {a})")
            assert mine in mesh.groups(axis) and i in mine
            words = SCRIPT.ask(d.choice, f"partnersOf(d, {a})")
            others = ", ".join(str(j) for j in mine if j != i)
            sent = device_mesh.data()["sent"][name][a][i]
            told = f"with {others}, {sent:,} bytes" if others else "no partner"
            assert words == told


@pytest.mark.parametrize("name", device_mesh.MESHES)
def test_no_device_leaves_the_drawing_on_any_turn(name):
    choice = {"mesh": name, "device": 0}
    height = SCRIPT.ask(choice, "height(d)")
    spots = SCRIPT.ask(choice, "range(12).map((now) => range(8).map((i) => "
                               "spot(d, i, now)))")
    for x, y, _ in (spot for turn in spots for spot in turn):
        assert 22 <= x <= 678 and 70 + 12 <= y <= height - 12
