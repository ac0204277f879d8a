use std::path::MAIN_SEPARATOR;

use super::*;

fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, content).unwrap();
    (dir, path)
}

fn lines(path: &Path, lines: &str) -> PathBuf {
    PathBuf::from(format!("{}:{lines}", path.display()))
}

#[test]
fn a_text_is_embedded_where_the_agent_takes_it_and_linked_and_said_elsewhere() {
    let (_dir, path) = file("häß lich.ts", b"let x = 1;\n");
    let attachment = Attachment::file(&path).unwrap();
    let embedded = attachment.blocks(true);
    assert_eq!(embedded.len(), 1);
    assert_eq!(embedded[0]["resource"]["text"], "let x = 1;\n");
    assert_eq!(embedded[0]["resource"]["mimeType"], "text/plain");
    let uri = embedded[0]["resource"]["uri"].as_str().unwrap();
    assert!(uri.starts_with("file:///") && uri.ends_with("/h%C3%A4%C3%9F%20lich.ts"), "{uri}");

    let blocks = attachment.blocks(false);
    assert_eq!(blocks.len(), 2);
    assert_eq!(blocks[0]["type"], "resource_link");
    assert_eq!((&blocks[0]["name"], &blocks[0]["size"]), (&json!("häß lich.ts"), &json!(11)));
    assert_eq!(blocks[1]["text"], format!("{uri}\n\n```\nlet x = 1;\n```\n"));
}

#[test]
fn lines_are_those_lines_and_a_name_that_looks_like_lines_is_a_name() {
    let (_dir, path) = file("a.txt", b"one\ntwo\nthree");
    let of = |argument: &Path| {
        let block = Attachment::file(argument).unwrap().blocks(true).remove(0);
        let uri = block["resource"]["uri"].as_str().unwrap();
        let place = uri.rsplit('/').next().unwrap().to_owned();
        (place, block["resource"]["text"].as_str().unwrap().to_owned())
    };
    let is = |place: &str, text: &str| (place.to_owned(), text.to_owned());
    assert_eq!(of(&lines(&path, "2")), is("a.txt#L2:2", "two\n"));
    assert_eq!(of(&lines(&path, "2-3")), is("a.txt#L2:3", "two\nthree"));
    assert_eq!(of(&lines(&path, "2-99")), is("a.txt#L2:3", "two\nthree"));
    fs::write(lines(&path, "2"), "whole").unwrap();
    assert_eq!(of(&lines(&path, "2")), is("a.txt%3A2", "whole"));
}

#[test]
fn what_cannot_be_added_is_named_with_the_reason() {
    let (dir, path) = file("a.txt", b"one\n");
    let fails = |argument: &Path| {
        let error = Attachment::file(argument).unwrap_err();
        let text = error.to_string().replace(dir.path().to_str().unwrap(), "[DIR]");
        (text.replace(MAIN_SEPARATOR, "/"), error.code)
    };
    let usage = |text: &str| (text.to_owned(), ExitCode::Usage);
    assert_eq!(fails(&lines(&path, "2")), usage("`[DIR]/a.txt` has no line 2: it has 1"));
    for wrong in ["0", "0-1", "3-2", "-3", "3-", "1-2-3", "99999999999999999999999"] {
        let said = format!("`{wrong}` does not name lines of `[DIR]/a.txt`");
        assert_eq!(fails(&lines(&path, wrong)), usage(&said));
    }
    assert_eq!(fails(dir.path()), usage("`[DIR]` is not a file"));
    for content in [&b"\xff\xfe"[..], b"a\0b"] {
        fs::write(&path, content).unwrap();
        assert_eq!(fails(&path), usage("`[DIR]/a.txt` is not text in UTF-8"));
    }
    File::create(&path).unwrap().set_len(LIMIT + 1).unwrap();
    assert_eq!(fails(&path), usage("`[DIR]/a.txt` is bigger than 10 MiB"));
    fs::remove_file(&path).unwrap();
    assert_eq!(fails(&path).1, ExitCode::NotFound);
    assert_eq!(fails(&lines(&path, "2")).1, ExitCode::NotFound);
}

#[test]
fn images_are_sent_whole_and_must_look_like_images() {
    let (_dir, path) = file("dot", b"\x89PNG");
    let blocks = Attachment::image(&path).unwrap().blocks(false);
    assert_eq!(
        (blocks[0]["mimeType"].as_str(), blocks[0]["data"].as_str()),
        (Some("image/png"), Some("iVBORw=="))
    );

    let (_dir, path) = file("wrong.png", b"\xff\xd8\xff\xe0");
    let blocks = Attachment::image(&path).unwrap().blocks(false);
    assert_eq!(blocks[0]["mimeType"], "image/jpeg", "its name says something else");
    for content in [&b""[..], b"hello\n", b"\0\0\0\x18ftypheic", b"BM\0\0", b"<svg/>"] {
        let (_dir, path) = file("a.png", content);
        assert_eq!(Attachment::image(&path).unwrap_err().code, ExitCode::Usage);
    }
}

#[test]
fn files_that_are_no_text_are_embedded_and_sounds_are_audio() {
    let (_dir, path) = file("paper.pdf", b"%PDF\xff\0");
    let block = Attachment::file(&path).unwrap().blocks(true).remove(0);
    assert_eq!(block["resource"]["mimeType"], "application/pdf");
    assert_eq!(block["resource"]["blob"], "JVBERv8A");
    assert!(block["resource"]["uri"].as_str().unwrap().ends_with("/paper.pdf"), "{block}");
    let (_dir, path) = file("said.mp3", b"ID3");
    let block = Attachment::audio(&path).unwrap().blocks(false).remove(0);
    assert_eq!(block, json!({"type": "audio", "mimeType": "audio/mpeg", "data": "SUQz"}));
    for (name, content) in [("said.txt", &b"x"[..]), ("said.mp3", b"")] {
        let (_dir, path) = file(name, content);
        assert_eq!(Attachment::audio(&path).unwrap_err().code, ExitCode::Usage);
    }
}

#[test]
fn what_is_piped_has_no_file_to_link() {
    assert_eq!(Attachment::piped(" \n".to_owned()), None);
    let attachment = Attachment::piped("a ```` b\n".to_owned()).unwrap();
    assert_eq!(attachment.blocks(true)[0]["resource"]["text"], "a ```` b\n");
    let said = "untitled:stdin\n\n`````\na ```` b\n`````\n";
    assert_eq!(attachment.blocks(false), [json!({"type": "text", "text": said})]);
}

fn everything() -> AgentCapabilities {
    AgentCapabilities {
        image: true,
        audio: true,
        embedded_context: true,
        ..AgentCapabilities::default()
    }
}

#[test]
fn mentioned_files_go_as_the_agent_takes_them() {
    let all = everything();
    let of = |name: &str, content: &[u8], can| {
        let (_dir, path) = file(name, content);
        let block = mentioned(&path, name, can).unwrap();
        let kind = block["type"].as_str().unwrap();
        let mime = [&block["mimeType"], &block["resource"]["mimeType"]];
        let mime = mime.iter().find_map(|mime| mime.as_str()).unwrap_or_default();
        if kind == "resource_link" {
            let uri = block["uri"].as_str().unwrap();
            assert!(block["name"] == name && uri.starts_with("file:///"), "{block}");
            assert!(uri.ends_with(name), "{block}");
        }
        format!("{kind} {mime}").trim_end().to_owned()
    };
    let files = [
        ("dot", &b"\x89PNG"[..], "image image/png"),
        ("said.mp3", b"ID3\xff", "audio audio/mpeg"),
        ("paper.pdf", b"%PDF\xff\0", "resource application/pdf"),
        ("photo.heic", b"\0\0\0\x18ftypheic", "resource image/heic"),
    ];
    for (name, content, block) in files {
        assert_eq!(of(name, content, all), block);
        assert_eq!(of(name, content, AgentCapabilities::default()), "resource_link", "{name}");
    }
    let long = "x".repeat(HEAD as usize - 1) + "\u{e4}";
    let linked = [
        ("a.ts", &b"let x = 1;\n"[..]),
        ("list.m3u", b"a.mp3\n"),
        ("odd.txt", b"\xff\xfea\0"),
        ("unknown", b"\x7fELF\0"),
        ("new.rs", b""),
        ("long.txt", long.as_bytes()),
    ];
    for (name, content) in linked {
        assert_eq!(of(name, content, all), "resource_link", "{name}");
    }
}

#[test]
fn mentioned_files_that_cannot_be_sent_are_errors() {
    let all = everything();
    let fails = |path: &Path| mentioned(path, "name", all).unwrap_err().to_string();
    for name in ["empty.png", "empty.mp3"] {
        let (_dir, path) = file(name, b"");
        assert_eq!(fails(&path), format!("`{}` is empty", path.display()));
    }
    let (dir, path) = file("big.zip", b"PK\x03\x04\xff");
    File::options().write(true).open(&path).unwrap().set_len(LIMIT + 1).unwrap();
    assert_eq!(fails(&path), format!("`{}` is bigger than 10 MiB", path.display()));
    assert!(
        mentioned(&path, "big.zip", AgentCapabilities::default()).is_ok(),
        "a link has no limit"
    );
    let (_dir, path) = file("wrong.png", b"BM\0\0");
    assert!(fails(&path).contains("none of the images"));
    assert!(fails(dir.path()).ends_with("is not a file"));
    assert!(fails(&dir.path().join("missing")).starts_with("cannot read"));
}
