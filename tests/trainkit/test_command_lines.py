"""The command lines of the source documents run with the flag names that they print."""

import d2l_ext  # noqa: F401, I001
import json
import shlex

import pytest
from cifar_files import write_files

from trainkit import flags
from pslaunch.__main__ import parse

GLUON = "image_classification.py --dataset cifar10 --model vgg11 --epochs 1"
MNIST = "train_mnist.py --network lenet"
#: As they are printed there, but for `python` in front of what is not a program.
TRAINERS = [
    f"python {GLUON}",
    f"python example/gluon/{GLUON} --kvstore dist_sync",
    f"python {MNIST}",
    "python train_mnist.py --gpus 0,2",
]
LAUNCH = "../../tools/launch.py -n 3 -H hosts --launcher ssh"
COPIED = "../../tools/launch.py -n 2 -H hosts --sync-dst-dir /tmp/mxnet"
LAUNCHERS = [
    f"{LAUNCH} python {GLUON} --kvstore dist_sync",
    f"{LAUNCH} --sync-dst-dir /tmp/mxnet_job/ python {GLUON} --kvstore dist_sync",
    f"{LAUNCH.replace('ssh', 'local')} python {GLUON} --kvstore dist_sync",
    f"{LAUNCH.replace('3', '2')} python {MNIST} --kv-store dist_sync",
    f"{COPIED} python {MNIST} --kv-store dist_sync",
]
#: What the trainer's own flags call the same.
OWN = {"--model": "--network", "--epochs": "--num-epochs", "--kvstore": "--kv-store"}


def flags_of(line):
    """The trainer's words in a line: those behind the name of its script."""
    words = shlex.split(line)
    (script,) = (
        i for i, word in enumerate(words) if word.endswith(("ion.py", "st.py"))
    )
    return words[script + 1 :]


@pytest.mark.parametrize("line", [*TRAINERS, *LAUNCHERS])
def test_the_trainer_takes_the_flags_of_a_printed_line(line):
    printed = flags_of(line)
    args = flags.parser().parse_args(printed)
    assert args == flags.parser().parse_args([OWN.get(word, word) for word in printed])
    given = dict(zip(printed[::2], printed[1::2]))
    assert args.network == (given.get("--model") or given.get("--network", "lenet"))
    assert args.num_epochs == int(given.get("--epochs", 10))
    assert args.gpus == ([0, 2] if "--gpus" in given else None)
    stores = given.get("--kvstore") or given.get("--kv-store", "device")
    assert args.kv_store == stores


@pytest.mark.parametrize("line", LAUNCHERS)
def test_the_launcher_takes_the_flags_of_a_printed_line(line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text("172.30.0.172\n172.30.0.171\n")
    words = shlex.split(line)[1:]
    command, settings, *_ = parse(words)
    assert command == ["python", *words[words.index("python") + 1 :]]
    assert settings["num_workers"] == int(words[1])
    by = dict(zip(words, words[1:]))
    assert settings["launcher"] == by.get("--launcher")
    assert settings["sync_dst_dir"] == by.get("--sync-dst-dir")


def test_the_first_line_trains_on_a_few_images(run, tmp_path):
    sizes = ["--data-dir", write_files(tmp_path), "--batch-size", 5]
    code, out, _ = run(*flags_of(TRAINERS[0]), *sizes)
    result = json.loads(out)
    assert (code, result["network"], result["dataset"]) == (0, "vgg11", "cifar10")
    assert result["epochs"] == 1
