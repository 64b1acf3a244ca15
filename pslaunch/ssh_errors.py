"""What ssh has to say when it does not get through, and what to do about it."""

from shlex import quote

#: A part of ssh's message, what it means, and the way out.
KNOWN = {
    "IDENTIFICATION HAS CHANGED": "it shows another host key than the one that is "
    "known. Either somebody stands between, or the host was set up anew: ask its "
    "administrator. Then forget the old key with `ssh-keygen -R {name}{file}`, and "
    "accept the new one with `{accept}`",
    "host key is known for": "its host key is not known here. Compare its fingerprint "
    "with what its administrator says, and accept it with `{accept}`",
    "Permission denied": "it does not let this user in. Is the key in its "
    "authorized_keys (`ssh-copy-id {target}`)? ssh said: {said}",
    "Could not resolve hostname": "no such name: {said}",
    "Connection timed out": "it does not answer: {said}",
    "Connection refused": "it runs no sshd on that port: {said}",
    "No route to host": "it does not answer: {said}",
    "not responding": "the connection was lost: {said}",
}


def explain(text, host, where):
    """One line for all that ssh to `host` printed before it gave up."""
    said = " ".join(text.split()) or "the connection ended without a word"
    options = "".join([f" -F {quote(where.ssh_config)}" if where.ssh_config else "",
                       f" -p {host.port}" if host.port else ""])  # fmt: skip
    target = f"{host.user}@{host.name}" if host.user else host.name
    words = {
        "name": f"[{host.name}]:{host.port}" if host.port else host.name,
        "file": f" -f {_known_hosts(where)}" if where.ssh_config else "",
        "target": target, "said": said,
        "accept": f"ssh{options} -o BatchMode=no -o StrictHostKeyChecking=ask "
        f"{target} true",
    }  # fmt: skip
    for part, advice in KNOWN.items():
        if part in text:
            return advice.format(**words)
    return said


def _known_hosts(where):
    """The file that a configuration names for host keys."""
    with open(where.ssh_config, encoding="utf-8") as file:
        for line in file:
            name, _, value = line.strip().partition(" ")
            if name.lower() == "userknownhostsfile":
                return value.strip()
    return "~/.ssh/known_hosts"
