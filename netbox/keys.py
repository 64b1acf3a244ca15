"""Keys and configuration of ssh, made for one box and gone with it."""

import subprocess
from pathlib import Path

#: What only host `h1` sees, at a path that all hosts have: its own file system's.
OWN = "/run/box"

SSHD = """\
Port {port}
{listen}
HostKey {own}/ssh_host_key
PidFile none
AuthorizedKeysFile {own}/authorized_keys
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserEnvironment no
AllowUsers {user}
StrictModes {strict}
UsePAM no
UseDNS no
X11Forwarding no
AllowAgentForwarding no
AllowTcpForwarding no
PermitTunnel no
MaxStartups 100
PrintMotd no
Subsystem sftp internal-sftp
"""

SSH = """\
Host *
    User {user}
    Port {port}
    IdentityFile {folder}/id_ed25519
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    BatchMode yes
"""


def make_key(path, comment):
    """A new ed25519 key pair at `path` and `path`.pub; return the public one."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path],
        check=True, stdin=subprocess.DEVNULL,
    )
    return Path(f"{path}.pub").read_text()


def write(folder, hosts, user, port, strict):
    """Fill `folder` with the keys and files of `hosts`, a list of `host.Host`.

    For all: `id_ed25519`, `ssh_config`, `known_hosts`, `etc_hosts`. For each, in a
    folder of its name: `ssh_host_key`, `sshd_config`, `authorized_keys`. `strict`:
    whether sshd looks at who owns the latter, and all folders above it.
    """
    public = make_key(folder / "id_ed25519", f"{user}@box")
    known = []
    for host in hosts:
        own = folder / host.name
        key = make_key(own / "ssh_host_key", host.name).rsplit(None, 1)[0]
        names = [n for n in (host.name, host.address, host.second_address) if n]
        shown = names if port == 22 else [f"[{name}]:{port}" for name in names]
        known.append(f"{','.join(shown)} {key}\n")
        listen = "\n".join(f"ListenAddress {address}" for address in names[1:])
        text = SSHD.format(port=port, listen=listen, own=OWN, user=user,
                           strict="yes" if strict else "no")
        (own / "sshd_config").write_text(text)
        (own / "authorized_keys").write_text(public)
    (folder / "known_hosts").write_text("".join(known))
    text = SSH.format(user=user, port=port, folder=folder)
    (folder / "ssh_config").write_text(text)
    lines = [f"{host.address} {host.name}\n" for host in hosts]
    (folder / "etc_hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
