//! Commands that run next to the server: they change the file, and notify the server.

use acpd_client::Paths;
use acpd_sys::tree::is_marked;
use acpd_sys::{lock, signals};

use crate::failure::Failure;
use crate::invitation::Invitation;
use crate::scope::Scopes;
use crate::secret::Secret;
use crate::store::{Store, TokenInfo, server_lock, tidy_name};

/// Makes an invitation for one more browser. The server must run.
pub fn pair(paths: &Paths, scopes: Scopes, name: Option<String>) -> Result<Invitation, Failure> {
    refuse_agents()?;
    let path = server_lock(paths);
    let runs = lock::is_held(&path).unwrap_or(false);
    let address = lock::signature(&path).filter(|_| runs).and_then(|signature| signature.line);
    let Some(address) = address else {
        let hint = "start it with `acpctl web`: it prints a code of its own";
        return Err(Failure::new("`acpctl web` does not run").hint(hint));
    };
    let code = Store::open(paths)?.add_code(scopes, name)?;
    Ok(Invitation::new(&address, &code))
}

/// Makes a token for a program.
pub fn new_token(paths: &Paths, name: &str, scopes: Scopes) -> Result<Secret, Failure> {
    refuse_agents()?;
    Store::open(paths)?.add_program(name, scopes)
}

/// All tokens, the oldest first.
pub fn tokens(paths: &Paths) -> Result<Vec<TokenInfo>, Failure> {
    Store::open(paths)?.tokens()
}

/// Revokes tokens by name or id. Their sockets are closed at once.
pub fn revoke(paths: &Paths, which: &str) -> Result<Vec<TokenInfo>, Failure> {
    let name = tidy_name(which);
    let gone = Store::open(paths)?.revoke(|token| token.id == name || token.name == name)?;
    if gone.is_empty() {
        let hint = "`acpctl web token list` shows them";
        return Err(Failure::new(format!("no token `{which}`")).hint(hint));
    }
    let path = server_lock(paths);
    if lock::is_held(&path).unwrap_or(false)
        && let Some(signature) = lock::signature(&path)
    {
        // The lock is held, so the pid is that of its holder.
        signals::nudge(signature.pid);
    }
    Ok(gone)
}

/// An agent must not make itself a way around its limits. Best effort, as everywhere: a program can
/// hide the mark.
fn refuse_agents() -> Result<(), Failure> {
    if !is_marked() {
        return Ok(());
    }
    let hint = "a person lets others in, at a terminal";
    Err(Failure::new("this runs under an agent, which may let nobody in").hint(hint))
}
