//! The terminal on stdin and stdout: single keys, full screens, encoding.

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::{
    CAN_SUSPEND, HAS_BARE_KEYS, Modes, Utf8, announce_keys, can_show_full_screen, forget_typed,
    has_unicode, input_is_fed, name, raw, report_mouse, single_keys, suspend, wait, write_all,
};
