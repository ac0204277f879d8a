use std::fs::File;

use acpd_client::attachment;
use serde_json::Value;
use tempfile::TempDir;

use super::*;

/// The machine `box`, where `src` of the folder is `/code`, and `common` is the same.
fn far(folder: &Path, dir: &str) -> FarRewriter {
    let map = [("src", "/code"), ("src/api", "/srv/api")];
    let map = map.map(|(here, there)| (folder.join(here), there.to_owned())).into();
    let shared = vec![folder.join("common")];
    let machine = OtherMachine { map, shared, ..OtherMachine::for_tests() };
    FarRewriter::new(machine, &folder.join(dir))
}

/// A folder with a mapped, a shared and another directory.
fn folder() -> (TempDir, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let folder = dunce::canonicalize(temporary.path()).unwrap();
    for dir in ["src/api", "common/lib", "other"] {
        fs::create_dir_all(folder.join(dir)).unwrap();
    }
    (temporary, folder)
}

fn up(far: &FarRewriter, line: &str) -> String {
    let line = far.rewrite_for_daemon(Bytes::copy_from_slice(line.as_bytes()));
    String::from_utf8(line.to_vec()).unwrap()
}

fn down(far: &FarRewriter, line: &str) -> Result<String, String> {
    let text = |line: Bytes| String::from_utf8(line.to_vec()).unwrap();
    far.rewrite_for_editor(Bytes::copy_from_slice(line.as_bytes())).map(text).map_err(text)
}

fn printed(far: &FarRewriter) -> Vec<String> {
    let mut printed: Vec<_> = far.state().printed.iter().cloned().collect();
    printed.sort();
    printed
}

#[test]
fn other_lines_keep_every_byte() {
    let (_temporary, folder) = folder();
    let far = far(&folder, "other");
    assert_eq!(up(&far, "junk"), "junk");
    for line in [
        r#"{"id" : 1,"method":"session/set_mode","params":{"cwd":"/src"}}"#,
        r#"{"id":1,"method":"session/prompt","params":{"prompt":[ {"type":"text","text":"\u0061"} ]}}"#,
        r#"{"id":2,"method":"session/new","params":{"cwd":"/x\/y","mcpServers":[ ]}}"#,
        r#"{"method":"session/update","params":{"cwd":"/code"}}"#,
    ] {
        assert_eq!(up(&far, line), line);
        assert_eq!(down(&far, line).unwrap(), line);
    }
    assert!(printed(&far).is_empty());
}

#[test]
fn capabilities_about_this_machine_are_left_out() {
    let (_temporary, folder) = folder();
    let lines = [
        (
            r#"{"id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true},"terminal":true,"plan":{},"auth":{"terminal":false}}}}"#,
            r#"{"id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"plan":{},"auth":{}}}}"#,
            "files, terminals",
        ),
        (
            r#"{"id":0,"method":"initialize","params":{"protocolVersion":2,"info":{},"capabilities":{"auth":{"terminal":{}},"elicitation":{}}}}"#,
            r#"{"id":0,"method":"initialize","params":{"protocolVersion":2,"info":{},"capabilities":{"auth":{},"elicitation":{}}}}"#,
            "logins in a terminal",
        ),
    ];
    for (line, without, what) in lines {
        let other = far(&folder, "other");
        assert_eq!(up(&other, line), without);
        up(&other, line);
        let notice = format!(
            "the agent on `box` cannot use {what} of this machine: \
             `shared` in `[hosts.box]` names common directories"
        );
        assert_eq!(printed(&other), [notice]);
        assert_eq!(up(&far(&folder, "common/lib"), line), line);
    }
}

#[test]
fn servers_of_this_machine_are_left_out() {
    let (_temporary, folder) = folder();
    let far = far(&folder, "other");
    let new = |cwd: &str, servers: &str| {
        let cwd = folder.join(cwd).display().to_string();
        let params = format!(r#"{{"cwd":"{cwd}","mcpServers":[{servers}]}}"#);
        format!(r#"{{"id":1,"method":"session/load","params":{params}}}"#)
    };
    let program = r#"{"name":"a","command":"a","args":[],"env":[]}"#;
    let typed = r#"{"type":"stdio","name":"b","command":"b"}"#;
    let web = r#"{"type":"http","name":"c","url":"https://localhost.example:1/"}"#;
    let local = r#"{"type":"sse","name":"d","url":"http://u@[::1]:80/x"}"#;
    let lent = r#"{"type":"acp","name":"e","serverId":"1"}"#;
    let all = [program, typed, web, local, lent].join(",");
    assert_eq!(up(&far, &new("other", &all)), new("other", &[web, lent].join(",")));
    assert!(printed(&far)[0].contains("cannot use MCP servers `a`, `b`, `d` of this machine"));
    let shared = [program, typed, web, lent].join(",");
    assert_eq!(up(&far, &new("common", &all)), new("common", &shared));
    for url in [
        "http://[::ffff:127.0.0.1]",
        "http://LOCALHOST",
        "ws://127.0.0.2:1",
        "http://a.localhost./",
        "http://0.0.0.0?a",
    ] {
        assert!(is_local(url), "{url}");
    }
}

#[test]
fn directories_are_mapped_there_and_back() {
    let (_temporary, folder) = folder();
    let far = far(&folder, "other");
    std::os::unix::fs::symlink(folder.join("src"), folder.join("link")).unwrap();
    let place = |dir: &str| folder.join(dir).display().to_string();
    let line = |cwd: &str, more: &str| {
        format!(
            r#"{{"id":7,"method":"session/list","params":{{"cwd":"{cwd}","additionalDirectories":["{more}","/y"]}}}}"#
        )
    };
    for (cwd, there) in [("src/api/v1", "/srv/api/v1"), ("src", "/code"), ("link/api", "/srv/api")]
    {
        assert_eq!(up(&far, &line(&place(cwd), &place("src/web"))), line(there, "/code/web"));
    }
    let other = line(&place("other"), "/srv/api");
    assert_eq!(up(&far, &other), other);

    let answer = |cwds: [&str; 4]| {
        let sessions = cwds.map(|cwd| format!(r#"{{"sessionId":"s","cwd":"{cwd}"}}"#)).join(",");
        format!(r#"{{"id":7,"result":{{"sessions":[{sessions}]}}}}"#)
    };
    let found = answer(["/code/web", "/srv/api/v1", "/codes", "/code/api"]);
    let [web, api] = [place("src/web"), place("src/api/v1")];
    assert_eq!(down(&far, &found).unwrap(), answer([&web, &api, "/codes", "/code/api"]));
    assert_eq!(down(&far, &found).unwrap(), found, "it is not the answer to a list");
}

#[test]
fn a_missing_directory_is_named_with_its_host() {
    let (_temporary, folder) = folder();
    let missing = r#"{"id":1,"error":{"code":-32603,"message":"the directory `/x` does not exist","data":{"_acpd":{"reason":"cwd_missing","hint":"make it"}}}}"#;
    let said: Value =
        serde_json::from_str(&down(&far(&folder, "other"), missing).unwrap()).unwrap();
    let hint = "make it there, or set where it is: `map` in `[hosts.box]`";
    let message = format!("the directory `/x` does not exist on `box`: {hint}");
    assert_eq!(said["error"]["message"], message);
    assert_eq!(said["error"]["data"]["_acpd"]["hint"], hint);
}

#[test]
fn requests_of_the_agent_stay_in_shared_directories() {
    let (_temporary, folder) = folder();
    let mut far = far(&folder, "common");
    far.machine.map.insert(folder.join("common"), "/mnt/common".to_owned());
    std::os::unix::fs::symlink("/etc", folder.join("common/etc")).unwrap();
    let read = |path: &str| {
        format!(r#"{{"id":"1-2","method":"fs/write_text_file","params":{{"path":"{path}"}}}}"#)
    };
    let near = folder.join("common/lib/new.rs").display().to_string();
    assert_eq!(down(&far, &read("/mnt/common/lib/new.rs")).unwrap(), read(&near));
    for outside in ["/etc/hosts", "/mnt/common/etc/hosts", "/mnt/common/../x", "/code/a"] {
        let refusal = down(&far, &read(outside)).unwrap_err();
        assert!(refusal.contains(r#""id":"1-2","error":"#), "{refusal}");
    }
    // A file that is missing, behind a link out of the directory.
    std::os::unix::fs::symlink(folder.join("other/new"), folder.join("common/new")).unwrap();
    down(&far, &read("/mnt/common/new")).unwrap_err();
    let path = |path: &str| format!(r#""path":"{path}""#);
    let twice = [path("/mnt/common/lib/new.rs"), path("/etc/hosts")].join(",");
    let twice = read("").replace(&path(""), &twice);
    assert_eq!(down(&far, &twice).unwrap(), read(&near));
    down(&far, &read(&near).replacen('{', r#"{"method":"x","#, 1)).unwrap_err();
}

#[test]
fn nothing_is_served_in_a_directory_that_is_not_shared() {
    let (_temporary, folder) = folder();
    let far = far(&folder, "other");
    let path = folder.join("common/lib").display().to_string();
    for (method, params) in [
        ("terminal/create", json!({"command": "sh"})),
        ("fs/read_text_file", json!({"path": path})),
    ] {
        let line = json!({"id": 1, "method": method, "params": params}).to_string();
        assert!(down(&far, &line).unwrap_err().contains("is not shared"), "{method}");
    }
}

/// Sends the answer to `initialize` and a prompt with one link, and returns its block.
fn linked(far: &FarRewriter, result: &str, uri: &str) -> Value {
    up(far, r#"{"id":0,"method":"initialize","params":{"protocolVersion":1}}"#);
    down(far, &format!(r#"{{"id":0,"result":{result}}}"#)).unwrap();
    let link =
        json!({"type": "resource_link", "uri": uri, "name": "n", "annotations": {"priority": 1}});
    let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "x"}, link]});
    let line = up(far, &json!({"id": 2, "method": "session/prompt", "params": params}).to_string());
    let line: Value = serde_json::from_str(&line).unwrap();
    line["params"]["prompt"][1].clone()
}

const V1: &str = r#"{"agentCapabilities":{"promptCapabilities":{"embeddedContext":true}}}"#;
const V2: &str = r#"{"capabilities":{"session":{"prompt":{"embeddedContext":{}}}}}"#;

#[test]
fn links_to_files_become_the_files() {
    let (_temporary, folder) = folder();
    let far = far(&folder, "other");
    let host = uri_part(&acpd_sys::machine::host_name().unwrap());
    let path = folder.join("other/a b#ü.rs");
    fs::write(&path, "fn main() {}\n").unwrap();
    let uri = file_uri(path.to_str().unwrap());
    for version in [V1, V2] {
        let block = linked(&far, version, &format!("{uri}#L1:2"));
        let near = format!("{}#L1:2", uri.replace("file://", &format!("acpd-near://{host}")));
        let resource = json!({"uri": near, "mimeType": "text/x-rust", "text": "fn main() {}\n"});
        let annotations = json!({"priority": 1});
        let embedded =
            json!({"type": "resource", "resource": resource, "annotations": annotations});
        assert_eq!(block, embedded);
    }
    for bytes in [&b"\xffa"[..], b"a\0"] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(linked(&far, V1, &uri)["resource"]["blob"].as_str().unwrap().len(), 4);
    }
    assert!(printed(&far).is_empty());
}

#[test]
fn other_links_stay_links() {
    let (_temporary, folder) = folder();
    let far = far(&folder, "other");
    let place = |path: &str| file_uri(folder.join(path).to_str().unwrap());
    let uri = |version, uri: &str| linked(&far, version, uri)["uri"].as_str().map(str::to_owned);
    std::os::unix::fs::symlink(folder.join("src"), folder.join("link")).unwrap();
    fs::write(folder.join("src/a b.rs"), "").unwrap();
    for mapped in ["src/a b.rs", "link/a b.rs"] {
        let there = uri(V1, &format!("{}#L1", place(mapped)));
        assert_eq!(there.unwrap(), "file:///code/a%20b.rs#L1");
    }
    for same in [&place("common/a"), &place("other"), &place("other/none"), "https://a/b"] {
        assert_eq!(uri(V1, same).as_deref(), Some(same));
    }
    assert!(printed(&far).is_empty());

    let big = File::create(folder.join("other/big")).unwrap();
    big.set_len(attachment::LIMIT + 1).unwrap();
    assert_eq!(uri(V2, &place("other/big")), Some(place("other/big")));
    big.set_len(1).unwrap();
    assert_eq!(uri("{}", &place("other/big")), Some(place("other/big")));
    let path = folder.join("other/big").display().to_string();
    let gets = "the agent on `box` gets only a link to a file:";
    let notices = [
        format!("{gets} `{path}` is bigger than 10 MiB"),
        format!("{gets} the agent takes no files: `{path}`"),
    ];
    assert_eq!(printed(&far), notices);
}
