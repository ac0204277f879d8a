//! Clients that are not ours and not changed for us on `acpctl web`: the WebSocket transports of the official SDKs for
//! TypeScript, Python and Rust, as they are.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xtask::Result;
use xtask::home::{ChildGuard, Home};
use xtask::real::{Scripts, ready, rust_client};
use xtask::workspace::{self, succeed};

/// Seconds after which a client hangs.
const LIMIT: &str = "120";

#[test]
fn the_typescript_sdk_over_its_own_websocket() {
    talks(Some("tssdk"), client("over_web.mjs"), |scripts, _| Ok(scripts.node())).unwrap();
}

#[test]
fn the_python_sdk_over_its_own_websocket() {
    talks(Some("pysdk"), client("over_web.py"), |scripts, packages| {
        let python = scripts.store().join("py-pysdk/bin/python");
        // Package that the SDK needs for that transport and installs only on request.
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--target"]).arg(packages).arg("websockets");
        succeed(&mut pip)?;
        Ok(python)
    })
    .unwrap();
}

#[test]
fn the_rust_sdk_over_its_own_websocket() {
    let Some(program) = rust_client().unwrap() else { return };
    talks(None, "say #two [ask] [tool Edit]", |_, _| Ok(program)).unwrap();
}

fn client(script: &str) -> PathBuf {
    workspace::root().join("crates/xtask/tests/clients").join(script)
}

/// Runs a client with this argument, and with a session of the built-in agent. `sdk` is what the scripts install for it.
fn talks(
    sdk: Option<&str>,
    argument: impl AsRef<OsStr>,
    interpreter: impl FnOnce(&Scripts, &Path) -> Result<PathBuf>,
) -> Result {
    let Some(scripts) = ready(sdk.as_slice())? else { return Ok(()) };
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    home.configure("[daemon]\nprotocols = [\"1\", \"2\"]\n")?;
    let packages = home.path("packages");
    let interpreter = interpreter(&scripts, &packages)?;
    let server = home.acpctl(&["web", "--port", "0"]).stdout(Stdio::piped()).spawn()?;
    let mut server = ChildGuard(server);
    let mut url = String::new();
    BufReader::new(server.0.stdout.take().ok_or("no pipe")?).read_line(&mut url)?;
    let host =
        url.strip_prefix("http://").and_then(|url| url.split_once('/')).ok_or("no address")?.0;
    let token = home.read(&["web", "token", "new", "client"])?;

    let mut client = home.command(Path::new("timeout"));
    client.arg(LIMIT).arg(interpreter).arg(argument);
    client.env("PYTHONPATH", &packages).env("REAL_DIR", scripts.store());
    client.env("URL", format!("ws://{host}/acp?agent=demo")).env("TOKEN", token.trim());
    let done = client.env("WORK", home.path("work")).output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    if !done.status.success() || !said.ends_with("PASS\n") {
        return Err(format!("{said}{}", String::from_utf8_lossy(&done.stderr)).into());
    }
    drop(server);
    home.stop()
}
