//! The commands of PowerShell that have more than one name from the beginning: `rm` is `Remove-Item`.
//!
//! A rule that denies sees each of them under all of its names; one that allows sees the name that is written. The names are
//! those of Windows PowerShell 5.1, of which later ones have fewer. The aliases that somebody makes are not known.

/// Aliases and what they stand for, in order: those of commands that run, change, read or send something.
static ALIASES: [(&str, &str); 72] = [
    ("%", "foreach-object"),
    ("?", "where-object"),
    ("ac", "add-content"),
    ("cat", "get-content"),
    ("cd", "set-location"),
    ("chdir", "set-location"),
    ("clc", "clear-content"),
    ("cli", "clear-item"),
    ("clp", "clear-itemproperty"),
    ("copy", "copy-item"),
    ("cp", "copy-item"),
    ("cpi", "copy-item"),
    ("cpp", "copy-itemproperty"),
    ("curl", "invoke-webrequest"),
    ("del", "remove-item"),
    ("dir", "get-childitem"),
    ("erase", "remove-item"),
    ("etsn", "enter-pssession"),
    ("foreach", "foreach-object"),
    ("gc", "get-content"),
    ("gci", "get-childitem"),
    ("gi", "get-item"),
    ("gp", "get-itemproperty"),
    ("gps", "get-process"),
    ("gwmi", "get-wmiobject"),
    ("icm", "invoke-command"),
    ("iex", "invoke-expression"),
    ("ihy", "invoke-history"),
    ("ii", "invoke-item"),
    ("ipmo", "import-module"),
    ("irm", "invoke-restmethod"),
    ("iwmi", "invoke-wmimethod"),
    ("iwr", "invoke-webrequest"),
    ("kill", "stop-process"),
    ("ls", "get-childitem"),
    ("md", "mkdir"),
    ("mi", "move-item"),
    ("mount", "new-psdrive"),
    ("move", "move-item"),
    ("mp", "move-itemproperty"),
    ("mv", "move-item"),
    ("nal", "new-alias"),
    ("ndr", "new-psdrive"),
    ("ni", "new-item"),
    ("nsn", "new-pssession"),
    ("ps", "get-process"),
    ("r", "invoke-history"),
    ("rd", "remove-item"),
    ("ren", "rename-item"),
    ("ri", "remove-item"),
    ("rm", "remove-item"),
    ("rmdir", "remove-item"),
    ("rni", "rename-item"),
    ("rnp", "rename-itemproperty"),
    ("rp", "remove-itemproperty"),
    ("rwmi", "remove-wmiobject"),
    ("sajb", "start-job"),
    ("sal", "set-alias"),
    ("saps", "start-process"),
    ("sasv", "start-service"),
    ("sc", "set-content"),
    ("si", "set-item"),
    ("sl", "set-location"),
    ("sls", "select-string"),
    ("sp", "set-itemproperty"),
    ("spps", "stop-process"),
    ("spsv", "stop-service"),
    ("start", "start-process"),
    ("tee", "tee-object"),
    ("type", "get-content"),
    ("wget", "invoke-webrequest"),
    ("where", "where-object"),
];

/// The name that an alias stands for; any other name as it is. In small letters, as all names here.
pub(super) fn full_name(name: &str) -> &str {
    ALIASES.binary_search_by_key(&name, |(alias, _)| alias).map_or(name, |at| ALIASES[at].1)
}

/// What else the command is called that has this name.
pub(super) fn other_names(name: &str) -> impl Iterator<Item = &str> {
    let full = full_name(name);
    let its = ALIASES.iter().filter(move |(_, of)| *of == full).map(|(alias, _)| *alias);
    std::iter::once(full).chain(its).filter(move |other| *other != name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ALIASES, full_name, other_names};

    fn others(name: &str) -> BTreeSet<&str> {
        other_names(name).collect()
    }

    #[test]
    fn every_name_leads_to_all_names_of_its_command_and_to_no_other() {
        assert!(ALIASES.is_sorted_by(|(one, _), (next, _)| one < next), "they are looked up so");
        for (alias, full) in ALIASES {
            assert_eq!((full_name(alias), full_name(full)), (full, full));
            assert_eq!(alias, alias.to_lowercase());
            let mut of_full = others(full);
            assert!(of_full.remove(alias) && of_full.insert(full), "{alias}");
            assert_eq!(others(alias), of_full, "{alias}");
        }
        for name in ["git", "", "remove", "rm.exe", "RM"] {
            assert_eq!((full_name(name), other_names(name).count()), (name, 0));
        }
    }

    #[test]
    fn what_deletes_copies_moves_reads_loads_and_starts_is_known() {
        for (full, aliases) in [
            ("remove-item", "rm del erase rd ri rmdir"),
            ("copy-item", "cp copy cpi"),
            ("move-item", "mv move mi"),
            ("get-content", "cat type gc"),
            ("invoke-webrequest", "iwr curl wget"),
            ("invoke-expression", "iex"),
            ("set-content", "sc"),
            ("start-process", "saps start"),
        ] {
            assert_eq!(others(full), aliases.split(' ').collect(), "{full}");
        }
    }
}
