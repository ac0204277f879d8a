//! Packs the files of the page into the program, plain and compressed.
//!
//! Code is sent without comments, which are almost half of it. Its addresses have a version, the
//! hash of all code: a running page never gets a file of another version.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

fn main() {
    let from = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let (page, out) = (from("CARGO_MANIFEST_DIR").join("page"), from("OUT_DIR"));
    println!("cargo::rerun-if-changed={}", page.display());
    let mut files = Vec::new();
    find(&page, &mut files);
    files.sort();
    let mut files: Vec<(String, Vec<u8>)> = files.iter().map(|file| read(&page, file)).collect();
    let version = version(&files);
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    for (name, bytes) in &mut files {
        let text = match name.as_str() {
            "index.html" => of_version(bytes, &version),
            "sw.js" => {
                of_version(bytes, &version).replacen("= [];", &format!("= {};", kept(&names)), 1)
            }
            _ => continue,
        };
        *bytes = text.into_bytes();
    }
    let mut list = String::from("&[\n");
    for (number, (name, bytes)) in files.into_iter().enumerate() {
        let (sent, packed) = (out.join(format!("{number}.sent")), out.join(format!("{number}.gz")));
        fs::write(&packed, pack(&bytes)).expect("OUT_DIR");
        fs::write(&sent, bytes).expect("OUT_DIR");
        let text = |path: &Path| path.to_str().expect("a plain name").to_owned();
        let (sent, packed) = (text(&sent), text(&packed));
        writeln!(list, "    ({name:?}, include_bytes!({sent:?}), include_bytes!({packed:?})),")
            .expect("a string takes all");
    }
    fs::write(out.join("files.rs"), list + "]\n").expect("OUT_DIR");
    fs::write(out.join("version.rs"), format!("{version:?}")).expect("OUT_DIR");
}

/// The name of a file, and the content to send.
fn read(page: &Path, file: &Path) -> (String, Vec<u8>) {
    let bytes = fs::read(file).expect("a file of the page");
    let is_ours =
        file.extension().is_some_and(|it| it == "js") && !file.starts_with(page.join("lib"));
    let name = file.strip_prefix(page).expect("it is below").to_str().expect("a plain name");
    (name.to_owned(), if is_ours { without_comments(&bytes) } else { bytes })
}

/// The version of all code, as it is in addresses.
fn version(files: &[(String, Vec<u8>)]) -> String {
    let mut hash = Sha256::new();
    for (name, bytes) in files {
        hash.update(format!("{name} {} ", bytes.len()));
        hash.update(bytes);
    }
    hash.finalize()[..6]
        .iter()
        .fold("v-".to_owned(), |version, byte| format!("{version}{byte:02x}"))
}

/// A text with the addresses of this version in it.
fn of_version(text: &[u8], version: &str) -> String {
    let text = str::from_utf8(text).expect("it is UTF-8");
    let lines = text.lines().map(|line| {
        let is_code =
            line.contains("\"modulepreload\"") || line.contains("src=") || line.contains(".css");
        let line = line.replacen("'v-0'", &format!("'{version}'"), 1);
        if is_code { line.replacen("=\"/", &format!("=\"/{version}/"), 1) } else { line }
    });
    lines.fold(String::new(), |all, line| all + &line + "\n")
}

/// A list in JavaScript of the files of a version that a browser keeps: all but the large colours
/// of code.
fn kept(names: &[String]) -> String {
    let is_kept = |name: &&String| {
        let is_code = Path::new(name).extension().is_some_and(|it| it == "js" || it == "css");
        is_code && *name != "sw.js" && !name.starts_with("lib/highlight")
    };
    format!("{:?}", names.iter().filter(is_kept).collect::<Vec<_>>())
}

/// All files of a folder and below it whose names do not begin with a dot.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the page") {
        let path = entry.expect("an entry of it").path();
        let is_hidden =
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if path.is_dir() && !is_hidden {
            find(&path, files);
        } else if !is_hidden {
            files.push(path);
        }
    }
}

/// Code of the page without comment lines, types within lines, and indentation. No string of the
/// page spans lines but for elements, where white space at the ends does not count.
fn without_comments(code: &[u8]) -> Vec<u8> {
    let code = str::from_utf8(code).expect("code is UTF-8");
    let (mut kept, mut is_comment) = (String::new(), false);
    for line in code.lines() {
        let mut line = line.to_owned();
        if is_comment || line.trim_start().starts_with("/*") || line.contains("/** @") {
            let from = if is_comment { Some(0) } else { line.find("/*") };
            match (from, line.find("*/")) {
                (Some(from), Some(to)) => {
                    line.replace_range(from..to + 2, "");
                    is_comment = false;
                }
                _ => {
                    is_comment = true;
                    continue;
                }
            }
            while let (Some(from), Some(to)) = (line.find("/** @"), line.find("*/")) {
                line.replace_range(from..to + 2, "");
            }
        }
        let line = line.trim();
        if !line.is_empty() && !line.starts_with("//") {
            kept += line;
            kept.push('\n');
        }
    }
    kept.into_bytes()
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).expect("memory takes all");
    packed.finish().expect("memory takes all")
}
