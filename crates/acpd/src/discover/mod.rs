//! `acpd discover`: asks the installed agents of the catalogue what they can do.
//!
//! The command is not a part of the daemon: it runs in the caller's environment, starts the agents one after
//! another, and ends each with all its processes. Nothing is downloaded: a package that `npx` or
//! `uvx` would have to fetch is not installed.

mod probe;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use acp_wire::acp::InitializeResult;
use acpd_api::{escape, json};
use acpd_shim::launch::Program;
use acpd_sys::paths::Paths;
use acpd_sys::signals;
use serde_json::{Value, json};

use crate::config::{self, Config, Installed, Profile};
use crate::settings::services;

struct Found<'a> {
    profile: &'a Profile,
    /// A `command` that does not depend on the `PATH` of the daemon.
    command: toml::Value,
    launch: Program,
}

/// Asks the agents, and prints profiles as TOML, or all results as JSON.
pub fn run(json: bool) -> io::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let (mut received, is_stopped) = (signals::watch(&signals::STOP_REQUESTS)?, Arc::clone(&stop));
    thread::spawn(move || {
        received.next();
        is_stopped.store(true, Ordering::Relaxed);
    });
    // Without a subreaper, an agent's leftovers are found by their mark.
    acpd_sys::process::become_subreaper().ok();
    let config = config::parse(Path::new("catalogue.toml"), "").map_err(io::Error::other)?;
    let mut probed = Vec::new();
    for found in config.agents.values().filter_map(find) {
        say(format_args!("asking {} ({})", found.profile.name, found.launch.program.display()));
        let result = probe::ask(&found.launch, services(found.profile), &stop)?;
        if let Err(why) = &result {
            say(format_args!("  {why}"));
        }
        probed.push((found, result));
    }
    if probed.is_empty() {
        let own = match own_commands(&config) {
            0 => String::new(),
            count => format!("; {count} configured with commands of their own are not asked"),
        };
        say(format_args!(
            "none of the agents that acpd knows is in the PATH{own}; `acpctl agent ls` lists them"
        ));
    }
    let text = if json {
        let list: Vec<Value> =
            probed.iter().map(|(found, result)| as_json(found, result)).collect();
        json::pretty(&list)? + "\n"
    } else {
        as_toml(&probed)
    };
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        write!(stdout, "{}", escape::prose(&text))
    } else {
        stdout.write_all(text.as_bytes())
    }
}

/// Returns the number of agents with another command than in the catalogue.
fn own_commands(catalogue: &Config) -> usize {
    let Ok(paths) = Paths::discover() else { return 0 };
    let Ok(config) = config::load(&paths.config_file()) else { return 0 };
    let known = |name: &str| catalogue.agents.get(name).map(|profile| &profile.command);
    let differs = |own: &&Profile| known(&own.name) != Some(&own.command);
    config.agents.values().filter(differs).count()
}

fn say(text: std::fmt::Arguments<'_>) {
    // A user who does not read stderr does not miss this.
    writeln!(io::stderr().lock(), "{}", escape::verbatim(&text.to_string())).ok();
}

/// Returns the agent if it can be started without a download.
fn find(profile: &Profile) -> Option<Found<'_>> {
    if profile.builtin {
        return None;
    }
    let env: Vec<(OsString, OsString)> = config::environment(profile, std::env::vars_os());
    let (program, args) = config::command_line(profile, &env, Path::new("")).ok()?;
    let command = match config::installed(profile, &env) {
        Installed::Other => {
            let file = config::resolve_program(profile, &env, Path::new("")).ok()?;
            toml::Value::String(file.to_str()?.to_owned())
        }
        _ => profile.command.clone().into(),
    };
    let args = args.into_iter().map(OsString::from).collect();
    let launch = Program { program, args, env, cwd: profile.start_dir() };
    Some(Found { profile, command, launch })
}

fn version(result: &InitializeResult) -> Option<String> {
    let info = result.agent_info.as_ref()?;
    Some(format!("{} {}", info.name, info.version))
}

fn abilities(result: &InitializeResult) -> Vec<&'static str> {
    let can = &result.capabilities;
    let all = [
        (can.resume, "resume"),
        (can.load_session, "load"),
        (can.list, "list"),
        (can.close, "close"),
        (can.delete, "delete"),
        (can.fork, "fork"),
    ];
    all.into_iter().filter(|(can, _)| *can).map(|(_, word)| word).collect()
}

fn as_json(found: &Found<'_>, result: &Result<InitializeResult, String>) -> Value {
    let args = found.launch.args.iter().map(|arg| arg.to_string_lossy());
    let mut value = json!({
        "agent": found.profile.name,
        "title": found.profile.title,
        "program": found.launch.program,
        "args": args.collect::<Vec<_>>(),
        "tried": found.profile.tried,
    });
    match result {
        Err(error) => value["error"] = json!(error),
        Ok(result) => {
            let logins = result
                .auth_methods
                .iter()
                .map(|method| json!({"id": method.id, "name": method.name, "type": method.kind}));
            value["version"] = json!(version(result));
            value["sessions"] = json!(abilities(result));
            value["authMethods"] = logins.collect();
            value["login"] = json!(found.profile.login);
        }
    }
    value
}

fn as_toml(probed: &[(Found<'_>, Result<InitializeResult, String>)]) -> String {
    let answered: Vec<_> =
        probed.iter().filter_map(|(found, result)| Some((found, result.as_ref().ok()?))).collect();
    let mut text = String::new();
    if let Some((first, _)) = answered.first() {
        let name = toml::Value::String(first.profile.name.clone());
        writeln!(text, "# For clients that name no agent.\ndefault_agent = {name}").ok();
    }
    for (at, (found, result)) in answered.iter().enumerate() {
        let mut facts: Vec<String> = version(result).into_iter().collect();
        facts.push(match abilities(result).as_slice() {
            [] => "cannot bring sessions back".to_owned(),
            words => words.join(", "),
        });
        comment(&mut text, "\n", &facts.join("; "));
        if !result.auth_methods.is_empty() {
            let names = result.auth_methods.iter().map(|method| method.name.as_str());
            comment(
                &mut text,
                "",
                &format!("ways to log in: {}", names.collect::<Vec<_>>().join(", ")),
            );
        }
        let same = |(other, _): &&(&Found<'_>, _)| other.launch.program == found.launch.program;
        if let Some((other, _)) = answered[..at].iter().find(same) {
            let name = &other.profile.name;
            comment(&mut text, "", &format!("the same program as `{name}`: keep one of the two"));
        }
        writeln!(text, "[agents.{}]\ncommand = {}", found.profile.name, found.command).ok();
    }
    text
}

/// Adds a comment of one line: the words of an agent may contain anything.
fn comment(text: &mut String, before: &str, line: &str) {
    writeln!(text, "{before}# {}", escape::one_line(line)).ok();
}
