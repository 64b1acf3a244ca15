"""Devices with named axes: groups, coordinates, and the axis of a message."""

import d2l_ext  # noqa: F401, I001

import re
from itertools import chain

import pytest
from mxnet import cpu, np, npx
from notebook_cells import ROOT

from d2l_ext.data_parallel import traffic
from d2l_ext.meshes.mesh import Mesh

npx.set_np()

EIGHT = [cpu(i) for i in range(8)]


def numbers(groups):
    return [[device.device_id for device in group] for group in groups]


def test_the_drawing_of_the_lesson():
    mesh = Mesh(EIGHT, pipeline=2, data=2, tensor=2)
    assert numbers(mesh.groups("tensor")) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert numbers(mesh.groups("data")) == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert numbers(mesh.groups("pipeline")) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert mesh.where(cpu(6)) == {"pipeline": 1, "data": 1, "tensor": 0}
    assert mesh.at(tensor=1, data=0, pipeline=1) == cpu(5)


@pytest.mark.parametrize("lengths", [(8,), (2, 4), (4, 2), (1, 8, 1), (2, 2, 2, 1)])
def test_groups_of_an_axis_hold_each_device_once(lengths):
    mesh = Mesh(EIGHT, **{f"axis{i}": n for i, n in enumerate(lengths)})
    for axis, size in mesh.sizes.items():
        groups = numbers(mesh.groups(axis))
        assert sorted(chain(*groups)) == list(range(8))
        assert {len(group) for group in groups} == {size}
        for group in mesh.groups(axis):
            places = [mesh.where(device) for device in group]
            assert [place.pop(axis) for place in places] == list(range(size))
            assert all(place == places[0] for place in places)
    assert all(mesh.at(**mesh.where(device)) == device for device in EIGHT)


def test_a_message_belongs_to_the_axis_of_its_group():
    mesh = Mesh(EIGHT[:4], outer=2, inner=2)
    with traffic.count(mesh.devices) as moved:
        traffic.send(np.zeros(5, ctx=cpu(0)), cpu(1))
        traffic.send(np.zeros(3, ctx=cpu(3)), cpu(1))
        traffic.send(np.zeros(2, ctx=cpu(3)), cpu(1))
    assert mesh.by_axis(moved) == {"outer": [0, 0, 0, 20], "inner": [20, 0, 0, 0]}
    assert mesh.axis(cpu(2), cpu(3)) == "inner"
    with pytest.raises(ValueError, match=r"differ in \['outer', 'inner'\]: a message"):
        mesh.axis(cpu(0), cpu(3))
    with pytest.raises(ValueError, match=r"differ in \[\]: a message goes along"):
        mesh.axis(cpu(0), cpu(0))


def test_a_single_device_needs_no_axis():
    mesh = Mesh([cpu(3)])
    assert mesh.where(cpu(3)) == {} and mesh.at() == cpu(3)


def test_what_is_no_mesh_is_refused_with_the_lengths():
    with pytest.raises(ValueError, match="data 2 × tensor 3 is a mesh of 6 .* there "
                       "are 8: choose lengths whose product is 8"):
        Mesh(EIGHT, data=2, tensor=3)
    with pytest.raises(ValueError, match="data must be a whole number of .* 1, not 0"):
        Mesh([], data=0)
    with pytest.raises(ValueError, match="unknown axis 'tenser'.* mean 'tensor'"):
        Mesh(EIGHT, data=2, tensor=4).groups("tenser")
    with pytest.raises(ValueError, match=r"repeated in \[cpu\(0\), cpu\(0\)\]: list"):
        Mesh([cpu(0), cpu(0)], tensor=2)


@pytest.mark.parametrize(
    "form, wide, corner, to_stage, to_share, to_replica",
    [("", 76, (60, 68), 300, 124, 76), (".narrow", 54, (60, 76), 153, 75, 84)],
)
def test_the_drawing_of_the_chapter_is_the_mesh(
    form, wide, corner, to_stage, to_share, to_replica
):
    text = (ROOT / f"chapters/img/mesh{form}.svg").read_text("utf-8")
    boxes = re.findall(rf'<rect x="(\d+)" y="(\d+)" width="{wide}"', text)
    mesh = Mesh(range(8), stage=2, replica=2, share=2)
    for i, (x, y) in enumerate(boxes):
        at = mesh.where(i)
        assert int(x) == corner[0] + to_stage * at["stage"] + to_share * at["share"]
        assert int(y) == corner[1] + to_replica * at["replica"]
    lines = re.findall(r"<path [^>]*?stroke-width=\"([\d.]+)\"", text)
    assert len(boxes) == 8 and sorted(lines) == ["1.5"] * 5 + ["2"] * 5 + ["5"] * 5
