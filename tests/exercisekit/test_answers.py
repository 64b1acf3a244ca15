"""Answers to exercises: right ones, typical wrong ones, and where they are asked."""

import ast
import math
import threading
import time
from contextlib import suppress

import numpy
import pytest
from notebook_cells import chapters, code_cells, read, tree

from benchmarks.clusters.bad_networks import wire
from d2l_ext.data_parallel import costs
from d2l_ext.data_parallel.minibatch import shard_sizes
from d2l_ext.kvstore import keys
from d2l_ext.kvstore.compression import packed_size
from d2l_ext.pipeline import schedule
from d2l_ext.scale import failures, fit, step
from d2l_ext.tensor_parallel import ring_attention
from exercisekit import check, questions
from exercisekit.clusters import recovery, sharded_checkpoints
from exercisekit.data_parallel import allreduce
from exercisekit.kvstore import process_ring
from exercisekit.meshes import two_links
from exercisekit.pipeline import shorter_bubbles
from exercisekit.question import NOT_YET, Question, Task, compared, says
from exercisekit.tensor_parallel import experts, transformer

QUESTIONS = questions()
TASKS = {key: each for key, each in QUESTIONS.items() if isinstance(each, Task)}

each = pytest.mark.parametrize("key", QUESTIONS, ids=lambda key: f"{key[0]}-{key[1]}")


@each
def test_the_right_answer_is_right(key):
    said = says(QUESTIONS[key], QUESTIONS[key].right)
    assert said == "right." or (key in TASKS and said.startswith("right. "))


@pytest.mark.parametrize("measured", [1.8, 1.9])
def test_a_factor_of_about_two_may_be_measured(measured):
    assert says(QUESTIONS["concise", 1], measured) == "right."


@each
def test_a_typical_wrong_answer_is_refused_and_met_with_its_hint(key):
    assert QUESTIONS[key].wrong
    for answer, hint in QUESTIONS[key].wrong:
        said = says(QUESTIONS[key], answer)
        assert said.startswith("not yet. ") and said.endswith(f" {hint}"), said
        assert key in TASKS or said == f"not yet. {hint}"


@each
def test_no_answer_gives_the_solution_away(key):
    question = QUESTIONS[key]
    for answer in (None, "no idea", -1, []):
        said = says(question, answer)
        assert said.startswith(("not yet", NOT_YET))
        if isinstance(question.right, int) and question.right > 20:
            assert str(question.right) not in said


@pytest.mark.parametrize("page", chapters())
def test_a_chapter_asks_once_what_can_be_checked_and_nothing_else(page):
    calls = [
        node
        for cell in code_cells(read(chapters()[page]))
        for node in ast.walk(tree(cell))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "check"
        and ast.unparse(node.args[2]) == "None"  # a solution hands in its own code
    ]
    asked = [tuple(argument.value for argument in call.args[:2]) for call in calls]
    known = [key for key in QUESTIONS if key[0] == page.split("/")[-1]]
    assert sorted(asked) == sorted(known)


def a_round_more(rank, n, give, take):
    process_ring.barrier(rank, n + 1, give, take)


def hides_a_full_disk(folder, step, pieces):
    with suppress(OSError):
        recovery.save(folder, step, pieces)


def crosses_as_it_closes(hosts):
    return [1, 2, 5, 6, 3, 7, 0, 4] if len(hosts) == 8 else two_links.ring_order(hosts)


def tree_in_tuples(data, exchange):
    def packed(messages):
        arriving = exchange({pair: (x,) for pair, x in messages.items()})
        return {pair: x for pair, (x,) in arriving.items()}

    allreduce.tree(data, packed)


def beyond_the_end(values, exchange):
    have = 1
    while have < len(values):
        messages = {(i, i + have): values[i] for i in range(have)}
        for (_, j), value in exchange(messages).items():
            if j < len(values):
                values[j] = value
        have *= 2


def sums_of_references():
    counts, sums = {}, {}

    def update(key, pushed, stored):
        counts[key] = counts.get(key, 0) + 1
        sums[key] = sums[key] + pushed if key in sums else pushed
        stored[:] = sums[key] / counts[key]

    return update


def local_targets(scores, targets, firsts, allgather):
    whole = transformer.log_sum_exp(allgather(map(transformer.log_sum_exp, scores)).T)
    return whole - numpy.hstack(scores)[numpy.arange(len(targets)), targets]


class Copying(threading.Thread):
    def __init__(self, write, state):
        super().__init__()
        self.given, self.error = (write, state), None
        self.start()

    def run(self):
        write, state = self.given
        try:
            write(state.copy())
        except Exception as error:  # noqa: BLE001
            self.error = error

    def result(self):
        self.join()
        if self.error:
            raise self.error


class CopiesLate(sharded_checkpoints.Saver):
    def save(self, state):
        self.wait()
        self.last.append(Copying(self.write, state))
        time.sleep(0.1)  # the thread would be in time


@pytest.mark.parametrize("key, function, said", [
    (("allreduce", 3), beyond_the_end, "ValueError: there is no device 3. In the last"),
    (("kvstore_by_hand", 1), sums_of_references, "keep no reference to it."),
    (("sharded_checkpoints", 3), CopiesLate, "with [0, 0], but [1, 1] was written."),
    (("transformer", 3), local_targets, "is 'scores that were not gathered', not"),
    (("halving", 4), tree_in_tuples, "the busiest device sends 8 numbers (6)."),
    (("process_ring", 3), a_round_more, "[4, 4, 4, 4] messages; 3 each are enough."),
    (("recovery", 3), hides_a_full_disk, "full, but no error reaches the caller."),
    (("two_links", 2), crosses_as_it_closes, "crosses 4 times; 3 are enough."),
])
def test_code_that_wastes_or_hides_something_is_refused(key, function, said):
    told = says(TASKS[key], function)
    assert told.startswith("not yet. ") and said in told


def sends_before_two_takes(rank, n, give, take):
    for _ in range(n - 1):
        give(b"here")
        take()
        take()


def labels_anew(rank, n, number, give, take):
    return process_ring.sum_of_living(
        rank, n, number, lambda to, message: give(to, (rank, message[1])), take)


def forgets_many(pieces):
    return process_ring.messages(pieces) if len(pieces) < 19 else []


def one_too_many(wants, E):
    return numpy.array(experts.send_counts(wants, E)) + (len(wants) == 3)


@pytest.mark.parametrize("key, function, said", [
    (("process_ring", 2), forgets_many, "in pieces of 1 byte, it returns []."),
    (("process_ring", 3), sends_before_two_takes,
     "rank 0 late: ranks [0, 1] wait forever. The ranks sent [1, 1] messages."),
    (("process_ring", 5), labels_anew,
     "pass on each received number with its owner, and end when your own number "
     + "returns."),
    (("experts", 3), one_too_many,
     "it returns [[1, 1, 2], [1, 1, 1], [1, 2, 1]], not [[0, 0, 1], [0, 0, 0], "
     + "[0, 1, 0]]."),
])
def test_what_is_told_is_true_of_this_mistake(key, function, said):
    assert says(TASKS[key], function).endswith(said)


def takes_by_name(rank, n, number, give, take):
    return process_ring.sum_of_living(
        rank, n, number, lambda to, data: give(to=to, data=data),
        lambda other: take(rank=other))


def test_a_rank_may_name_the_arguments_of_the_text():
    assert says(TASKS["process_ring", 5], takes_by_name).startswith("right. ")
    right = TASKS["transformer", 3].right

    def gathers_by_name(scores, targets, firsts, allgather):
        return right(scores, targets, firsts, lambda arrays: allgather(arrays=arrays))

    assert says(TASKS["transformer", 3], gathers_by_name).startswith("right. ")


def fills_empty_arrays(x, W, d_out):
    return (lambda: numpy.matmul(d_out, W, out=numpy.empty_like(x)),
            lambda: numpy.matmul(d_out.T, x, out=numpy.empty_like(W)))


def turns_first(x, W, d_out):
    turned = numpy.transpose(x)
    return lambda: d_out @ W, lambda: numpy.matmul(turned, d_out).T


def test_code_may_take_the_shape_of_an_array_that_it_must_not_compute_with():
    for function in fills_empty_arrays, turns_first:
        assert says(TASKS["shorter_bubbles", 2], function) == "right."


def both_by_dot(x, W, d_out):
    both = lambda: (d_out.dot(W), d_out.T.dot(x))
    return lambda: both()[0], lambda: both()[1]


def at_once(x, W, d_out):
    x, W, d_out = map(numpy.asarray, (x, W, d_out))
    pair = d_out @ W, d_out.T @ x
    return lambda: pair[0], lambda: pair[1]


def one_at_once(x, W, d_out):
    early = d_out @ W
    return lambda: early, lambda: d_out.T @ x


def one_entry_off(x, W, d_out):
    return lambda: d_out @ W, lambda: d_out.T @ x + numpy.eye(*W.shape)[::-1]


@pytest.mark.parametrize("function, said, unsaid", [
    (both_by_dot, "the gradient of x takes a product of x itself", "arrays"),
    (at_once, "a product of x is taken before a function is called", "arrays"),
    (one_at_once, "a product of W is taken before", "gradient of W"),
    (one_entry_off, "at [1, 0] the gradient of W is -41, and not -42.", "arrays"),
    (lambda *given: {"x": len, "W": len}, "it should return a pair of functions.",
     "arrays"),
])
def test_a_gradient_that_is_not_in_two_parts_is_told_where(function, said, unsaid):
    told = says(TASKS["shorter_bubbles", 2], function)
    assert said in told and unsaid not in told


def weights_first(p, m, most):
    kinds = "forward", "weights", "input"
    return [[(s, kind, i) for i in range(m) for kind in kinds] for s in range(p)]


def without_the_last(p, m, most):
    return [order[:-1] for order in shorter_bubbles.filled(p, m, most)]


@pytest.mark.parametrize("function, said, unsaid", [
    (lambda p, m, most: [[("F", i) for i in range(m)]] * p,
     "such as Op(0, 'forward'", "raises"),
    (lambda p, m, most: [schedule.Op(0, "forward", 0)],
     "such as Op(0, 'forward'", "raises"),
    (weights_first,
     "stage 0 waits to do the weights part of micro-batch 0.", "raises"),
    (without_the_last, "lacks Op(stage=0, kind='weights', chunk=1)", "two parts"),
])
def test_of_a_schedule_that_cannot_run_its_fault_is_told(function, said, unsaid):
    told = says(TASKS["shorter_bubbles", 4], function)
    assert said in told and unsaid not in told


@pytest.mark.parametrize("schedule_of", [
    schedule.gpipe, lambda p, m: [("F", i) for i in range(m)], lambda p, m: [["F0"]] * p
])
def test_a_schedule_in_another_form_is_told_what_a_piece_of_work_is(schedule_of):
    assert "pairs such as ('F', 0)" in says(TASKS["micro_batches", 2], schedule_of)


def test_where_no_line_is_wrong_half_an_answer_is_not_sent_to_another_line():
    for answer in [("flipped bit", 18), ("metric", 0)]:
        assert "another" not in says(QUESTIONS["parted_replicas", 12], answer)
        assert "What does it do" not in says(QUESTIONS["parted_replicas", 12], answer)


def test_another_line_that_gives_the_same_log_is_not_called_wrong():
    said = says(QUESTIONS["parted_replicas", 5], ("same order", 5))
    assert "could do it" in said and "another" not in said
    said = says(QUESTIONS["parted_replicas", 5], ("same order",))
    assert said.startswith("not yet: 2 entries are needed.")


@pytest.mark.parametrize("key", TASKS, ids=lambda key: f"{key[0]}-{key[1]}")
def test_code_that_raises_or_gives_nothing_is_told_so(key, monkeypatch):
    # No mistake is waited for: which one it may be is not asked here.
    monkeypatch.setattr(sharded_checkpoints, "LONG", 0.05)
    said = says(TASKS[key], lambda: 1 / 0)
    assert said.startswith("not yet. ") and " raises " in said
    for nothing in (None, [], ((), ())):
        said = says(TASKS[key], lambda *given, it=nothing: it)
        assert said.startswith("not yet. ")
        assert nothing is not None or " raises " not in said


# The right answers once more, by the library's own functions.
COMPUTED = {
    ("allreduce", 1): lambda: costs.expected("ring", 8, 40).steps,
    ("halving", 1): lambda: costs.expected("halving", 3000, 4).steps,
    ("data_parallel_scratch", 1): lambda: shard_sizes(64, 4)[0],
    ("roles_keys_shards", 1): lambda: [
        n
        for n in range(2, 17)
        if len({keys.server_of(key, n) for key in (0, 2, 4, 6)}) == 4
    ],
    ("ring_attention", 1): lambda: (
        1 - sum(map(sum, ring_attention.work(ring_attention.contiguous(8), True))) / 64
    ),
    ("compression", 1): lambda: packed_size(1_000_003),
    ("bad_networks", 1): lambda: 8e3 * wire.wire_bytes(4 * 100e6) / 1e9,
    ("recovery", 1): lambda: failures.daly(20, 40 * 86400 / 64) / 60,
    ("simulating", 2): lambda: (
        step.pipeline_seconds([1, 2, 1, 1], [2, 4, 2, 2], 8)
        / step.pipeline_seconds([1, 1, 1, 1], [2, 2, 2, 2], 8)
    ),
    ("fitting", 4): lambda: fit.link([1, 2, 3], [1, 3, 5])[0].beta,
    ("scale", 1): lambda: failures.young(300, 3600) / failures.young(30, 3600),
}


@pytest.mark.parametrize("key", COMPUTED, ids=lambda key: f"{key[0]}-{key[1]}")
def test_the_library_computes_the_right_answer(key):
    assert says(QUESTIONS[key], COMPUTED[key]()) == "right."


def test_the_ring_beats_the_tree_from_the_right_answer_on():
    num_bytes = QUESTIONS["allreduce", 2].right
    seconds = [costs.seconds(w, 16, num_bytes, 50e-6, 1e-9) for w in ("ring", "tree")]
    assert math.isclose(*seconds)


# The machinery, on questions made for it.

NUMBER, FRACTION = Question("a number", 3, [(6, "Halve it.")]), Question("", 0.3)
PAIR, SHARE = Question("two numbers", [1, 2]), Question("a share", 0.5, tolerance=0.1)
WHETHER, ONE, WORD = Question("", True), Question("", 1), Question("a word", "data")


@pytest.mark.parametrize("question, answer, said", [
    (NUMBER, 2, "not yet, too small. Expected: a number."),
    (NUMBER, 4, "not yet, too large. Expected: a number."),
    (NUMBER, 10**400, "not yet, too large. Expected: a number."),
    (NUMBER, 3 + 1j, "not yet. Expected: a number."),
    (NUMBER, math.nan, "not yet. Expected: a number."),
    (Question("", 10**400), 10**400, "right."),
    (NUMBER, numpy.float32(3), "right."),
    (NUMBER, numpy.array(3), "right."),
    (ONE, True, "not yet. Expected: ."),  # a truth is no number
    (WHETHER, 1, "not yet. Expected: ."),
    (WHETHER, numpy.bool_(True), "right."),
    (SHARE, 0.54, "right."),
    (SHARE, 0.56, "not yet, too large. Expected: a share."),
    (FRACTION, 0.1 + 0.2, "right."),  # rounding is forgiven
    (PAIR, (1, 2), "right."),
    (PAIR, numpy.array([1.0, 2.0]), "right."),
    (PAIR, [1], "not yet: 2 numbers are needed. Expected: two numbers."),
    (PAIR, [2, 1], "not yet. Expected: two numbers."),
    (WORD, " Data ", "right."),
])
def test_an_answer_is_told_whether_it_is_right_and_what_it_lacks(
    question, answer, said
):
    assert says(question, answer) == said


def in_place(values):
    values.sort()
    return values


@pytest.mark.parametrize("function, said", [
    (sorted, "right."),
    (in_place, "not yet. sorted([2, 1]): it changes its arguments."),
    (reversed, "not yet. sorted([2, 1]): it returns <"),
    (lambda x: (y for y in x), "not yet. sorted([2, 1]): it returns a generator"),
    (lambda x: [*range(10**5)], "not yet. sorted([2, 1]): it returns [0, 1, 2, 3"),
    (max, "not yet. sorted([2, 1]): it returns 2, not [1, 2]."),
    (lambda x: [1 + 1e-7, 2], "not yet. sorted([2, 1]): it returns [1.0000001, 2]"),
    (lambda: 0, "not yet. sorted([2, 1]): it raises TypeError: "),
])
def test_the_first_case_that_fails_is_told_and_a_write_into_it(function, said):
    judge = compared(sorted, [([2, 1],), ([1.0, math.nan],)])
    assert says(Task("", sorted, judge=judge), function).startswith(said)


def test_an_exercise_that_cannot_be_checked_is_refused_with_those_that_can():
    with pytest.raises(KeyError, match=r"exercise 9: only \[1, 2, 3, 4\] can be"):
        check("allreduce", 9, 1)
    with pytest.raises(KeyError, match="no chapter 'all_reduce'; .* allreduce, "):
        check("all_reduce", 1, 1)
