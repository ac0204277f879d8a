//! A client of the soak: sessions one after the other, each with a few prompts of every kind.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use serde_json::json;

use super::{AGENTS, Soak};
use crate::home::Result;
use crate::peer::Peer;
use crate::rng::Rng;

const PATIENCE: Duration = Duration::from_mins(3);

/// Prompts for floods, giants, slowness, noise, and death.
const PROMPTS: [&str; 14] = [
    "[chunks 3000] #flood",
    "[chunks 3000] #flood",
    "[chunks 300] say #some",
    "[big 500000]",
    "[slow 3] say #slow",
    "say #one",
    "say #two [plan] [tool Edit the file]",
    "[think about it] [tool Edit the file]",
    "[stderr 20000] say #loud",
    "[noise] say #noise",
    "[cost 0.1] say #dear",
    "[error -32000 no] ",
    "[crash]",
    "[half]",
];

pub(super) fn run(soak: &Soak, n: u64) {
    let mut rng = Rng::of_round(soak.seed, n);
    // Sessions that could not be deleted because the daemon was gone.
    let mut left = Vec::new();
    while !soak.over.is_set() {
        if let Err(error) = sessions(soak, n, &mut rng, &mut left) {
            let late = error.downcast_ref::<Error>().is_some_and(|error| {
                matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
            });
            if late {
                soak.fail(format!(
                    "client {n} of agent soak{}, for {PATIENCE:?}: {error}",
                    n % AGENTS
                ));
            }
            // The daemon may be gone.
            soak.home.acpctl(&["daemon", "start"]).output().ok();
        }
    }
}

fn sessions(soak: &Soak, n: u64, rng: &mut Rng, left: &mut Vec<String>) -> Result {
    let mut peer = Peer::connect(&soak.home.socket(), Some(PATIENCE))?;
    peer.initialize(&json!({"agent": format!("soak{}", n % AGENTS)}))?;
    for _ in 0..3 {
        while let Some(session) = left.pop() {
            if let Err(error) = delete(&mut peer, &session) {
                left.push(session);
                return Err(error);
            }
        }
        if soak.over.is_set() {
            return Ok(());
        }
        let session = peer.session(&soak.home.path("work"))?;
        // The limits of the configuration delete the others.
        if rng.below_u64(3) > 0 {
            left.push(session.clone());
        }
        soak.count("sessions", 1);
        for _ in 0..=rng.below_u64(4) {
            let text = PROMPTS[rng.below(PROMPTS.len())];
            soak.count("prompts", 1);
            if let Err(error) = peer.prompt(&session, text, |_| ()) {
                soak.count("cut", 1);
                // An answer with an error; without an answer the daemon is gone.
                if !error.to_string().starts_with('{') {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

/// Deletes a session for good. Another client may have done so.
fn delete(peer: &mut Peer, session: &str) -> Result {
    let gone = peer.call("_acpd/session/remove", &json!({"session": session, "now": true}));
    match gone {
        Err(error) if error.to_string().contains("session_not_found") => Ok(()),
        gone => gone.map(drop),
    }
}
