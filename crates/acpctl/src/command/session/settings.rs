//! `acpctl session mode`, `set` and `commands`: the settings of a session, and the slash commands of its agent.

use acp_wire::{Message, parse, read_legible};
use acpd_api::{ClientMeta, SessionInfo, Untrusted};
use acpd_view::{ConfigOption, Settings};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::args::Json;
use crate::door::{Door, initialize_params};
use crate::error::{CommandError, Result};
use crate::live::Live;
use crate::lookup::{Care, Which, find, find_live};
use crate::settings::{self, sentence};
use crate::text::{BOLD, Role, Table, Text, shell_word, text};
use crate::ui::Ui;

/// A session that was opened to look at its settings.
struct Open {
    live: Live,
    info: SessionInfo,
    settings: Settings,
    /// `modes` and `configOptions` as the agent wrote them.
    raw: Value,
}

impl Open {
    fn new(session: &Which, door: Door, ui: &mut Ui) -> Result<Open> {
        let mut live = Live::new(door.connect_lasting()?)?;
        let info = find_live(&mut live, session, ui)?;
        let agent = Some(info.agent.raw().to_owned());
        let meta = ClientMeta { agent, notices: true, ..ClientMeta::default() };
        ui.spin("asking");
        let _: Box<RawValue> = live.call(ui, "initialize", &initialize_params(&meta))?;
        let params = json!({"sessionId": info.session_id, "cwd": info.cwd, "mcpServers": []});
        let result: Box<RawValue> = live.call(ui, "session/resume", &params)?;
        let raw = read_legible(result.get()).unwrap_or_default();
        Ok(Open { live, info, settings: Settings::from_raw(&result), raw })
    }
}

/// Shows the modes, or switches to one.
pub(super) fn mode(
    session: &Which,
    wanted: Option<&str>,
    json: Json,
    door: Door,
    ui: &mut Ui,
) -> Result {
    let mut open = Open::new(session, door, ui)?;
    if open.settings.modes.is_none() {
        return Err(no_modes(&open));
    }
    if let Some(wanted) = wanted {
        let Open { live, info, settings, .. } = &mut open;
        let mut call = |method, params| live.call(ui, method, &params);
        settings::switch(settings, &info.session_id, wanted, &mut call)?;
    }
    let Some(modes) = &open.settings.modes else {
        return Err(no_modes(&open));
    };
    let current = modes.current_mode_id.clone();
    if json.json {
        let mut modes = open.raw["modes"].take();
        modes["currentModeId"] = json!(current);
        return Ok(ui.json(&modes)?);
    }
    if wanted.is_some() {
        ui.say(text!("{} is now in mode `{}`", open.info.handle(), current));
        return Ok(());
    }
    let mut table = Table::new(["  MODE", "NAME", "DESCRIPTION"]);
    for mode in &modes.available_modes {
        table.row([
            marked(&mode.id, mode.id == current),
            text!("{}", mode.name),
            text!("{}", mode.description),
        ]);
    }
    Ok(ui.print(table.render(ui.out_width()))?)
}

/// Shows the options, the values of one, or sets it.
pub(super) fn set(
    session: &Which,
    setting: Option<(&str, Option<&str>)>,
    json: Json,
    door: Door,
    ui: &mut Ui,
) -> Result {
    let mut open = Open::new(session, door, ui)?;
    let options = &open.settings.options;
    if options.is_empty() && setting.is_some() {
        let text = text!("session {} has no options", open.info.handle());
        return Err(CommandError::usage(text));
    }
    let Some((wanted, value)) = setting else {
        if json.json {
            let options = open.raw["configOptions"].take();
            return Ok(ui.json(&options)?);
        }
        if options.is_empty() {
            ui.say(text!("session {} has no options", open.info.handle()));
            return Ok(());
        }
        let mut table = Table::new(["OPTION", "VALUE", "NAME", "DESCRIPTION"]);
        for option in options {
            table.row([
                Text::styled(BOLD, &option.id),
                Text::styled(Role::Name, option.value()),
                text!("{}", option.name),
                text!("{}", option.description),
            ]);
        }
        return Ok(ui.print(table.render(ui.out_width()))?);
    };
    let option = settings::option(&open.settings, wanted)?;
    let Some(value) = value else {
        return values(option, json, &open.raw, ui);
    };
    let id = option.id.clone();
    let Open { live, info, settings, .. } = &mut open;
    let mut call = |method, params| live.call(ui, method, &params);
    let (now, changed) = settings::set(settings, &info.session_id, &id, value, &mut call)?;
    if json.json {
        return Ok(ui.json(&now)?);
    }
    for option in changed {
        ui.say(sentence(&option));
    }
    Ok(())
}

/// The values of one option.
fn values(option: &ConfigOption, json: Json, raw: &Value, ui: &mut Ui) -> Result {
    if json.json {
        let all = raw["configOptions"].as_array().into_iter().flatten();
        let raw = all.into_iter().find(|raw| raw["id"] == json!(option.id));
        return Ok(ui.json(&raw)?);
    }
    let current = option.value();
    let mut table = Table::new(["  VALUE", "NAME"]);
    if option.current_value.is_boolean() {
        for (value, name) in [("true", "on"), ("false", "off")] {
            table.row([marked(value, current == value), name.into()]);
        }
    }
    for choice in option.choices() {
        let name = text!("{}", choice.name);
        table.row([marked(&choice.value, choice.value == current), name]);
    }
    Ok(ui.print(table.render(ui.out_width()))?)
}

/// Lists the commands that the agent has announced last; they are in the journal, so no agent is needed.
pub(super) fn commands(session: &Which, json: Json, door: Door, ui: &mut Ui) -> Result {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        session_id: Untrusted,
        update: Update,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update {
        available_commands: Vec<Value>,
    }
    let mut connection = door.connect()?;
    let session = find(&mut connection, session, Care::Guess, ui)?;
    let mut commands = Vec::new();
    connection.read_log(session.exactly(), 0, |page| {
        let told = |line: &&str| line.contains("available_commands_update");
        for line in page.entries.iter().map(|entry| entry.line.get()).filter(told) {
            if let Ok(Message::Notification { params: Some(params), .. }) = parse(line.as_bytes())
                && let Ok(params) = read_legible::<Params>(params.get())
                && params.session_id == page.session_id
            {
                commands = params.update.available_commands;
            }
        }
        Ok::<(), CommandError>(())
    })?;
    if commands.is_empty() && !json.json {
        ui.say("the agent has not listed any commands yet");
        return Ok(());
    }
    let mut table = Table::new(["COMMAND", "INPUT", "DESCRIPTION"]);
    for command in &commands {
        let said = |value: &Value| Untrusted::from(value.as_str().unwrap_or_default());
        table.row([
            Text::styled(BOLD, text!("/{}", said(&command["name"]))),
            said(&command["input"]["hint"]).into(),
            said(&command["description"]).into(),
        ]);
    }
    ui.show(json.json, &commands, table.render(ui.out_width()))
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
