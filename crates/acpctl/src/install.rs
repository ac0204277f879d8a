//! Installs an agent with the command that acpd knows, in this terminal and after a yes. A name in
//! npm's registry may change its owner, so its repository must be the known one.

use std::process::Command;

use acpd_api::{AgentInfo, ExitCode, PackageInfo, Untrusted};

use crate::confirm::{ADD_YES, confirm};
use crate::error::{CommandError, Result};
use crate::programs::{output_of, status_of};
use crate::text::{Text, text};
use crate::ui::Ui;

pub(crate) fn install(info: &AgentInfo, is_sure: bool, ui: &mut Ui) -> Result {
    if info.installed == Some(true) {
        return ui.done(text!("{} is installed", info.name));
    }
    let Some(command) = &info.install else {
        let error = text!("acpd does not know how to install `{}`", info.name);
        let hint = text!("install it yourself, then: acpctl agent show {}", info.name);
        return Err(CommandError::new(ExitCode::NotFound, error).hint(hint));
    };
    if !is_sure {
        let warning = info.packages.is_empty();
        let warning = warning.then(|| text!("acpd cannot check who publishes {}\n", info.name));
        let prompt = text!("install {} with `{}`? y/n > ", info.name, command);
        let doing = text!("running `{}`", command);
        confirm(ui, doing, ADD_YES, &warning.unwrap_or_default(), prompt)?;
    }
    // Extras of Python packages are quoted for shells.
    let mut words = command.raw().split_whitespace().map(|word| word.trim_matches('\''));
    let program = words.next().unwrap_or_default();
    for package in &info.packages {
        check_repository(package, command)?;
    }
    ui.finish()?;
    let status = status_of(Command::new(program).args(words))?;
    if !status.success() {
        let error = text!("`{}` failed: {}", command, Untrusted::of(status));
        return Err(CommandError::new(ExitCode::Error, error));
    }
    ui.done(text!("{} is installed", info.name))
}

pub(crate) fn can_install(info: &AgentInfo) -> bool {
    info.installed == Some(false) && info.install.is_some()
}

/// Fails unless npm's registry has the known repository of the package.
fn check_repository(package: &PackageInfo, command: &Untrusted) -> Result {
    let by_hand = || text!("check its publisher; to install it anyway: {}", command);
    let Some(found) = repositories_in_registry(package.name.raw()) else {
        let error = text!("the registry does not say who publishes `{}`", package.name);
        return Err(CommandError::new(ExitCode::Error, error).hint(by_hand()));
    };
    let known = plain_address(package.repository.raw());
    if found.iter().any(|address| plain_address(address) == known) {
        return Ok(());
    }
    let is_empty = found.is_empty();
    let found = Text::join(found.iter().map(|address| Untrusted::from(address).into()), ", ");
    let named = if is_empty { "no repository".into() } else { text!("{}", found) };
    let error = text!(
        "the registry names {} for `{}`, but acpd expects {}: nothing was installed",
        named,
        package.name,
        package.repository
    );
    Err(CommandError::new(ExitCode::Refused, error).hint(by_hand()))
}

/// Returns the package's repositories in npm's registry; none if the registry does not answer.
fn repositories_in_registry(package: &str) -> Option<Vec<String>> {
    let mut npm = Command::new("npm");
    let said = output_of(npm.args(["view", package, "repository.url"])).ok()?;
    Some(said.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

/// Removes what registries add to an address: scheme, user, `.git`, case.
fn plain_address(address: &str) -> String {
    let address = address.trim().to_ascii_lowercase();
    let address = address.rsplit_once("://").map_or(address.as_str(), |(_, rest)| rest);
    let address = address.rsplit_once('@').map_or(address, |(_, rest)| rest);
    let address = address.trim_end_matches('/');
    address.strip_suffix(".git").unwrap_or(address).replacen(':', "/", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_repository_are_equal() {
        for written in [
            "git+https://github.com/Ada/Demo.git",
            "https://github.com/ada/demo/",
            "git@github.com:ada/demo.git",
            "git+ssh://git@github.com/ada/demo.git",
            "github.com/ada/demo",
        ] {
            assert_eq!(plain_address(written), "github.com/ada/demo", "{written}");
        }
        for other in ["https://github.com/eve/demo", "https://github.com/ada/demo.evil"] {
            assert_ne!(plain_address(other), "github.com/ada/demo");
        }
    }
}
