//! What `[tui.keys]` of the configuration may name: the daemon reads it, the screens use it.

/// The places of the screens, and what keys do there. What answers a question cannot be changed, so it has no names.
pub const KEY_NAMES: [(&str, &[&str]); 8] = [
    (
        "top",
        &[
            "question", "open", "prompt", "cancel", "restart", "new", "filter", "command", "keys",
            "quit", "up", "down", "first", "last", "back",
        ],
    ),
    ("line", &["confirm", "steer", "next_agent", "back"]),
    (
        "prompt",
        &[
            "confirm",
            "steer",
            "newline",
            "blocks",
            "cancel",
            "detach",
            "options",
            "keys",
            "thoughts",
            "queue",
            "edit",
            "attach",
            "search_prompts",
            "up",
            "down",
            "last",
        ],
    ),
    ("list", &["complete", "confirm", "up", "down", "back"]),
    (
        "blocks",
        &[
            "up",
            "down",
            "fold",
            "fold_all",
            "unfold_all",
            "previous_prompt",
            "next_prompt",
            "first",
            "last",
            "search",
            "search_older",
            "search_newer",
            "copy",
            "copy_markdown",
            "page",
            "files",
            "thoughts",
            "back",
            "cancel",
            "detach",
            "command",
            "keys",
        ],
    ),
    ("menu", &["up", "down", "confirm", "back"]),
    ("help", &["up", "down", "back", "detach"]),
    ("everywhere", &["page_up", "page_down", "mouse", "top", "start", "redraw", "suspend", "keys"]),
];

/// Whether keys are changed by this name: `cancel`, or `blocks.copy` for one place.
pub fn is_key_name(name: &str) -> bool {
    let (place, action) = match name.split_once('.') {
        Some((place, action)) => (Some(place), action),
        None => (None, name),
    };
    KEY_NAMES
        .iter()
        .any(|(of, actions)| place.is_none_or(|place| *of == place) && actions.contains(&action))
}
