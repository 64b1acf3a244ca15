"""Rings: each rank is a thread here, with sockets of its own; `zeros` by memory."""

import d2l_ext  # noqa: F401, I001  (before numpy's threads start)
import os
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rings import free_places, on_ring

from d2l_ext.data_parallel.costs import expected
from d2l_ext.kvstore import ring
from d2l_ext.kvstore.ring_links import HEAD, RingError

DTYPES = ("float32", "float64")


def data(n, size, dtype):
    """Whole numbers, whose sums are exact in any order: an array of each rank."""
    rng = numpy.random.RandomState(size % 1000)
    return rng.randint(-9, 9, (n, size)).astype(dtype)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_all_calls_give_what_one_process_computes(n, shared):
    sizes = [0, 1, n - 1, n, 7, 1000, 2**16 + 1, 300_001]

    def work(r):
        for size in sizes:
            for dtype in DTYPES:
                all_data = data(n, size, dtype)
                x = r.zeros((size,), dtype)
                x[:] = all_data[r.rank]
                assert r.allreduce(x) is x and (x == all_data.sum(0)).all()
                x[:] = all_data[r.rank]
                c = (r.rank + 1) % n
                chunk = slice(c * size // n, (c + 1) * size // n)
                part = r.reduce_scatter(x)
                assert part.tolist() == all_data.sum(0)[chunk].tolist()
                assert part.size == 0 or numpy.shares_memory(part, x)
                x[: chunk.start] = x[chunk.stop :] = 99
                assert (r.allgather(x) == all_data.sum(0)).all()
                for root in range(n):
                    x[:] = all_data[r.rank]
                    assert (r.broadcast(x, root) == all_data[root]).all()
                r.barrier()
        return r.calls

    calls = on_ring(n, work, shared)
    assert len(set(calls)) == 1 and isinstance(calls[0], int), calls


def test_ten_million_numbers():
    """Chunks that no socket holds: who sends must receive as well."""
    def work(r):
        x = numpy.full(10**7, r.rank + 1.0)
        x[::999] = r.rank
        r.allreduce(x)
        x[::999] += 3
        return x.min(), x.max(), r.sent

    wanted = expected("ring", 3, 8 * 10**7, 8)
    assert on_ring(3, work) == [(6, 6, sent) for sent in wanted.sent]


@settings(max_examples=25)
@given(st.integers(2, 5), st.integers(0, 2**17), st.sampled_from(DTYPES))
def test_each_link_carries_what_the_formula_says_and_a_head(n, size, dtype):
    itemsize = numpy.dtype(dtype).itemsize

    def on_wire(r):
        """The kernel's own count of what this rank has sent to the next."""
        info = r.after.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        sent, sent_again = struct.unpack_from("QQ", info, 200)  # `man 7 tcp`, tcp_info
        return sent - sent_again

    def work(r):
        before = on_wire(r)
        r.allreduce(numpy.ones(size, dtype))
        moved = r.sent, r.received
        r.barrier()  # a byte in each round; what was sent before is out then
        return (*moved, on_wire(r) - before - 2 * HEAD - (n - 1))

    wanted = expected("ring", n, size * itemsize, itemsize)
    sent, received, wire = map(list, zip(*on_ring(n, work)))
    assert (sent, received, wire) == (wanted.sent, wanted.received, wanted.sent)


def test_all_ranks_have_the_same_bits():
    def work(r):
        x = numpy.random.RandomState(r.rank).randn(10_001).astype("float32")
        y = r.zeros(10_001)
        y[:] = x
        return r.allreduce(x).tobytes(), r.allreduce(y).tobytes()

    assert len(set(on_ring(5, work, shared=True))) == 1


def test_slices_of_shared_memory_go_through_memory():
    def work(r):
        x = r.zeros((4, 100))
        x[:] = r.rank + 1
        before = r.sent
        r.allreduce(x[1:3])
        return x[:, 0].tolist(), r.sent - before

    first, second = on_ring(2, work, shared=True)  # two bytes: the words of barriers
    assert (first, second) == (([1, 3, 3, 1], 2), ([2, 3, 3, 2], 2))


def count_left():
    fds = len(os.listdir("/proc/self/fd"))
    shm = sorted(os.listdir("/dev/shm"))
    status = Path("/proc/self/status").read_text()
    rss = int(status.split("VmRSS:")[1].split()[0])
    return fds, shm, threading.active_count(), rss


def counted(r):
    """While nobody else counts, or leaves."""
    found = []
    for rank in range(r.num_workers):
        r.barrier()
        if r.rank == rank:
            found = count_left()
    r.barrier()
    return found


@pytest.mark.parametrize("shared", [False, True])
def test_a_thousand_calls_leave_nothing_behind(shared):
    def work(r):
        x = r.zeros(50_000)
        for turn in range(1000):
            if turn == 100:
                before = counted(r)
            r.allreduce(x)
            r.broadcast(x[:100])
        return before, counted(r)

    outside = count_left()
    for (fds, shm, threads, rss), after in on_ring(2, work, shared):
        assert (fds, shm, threads) == after[:3]
        assert after[3] - rss < 1000  # kB
    assert count_left()[:2] == outside[:2]


# What goes wrong


def causes(errors):
    assert all(isinstance(error, RingError) for error in errors), errors
    return [str(error) for error in errors]


@pytest.mark.parametrize("late", [0, 1.5])
def test_who_leaves_is_named_by_all_the_others(late):
    """Rank 0 knows it first, and may come late to say so."""
    def work(r):
        for turn in range(5):
            if (r.rank, turn) == (1, 3):
                return "left"
            time.sleep(late * ((r.rank, turn) == (0, 3)))
            r.allreduce(numpy.ones(100_000))

    first, left, *others = on_ring(4, work)
    assert left == "left"
    assert all("rank 1 has left" in text for text in causes([first, *others]))


def test_the_patience_of_a_rank_follows_its_deadline():
    r = ring.connect(0, [None], "", deadline=30)
    r.deadline = 0.5
    assert r.patience == 0.5
    r.deadline = 80
    assert r.patience == 10


def test_a_rank_says_who_has_left_when_it_is_asked():
    """Rank 1, which has sent everything, could be right to wait for rank 0 alone."""
    def work(r):
        x = numpy.ones(1)
        if r.rank == 2:
            r.before.setblocking(True)
            assert len(r.before.recv(HEAD, socket.MSG_WAITALL)) == HEAD
        else:
            r.flow("from the rank before", x, [], [x], 0)

    zero, one, _, three = on_ring(4, work)
    assert causes([zero, one, three]) == [
        f"rank {rank}: rank 2 has left the ring" for rank in (0, 1, 3)]


@pytest.mark.parametrize("shared", [False, True])
def test_who_is_late_ends_the_call_of_all_others(shared):
    """It comes when all the others have given up; they do not wait for it."""
    given_up = threading.Semaphore(0)

    def work(r):
        x = r.zeros(numpy.int64(1000))
        r.barrier()
        if r.rank == 0:
            assert all(given_up.acquire(timeout=60) for _ in range(2))
        try:
            r.allreduce(x)
        finally:
            given_up.release()

    texts = causes(on_ring(3, work, shared, deadline=2.5))
    assert "no end after 2.5 s, rank 0 has not even sent its header" in texts[1]


@pytest.mark.parametrize("shared, call, first, second", [
    (False, lambda r, x: r.allreduce(x[r.rank :]),
     "call 1: allreduce of 32 bytes (float32)",
     "call 1: allreduce of 28 bytes (float32)"),
    (True, lambda r, x: r.allreduce(x[: 4 + r.rank]), "at 0, 4 float32",
     "at 0, 5 float32"),
    (True, lambda r, x: r.allreduce(x.view("int32") if r.rank else x), "8 float32",
     "8 int32"),
    (True, lambda r, x: r.zeros(10 + r.rank), "zeros of 40 bytes", "zeros of 44 bytes"),
])
def test_different_calls_are_told_apart(shared, call, first, second):
    def work(r):
        x = r.zeros(8)
        x[:] = 1
        call(r, x)

    texts = causes(on_ring(2, work, shared))
    assert any(first in text and second in text for text in texts), texts


def test_a_closed_ring_says_why():
    def work(r):
        r.close()
        r.barrier()

    for rank, text in enumerate(causes(on_ring(2, work))):
        assert text == f"rank {rank}: the ring is closed: this process has left it"


@pytest.mark.parametrize("wrong, error, text", [
    ([1.0], TypeError, "x is a list: make it a NumPy array"),
    (numpy.ones((4, 4))[:, 1], ValueError, "not contiguous"),
    (numpy.frombuffer(b"1234", "uint8"), ValueError, "is read-only"),
])
def test_arrays_that_cannot_be_summed_in_place_are_refused(wrong, error, text):
    alone = ring.connect(0, [("127.0.0.1", 1)], "")
    with pytest.raises(error, match=text):
        alone.allreduce(wrong)
    with pytest.raises(ValueError, match="root=3: choose a rank from 0 to 0"):
        alone.broadcast(numpy.ones(1), 3)


# Who may take part


def test_a_rank_without_an_address_is_refused():
    with pytest.raises(ValueError, match="rank=2: choose a rank from 0 to 1"):
        ring.connect(2, free_places(2), "secret")


@pytest.mark.parametrize("says", [b"\0\0\0\5hello", b"\xff\xff\xff\0abc", b"SSH-2.0\n"])
def test_what_answers_at_a_rank_s_address_and_is_none_is_an_error(says):
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        pool.submit(lambda: server.accept()[0].sendall(says))
        places = [server.getsockname(), *free_places(1)]
        with pytest.raises(RingError, match="is not rank 0, has another token, or has"):
            ring.connect(1, places, "secret", 5)


def test_a_wrong_token_is_found_out():
    tokens = ["a", "a", "b"]
    texts = causes(on_ring(3, lambda r: r.barrier(), deadline=2.0, tokens=tokens))
    assert any("has another token" in text for text in texts)
    assert any("refused without" in text for text in texts)


@pytest.mark.parametrize("says", [b"", b"GET / HTTP/1.0\r\n\r\n" * 5, bytes(48)])
def test_strangers_are_sent_away_and_the_ring_is_made(says):
    places, results = free_places(2), []

    def stranger():
        for _ in range(200):
            try:
                with socket.create_connection(places[0]) as link:
                    link.sendall(says)
                    link.settimeout(2)
                    results.append(len(link.recv(16)))
                    while link.recv(100):
                        results[-1] += 100
                    return
            except ConnectionRefusedError:
                time.sleep(0.005)
            except OSError:
                return

    def rank_of(rank):
        if rank == 1:
            thread.join()
        with ring.connect(rank, places, "secret", 10) as r:
            return r.allreduce(numpy.ones(3)).tolist()

    thread = threading.Thread(target=stranger)
    thread.start()
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(rank_of, range(2))) == [[2, 2, 2]] * 2
    assert results[0] >= 16


def test_without_a_job_there_is_no_ring_to_join():
    with pytest.raises(RingError, match="D2L_EXT_RING is not set: start a job"):
        ring.join(environ={})
