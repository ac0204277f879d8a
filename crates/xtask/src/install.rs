//! `cargo xtask install`: both programs of this checkout.

use crate::{Result, workspace};

/// Installs `acpd` and `acpctl` where `cargo install` puts programs.
pub fn run() -> Result {
    for program in ["acpd", "acpctl"] {
        let path = format!("crates/{program}");
        workspace::cargo(&["install", "--locked", "--path", &path])?;
    }
    Ok(())
}
