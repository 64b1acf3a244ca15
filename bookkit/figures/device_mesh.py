"""Eight devices as a mesh that turns: a device's groups, and its bytes along each.

The page holds the bytes of `meshes.decoder.expected`, for each mesh of eight devices.
"""

from d2l_ext.meshes import decoder as on_mesh
from d2l_ext.tensor_parallel.transformer import Decoder

from . import frame

DECODER = Decoder(vocab=64, width=64, heads=8, layers=4, tied=False)
SHAPE, CHUNKS = (8, 16), 2
AXES = ("pipeline", "data", "tensor")
SIZES = [(2**a, 2**b, 2 ** (3 - a - b)) for a in range(4) for b in range(4 - a)]
MESHES = {" × ".join(map(str, sizes)): sizes for sizes in SIZES}
CONTROLS = (
    frame.Select("mesh", "Pipeline × data × tensor", tuple(MESHES)),
    frame.Slider("device", "Device", 0, 7),
    frame.Clock("Turn", unit="turn"),
)


def figure(mesh="2 × 2 × 2", device=5, name="device-mesh"):
    """Return the figure for a notebook: a mesh of eight devices, and a slider that
    turns it.

    `mesh`: one of `MESHES`. `device`: 0 to 7, whose groups are highlighted. Bytes are
    those of a step of `DECODER`, texts of `SHAPE`, in `CHUNKS` micro-batches. `name`:
    its id in the page. Raises `ValueError` for values that it cannot show.
    Developed in the chapter *Data × tensor × pipeline*.
    """
    choice = {"mesh": mesh, "device": device, "clock": 0}
    return frame.figure("device_mesh", name, "Mesh to show", CONTROLS, choice, data())


def data():
    """Return the page's data, for JSON: `axes`, and by mesh its `sizes` and `sent`.

    `sent`: for each axis, the bytes that each device sends.
    """
    sent = {
        name: on_mesh.expected(DECODER, dict(zip(AXES, sizes)), SHAPE, CHUNKS)
        for name, sizes in MESHES.items()
    }
    by_axis = {name: [*each.values()] for name, each in sent.items()}
    return {"axes": AXES, "sizes": MESHES, "sent": by_axis}
