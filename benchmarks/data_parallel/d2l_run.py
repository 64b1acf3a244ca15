"""The run of *Dive into Deep Learning*, "Training on Multiple GPUs", as it is there.

    D2L_EXT_DATA_DIR=folder make result NAME=d2l_run

`folder`: Fashion-MNIST's four files, with all images or with some of them.
"""

from d2l_ext.data import load_arrays, load_data
from d2l_ext.data_parallel import lenet, train

BATCH, RATE, SCALE, EPOCHS = 256, 0.2, 0.01, 10
#: What the ten epochs of the text take on its 60,000 images.
STEPS = EPOCHS * -(-60_000 // BATCH)


def exact():
    """Train with the text's minibatch, rate and scale: ten epochs, then its steps.

    Ten epochs on one device, on two, and on two from weights of this book's scale;
    and as many epochs as have the text's number of steps. Returns the numbers of
    images, the steps of an epoch, and the held-out accuracy after each epoch.
    """
    images = load_arrays("fashion_mnist")
    steps = -(-len(images.train_y) // BATCH)
    runs = {
        "one": (1, SCALE, EPOCHS),
        "two": (2, SCALE, EPOCHS),
        "two, larger scale": (2, 0.08, EPOCHS),
        "two, as many steps": (2, SCALE, -(-STEPS // steps)),
    }
    accuracy = {}
    for name, (k, scale, epochs) in runs.items():
        history = train(k, BATCH, RATE, num_epochs=epochs,
                        data=load_data(BATCH, "fashion_mnist"),
                        params=lenet.init_params(scale))
        accuracy[name] = [round(float(a), 4) for a in history.accuracy]
    return {
        "images": len(images.train_y),
        "held out": len(images.test_y),
        "steps": steps,
        "steps of the text": STEPS,
        "accuracy": accuracy,
    }
