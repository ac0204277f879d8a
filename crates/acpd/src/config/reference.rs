//! Writes the reference section of `docs/configuration.md` from the declarations of the keys.

use std::fmt::Write as _;

use crate::config::catalogue;
use crate::config::keys::{Key, Keys, Scope};
use crate::config::launch::BASE;
use crate::config::tables::mcp::McpServer;
use crate::config::tables::profile::{Budget, Daemon, Hooks, Profile, Root, Tui, Workspace};
use crate::config::tables::retention::Retention;

/// The reference of all keys and of the catalogue, as Markdown.
///
/// # Panics
/// When the built-in catalogue cannot be read, which the tests exclude.
pub fn reference_markdown() -> String {
    let mut out = String::new();
    section(&mut out, "Top of the file", "", &Root::keys(), |_| true);
    section(&mut out, "`[daemon]`", "", &Daemon::keys(), |_| true);
    section(&mut out, "`[hooks]`", "", &Hooks::keys(), |_| true);
    section(&mut out, "`[budget]`", "", &Budget::keys(), |_| true);
    section(&mut out, "`[retention]`", "", &Retention::keys(), |_| true);
    section(&mut out, "`[tui]`", "", &Tui::keys(), |_| true);
    section(
        &mut out,
        "`[defaults]` and `[agents.NAME]`",
        "What `[agents.NAME]` says comes before `[defaults]`, which comes before the catalogue.",
        &Profile::keys(),
        |key| key.scope == Scope::Shared,
    );
    section(&mut out, "Only in `[agents.NAME]`", "", &Profile::keys(), |key| {
        key.scope == Scope::Agent
    });
    section(
        &mut out,
        "`[mcp.NAME]`",
        "An MCP server for agents: a `command` or a `url`.",
        &McpServer::keys(),
        |_| true,
    );
    section(
        &mut out,
        "`[[workspace]]`",
        "A directory with settings of its own. They come before those of `[agents.NAME]`.",
        &Workspace::keys(),
        |_| true,
    );
    environment(&mut out);
    known_agents(&mut out);
    out
}

fn section<T>(
    out: &mut String,
    title: &str,
    about: &str,
    keys: &[Key<T>],
    wanted: impl Fn(&Key<T>) -> bool,
) {
    heading(out, title);
    if !about.is_empty() {
        line(out, format_args!("{about}\n"));
    }
    line(out, format_args!("| key | value | default | meaning |"));
    line(out, format_args!("| --- | --- | --- | --- |"));
    for key in keys.iter().filter(|key| wanted(key)) {
        let default = match (key.default)().as_str() {
            "" => "unset".to_owned(),
            default => format!("`{default}`"),
        };
        let doc: Vec<_> = key.doc.iter().map(|line| line.trim()).collect();
        let (name, kind, doc) = (key.name, (key.kind)(), doc.join(" "));
        line(out, format_args!("| `{name}` | {kind} | {default} | {doc} |"));
    }
    out.push('\n');
}

fn environment(out: &mut String) {
    heading(out, "Environment that every agent gets");
    let names: Vec<_> = BASE.iter().map(|name| format!("`{name}`")).collect();
    line(
        out,
        format_args!(
            "From the daemon's own environment, compared without regard to case: {}. A `HOME` that is \
             missing there is the one that the system knows.\n",
            names.join(" ")
        ),
    );
}

fn known_agents(out: &mut String) {
    let agents = catalogue::KNOWN.clone();
    heading(out, "Known agents");
    line(out, format_args!("| name | agent | command | tested | install | login |"));
    line(out, format_args!("| --- | --- | --- | --- | --- | --- |"));
    for (name, mut agent) in agents {
        agent.finish();
        let command = if agent.builtin {
            "built in".to_owned()
        } else {
            format!("`{}`", agent.command.join(" "))
        };
        line(
            out,
            format_args!(
                "| `{name}` | {} | {command} | {} | {} | {} |",
                agent.title.as_deref().unwrap_or_default(),
                if agent.tried { "yes" } else { "no" },
                code(agent.install.as_deref()),
                code(agent.login.as_deref()),
            ),
        );
    }
}

fn code(text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!("`{text}`"))
}

fn heading(out: &mut String, title: &str) {
    line(out, format_args!("### {title}\n"));
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes everything");
}
