//! Clients that are not ours and not changed for us on `acpctl web`: the WebSocket transports of the official SDKs for
//! TypeScript, Python and Rust, as they are.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`. The program with the Rust SDK is a package
//! of its own in the store, with a lock file of its own: nothing of it is among what acpd is built of.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use xtask::Result;
use xtask::home::{ChildGuard, Home};
use xtask::real::{Scripts, ready};
use xtask::workspace::{self, succeed};

/// Seconds after which a client hangs.
const LIMIT: &str = "120";
/// The package of the client with the Rust SDK.
const PACKAGE: &str = r#"
[package]
name = "over-web"
version = "0.0.0"
edition = "2024"

[dependencies]
agent-client-protocol = { version = "=5.0.0", features = ["unstable_protocol_v2"] }
agent-client-protocol-http = { version = "=5.0.0", features = ["client"] }
reqwest = { version = "0.13", default-features = false }
tokio = { version = "1", features = ["macros", "rt", "sync", "time"] }

[workspace]
"#;

#[test]
fn the_typescript_sdk_over_its_own_websocket() {
    talks(Some("tssdk"), "over_web.mjs", |scripts, _| Ok(scripts.node())).unwrap();
}

#[test]
fn the_python_sdk_over_its_own_websocket() {
    talks(Some("pysdk"), "over_web.py", |scripts, packages| {
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
    talks(None, "over_web.rs", |scripts, _| {
        let package = scripts.store().join("rustsdk");
        fs::create_dir_all(package.join("src"))?;
        fs::write(package.join("Cargo.toml"), PACKAGE)?;
        fs::copy(client("over_web.rs"), package.join("src/main.rs"))?;
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--quiet"]).current_dir(&package);
        // Built by itself, with any target folder of acpd's tests.
        cargo.env("CARGO_TARGET_DIR", package.join("target")).env_remove("RUSTFLAGS");
        succeed(&mut cargo)?;
        Ok(package.join("target/debug/over-web"))
    })
    .unwrap();
}

fn client(script: &str) -> PathBuf {
    workspace::root().join("crates/xtask/tests/clients").join(script)
}

/// Runs one of the clients in the folder `clients`, with a session of the built-in agent. `sdk` is what the scripts
/// install for it.
fn talks(
    sdk: Option<&str>,
    script: &str,
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
    client.arg(LIMIT).arg(interpreter);
    client.arg(self::client(script));
    client.env("PYTHONPATH", &packages).env("REAL_DIR", scripts.store());
    client.env("URL", format!("ws://{host}/acp?agent=demo")).env("TOKEN", token.trim());
    let done = client.env("WORK", home.path("work")).output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    if !done.status.success() || !said.starts_with("PASS") {
        return Err(format!("{said}{}", String::from_utf8_lossy(&done.stderr)).into());
    }
    drop(server);
    home.stop()
}
