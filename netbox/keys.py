"""ssh's keys and configuration, made for one box and removed with it."""

import subprocess
from pathlib import Path

#: A folder with different contents on each host, at the same path.
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
    IdentityFile "{folder}/id_ed25519"
    IdentitiesOnly yes
    UserKnownHostsFile "{folder}/known_hosts"
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    BatchMode yes
"""


def make_key(path, comment):
    """Make an ed25519 key pair at `path` and `path`.pub; return the public key."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path],
        check=True, stdin=subprocess.DEVNULL,
    )
    return Path(f"{path}.pub").read_text()


def write(folder, hosts, user, port, strict):
    """Fill `folder` with the keys and files of `hosts`, a list of `host.Host`.

    All hosts share `id_ed25519`, `ssh_config`, `known_hosts` and `etc_hosts`. Each has
    `ssh_host_key`, `sshd_config` and `authorized_keys` in a folder of its name.
    `strict`: whether sshd checks who owns `authorized_keys` and the folders above it.
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
