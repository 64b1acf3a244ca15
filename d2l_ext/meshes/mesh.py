"""Devices with named axes: which of them exchange messages, and for what.

Eight devices as `Mesh(devices, pipeline=2, data=2, tensor=2)`, the last axis innermost:

    pipeline 0                            pipeline 1
              tensor 0   tensor 1                   tensor 0   tensor 1
    data 0        0          1            data 0        4          5
    data 1        2          3            data 1        6          7

A *group* along an axis consists of the devices that differ only in that coordinate.
Devices exchange messages only within groups, so each message belongs to an axis.
"""

from math import prod

import numpy

from ..checks import known_name, whole_number


class Mesh:
    """`devices` in a grid whose axes have names and lengths, the outermost first.

        mesh = Mesh(try_all_devices(8), pipeline=2, data=2, tensor=2)
        mesh.groups("tensor")  # four groups of two neighbours

    `sizes`: the lengths by name. Raises `ValueError` for lengths below 1, or whose
    product is not the number of devices, and for a repeated device.
    Developed in the chapter *Data × tensor × pipeline*.
    """

    def __init__(self, devices, **sizes):
        for axis, size in sizes.items():
            whole_number(axis, size)
        if prod(sizes.values()) != len(devices):
            lengths = " × ".join(f"{axis} {size}" for axis, size in sizes.items())
            raise ValueError(
                f"{lengths} is a mesh of {prod(sizes.values())} devices, and there are "
                f"{len(devices)}: choose lengths whose product is {len(devices)}"
            )
        self.devices, self.sizes = list(devices), sizes
        if len({*self.devices}) < len(self.devices):
            raise ValueError(f"a device is repeated in {self.devices}: list each once")
        self._box = numpy.arange(len(devices)).reshape([*sizes.values()])

    def groups(self, axis):
        """Return the groups along `axis`: lists of devices by coordinate.

        Raises `ValueError` for an unknown axis.
        """
        known_name("axis", axis, self.sizes)
        lines = numpy.moveaxis(self._box, list(self.sizes).index(axis), -1)
        return [[self.devices[i] for i in line]
                for line in lines.reshape(-1, self.sizes[axis])]

    def where(self, device):
        """Return the coordinates of `device`: a dict by axis."""
        place = numpy.unravel_index(self.devices.index(device), self._box.shape)
        return dict(zip(self.sizes, map(int, place)))

    def at(self, **place):
        """Return the device at the coordinates `place`, one per axis."""
        return self.devices[self._box[tuple(place[axis] for axis in self.sizes)]]

    def axis(self, one, other):
        """Return the axis along which two devices are in a group.

        Raises `ValueError` unless they differ in exactly one coordinate.
        """
        places = self.where(one), self.where(other)
        apart = [a for a in self.sizes if places[0][a] != places[1][a]]
        if len(apart) != 1:
            raise ValueError(f"{one} and {other} differ in {apart}: a message goes "
                             "along exactly one axis")
        return apart[0]

    def by_axis(self, moved):
        """Return the bytes that `traffic.count` counted, by axis: {axis: [bytes]}.

        `moved`: from `traffic.count(mesh.devices)`, whose order is assumed.
        """
        sent = {axis: [0] * len(self.devices) for axis in self.sizes}
        for (i, j), nbytes in moved.pairs.items():
            sent[self.axis(self.devices[i], self.devices[j])][i] += nbytes
        return sent
