//! Lists the files of the page, each as it is and packed, so that the program has all of them in it.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flate2::Compression;
use flate2::write::GzEncoder;

fn main() {
    let from = |name| PathBuf::from(env::var_os(name).expect("cargo sets it"));
    let (page, out) = (from("CARGO_MANIFEST_DIR").join("page"), from("OUT_DIR"));
    println!("cargo::rerun-if-changed={}", page.display());
    let mut files = Vec::new();
    find(&page, &mut files);
    files.sort();
    let mut list = String::from("&[\n");
    for (number, file) in files.iter().enumerate() {
        let packed = out.join(format!("{number}.gz"));
        fs::write(&packed, pack(&fs::read(file).expect("a file of the page"))).expect("OUT_DIR");
        let name = file.strip_prefix(&page).expect("it is below").to_str().expect("a plain name");
        let [file, packed] = [file, &packed].map(|path| path.to_str().expect("a plain name"));
        writeln!(list, "    ({name:?}, include_bytes!({file:?}), include_bytes!({packed:?})),")
            .expect("a string takes all");
    }
    fs::write(out.join("files.rs"), list + "]\n").expect("OUT_DIR");
}

/// The files of a folder and below it, but for those whose names begin with a dot.
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

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).expect("memory takes all");
    packed.finish().expect("memory takes all")
}
