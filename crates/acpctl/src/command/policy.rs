//! `acpctl policy …`: rules and remembered decisions that answer agents without the user.

use acpd_api::{
    Empty, ExitCode, ForgetParams, PolicyList, PolicyTestParams, RememberedInfo, Untrusted, method,
};
use acpd_client::CallError;
use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::Json;
use crate::dirs::{current_dir, utf8};
use crate::error::{CommandError, Result};
use crate::human;
use crate::text::{BOLD, Role, Table, Text, text};
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum Policy {
    /// List remembered decisions.
    #[command(alias = "list")]
    #[command(after_long_help = examples!(
        "acpctl policy ls" => "List calls that are always allowed or refused",
    ))]
    Ls(Json),
    /// Forget a remembered decision.
    #[command(after_long_help = examples!(
        "acpctl policy forget 3" => "Ask again about this call",
    ))]
    Forget {
        /// Number in `policy ls`.
        #[arg(value_parser = decision)]
        id: i64,
    },
    /// Show who would decide about a tool call in this directory, and why.
    #[command(after_long_help = examples!(
        "acpctl policy test --command 'git push'" => "Show who decides about this command",
        "acpctl policy test -a claude --kind edit --path .env" => "Show it for a file",
    ))]
    Test(PolicyTest),
}

// A tool call that an agent may ask about.
#[derive(Debug, Args)]
pub(super) struct PolicyTest {
    /// The agent [default: the configured one].
    #[arg(short, long)]
    agent: Option<String>,
    /// Kind of the call [default: execute with `--command`, fetch with `--url`, else other].
    #[arg(long, value_parser = acp_wire::acp::TOOL_KINDS)]
    kind: Option<String>,
    /// Title of the call.
    #[arg(long)]
    title: Option<String>,
    /// Command line of the call.
    #[arg(long)]
    command: Option<String>,
    /// A path that the call touches.
    #[arg(long = "path", value_name = "PATH")]
    paths: Vec<String>,
    /// Address that the call fetches.
    #[arg(long)]
    url: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn decision(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "not a number; `acpctl policy ls` lists decisions with their numbers")
}

pub(super) fn policy(command: Policy, ui: &mut Ui) -> Result {
    match command {
        Policy::Ls(json) => list(json, ui),
        Policy::Forget { id } => forget(id, ui),
        Policy::Test(args) => test(args, ui),
    }
}

fn list(json: Json, ui: &mut Ui) -> Result {
    let list: PolicyList = ui.door().connect()?.call(method::POLICY_LIST, &Empty {})?;
    let nothing = "there are no remembered decisions; rules are in `[policy]` of the configuration";
    let nothing = list.remembered.is_empty().then_some(nothing);
    let table = table(&list.remembered, human::now(), ui.out_width());
    ui.show_list(json.json, &list, nothing, table)
}

fn table(known: &[RememberedInfo], now: u64, width: Option<usize>) -> Text {
    let row = |known: &RememberedInfo| {
        [
            Text::styled(BOLD, text!("{}", known.id)),
            Text::styled(style(&known.verdict), &known.verdict),
            (&known.agent).into(),
            (&known.workspace).into(),
            human::ago(known.at, now),
            (&known.subject).into(),
        ]
    };
    let titles = ["ID", "DECISION", "AGENT", "DIRECTORY", "SINCE", "WHAT"];
    Table::new(titles, known.iter().map(row)).render(width)
}

fn forget(id: i64, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect()?;
    let list: PolicyList = connection.call(method::POLICY_LIST, &Empty {})?;
    let known = list.remembered.into_iter().find(|known| known.id == id);
    let forgotten: Result<Empty, CallError> =
        connection.call(method::POLICY_FORGET, &ForgetParams { id });
    if let Err(error) = forgotten {
        let error = CommandError::from(error);
        // An unknown id is a missing object, as for other verbs.
        let is_missing = known.is_none() && error.code() == ExitCode::Usage;
        return Err(if is_missing { error.with_code(ExitCode::NotFound) } else { error });
    }
    let what = known.map(|known| {
        let RememberedInfo { verdict, subject, agent, workspace, .. } = known;
        text!(": {} {} ({}, {})", verdict, subject, agent, workspace)
    });
    ui.done(text!("forgot decision {}{}", id, what))
}

fn test(args: PolicyTest, ui: &mut Ui) -> Result {
    let json = args.json;
    let cwd = utf8(&current_dir()?)?;
    let params = PolicyTestParams { agent: args.agent.clone(), cwd, tool_call: tool_call(args) };
    let explained: Value = ui.door().connect()?.call(method::POLICY_TEST, &params)?;
    if json {
        return Ok(ui.json(&explained)?);
    }
    let explained: Explanation = serde_json::from_value(explained).map_err(|error| {
        let text = text!("cannot read the answer: {}", Untrusted::of(error));
        CommandError::new(ExitCode::Error, text)
            .hint("acpctl and acpd may differ in version; run `acpctl daemon restart`")
    })?;
    Ok(ui.print(explanation(&explained))?)
}

fn tool_call(args: PolicyTest) -> Value {
    let usual = match (&args.command, &args.url) {
        (Some(_), _) => "execute",
        (None, Some(_)) => "fetch",
        (None, None) => "other",
    };
    let mut input = Map::new();
    input.extend(args.command.map(|command| ("command".to_owned(), command.into())));
    input.extend(args.url.map(|url| ("url".to_owned(), url.into())));
    let mut call = json!({"toolCallId": "test", "kind": args.kind.as_deref().unwrap_or(usual)});
    if let Some(title) = args.title {
        call["title"] = title.into();
    }
    if !input.is_empty() {
        call["rawInput"] = input.into();
    }
    if !args.paths.is_empty() {
        call["locations"] = args.paths.iter().map(|path| json!({"path": path})).collect();
    }
    call
}

#[derive(Debug, Deserialize)]
struct Explanation {
    rules: Vec<Rule>,
    decision: Decision,
}

#[derive(Debug, Deserialize)]
struct Rule {
    #[serde(rename = "rule")]
    name: Untrusted,
    ruling: Untrusted,
    matched: bool,
    #[serde(default)]
    might_match: bool,
    why: Vec<Untrusted>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Decision {
    Ask { why: Untrusted },
    Answer { verdict: Untrusted, by: By },
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum By {
    Rule {
        name: Untrusted,
    },
    Remembered {
        id: i64,
    },
    Default,
    #[serde(other)]
    Other,
}

fn explanation(explained: &Explanation) -> Text {
    let mut lines = Text::new();
    for Rule { name, ruling, matched, might_match, why } in &explained.rules {
        let (sign, verb) = match (matched, might_match) {
            (true, _) => ("✓", "matches"),
            (false, true) => ("?", "might match"),
            (false, false) => ("-", "does not match"),
        };
        let why = match why.as_slice() {
            [] => "it has no conditions".into(),
            why => Text::join(why.iter().map(Text::from), "; "),
        };
        let line = text!("{} `{}` ({}) {}: {}", sign, name, ruling, verb, why);
        let counts = *matched || *might_match;
        lines += if counts { line } else { Text::styled(Role::Dim, line) } + "\n";
    }
    let ask = "ask".into();
    let (verdict, why) = match &explained.decision {
        Decision::Ask { why } => (&ask, why.into()),
        Decision::Answer { verdict, by } => {
            let by = match by {
                By::Rule { name } => text!("by rule `{}`", name),
                By::Remembered { id } => text!("by remembered decision {}", id),
                By::Default => "by the policy's default".into(),
                By::Other => "by acpd".into(),
            };
            (verdict, by)
        }
    };
    lines + text!("{}: {}\n", Text::styled(style(verdict), verdict), why)
}

fn style(verdict: &Untrusted) -> Role {
    match verdict.raw() {
        "allow" => Role::Good,
        "reject" => Role::Bad,
        _ => Role::Warning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_tells_why_it_matches_or_not() {
        let explained = json!({
            "rules": [
                {"rule": "no push", "ruling": "reject", "matched": false,
                    "why": ["the command is not `git push*`"]},
                {"rule": "rule 2", "ruling": "allow", "matched": true, "why": []},
                {"rule": "rule 3", "ruling": "reject", "matched": false, "might_match": true,
                    "why": ["the input cannot be read"]}],
            "subject": null, "remembered": null,
            "decision": {"type": "answer", "option_id": "allow", "verdict": "allow",
                "by": {"type": "rule", "name": "rule 2"}}});
        let explained = serde_json::from_value(explained).unwrap();
        insta::assert_snapshot!(explanation(&explained), @"
        - `no push` (reject) does not match: the command is not `git push*`
        ✓ `rule 2` (allow) matches: it has no conditions
        ? `rule 3` (reject) might match: the input cannot be read
        allow: by rule `rule 2`
        ");
        let asks = json!({"rules": [], "decision": {"type": "ask", "why": "no rule matches"}});
        let asks = serde_json::from_value(asks).unwrap();
        assert_eq!(explanation(&asks).as_str(), "ask: no rule matches\n");
    }

    #[test]
    fn a_call_is_described_as_agents_do() {
        let args = PolicyTest {
            agent: None,
            kind: None,
            title: Some("Push".to_owned()),
            command: Some("git push".to_owned()),
            paths: vec!["/w/x".to_owned()],
            url: None,
            json: false,
        };
        assert_eq!(
            tool_call(args),
            json!({"toolCallId": "test", "kind": "execute", "title": "Push",
                "rawInput": {"command": "git push"}, "locations": [{"path": "/w/x"}]})
        );
    }
}
