//! Failures of the model provider under real agents: each turn fails for the client, in any form
//! the agent gives it.
//!
//! Installs what is missing, and is skipped like the tests of `real_agents.rs`.

use std::process::Stdio;
use std::time::Duration;

use xtask::Result;
use xtask::home::{ChildGuard, wait_for};
use xtask::real::home_with;

/// Time in which an agent that reports a failure does so.
const PATIENCE: Duration = Duration::from_mins(2);
/// Time after which an agent that tries again is cancelled.
const RETRIES: Duration = Duration::from_secs(4);

/// End of a turn by status of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Failed,
    /// An error that asks for a login.
    NeedsLogin,
    /// None: the agent tries again for long, and is cancelled.
    Retries,
}
use End::{Failed, NeedsLogin, Retries};

const STATUSES: [u16; 4] = [400, 401, 429, 500];

macro_rules! agents {
    ($($(#[$ignored:meta])* $name:ident($agent:literal, $what:expr);)*) => {
        $(
            #[test]
            $(#[$ignored])*
            fn $name() {
                fails($agent, $what).unwrap();
            }
        )*
    };
}

agents! {
    zedcodex_fails_turns("zedcodex", [Failed, NeedsLogin, Failed, Retries]);
    copilot_fails_turns("copilot", [Failed, NeedsLogin, Retries, Failed]);
    claude_fails_turns("claude", [Failed, Retries, Retries, Retries]);
    codex_fails_turns("codex", [Failed, NeedsLogin, Failed, Retries]);
    opencode_fails_turns("opencode", [Failed, NeedsLogin, Retries, Retries]);
    pi_fails_turns("pi", [Failed; 4]);
    #[ignore = "takes a big download; run it with `cargo test -p xtask --test real_failures -- --ignored`"]
    hermes_fails_turns("hermes", [Failed, NeedsLogin, Failed, Failed]);
    #[ignore = "takes a big download; run it with `cargo test -p xtask --test real_failures -- --ignored`"]
    fast_agent_fails_turns("fast-agent", [Failed, NeedsLogin, Failed, Failed]);
}

fn fails(agent: &str, ends: [End; 4]) -> Result {
    let Some((home, _model)) = home_with(agent)? else { return Ok(()) };
    // The failure that asks for a login comes last: after it the agent is not used.
    let mut cases: Vec<_> = STATUSES.into_iter().zip(ends).collect();
    cases.sort_by_key(|(_, end)| *end == NeedsLogin);
    for (status, end) in cases {
        let name = format!("e{status}");
        let prompt = format!("say #one [err {status}]");
        let mut run = home.acpctl(&["run", "-a", agent, "-s", &name, &prompt]);
        let mut run = ChildGuard(run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?);
        let (code, last) = if end == Retries {
            let works = || {
                home.read_json(&["session", "show", &name])
                    .is_ok_and(|session| session["turn"]["state"] == "working")
            };
            wait_for("the turn", PATIENCE, works)?;
            let over = wait_for("the end", RETRIES, || run.is_over());
            assert!(over.is_err(), "{agent} {status}: the turn is over");
            home.read(&["cancel", &name])?;
            (130, "cancelled")
        } else {
            (if end == NeedsLogin { 4 } else { 1 }, "error")
        };
        wait_for("the end of the turn", PATIENCE, || run.is_over())?;
        assert_eq!(run.0.wait()?.code(), Some(code), "{agent} {status}");
        let session = home.read_json(&["session", "show", &name])?;
        assert_eq!(session["turn"]["last"], last, "{agent} {status}: {session}");
    }
    home.stop()
}
