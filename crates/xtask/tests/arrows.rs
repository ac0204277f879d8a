//! The shape of the workspace, held by a test: who may depend on whom, and on how much.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use xtask::workspace;

/// Our crates, from the bottom to the top, and those of them before it that each may use. Tests may use more.
const CRATES: [(&str, &str); 18] = [
    ("acp-wire", ""),
    ("acpd-sys", ""),
    ("acpd-shim", "acpd-sys"),
    ("acpd-services", "acpd-sys"),
    ("acpd-policy", "acp-wire"),
    ("acpd-api", "acp-wire"),
    ("acpd-view", "acp-wire acpd-api acpd-policy"),
    ("acpd-core", "acp-wire acpd-api acpd-policy"),
    ("acpd-store", "acp-wire acpd-api acpd-core acpd-sys"),
    ("acpd-client", "acp-wire acpd-api acpd-sys"),
    ("acpd-demo", "acpd-sys"),
    ("acpd-test", "acp-wire acpd-api acpd-client acpd-core acpd-demo acpd-sys"),
    (
        "acpd",
        "acp-wire acpd-api acpd-core acpd-demo acpd-policy acpd-services acpd-shim acpd-store \
         acpd-sys",
    ),
    ("acpd-mcp", "acp-wire acpd-api acpd-client acpd-services acpd-sys acpd-view"),
    ("acpd-tui", "acp-wire acpd-api acpd-client acpd-sys acpd-view"),
    ("acpd-web", "acp-wire acpd-api acpd-client acpd-sys acpd-view"),
    ("acpctl", "acp-wire acpd-api acpd-client acpd-mcp acpd-sys acpd-tui acpd-view acpd-web"),
    ("xtask", "acpd-core acpd-store acpd-sys acpd-test"),
];
/// Crates in which modules may import each other in a circle.
const WITH_CIRCLES: [&str; 2] = ["acpd-test", "xtask"];
/// The modules of acpd-core from the bottom to the top, and what each may import of the others. A room
/// never imports the hub: what happened is what its methods return, and what it has to know of other
/// rooms is an argument.
const CORE: [(&str, &[&str]); 28] = [
    ("fault", &[]),
    ("gist", &[]),
    ("hash", &[]),
    ("ids", &[]),
    ("offer", &[]),
    ("own", &[]),
    ("profile", &[]),
    ("read_line", &[]),
    ("tool_calls", &[]),
    ("params", &["fault"]),
    ("prompt", &["fault", "params"]),
    ("record", &["ids", "prompt", "tool_calls"]),
    ("timers", &["ids"]),
    ("input", &["ids", "record"]),
    ("event", &["fault", "ids", "input", "record"]),
    ("cx", &["event", "ids", "input", "profile", "record", "timers"]),
    ("budget", &["cx", "event", "ids", "profile", "record"]),
    ("retention", &["ids", "profile"]),
    ("tally", &[]),
    ("mcp", &["cx", "event", "fault", "ids", "own", "params", "profile", "record", "timers"]),
    ("views", &["ids", "input", "record"]),
    ("watch", &["ids"]),
    ("requests", &["ids", "record"]),
    (
        "process",
        &[
            "cx", "event", "fault", "ids", "input", "offer", "own", "profile", "record",
            "requests", "timers",
        ],
    ),
    (
        "questions",
        &[
            "cx",
            "event",
            "fault",
            "gist",
            "ids",
            "input",
            "params",
            "record",
            "tool_calls",
            "views",
        ],
    ),
    ("services", &["cx", "event", "ids", "input", "params", "record", "timers", "views"]),
    (
        "clients",
        &["cx", "event", "fault", "hash", "ids", "input", "params", "record", "timers", "views"],
    ),
    (
        "session",
        &[
            "cx",
            "fault",
            "gist",
            "hash",
            "ids",
            "input",
            "params",
            "profile",
            "prompt",
            "record",
            "tool_calls",
            "views",
        ],
    ),
];
/// Crates in the tree of `acpd` and `acpctl` together, build scripts and macros included. A
/// third of them are those of the full screens (ratatui, crossterm, and for `@` the files that `.gitignore` leaves); no
/// other command runs any of their code.
const MOST_CRATES: usize = 196;
/// Those that the program `acpctl-mcp` adds: the official MCP library, ripgrep's search, and what these use.
const MCP_CRATES: usize = 38;
/// Those that the program `acpctl-web` adds to all of these: a web server, WebSockets, TLS, and for Web Push the
/// certificates that the system trusts and the client half of HTTP.
const WEB_CRATES: usize = 45;
/// Lines of a source file.
const MOST_LINES: usize = 800;

#[test]
fn our_crates_depend_only_on_those_below_them() {
    let graph = Graph::read();
    let all: BTreeSet<String> = our_crates().map(str::to_owned).collect();
    assert_eq!(graph.members, all, "a crate is missing in this test");
    for (at, (name, may)) in CRATES.iter().enumerate() {
        for used in graph.needs[*name].intersection(&all) {
            let is_below = our_crates().take(at).any(|below| below == used);
            assert!(is_below, "{name} depends on {used}, which is above it");
            assert!(may.split(' ').any(|one| one == used), "{name} depends on {used}");
        }
    }
}

#[test]
fn modules_do_not_import_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for name in our_crates().filter(|name| !WITH_CIRCLES.contains(name)) {
        let modules = Modules::of(name);
        let mut imports = modules.imports();
        assert!(!imports.is_empty(), "this test does not find what modules of {name} import");
        // A module that imports none of the remaining ones is in no cycle; nor is one that none of
        // them imports.
        loop {
            let all = imports.len();
            let users: BTreeSet<String> = imports.iter().map(|(user, _)| user.clone()).collect();
            let used: BTreeSet<String> = imports.iter().map(|(_, used)| used.clone()).collect();
            imports.retain(|(from, to)| used.contains(from) && users.contains(to));
            if imports.len() == all {
                break;
            }
        }
        circles.extend(imports.iter().map(|(user, used)| format!("{name}: {user} -> {used}")));
    }
    assert!(circles.is_empty(), "modules import each other in a circle: {circles:#?}");
}

#[test]
fn no_command_imports_another() {
    let mut between = Modules::of("acpctl").imports();
    between.retain(|(user, _)| user.starts_with("command::") && user.matches("::").count() == 1);
    assert!(between.is_empty(), "what commands share is beside them: {between:?}");
}

#[test]
fn the_rooms_of_the_core_import_only_what_is_below_them() {
    let modules = Modules::with_tests("acpd-core");
    let imports = modules.imports();
    let paths = modules.files.keys();
    let mut names: BTreeSet<&str> = paths.filter_map(|path| Some(path.first()?.as_str())).collect();
    for (at, (name, may)) in CORE.iter().enumerate() {
        let below: Vec<&str> = CORE[..at].iter().map(|(name, _)| *name).collect();
        assert!(
            may.iter().all(|other| below.contains(other)),
            "{name} may import what is above it"
        );
        assert!(names.remove(name), "there is no module {name}");
        for (_, import) in imports.iter().filter(|(user, _)| user == name) {
            assert!(may.contains(&import.as_str()), "{name} imports {import}");
        }
    }
    assert_eq!(names, ["hub"].into(), "a module of acpd-core is missing in this test");
}

/// Elsewhere a difference between versions is a property with a name.
#[test]
fn only_views_compare_versions_of_the_protocol() {
    let src = workspace::root().join("crates/acpd-core/src");
    let names_one = |file: &PathBuf| fs::read_to_string(file).unwrap().contains("Version::V");
    let files = source_files(&src).into_iter().filter(names_one);
    let places: BTreeSet<_> =
        files.map(|file| file.strip_prefix(&src).unwrap().parent().unwrap().to_owned()).collect();
    assert_eq!(places, [PathBuf::from("views")].into());
}

#[test]
fn what_decides_knows_neither_tokio_nor_sqlite() {
    for name in ["acp-wire", "acpd-api", "acpd-policy", "acpd-view", "acpd-core"] {
        assert_without(name, &["tokio", "rusqlite", "interprocess", "nix", "tracing"]);
    }
}

#[test]
fn the_command_line_starts_fast_without_a_runtime_and_a_database() {
    const SLOW: [&str; 4] = ["tokio", "rusqlite", "tracing", "toml"];
    assert_without("acpd-client", &SLOW);
    // `acpctl mcp` and `acpctl web` are programs of their own: nothing else uses what is linked into them.
    let without = tree_with(&["acpctl"], &["--no-default-features", "--features", "tui"]);
    assert_eq!(SLOW.map(|name| without.contains(name)), [false; 4]);
    for (library, program) in [("acpd_mcp", "acpctl-mcp.rs"), ("acpd_web", "acpctl-web.rs")] {
        let mut files = source_files(&workspace::root().join("crates/acpctl/src"));
        files.retain(|file| fs::read_to_string(file).unwrap().contains(library));
        assert_eq!(files, [workspace::root().join("crates/acpctl/src/bin").join(program)]);
    }
}

#[test]
fn the_tree_of_dependencies_stays_small() {
    let programs = ["acpd", "acpctl"];
    let crates = tree_with(&programs, &["--no-default-features", "--features", "acpctl/tui"]);
    let count = crates.len();
    assert!(count <= MOST_CRATES, "{count} crates, {MOST_CRATES} are allowed: {crates:?}");
    let features = "acpctl/tui,acpctl/mcp";
    let with_mcp = tree_with(&programs, &["--no-default-features", "--features", features]);
    let more: Vec<&String> = with_mcp.difference(&crates).collect();
    let count = more.len();
    assert!(count <= MCP_CRATES, "{count} more, {MCP_CRATES} are allowed: {more:?}");
    let all = tree(&programs);
    let more: Vec<&String> = all.difference(&with_mcp).collect();
    let count = more.len();
    assert!(count <= WEB_CRATES, "{count} more, {WEB_CRATES} are allowed: {more:?}");
}

#[test]
fn unsafe_code_is_forbidden_everywhere_but_in_the_system_layer() {
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    let root = workspace::root();
    assert!(read(root.join("Cargo.toml")).contains("unsafe_code = \"forbid\""));
    for name in our_crates() {
        let manifest = read(root.join("crates").join(name).join("Cargo.toml"));
        let inherits = manifest.contains("[lints]\nworkspace = true");
        assert_eq!(inherits, name != "acpd-sys", "{name}: lints of the workspace");
    }
}

#[test]
fn nothing_but_an_agent_on_a_port_is_reached_over_a_network() {
    // `acpctl web` is a program of its own, which a person starts for that.
    let features = "acpctl/tui,acpctl/mcp";
    let crates = tree_with(&["acpd", "acpctl"], &["--no-default-features", "--features", features]);
    for stranger in ["hyper", "reqwest", "ureq", "curl-sys", "rustls", "openssl-sys", "native-tls"]
    {
        assert!(!crates.contains(stranger), "`{stranger}` is for networks");
    }
    let mut files = Vec::new();
    for name in our_crates().filter(|name| !["acpd-test", "xtask"].contains(name)) {
        files.extend(source_files(&workspace::root().join("crates").join(name).join("src")));
    }
    let names = ["TcpStream", "TcpListener", "TcpSocket", "UdpSocket", "ToSocketAddrs"];
    let uses_one = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        names.iter().any(|name| text.contains(name))
    };
    files.retain(uses_one);
    let ends: Vec<_> =
        files.iter().map(|file| file.strip_prefix(workspace::root()).unwrap()).collect();
    let allowed = [
        "crates/acpd-shim/src/agent.rs",
        "crates/acpd/src/host/launcher.rs",
        "crates/acpd-web/src/serve.rs",
        "crates/acpd-web/src/push/post.rs",
    ];
    assert_eq!(ends, allowed.map(Path::new));
}

#[test]
fn no_source_file_is_too_long() {
    let files = source_files(&workspace::root().join("crates"));
    assert!(files.len() > 50, "the sources are not where this test looks");
    for file in files {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= MOST_LINES, "{} has {lines} lines", file.display());
    }
}

fn our_crates() -> impl Iterator<Item = &'static str> {
    CRATES.iter().map(|(name, _)| *name)
}

fn source_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

/// The source files of a crate by the paths of their modules, without comments.
struct Modules {
    files: BTreeMap<Vec<String>, String>,
}

impl Modules {
    /// Without the tests in the modules.
    fn of(name: &str) -> Modules {
        let mut modules = Modules::with_tests(name);
        modules.files.retain(|path, _| path.last().is_none_or(|last| last != "tests"));
        for code in modules.files.values_mut() {
            *code = code.split("#[cfg(test)]\nmod ").next().unwrap().to_owned();
        }
        modules
    }

    fn with_tests(name: &str) -> Modules {
        let src = workspace::root().join("crates").join(name).join("src");
        let mut files = BTreeMap::new();
        for path in source_files(&src) {
            let inside = path.strip_prefix(&src).unwrap().with_extension("");
            let mut module: Vec<String> =
                inside.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
            match module.last().unwrap().as_str() {
                "lib" | "main" | "mod" => drop(module.pop()),
                _ => {}
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.lines().map(|line| line.split("//").next().unwrap());
            let code: String = code.flat_map(|line| [line, "\n"]).collect();
            // A crate that is a library and a program has two roots.
            files.entry(module).or_insert_with(String::new).push_str(&code);
        }
        Modules { files }
    }

    /// Which module uses which, between modules with the same parent; what is inside of a module counts as
    /// the module itself.
    fn imports(&self) -> BTreeSet<(String, String)> {
        let mut imports = BTreeSet::new();
        for (user, code) in &self.files {
            for used in self.used_in(user, code) {
                let shared = user.iter().zip(&used).take_while(|(a, b)| a == b).count();
                if shared < user.len() && shared < used.len() {
                    imports.insert((user[..=shared].join("::"), used[..=shared].join("::")));
                }
            }
        }
        imports
    }

    /// The modules that paths from `crate::` and `super::` lead to in this code.
    fn used_in(&self, user: &[String], code: &str) -> Vec<Vec<String>> {
        let mut used = Vec::new();
        for (at, start) in code.match_indices("crate::").chain(code.match_indices("super::")) {
            // `super::super::` is read from its beginning, and `$crate` is of a macro.
            if code[..at].ends_with([':', '$']) {
                continue;
            }
            let mut rest = &code[at..];
            let mut base = user.to_vec();
            while let Some(after) = rest.strip_prefix("super::") {
                base.pop();
                rest = after;
            }
            if start == "crate::" {
                base.clear();
                rest = &rest[start.len()..];
            }
            used.extend(paths(rest).iter().map(|path| self.resolve(&base, path)));
        }
        used
    }

    /// The module that a path from `base` leads to, also by way of a `use` of a parent.
    fn resolve(&self, base: &[String], path: &[String]) -> Vec<String> {
        let mut module = base.to_vec();
        for name in path {
            let child = [&module[..], std::slice::from_ref(name)].concat();
            if self.files.contains_key(&child) {
                module = child;
            } else {
                return self.reexported(&module, name).unwrap_or(module);
            }
        }
        module
    }

    /// The child from which a module has this name by a `use`, or by one of all that is public.
    fn reexported(&self, module: &[String], name: &str) -> Option<Vec<String>> {
        let code = self.files.get(module)?;
        let child = |first: &str| [module, &[first.to_owned()]].concat();
        let uses = code.split("use ").skip(1);
        let named = uses
            .clone()
            .flat_map(paths)
            .filter(|path| path.last().is_some_and(|last| last == name));
        let of_all = uses.filter_map(|rest| Some(rest.split_once("::*;")?.0));
        let is_declared =
            |first: &&str| self.files.get(&child(first)).is_some_and(|code| declares(code, name));
        let found = named.map(|path| child(&path[0])).find(|child| self.files.contains_key(child));
        found.or_else(|| of_all.filter(is_declared).map(child).next())
    }
}

/// Returns whether code has a public item of this name.
fn declares(code: &str, name: &str) -> bool {
    let words: Vec<&str> = code.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    words.windows(3).any(|words| words[0] == "pub" && words[2] == name)
}

/// The paths of a tree such as `a::{b, c::d}` at the beginning of a text.
fn paths(text: &str) -> Vec<Vec<String>> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let mut found = match rest.strip_prefix("::") {
        Some(rest) if rest.starts_with('{') => branches(rest),
        Some(rest) => paths(rest),
        None if name.is_empty() && rest.starts_with('{') => branches(rest),
        None => vec![Vec::new()],
    };
    if !name.is_empty() {
        for path in &mut found {
            path.insert(0, name.to_owned());
        }
    }
    found
}

/// The paths of the trees between the braces that a text begins with.
fn branches(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let (mut depth, mut start) = (0, 1);
    for (at, char) in text.char_indices() {
        match char {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (depth, char) == (1, ',') || depth == 0 {
            found.extend(paths(text[start..at].trim()));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// Returns the output of `cargo metadata` about this platform's dependencies, without those of
/// tests.
struct Graph {
    members: BTreeSet<String>,
    needs: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn read() -> Graph {
        // Offline: everything was downloaded for the build of this very test.
        let platform =
            ["--filter-platform", &workspace::host().unwrap(), "--offline", "--all-features"];
        let metadata = workspace::metadata(&platform).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let names: BTreeMap<String, String> =
            packages.iter().map(|p| (text(&p["id"]), text(&p["name"]))).collect();
        let members = metadata["workspace_members"].as_array().unwrap();
        let members = members.iter().map(|id| names[id.as_str().unwrap()].clone()).collect();
        let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in metadata["resolve"]["nodes"].as_array().unwrap() {
            let needed = needs.entry(names[node["id"].as_str().unwrap()].clone()).or_default();
            for used in node["deps"].as_array().unwrap() {
                let kinds = used["dep_kinds"].as_array().unwrap();
                if kinds.iter().any(|kind| kind["kind"] != "dev") {
                    needed.insert(names[used["pkg"].as_str().unwrap()].clone());
                }
            }
        }
        Graph { members, needs }
    }
}

/// These crates and everything below them, as cargo would build just them: in the whole workspace a
/// feature that one crate wants is there for all.
fn tree(names: &[&str]) -> BTreeSet<String> {
    tree_with(names, &[])
}

/// Like [`tree`], with these arguments for cargo.
fn tree_with(names: &[&str], more: &[&str]) -> BTreeSet<String> {
    let lines = workspace::tree(names, "{p}", &[&["--offline"], more].concat()).unwrap();
    lines.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn assert_without(name: &str, unwanted: &[&str]) {
    let tree = tree(&[name]);
    for unwanted in unwanted {
        assert!(!tree.contains(*unwanted), "{name} depends on {unwanted}");
    }
}
