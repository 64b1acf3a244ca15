"""Thirty programs with layouts, for eight devices: plain data, for both compilers."""

ONE, TWO = {"t": 8}, {"d": 2, "t": 4}
PRODUCT = "y = einsum nd,df->nf x w"
SMALL = {"x": (64, 32), "w": (32, 128)}
MOVE = "y = einsum nd->nd x"
MLP = """
    u = einsum nd,df->nf x up
    a = relu   nf->nf    u
    y = einsum nf,fd->nd a down
    z = add    nd,nd->nd x y
"""
WIDE = {"x": (256, 32), "up": (32, 128), "down": (128, 32)}
ATTENTION = """
    dots = einsum bthk,bshk->bhts q k
    p    = softmax bhts->bhts dots
    mix  = einsum bhts,bshk->bthk p v
"""
HEADS = dict.fromkeys("qkv", (8, 64, 16, 8))
EMBED = "e = embedding bt,vd->btd ids table"
TABLE = {"ids": (8, 64), "table": (128, 32)}
NORM = "h = norm nd,d,d->nd x gain shift"
ROWS = {"x": (64, 32), "gain": (32,), "shift": (32,)}
EXPERTS = """
    row = einsum gnec,gnd->gecd mask x
    u   = einsum gecd,edh->gech row up
    a   = relu   gech->gech     u
    v   = einsum gech,ehd->gecd a down
    y   = einsum gnec,gecd->gnd mask v
"""
ROUTED = {"mask": (8, 16, 8, 4), "x": (8, 16, 32), "up": (8, 32, 64),
          "down": (8, 64, 32)}

POSITIONS = dict.fromkeys("qkv", ". t . .")
FULL = ". t . . -> . . . ."
UPDOWN = ["up", "down"]
#: Name: program, shapes, mesh, layouts, and the weights if backward runs as well.
CASES = {
    "gather": (MOVE, SMALL, ONE, {"x": "t .", "y": ". ."}, []),
    "slice": (MOVE, SMALL, ONE, {"y": "t ."}, []),
    "change of axis": (MOVE, SMALL, ONE, {"x": "t .", "y": ". t"}, []),
    "product, rows": (PRODUCT, SMALL, ONE, {"x": "t .", "y": "t ."}, []),
    "product, columns": (PRODUCT, SMALL, ONE, {"w": ". t", "y": ". t"}, []),
    "product, summed": (PRODUCT, SMALL, ONE,
                        {"x": ". t", "w": "t .", "y": ". ."}, []),
    "product, summed and cut": (PRODUCT, SMALL, ONE,
                                {"x": ". t", "w": "t .", "y": "t ."}, []),
    "product, weights gathered": (PRODUCT, SMALL, ONE, {
        "x": "t .", "w": "t . -> . .", "y": "t ."}, []),
    "product, data gathered": (PRODUCT, SMALL, ONE, {
        "x": "t . -> . .", "w": ". t", "y": ". t"}, []),
    "product, one factor cut": (PRODUCT, SMALL, ONE, {"w": "t .", "y": ". ."}, []),
    "product, both": (PRODUCT, SMALL, TWO,
                      {"x": "d t", "w": "t .", "y": "d ."}, []),
    "product, in four": (PRODUCT, SMALL, TWO,
                         {"x": "d .", "w": ". t", "y": "d t"}, []),
    "MLP, data": (MLP, WIDE, ONE, {"x": "t .", "z": "t ."}, UPDOWN),
    "MLP, tensor": (MLP, WIDE, ONE, {"up": ". t", "down": "t .", "z": ". ."}, []),
    "MLP, tensor, backward": (MLP, WIDE, ONE, {
        "up": ". t", "down": "t .", "z": ". ."}, [*UPDOWN, "x"]),
    "MLP, sequence": (MLP, WIDE, ONE, {
        "x": "t .", "up": ". t", "u": ". t", "down": "t .", "z": "t ."}, []),
    "MLP, sharded": (MLP, WIDE, ONE, {
        "x": "t .", "up": "t . -> . .", "down": "t . -> . .", "z": "t ."}, []),
    "MLP, sharded, backward": (MLP, WIDE, ONE, {
        "x": "t .", "up": "t . -> . .", "down": "t . -> . .", "z": "t ."}, UPDOWN),
    "MLP, data × tensor": (MLP, WIDE, TWO, {
        "x": "d .", "up": ". t", "down": "t .", "z": "d ."}, []),
    "MLP, data × tensor, backward": (MLP, WIDE, TWO, {
        "x": "d .", "up": ". t", "down": "t .", "z": "d ."}, UPDOWN),
    "MLP, sharded × tensor": (MLP, WIDE, TWO, {
        "x": "d .", "up": "d t -> . t", "down": "t d -> t .", "z": "d ."}, []),
    "attention, texts": (ATTENTION, HEADS, ONE, {
        **dict.fromkeys("qkv", "t . . ."), "mix": "t . . ."}, ["q", "k", "v"]),
    "attention, heads": (ATTENTION, HEADS, ONE, {
        **dict.fromkeys("qkv", ". . t ."), "mix": ". . t ."}, ["q", "k", "v"]),
    "attention, all-to-all": (ATTENTION, HEADS, ONE, {
        **dict.fromkeys("qkv", ". t . . -> . . t ."), "dots": ". t . .",
        "mix": ". . t . -> . t . ."}, []),
    "attention, gathered": (ATTENTION, HEADS, ONE, {
        **POSITIONS, "k": FULL, "v": FULL, "mix": ". t . ."}, []),
    "embedding, texts": (EMBED, TABLE, ONE, {"ids": "t .", "e": "t . ."}, ["table"]),
    "embedding, vocabulary": (EMBED, TABLE, ONE, {"table": "t .", "e": ". . ."}, []),
    "norm, rows": (NORM, ROWS, ONE, {"x": "t .", "h": "t ."}, ["gain", "shift"]),
    "softmax, rows": ("p = softmax nd->nd x", SMALL, TWO,
                      {"x": "d .", "p": "d ."}, []),
    "experts": (EXPERTS, ROUTED, ONE, {
        "mask": "t . . .", "x": "t . .", "up": "t . .", "down": "t . .",
        "row": "t . . . -> . t . .", "v": ". t . . -> t . . .", "y": "t . ."}, []),
}
