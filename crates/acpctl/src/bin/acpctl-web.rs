//! `acpctl web` as a separate program, so that other verbs do not need a web server.

#![expect(
    clippy::disallowed_methods,
    reason = "all that is printed here is escaped, or blocks of our own"
)]

#[macro_use]
#[path = "../manual.rs"]
mod manual;

use std::io::IsTerminal as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use acpd_api::{Scope, escape, json};
use acpd_client::{Machines, Paths, Place};
use acpd_web::{Event, Failure, Invitation, Limits, Options, Scopes, TokenInfo, proxy_host};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use jiff::Timestamp;
use serde_json::json;

/// Serve a web page to watch and answer agents, and ACP over WebSocket.
///
/// Prints the address with a code for one browser. Without options, only this machine can connect.
#[derive(Debug, Parser)]
#[command(
    name = "acpctl web",
    bin_name = "acpctl web",
    version,
    args_conflicts_with_subcommands = true
)]
#[command(after_long_help = examples!(
    "acpctl web --open" => "Serve the page, and open it in the browser",
    "acpctl web --behind https://desk.tail1234.ts.net" => "Serve it behind a proxy, for a phone",
    "acpctl web --listen 0.0.0.0 --cert chain.pem --key key.pem" =>
        "Serve it in the network, with TLS",
))]
struct Web {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: Serve,
    /// Fail instead of starting the daemon.
    #[arg(long, global = true)]
    no_spawn: bool,
    /// The machines that the page shows, as JSON from acpctl.
    #[arg(long, global = true, hide = true, value_name = "JSON", value_parser = machines)]
    machines: Option<Arc<Machines>>,
}

fn machines(hosts: &str) -> Result<Arc<Machines>, String> {
    let hosts = serde_json::from_str(hosts).map_err(|error| error.to_string())?;
    Machines::new(hosts).map(Arc::new).map_err(|error| error.to_string())
}

#[derive(Debug, Args)]
struct Serve {
    /// Open the page in the browser.
    #[arg(long)]
    open: bool,
    /// Listen on this port [default: 2273, else the next free one].
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Listen on this address. Other machines need TLS, here or in a proxy.
    #[arg(long, value_name = "ADDRESS", default_value_t = Ipv4Addr::LOCALHOST.into())]
    listen: IpAddr,
    /// Certificate with its chain, as PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Key of the certificate, as PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Address of the proxy that browsers open: https://NAME. Other names are refused.
    #[arg(long, value_name = "URL", conflicts_with_all = ["cert", "key"], value_parser = proxy_host)]
    behind: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Let another browser in: print the address with a new code, and its QR code on a terminal.
    #[command(after_long_help = examples!(
        "acpctl web pair --name phone" => "Let a phone in with the QR code",
    ))]
    Pair {
        /// Name of the browser in lists [default: its own].
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        scopes: ScopeArgs,
    },
    /// List, create and revoke tokens of browsers and programs.
    #[command(subcommand)]
    Token(Token),
    /// Write a manual page of each command into a folder.
    #[command(hide = true)]
    Man {
        /// The folder.
        dir: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum Token {
    /// List tokens.
    #[command(alias = "ls")]
    #[command(after_long_help = examples!(
        "acpctl web token list" => "List tokens",
    ))]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Create a token for a program, and print it once.
    #[command(after_long_help = examples!(
        "acpctl web token new ide" => "Create a token for a program",
        "acpctl web token new board --scope watch" => "Create a token that can only watch",
    ))]
    New {
        /// Name of the program in lists.
        name: String,
        #[command(flatten)]
        scopes: ScopeArgs,
    },
    /// Revoke a token and close its connections.
    #[command(alias = "rm")]
    #[command(after_long_help = examples!(
        "acpctl web token revoke ide" => "Revoke the token",
    ))]
    Revoke {
        /// Name or id.
        token: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
struct ScopeArgs {
    /// Allowed actions: watch, prompt, answer [default: all].
    #[arg(long = "scope", value_name = "SCOPES", value_delimiter = ',', value_parser = scope)]
    scopes: Vec<Scope>,
}

fn scope(word: &str) -> Result<Scope, &'static str> {
    let known = Scope::ALL.into_iter().find(|known| known.word() == word);
    known.ok_or("the scopes are: watch, prompt, answer")
}

impl From<ScopeArgs> for Scopes {
    fn from(ScopeArgs { scopes }: ScopeArgs) -> Scopes {
        if scopes.is_empty() { Scopes::default() } else { scopes.into() }
    }
}

fn main() -> ExitCode {
    let typed = Web::from_arg_matches(&Web::command().get_matches());
    match run(typed.unwrap_or_else(|error| error.exit())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            anstream::eprintln!("error: {}", escape::one_line(&error.to_string()));
            if let Some(hint) = error.way_out() {
                anstream::eprintln!("\nhint: {}", escape::one_line(hint));
            }
            ExitCode::FAILURE
        }
    }
}

fn run(Web { command, serve, no_spawn, machines }: Web) -> Result<(), Failure> {
    let paths = Paths::discover()?;
    let place = machines.map_or_else(|| Place::Here(paths.clone()), |all| Place::Machines(all));
    let daemon = acpd_client::Options { spawn: !no_spawn, place };
    match command {
        None => acpd_web::serve(options(serve, paths, daemon), |event| match event {
            Event::Listening(invitation) => invite(&invitation, "Ctrl-C ends the server."),
            Event::SignedIn { name } => talk(&format!("signed in: {name}")),
        })?,
        Some(Command::Man { dir }) => manual::write(Web::command().name("acpctl-web"), &dir)?,
        Some(Command::Pair { name, scopes }) => {
            invite(&acpd_web::pair(&paths, scopes.into(), name)?, "");
        }
        Some(Command::Token(Token::List { json: true })) => {
            print_json(&json!({"tokens": acpd_web::tokens(&paths)?}));
        }
        Some(Command::Token(Token::List { json: false })) => list(&acpd_web::tokens(&paths)?),
        Some(Command::Token(Token::New { name, scopes })) => {
            print(acpd_web::new_token(&paths, &name, scopes.into())?.reveal());
            talk("It is shown this once: send it as `Authorization: Bearer TOKEN`.");
        }
        Some(Command::Token(Token::Revoke { token, json })) => {
            let gone = acpd_web::revoke(&paths, &token)?;
            if json {
                print_json(&json!({"revoked": gone}));
            } else {
                for token in &gone {
                    talk(&format!("revoked: {}", token.name));
                }
            }
        }
    }
    Ok(())
}

fn options(serve: Serve, paths: Paths, daemon: acpd_client::Options) -> Options {
    let Serve { open, port, listen, cert, key, behind } = serve;
    let (address, tls, limits) = (listen, cert.zip(key), Limits::default());
    Options { paths, daemon, open, address, port, tls, behind, limits }
}

fn invite(invitation: &Invitation, more: &str) {
    print(&invitation.url);
    if invitation.is_local {
        talk("It is reachable from this machine alone; docs/web.md says how a phone gets there.");
    } else if std::io::stderr().is_terminal()
        && let Some(picture) = invitation.picture()
    {
        anstream::eprintln!("{picture}");
    }
    talk(&format!(
        "The code lets one browser in, within 2 minutes; `acpctl web pair` makes another. {more}"
    ));
}

fn list(tokens: &[TokenInfo]) {
    if tokens.is_empty() {
        return talk("There are no tokens; `acpctl web pair` lets a browser in.");
    }
    let name = |token: &TokenInfo| escape::one_line(&token.name).to_string();
    let width = tokens.iter().map(|token| name(token).chars().count()).max().unwrap_or_default();
    for token in tokens {
        let (id, name, scopes) = (&token.id, name(token), token.scopes.to_string());
        let day =
            Timestamp::from_millisecond(token.created as i64).map(|at| at.strftime("%Y-%m-%d"));
        let day = day.map(|day| day.to_string()).unwrap_or_default();
        print(&format!("{id}  {name:width$}  {scopes:19}  {day}"));
    }
}

fn print(line: &str) {
    anstream::println!("{}", escape::verbatim(line));
}

fn print_json(value: &serde_json::Value) {
    anstream::println!("{}", json::pretty(value).unwrap_or_default());
}

fn talk(text: &str) {
    anstream::eprintln!("{}", escape::one_line(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_what_it_reads() {
        fn check(command: &clap::Command) {
            for (line, _) in manual::examples_of(command) {
                let parsed = Web::try_parse_from(line.split(' ').skip(1));
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Web::command());
    }
}
