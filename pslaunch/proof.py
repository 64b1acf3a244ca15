"""What the door of a launcher and who knocks at it have in common: see `door.py`."""

import hmac

#: The variable with the invitation: 'ADDRESS:PORT:SECRET', the secret in hex.
DOOR = "D2L_EXT_DOOR"
GREETING = "d2l_ext door"
LIMIT = 1000  # bytes of a line
PATIENCE = 10.0  # seconds for the other side to answer


def proof(secret, who, *words):
    """What only one who knows `secret` can say of these words: text in hex."""
    text = "\n".join([who, *words]).encode()
    return hmac.new(bytes.fromhex(secret), text, "sha256").hexdigest()
