//! Files on Windows: its own behaviour, and that the rest works at all. The confinement is tested in
//! `files.rs`, with links that only Unix lets every user make.
#![cfg(windows)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpd_services::fs::{Effort, FsError, Lines, Roots, read_text_file, write_text_file};
use tempfile::TempDir;

/// `in` is a session's directory, `out` is not and has the file `secret`.
struct World {
    dir: TempDir,
    roots: Roots,
}

impl World {
    fn new() -> World {
        let dir = TempDir::new().unwrap();
        for name in ["in", "out"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("out/secret"), "secret").unwrap();
        let roots = Roots::open(&dir.path().join("in"), &[], 0).unwrap();
        World { dir, roots }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn read(&self, path: impl AsRef<Path>) -> Result<String, FsError> {
        let effort = Effort::most(Arc::default());
        read_text_file(&self.roots, &self.dir.path().join(path), Lines::default(), effort)
    }

    fn write(&self, path: impl AsRef<Path>, text: &str) -> Result<(), FsError> {
        write_text_file(&self.roots, &self.dir.path().join(path), text)
    }
}

#[test]
fn files_are_made_replaced_and_read() {
    let world = World::new();
    world.write("in/x/y/z.txt", "one\r\ntwo").unwrap();
    assert_eq!(world.read(r"in\x\..\x\y\z.txt").unwrap(), "one\r\ntwo");
    world.write("in/x/y/z.txt", "new").unwrap();
    assert_eq!(world.read("in/X/Y/Z.TXT").unwrap(), "new");
    assert_eq!(fs::read_dir(world.path("in/x/y")).unwrap().count(), 1, "nothing else is left");
    assert!(matches!(world.read("in/gone"), Err(FsError::NotFound { .. })));
    let real = world.path("in/x/y/z.txt").canonicalize().unwrap();
    assert_eq!(world.read(real).unwrap(), "new", "the long spelling of a path is the same path");
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that did not run must be seen")]
fn a_file_that_may_not_be_written_is_not_replaced() {
    if Path::new(r"C:\windows\system32\winecfg.exe").exists() {
        eprintln!("SKIPPED: Wine lets root write what is marked as read-only");
        return;
    }
    let world = World::new();
    world.write("in/a", "old").unwrap();
    let set = |read_only| {
        let mut permissions = world.path("in/a").metadata().unwrap().permissions();
        permissions.set_readonly(read_only);
        fs::set_permissions(world.path("in/a"), permissions).unwrap();
    };
    set(true);
    world.write("in/a", "new").unwrap_err();
    assert_eq!(world.read("in/a").unwrap(), "old");
    set(false);
}

#[test]
fn whatever_leads_out_is_refused_however_it_is_spelt() {
    let world = World::new();
    let share = r"\\localhost\C$\windows\win.ini";
    for path in [
        "out/secret",
        "in/../out/secret",
        r"in\..\out\secret",
        "in/..",
        "/",
        r"C:\windows\win.ini",
        r"\\?\C:\windows\win.ini",
        r"\\.\C:\windows\win.ini",
        r"\\.\pipe\acpd",
        share,
    ] {
        for error in [world.read(path).unwrap_err(), world.write(path, "x").unwrap_err()] {
            assert!(matches!(error, FsError::Outside { .. }), "{path}: {error}");
        }
    }
    assert_eq!(fs::read_to_string(world.path("out/secret")).unwrap(), "secret");
}

#[test]
fn names_of_devices_and_streams_are_no_files() {
    let world = World::new();
    world.write("in/a", "text").unwrap();
    for path in ["in/NUL", "in/con", "in/a:stream", "in/a::$DATA", "in/<a>", "in/a\0"] {
        world.write(path, "x").unwrap_err();
    }
    assert_eq!(world.read("in/a").unwrap(), "text");
    assert_eq!(fs::read_dir(world.path("in")).unwrap().count(), 1, "nothing else is left");
}
