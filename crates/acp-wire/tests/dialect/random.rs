//! Random texts and JSON with the names and words of the protocol.

use proptest::prelude::*;
use serde_json::{Map, Value};

/// A file of a few lines that look like parts of a patch.
pub(crate) fn text_file() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec!["a\n", "b\n", "\n", "-c\r\n", "\\ d\n", "--- e\n"]);
    let lines = prop::collection::vec(line, 0..24);
    (lines, "[ax]?").prop_map(|(lines, last)| lines.concat() + &last)
}

/// One of these words.
pub(crate) fn word(words: &'static str) -> impl Strategy<Value = String> {
    prop::sample::select(words.split(' ').collect::<Vec<_>>()).prop_map(str::to_owned)
}

/// JSON with the names and words of both versions, rightly used or not.
pub(crate) fn part() -> impl Strategy<Value = Value> {
    const NAMES: &str = "sessionUpdate sessionId toolCallId terminalId messageId content type text \
        status title name output data exitStatus changes patch path operation configOptions options \
        category configId currentValue value plan entries availableCommands state stopReason error \
        subject toolCall kind modeId mcpServers description input oldText newText";
    const WORDS: &str = "s c tool_call tool_call_update tool_call_content_chunk terminal_update \
        terminal_output_chunk agent_message agent_message_chunk user_message user_message_chunk \
        state_update idle end_turn error plan plan_update config_option_update \
        available_commands_update terminal diff text command mode completed cancelled \
        w6nDqQ== /w== \u{e9} git_patch";
    const PATCH: &str = "--- a\n+++ a\n@@ -1 +1 @@\n-\u{e9}\n\\\n+b\n";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(Value::from(PATCH)),
        word(WORDS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let members = prop::collection::vec((word(NAMES), inner.clone()), 0..8);
        prop_oneof![
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
            3 => members.prop_map(|all| Value::Object(all.into_iter().collect::<Map<_, _>>())),
        ]
    })
}
