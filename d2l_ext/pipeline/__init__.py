"""Pipeline parallelism: layers on several devices."""

from .. import lazy

__getattr__ = lazy.names(__name__, graph="BULK Pipeline bind placement split")
