"""A decoder as a program for the compiler, and its layouts on a mesh.

The letters: b texts, t positions (s as those of keys), d width, h heads, k width of a
head, f hidden, v vocabulary.
"""

import numpy

from ..tensor_parallel import transformer
from .compiler import program

BLOCK = """
    {i}.h    = norm   btd,d,d->btd     {x} {i}.attend.gain {i}.attend.shift
    {i}.q    = einsum btd,hkd->bthk    {i}.h {i}.wq
    {i}.k    = einsum bsd,hkd->bshk    {i}.h {i}.wk
    {i}.v    = einsum bsd,hkd->bshk    {i}.h {i}.wv
    {i}.dots = einsum bthk,bshk->bhts  {i}.q {i}.k
    {i}.size = times:{scale} bhts->bhts {i}.dots
    {i}.past = add    bhts,ts->bhts    {i}.size mask
    {i}.p    = softmax bhts->bhts      {i}.past
    {i}.mix  = einsum bhts,bshk->bthk  {i}.p {i}.v
    {i}.o    = einsum bthk,dhk->btd    {i}.mix {i}.out
    {i}.x    = add    btd,btd->btd     {x} {i}.o
    {i}.g    = norm   btd,d,d->btd     {i}.x {i}.mlp.gain {i}.mlp.shift
    {i}.u    = einsum btd,fd->btf      {i}.g {i}.up
    {i}.a    = gelu   btf->btf         {i}.u
    {i}.y    = einsum btf,df->btd      {i}.a {i}.down
    {i}.z    = add    btd,btd->btd     {i}.x {i}.y
"""
BEGIN = """
    e = embedding bt,vd->btd tokens table
    x = add btd,td->btd e waves
"""
END = """
    h      = norm   btd,d,d->btd {x} end.gain end.shift
    scores = einsum btd,vd->btv  h {table}
    losses = loss   btv,bt->bt   scores targets
"""


def decoder(of):
    """Return the program of a `transformer.Decoder`, from tokens to their losses,
    without dropout.
    """
    text, x = BEGIN, "x"
    for i in range(of.layers):
        text += BLOCK.format(i=i, x=x, scale=(of.width // of.heads) ** -0.5)
        x = f"{i}.z"
    return program(text + END.format(x=x, table="table" if of.tied else "w"))


def shapes(of, batch, T):
    """Return the shapes of the program's inputs by name, and the names of the weights.

    `batch` texts of `T` tokens: the shapes of `arrays`, without any arrays.
    """
    d, k = of.width, of.width // of.heads
    found = {"tokens": (batch, T), "targets": (batch, T), "waves": (T, d),
             "mask": (T, T)}
    for name, shape in of.shapes().items():
        i, kind = name.partition(".")[0], name.rpartition(".")[2]
        if kind == "qkv":
            found.update({f"{i}.w{letter}": (of.heads, k, d) for letter in "qkv"})
        elif kind == "out":
            found[f"{i}.out"] = d, of.heads, k
        elif kind in ("up", "down"):
            found[f"{i}.{kind}"] = shape
        else:
            found["w" if name == "scores" else name] = shape
    return found, [*found][4:]


def arrays(of, params, tokens, targets):
    """Return the program's inputs: NumPy arrays by name, and the names of the weights.

    `params`: from `transformer.init_params`. `tokens`, `targets`: (T, batch).
    """
    T = len(tokens)
    dtype = params["table"].dtype
    waves = transformer.positions(T, 1, of.width).astype(dtype)
    given = {}
    for name, x in params.items():
        i, kind = name.partition(".")[0], name.rpartition(".")[2]
        if kind == "qkv":
            parts = x.reshape(of.heads, 3, -1, of.width)
            given.update({f"{i}.w{letter}": parts[:, j].copy()
                          for j, letter in enumerate("qkv")})
        elif kind == "out":
            given[f"{i}.out"] = x.reshape(of.width, of.heads, -1)
        elif kind in ("up", "down"):
            given[f"{i}.{kind}"] = x
        else:
            given["w" if name == "scores" else name] = x
    mask = numpy.triu(numpy.full((T, T), -1e9), 1).astype(dtype)
    data = {"tokens": tokens.T.astype("int32"), "targets": targets.T.astype("int32"),
            "waves": waves, "mask": mask}
    return {**data, **given}, [*given]


def renamed_gradients(of, found):
    """Rename gradients from the program's names to those of `transformer`."""
    whole = {}
    for name, x in found.items():
        i, _, kind = name.partition(".")
        if kind == "wq":
            parts = [found[f"{i}.w{letter}"] for letter in "qkv"]
            whole[f"{i}.attend.qkv"] = numpy.stack(parts, 1).reshape(-1, of.width)
        elif kind == "out":
            whole[f"{i}.attend.out"] = x.reshape(of.width, -1)
        elif kind in ("up", "down"):
            whole[f"{i}.mlp.{kind}"] = x
        elif kind not in ("wk", "wv"):
            whole["scores" if name == "w" else name] = x
    return whole


def _named(of, **where):
    """Return the layouts by name, of the arrays of every block."""
    return {f"{i}.{name}": lies
            for i in range(of.layers) for name, lies in where.items()}


def tensor(of, along="tensor"):
    """Return Megatron's layouts: heads, hidden units and the vocabulary cut."""
    rows = f"{along} ."
    ends = {"table": rows} if of.tied else {"table": rows, "w": rows}
    heads = f"{along} . ."
    return {**ends, **_named(of, wq=heads, wk=heads, wv=heads, out=f". {along} .",
                             up=rows, down=f". {along}")}


def data(along="data"):
    """Return the layouts of data parallelism: the texts are cut."""
    return {"tokens": f"{along} .", "targets": f"{along} ."}


def sequence(of, along="tensor"):
    """Return tensor parallelism's layouts, with positions cut between its layers."""
    cut = f". {along} ."
    gathered = f"{cut} -> . . ."
    return {**tensor(of, along), "x": cut, "h": gathered,
            **_named(of, h=gathered, x=cut, g=gathered, z=cut)}


def zero3(shapes, weights, along="data"):
    """Return the layouts of ZeRO 3: texts cut; weights cut at rest, whole in use."""
    def lies(n):
        rest = " ." * (n - 1)
        return f"{along}{rest} -> .{rest}"

    return {**data(along), **{name: lies(len(shapes[name])) for name in weights}}


def ulysses(of, along="seq"):
    """Return the layouts of all-to-all attention: positions cut, heads inside it."""
    return {"tokens": f". {along}", "targets": f". {along}", "x": f". {along} .",
            **_named(of, dots=f". {along} . .", mix=f". {along} . .")}
