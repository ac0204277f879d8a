//! `acpctl session mode`, `set` and `commands`: settings of a session, and its agent's slash
//! commands.

use acp_wire::{locate, lossy_at, read_legible};
use acpd_api::{LogParams, Role as ClientRole, SessionInfo, Untrusted};
use acpd_view::{ConfigOption, Mode, Settings};
use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::Json;
use crate::error::{CommandError, Result};
use crate::live::Live;
use crate::lookup::{Care, Which, find, or_last};
use crate::settings;
use crate::text::{BOLD, Role, Table, Text, shell_word, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl session mode main" => "List the modes",
    "acpctl session mode main code" => "Switch to the mode `code`",
))]
pub(in crate::command) struct ModeArgs {
    #[command(flatten)]
    which: Which,
    /// Switch to this mode: id or name.
    mode: Option<String>,
    #[command(flatten)]
    json: Json,
}

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl session set main" => "Show the options and their values",
    "acpctl session set main model" => "List the models",
    "acpctl session set main model demo-large" => "Use this model from now on",
))]
pub(in crate::command) struct SetArgs {
    #[command(flatten)]
    which: Which,
    /// The option: id or name.
    option: Option<String>,
    /// The new value.
    value: Option<String>,
    #[command(flatten)]
    json: Json,
}

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl session commands main" => "List the slash commands of its agent",
))]
#[command(mut_arg("session", or_last))]
pub(in crate::command) struct CommandsArgs {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    json: Json,
}

struct Open {
    live: Live,
    info: SessionInfo,
    settings: Settings,
    /// `modes` and `configOptions` as the agent wrote them.
    raw: Value,
}

impl Open {
    fn new(session: &Which, ui: &mut Ui) -> Result<Open> {
        let mut connection = ui.door().connect_lasting()?;
        let info = find(&mut connection, session, Care::Guess, ui)?;
        let mut live = Live::new(connection)?;
        ui.spin("asking");
        live.bind(&info.agent, ClientRole::Controller, [], ui)?;
        let params = json!({"sessionId": info.session_id, "cwd": info.cwd, "mcpServers": []});
        let result: Box<RawValue> = live.call(ui, "session/resume", &params)?;
        let raw = read_legible(result.get()).unwrap_or_default();
        Ok(Open { live, info, settings: Settings::from_raw(&result), raw })
    }
}

pub(super) fn mode(args: &ModeArgs, ui: &mut Ui) -> Result {
    let mut open = Open::new(&args.which, ui)?;
    let Some(mut modes) = open.settings.modes.take() else { return Err(no_modes(&open)) };
    if let Some(wanted) = &args.mode {
        let mut call = |method, params| open.live.call(ui, method, &params);
        settings::switch(&mut modes, &open.info.session_id, wanted, &mut call)?;
    }
    let current = modes.current_mode_id.clone();
    if args.json.json {
        let mut modes = open.raw["modes"].take();
        modes["currentModeId"] = json!(current);
        return Ok(ui.json(&modes)?);
    }
    if args.mode.is_some() {
        return ui.done(text!("{} is now in mode `{}`", open.info.handle(), current));
    }
    let row = |mode: &Mode| {
        let id = marked(&mode.id, mode.id == current);
        [id, text!("{}", mode.name), text!("{}", mode.description)]
    };
    let titles = ["  MODE", "NAME", "DESCRIPTION"];
    let table = Table::new(titles, modes.available_modes.iter().map(row));
    Ok(ui.print(table.render(ui.out_width()))?)
}

pub(super) fn set(args: &SetArgs, ui: &mut Ui) -> Result {
    let SetArgs { which, option, value, json } = args;
    let mut open = Open::new(which, ui)?;
    let options = &open.settings.options;
    let none = || text!("session {} has no options", open.info.handle());
    let Some(wanted) = option else {
        if json.json {
            let options = open.raw["configOptions"].take();
            return Ok(ui.json(&options)?);
        }
        if options.is_empty() {
            return ui.done(none());
        }
        let row = |option: &ConfigOption| {
            let (id, value) = (&option.id, option.value());
            let (id, value) = (Text::styled(BOLD, id), Text::styled(Role::Name, value));
            [id, value, text!("{}", option.name), text!("{}", option.description)]
        };
        let titles = ["OPTION", "VALUE", "NAME", "DESCRIPTION"];
        let table = Table::new(titles, options.iter().map(row));
        return Ok(ui.print(table.render(ui.out_width()))?);
    };
    if options.is_empty() {
        return Err(CommandError::usage(none()));
    }
    let option = settings::option(&open.settings, wanted)?;
    let Some(value) = value else {
        return values(option, *json, &open.raw, ui);
    };
    let id = option.id.clone();
    let Open { live, info, settings, .. } = &mut open;
    let mut call = |method, params| live.call(ui, method, &params);
    let (now, changed) = settings::set(settings, &info.session_id, &id, value, &mut call)?;
    if json.json {
        return Ok(ui.json(&now)?);
    }
    for option in changed {
        ui.say(option.sentence());
    }
    Ok(())
}

fn values(option: &ConfigOption, json: Json, raw: &Value, ui: &mut Ui) -> Result {
    if json.json {
        let all = raw["configOptions"].as_array().into_iter().flatten();
        let raw = all.into_iter().find(|raw| raw["id"] == json!(option.id));
        return Ok(ui.json(&raw)?);
    }
    let current = option.value();
    let switch = [("true", "on"), ("false", "off")]
        .into_iter()
        .filter(|_| option.current_value.is_boolean())
        .map(|(value, name)| [marked(value, current == value), name.into()]);
    let choices = option
        .choices()
        .map(|choice| [marked(&choice.value, choice.value == current), text!("{}", choice.name)]);
    let table = Table::new(["  VALUE", "NAME"], switch.chain(choices));
    Ok(ui.print(table.render(ui.out_width()))?)
}

/// Lists the agent's last announced commands. They are in the journal, so no agent is needed.
pub(super) fn commands(args: &CommandsArgs, ui: &mut Ui) -> Result {
    let mut connection = ui.door().connect()?;
    let session = find(&mut connection, &args.which, Care::Guess, ui)?;
    let mut commands: Vec<Value> = Vec::new();
    connection.read_log(LogParams::after(session.exactly(), 0), |page| {
        let is_commands = |line: &&str| line.contains("available_commands_update");
        for line in page.entries.iter().map(|entry| entry.line.get()).filter(is_commands) {
            let update = ["params", "update", "availableCommands"];
            let session = lossy_at(line.as_bytes(), &["params", "sessionId"]);
            if session.is_some_and(|session| session == page.session_id.raw())
                && let Some(range) = locate(line.as_bytes(), &update)
                && let Ok(last) = read_legible(&line[range])
            {
                commands = last;
            }
        }
        Ok::<(), CommandError>(())
    })?;
    let nothing = commands.is_empty().then_some("the agent has not listed any commands yet");
    let said = |value: &Value| Untrusted::from(value.as_str().unwrap_or_default());
    let row = |command: &Value| {
        let name = Text::styled(BOLD, text!("/{}", said(&command["name"])));
        [name, said(&command["input"]["hint"]).into(), said(&command["description"]).into()]
    };
    let table = Table::new(["COMMAND", "INPUT", "DESCRIPTION"], commands.iter().map(row));
    ui.show_list(args.json.json, &commands, nothing, table.render(ui.out_width()))
}

fn marked(text: impl Into<Text>, is_current: bool) -> Text {
    let (mark, style) = if is_current { ("*", Role::Name) } else { (" ", Role::Plain) };
    Text::styled(style, text!("{} {}", mark, text.into()))
}

fn no_modes(open: &Open) -> CommandError {
    let handle = open.info.handle();
    let failed = CommandError::usage(text!("session {} has no modes", handle));
    match open.settings.of_category("mode") {
        Some(option) => failed.hint(text!(
            "its mode is an option: `acpctl session set {} {}`",
            shell_word(handle),
            shell_word(&option.id)
        )),
        None => failed,
    }
}
