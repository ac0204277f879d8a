//! `cargo xtask install`: both programs of this checkout.

use crate::{Result, workspace};

pub fn run() -> Result {
    for program in ["acpd", "acpctl"] {
        let path = format!("crates/{program}");
        workspace::cargo(&["install", "--locked", "--path", &path])?;
    }
    Ok(())
}
