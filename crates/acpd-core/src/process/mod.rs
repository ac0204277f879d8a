//! Processes of agents: slots, waiting requests, the order of starts, the stop ladder.
//! [`table::Processes`] is the machine.
//!
//! ```text
//!            needed                 pid known              initialize answered
//! Stopped ─(Queued)─▶ Starting ───────────────▶ Initializing ────────────▶ Ready ◀──▶ NeedsAuth
//!    ▲                    │ cannot be made          │ error, timeout         │            │
//!    │ not needed         ▼                         ▼                        ▼            ▼
//!    ├──────────────── (judged) ◀── tree gone ── Stopping{why} ◀─ exit, stop, restart, idle, wedged
//!    │                    │
//!    │                    ├─▶ Backoff{until} ── time ─▶ Starting
//!    └── a person's start └─▶ Failed{reason} ── a person's start, prompt or login ─▶ Starting
//! ```
//!
//! | Input | Handler |
//! | --- | --- |
//! | a client, a prompt or acpd needs the process; a place is free | `need`, `start_needed`, `start_queued` |
//! | it runs, cannot be made, answers `initialize` | `on_started`, `on_refused`, `on_initialized`, `on_echo` |
//! | it was found again, or is lost after the end of a daemon | `on_adopted`, `on_lost` |
//! | it wrote a line, it got a line | `on_read`, `on_written` |
//! | it is to end: a person, a restart, nothing uses it, it hangs | `stop`, `on_turns_ended` |
//! | it ended, something remains of it, nothing remains | `on_exited`, `on_leftovers`, `on_gone`, `judge` |
//! | a deadline | `on_timer` |
//! | a request was refused or worked, a login or logout worked, one was found | `on_refusal`, `on_success`, `on_login`, `on_logout`, `on_login_found` |
//! | the agent reports its login | `on_report` |
//!
//! Facts from other machines are the most urgent demand for a process, whether turns run in it,
//! and the work that a login must not disturb ([`logins::Activity`]). Requests and lines of
//! sessions are not read here.
//!
//! Architecture invariant: a slot has at most one process, and the old tree is gone (`HostGone`)
//! before the next process starts. While leftovers live, several agents keep their sessions locked,
//! and the others silently fork the history.

pub(crate) mod logins;
pub(crate) mod slot;
mod start;
mod stop;
pub(crate) mod table;
