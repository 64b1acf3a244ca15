"""A host is lost without a word, at some moment: the job ends as if nothing was."""

import d2l_ext  # noqa: F401, I001
import random
import re
import secrets
from concurrent.futures import ThreadPoolExecutor


from benchmarks.clusters.recovery import story, trials


def test_a_job_that_loses_a_host_ends_with_the_same_bits(cluster, tmp_path):
    """In the middle of its steps; the host stays off, and the job does without it.

    Many more, at any moment: `benchmarks.clusters.recovery.trials.lost_hosts(20)`.
    """
    place, draw = story.Hosts(cluster), random.Random(secrets.randbits(32))
    step, name = draw.randint(10, 90), draw.choice
    with ThreadPoolExecutor() as pool:  # a loss is noticed after ten seconds
        whole = pool.submit(trials.job, story.Local(), tmp_path / "whole", epochs=5)
        cut = trials.job(place, tmp_path / "cut",
                         [(lambda s: s.reached(1, step), name)], epochs=5)
    assert whole.result().job["returncode"] == 0, whole.result().said
    assert cut.job["returncode"] == 0, (step, cut.losses, cut.said)
    assert cut.job["restarts"] == 1 and cut.done_again()[2] <= 5, (step, cut.losses)
    assert trials.same(trials.state(tmp_path / "whole"), trials.state(tmp_path / "cut"))
    ((lost_at, lost),), said = cut.losses, "\n".join(cut.said)
    # 15 s, as documented, and as long as the first start took here.
    assert cut.restarts[0] - lost_at < 15 + cut.first_steps()[0], said
    assert re.search(rf"(server|worker) \d on {lost} was lost: ", said), said
    assert f"{lost} is left out of start 2: it does not answer" in said, said
    assert not [pid for host in cluster.hosts for pid in host.processes()]
