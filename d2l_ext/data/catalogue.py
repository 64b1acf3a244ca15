"""The data sets that are files: their classes, mirrors, sizes and checksums."""

from typing import NamedTuple


class FileSet(NamedTuple):
    """A data set in files; sizes and SHA-256 in the order of the format's files."""

    classes: tuple
    mirrors: tuple
    sizes: tuple
    sha256: tuple


#: Sets in the format of MNIST, their files in the order of `idx.FILES`.
IDX_SETS = {
    # MXNet's own mirror (the files that d2l reads) is not among these: it has
    # the release of 26 August 2017, which holds duplicates and has another order.
    # Images of one release with labels of the other agree by chance only.
    "fashion_mnist": FileSet(
        classes=("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
                 "Shirt", "Sneaker", "Bag", "Ankle boot"),
        mirrors=(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        ),
        sizes=(26_421_880, 29_515, 4_422_102, 5_148),
        sha256=(
            "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
    "mnist": FileSet(
        classes=tuple("0123456789"),
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/gluon/dataset/mnist/",
        ),
        sizes=(9_912_422, 28_881, 1_648_877, 4_542),
        sha256=(
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
}  # fmt: skip

#: CIFAR-10 as one archive: the authors' binary version, which holds no pickles.
CIFAR10 = FileSet(
    classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse",
             "ship", "truck"),
    mirrors=("https://www.cs.toronto.edu/~kriz/",),
    sizes=(170_052_171,),
    sha256=("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",),
)  # fmt: skip
