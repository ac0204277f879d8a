//! Files inside and outside of a session's directories, with what tries to get from one to the other.
//!
//! Links, pipes and permission bits are here as Unix has them; what Windows has is in `windows.rs`.
#![cfg(unix)]

use std::fs::{self, File, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering;
#[cfg(target_os = "linux")]
use std::thread;
use std::time::Instant;

use acpd_services::fs::{
    Effort, FsError, Lines, MOST_BYTES, Roots, read_text_file, write_text_file,
};
#[cfg(target_os = "linux")]
use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

const SECRET: &str = "nobody may read this";

/// `in` and `more` are a session's directories, `out` is not and has the file `secret`.
struct World {
    dir: TempDir,
    roots: Roots,
}

impl World {
    fn new() -> World {
        let dir = TempDir::new().unwrap();
        for name in ["in", "more", "out"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("out/secret"), SECRET).unwrap();
        let roots = Roots::open(&dir.path().join("in"), &[dir.path().join("more")], 0o027).unwrap();
        World { dir, roots }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn read(&self, path: &str) -> Result<String, FsError> {
        self.read_lines(path, None, None)
    }

    fn lines(&self, path: &str, line: u32, limit: Option<u32>) -> String {
        self.read_lines(path, Some(line), limit).unwrap()
    }

    fn read_lines(
        &self,
        path: &str,
        first: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, FsError> {
        self.read_with(path, Lines { first, limit }, Effort::most(Arc::default()))
    }

    fn read_with(&self, path: &str, lines: Lines, effort: Effort) -> Result<String, FsError> {
        read_text_file(&self.roots, &self.path(path), lines, effort)
    }

    fn write(&self, path: &str, content: &str) -> Result<(), FsError> {
        write_text_file(&self.roots, &self.path(path), content)
    }

    fn on_disk(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    fn mode(&self, path: &str) -> u32 {
        fs::metadata(self.path(path)).unwrap().permissions().mode() & 0o7777
    }

    fn assert_outside_untouched(&self) {
        assert_eq!(self.on_disk("out/secret"), SECRET);
        assert_eq!(names(&self.path("out")), ["secret"]);
    }

    fn assert_refused(&self, path: &str) {
        for error in [self.read(path).unwrap_err(), self.write(path, "x").unwrap_err()] {
            assert!(matches!(error, FsError::Outside { .. }), "{path}: {error}");
        }
        self.assert_outside_untouched();
    }
}

fn read_whole(roots: &Roots, path: &Path) -> Result<String, FsError> {
    read_text_file(roots, path, Lines::default(), Effort::most(Arc::default()))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn lines_count_from_one_and_keep_their_ends() {
    let world = World::new();
    let text = "\u{feff}one\r\ntwo\n\nvier ü\nlast";
    world.write("in/a", text).unwrap();
    assert_eq!(world.read("in/a").unwrap(), text);
    assert_eq!(world.lines("in/a", 1, None), text);
    assert_eq!(world.lines("in/a", 0, Some(1)), "\u{feff}one\r\n");
    assert_eq!(world.lines("in/a", 2, Some(2)), "two\n\n");
    assert_eq!(world.lines("in/a", 4, None), "vier ü\nlast");
    assert_eq!(world.lines("in/a", 5, Some(9)), "last");
    assert_eq!(world.lines("in/a", 6, Some(1)), "");
    assert_eq!(world.lines("in/a", u32::MAX, None), "");
    assert_eq!(world.lines("in/a", 1, Some(0)), "");

    // Only the lines that are asked for have to be text.
    fs::write(world.path("in/a"), b"good\nbad \xff\ngood again\n").unwrap();
    assert!(matches!(world.read("in/a"), Err(FsError::NotUtf8 { .. })));
    assert_eq!(world.lines("in/a", 1, Some(1)), "good\n");
    assert_eq!(world.lines("in/a", 3, Some(1)), "good again\n");
}

#[test]
fn a_file_is_replaced_whole_and_keeps_its_permissions() {
    let world = World::new();
    world.write("in/a", "old and long").unwrap();
    assert_eq!(world.mode("in/a"), 0o640, "the user's umask counts");
    fs::set_permissions(world.path("in/a"), Permissions::from_mode(0o755)).unwrap();
    let mut before = File::open(world.path("in/a")).unwrap();
    world.write("in/a", "new").unwrap();
    assert_eq!(world.on_disk("in/a"), "new");
    assert_eq!(world.mode("in/a"), 0o755);
    assert_eq!(std::io::read_to_string(&mut before).unwrap(), "old and long");
    assert_eq!(names(&world.path("in")), ["a"], "nothing else is left");
}

#[test]
fn missing_directories_are_made_inside() {
    let world = World::new();
    world.write("in/x/y/z.txt", "deep").unwrap();
    world.write("more/m", "second").unwrap();
    assert_eq!(world.on_disk("in/x/y/z.txt"), "deep");
    assert_eq!(world.read("more/m").unwrap(), "second");
    assert_eq!((world.mode("in/x"), world.mode("in/x/y")), (0o750, 0o750));
    assert_eq!(world.read("in/x/../x/y/z.txt").unwrap(), "deep");
    let error = world.write("in/x/y/z.txt/below", "").unwrap_err();
    assert!(matches!(error, FsError::Io { .. }), "{error}");
}

#[test]
fn links_that_stay_inside_are_followed_and_stay_links() {
    let world = World::new();
    world.write("in/real/a", "one").unwrap();
    symlink("real/a", world.path("in/relative")).unwrap();
    symlink(world.path("in/real/a"), world.path("in/absolute")).unwrap();
    symlink("real", world.path("in/dir")).unwrap();
    symlink(world.path("more"), world.path("in/other")).unwrap();
    symlink("real/new", world.path("in/dangling")).unwrap();
    for (index, link) in ["in/relative", "in/absolute", "in/dir/a"].into_iter().enumerate() {
        world.write(link, &index.to_string()).unwrap();
        assert_eq!(world.read(link).unwrap(), index.to_string());
        assert_eq!(world.on_disk("in/real/a"), index.to_string());
    }
    world.write("in/other/m", "in the second directory").unwrap();
    assert_eq!(world.on_disk("more/m"), "in the second directory");
    assert!(matches!(world.read("in/dangling"), Err(FsError::NotFound { .. })));
    world.write("in/dangling", "made").unwrap();
    assert_eq!(world.on_disk("in/real/new"), "made");
    for link in ["in/relative", "in/absolute", "in/dir", "in/other", "in/dangling"] {
        assert!(world.path(link).is_symlink(), "{link}");
    }

    // A directory may be named by a link to it and by its real name.
    symlink(world.path("in"), world.path("alias")).unwrap();
    let roots = Roots::open(&world.path("alias"), &[], 0).unwrap();
    for path in ["alias/real/new", "in/real/new"] {
        assert_eq!(read_whole(&roots, &world.path(path)).unwrap(), "made");
    }
}

#[test]
fn whatever_leads_out_is_refused() {
    let world = World::new();
    symlink(world.path("out/secret"), world.path("in/absolute")).unwrap();
    symlink("../out/secret", world.path("in/relative")).unwrap();
    symlink("../out", world.path("in/dir")).unwrap();
    symlink("../out/not-there", world.path("in/dangling")).unwrap();
    symlink("absolute", world.path("in/chain")).unwrap();
    symlink("/proc/self/root", world.path("in/magic")).unwrap();
    symlink("/proc/self/cwd", world.path("in/cwd")).unwrap();
    let magic = format!("in/magic{}", world.path("out/secret").display());
    for path in [
        "out/secret",
        "out/not-there",
        "out/not-there/../secret",
        "in/../out/secret",
        "in/absolute",
        "in/relative",
        "in/dir/secret",
        "in/dir/new",
        "in/dir/new/deep",
        "in/dangling",
        "in/chain",
        "in/cwd/Cargo.toml",
        "more/../../etc/passwd",
        "inside-by-prefix-alone",
        "in/..",
        "/proc/self/root/etc/passwd",
        "/",
        &magic,
    ] {
        world.assert_refused(path);
    }
    assert!(!world.path("inside-by-prefix-alone").exists());
}

#[test]
fn what_is_no_file_is_refused_and_never_waited_for() {
    let world = World::new();
    mkfifo(&world.path("in/fifo"), Mode::from_bits_truncate(0o600)).unwrap();
    fs::create_dir(world.path("in/dir")).unwrap();
    symlink("fifo", world.path("in/link")).unwrap();
    let _socket = UnixListener::bind(world.path("in/socket")).unwrap();
    for path in ["in/fifo", "in/dir", "in/link", "in/socket", "in"] {
        for error in [world.read(path).unwrap_err(), world.write(path, "x").unwrap_err()] {
            assert!(matches!(error, FsError::NotAFile { .. }), "{path}: {error}");
        }
    }
    let devices = Roots::open(Path::new("/dev"), &[], 0).unwrap();
    let error = read_whole(&devices, Path::new("/dev/zero")).unwrap_err();
    assert!(matches!(error, FsError::NotAFile { .. }), "{error}");
    let error = write_text_file(&devices, Path::new("/dev/null"), "").unwrap_err();
    assert!(matches!(error, FsError::NotAFile { .. }), "{error}");
}

#[test]
fn what_is_missing_is_told_from_what_is_refused() {
    let world = World::new();
    assert!(matches!(world.read("in/gone"), Err(FsError::NotFound { .. })));
    assert!(matches!(world.read("in/gone/deep"), Err(FsError::NotFound { .. })));
    // Where nothing is, nothing is above it.
    assert!(matches!(world.read("in/gone/../../out/secret"), Err(FsError::NotFound { .. })));
    assert!(matches!(world.write("in/gone/../a", ""), Err(FsError::NotFound { .. })));
    // A loop of links ends.
    symlink("b", world.path("in/a")).unwrap();
    symlink("a", world.path("in/b")).unwrap();
    assert!(matches!(world.read("in/a"), Err(FsError::Io { .. })));
    assert!(matches!(world.write("in/a", ""), Err(FsError::Io { .. })));
}

#[test]
fn of_a_file_that_is_too_big_a_part_can_be_read() {
    let world = World::new();
    let mut file = File::create(world.path("in/a")).unwrap();
    file.write_all(b"first\n").unwrap();
    // A line of zero bytes, which take no room on the disk.
    file.set_len(6 + MOST_BYTES).unwrap();
    fs::write(world.path("end"), "\nlast\n").unwrap();
    let end = fs::read(world.path("end")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &end, 6 + MOST_BYTES).unwrap();
    let size = MOST_BYTES + 12;
    let whole = world.read("in/a").unwrap_err();
    assert!(
        matches!(whole, FsError::TooBig { bytes, limit: MOST_BYTES, .. } if bytes == size),
        "{whole}"
    );
    assert_eq!(world.lines("in/a", 1, Some(1)), "first\n");
    assert_eq!(world.lines("in/a", 3, None), "last\n");
    let window = world.read_lines("in/a", Some(2), Some(1)).unwrap_err();
    assert!(matches!(window, FsError::TooBig { .. }), "{window}");
    file.set_len(MOST_BYTES).unwrap();
    assert_eq!(world.read("in/a").unwrap().len() as u64, MOST_BYTES);
}

const FAR: Lines = Lines { first: Some(2), limit: Some(1) };

#[test]
fn m4_a_read_is_given_up_after_so_many_bytes_or_so_much_time_or_when_nobody_wants_it() {
    let world = World::new();
    // Larger than any disk, and without the end of a line.
    File::create(world.path("in/sparse")).unwrap().set_len(8 << 40).unwrap();
    let far = world.read_with("in/sparse", FAR, Effort::most(Arc::default())).unwrap_err();
    assert!(matches!(far, FsError::TooFar { bytes, .. } if bytes == 256 << 20), "{far}");
    assert!(far.hint().unwrap().contains("tail"));

    let late = Effort { until: Instant::now(), ..Effort::most(Arc::default()) };
    let slow = world.read_with("in/sparse", FAR, late).unwrap_err();
    assert!(matches!(slow, FsError::TooSlow { .. }), "{slow}");

    let cancelled = Effort::most(Arc::new(AtomicBool::new(true)));
    let unwanted = world.read_with("in/sparse", FAR, cancelled).unwrap_err();
    assert!(matches!(unwanted, FsError::Cancelled { .. }), "{unwanted}");

    world.write("in/a", "one\ntwo\nthree\n").unwrap();
    let effort = Effort { bytes: 8, ..Effort::most(Arc::default()) };
    assert_eq!(world.read_with("in/a", FAR, effort.clone()).unwrap(), "two\n");
    let third = Lines { first: Some(3), limit: Some(1) };
    let far = world.read_with("in/a", third, effort).unwrap_err();
    assert!(matches!(far, FsError::TooFar { bytes: 8, .. }), "{far}");
}

/// Calls `work` while `name`, which is good, and a link that leads out take each other's place over and
/// over, so that one of them is there at any moment.
#[cfg(target_os = "linux")]
fn while_swapped(world: &World, name: &str, target: &str, work: impl FnMut()) {
    let link = format!("{name}.link");
    symlink(target, world.path(&link)).unwrap();
    while_exchanged(&world.path(name), &world.path(&link), work);
}

/// Calls `work` while two places are exchanged over and over.
#[cfg(target_os = "linux")]
fn while_exchanged(one: &Path, other: &Path, mut work: impl FnMut()) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).unwrap();
            }
        });
        // Also when it panics, or the other thread would never end.
        let _stop = Stop(&done);
        for _ in 0..1000 {
            work();
        }
    });
}

#[cfg(target_os = "linux")]
struct Stop<'a>(&'a AtomicBool);

#[cfg(target_os = "linux")]
impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn no_byte_from_outside_is_read_however_a_link_is_swapped() {
    let world = World::new();
    for (name, target, path) in
        [("in/d", "../out", "in/d/secret"), ("in/secret", "../out/secret", "in/secret")]
    {
        world.write(path, "good").unwrap();
        while_swapped(&world, name, target, || match world.read(path) {
            Ok(text) => assert_eq!(text, "good"),
            Err(FsError::Outside { .. }) => {}
            Err(error) => panic!("{error}"),
        });
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_written_outside_however_a_link_is_swapped() {
    let world = World::new();
    world.write("in/d/secret", "good").unwrap();
    while_swapped(&world, "in/d", "../out", || {
        for path in ["in/d/secret", "in/d/new", "in/d/deep/new"] {
            match world.write(path, "written") {
                Ok(()) | Err(FsError::Outside { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    world.assert_outside_untouched();
    // Nor is anything left inside of what was not written.
    assert_eq!(names(&world.path("in")), ["d", "d.link"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_of_the_session_that_is_swapped_for_a_link_leads_nowhere_else() {
    let world = World::new();
    world.write("in/secret", "good").unwrap();
    while_swapped(&world, "in", "out", || {
        match world.read("in/secret") {
            Ok(text) => assert!(text == "good" || text == "written"),
            // While the link is there, the path leads out; a lookup that meets both finds neither.
            Err(FsError::Outside { .. } | FsError::NotFound { .. } | FsError::Io { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        for path in ["in/secret", "in/new", "in/deep/new"] {
            match world.write(path, "written") {
                Ok(()) | Err(FsError::Outside { .. } | FsError::Io { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    });
    world.assert_outside_untouched();
}

#[cfg(target_os = "linux")]
#[test]
fn a_pipe_that_takes_the_place_of_a_file_is_never_waited_for() {
    let world = World::new();
    let pipe = world.path("in/pipe");
    mkfifo(&pipe, Mode::from_bits_truncate(0o600)).unwrap();
    world.write("in/a", "text").unwrap();
    while_exchanged(&world.path("in/a"), &pipe, || {
        for done in [world.read("in/a").map(drop), world.write("in/a", "text")] {
            assert!(matches!(done, Ok(()) | Err(FsError::NotAFile { .. })), "{done:?}");
        }
    });
}

#[test]
fn a_directory_of_the_session_stays_what_it_was_when_another_takes_its_name() {
    let world = World::new();
    world.write("in/a", "text").unwrap();
    fs::rename(world.path("in"), world.path("moved")).unwrap();
    fs::create_dir(world.path("in")).unwrap();
    fs::write(world.path("in/b"), "of another directory").unwrap();
    assert!(matches!(world.read("in/b"), Err(FsError::NotFound { .. })));
    world.assert_refused("moved/a");
    fs::remove_file(world.path("in/b")).unwrap();
    fs::remove_dir(world.path("in")).unwrap();
    symlink("out", world.path("in")).unwrap();
    world.assert_refused("in/secret");
    world.assert_refused("in/new");
}

#[test]
fn a_second_name_of_a_file_outside_is_read_and_the_file_outside_never_written() {
    let world = World::new();
    fs::hard_link(world.path("out/secret"), world.path("in/hard")).unwrap();
    assert_eq!(world.read("in/hard").unwrap(), SECRET, "it cannot be told from a file inside");
    world.write("in/hard", "another file").unwrap();
    assert_eq!(world.on_disk("in/hard"), "another file");
    world.assert_outside_untouched();
}

#[test]
fn names_that_no_file_can_have_are_errors_and_leave_nothing() {
    let world = World::new();
    let (long, deep) = ("x".repeat(300), "d/".repeat(3000));
    for name in ["nul\0byte", "\0", &long, &deep, &format!("{long}/below")] {
        let path = format!("in/{name}");
        for error in [world.read(&path).unwrap_err(), world.write(&path, "x").unwrap_err()] {
            assert!(matches!(error, FsError::Io { .. }), "{error}");
        }
        world.assert_refused(&format!("out/{name}"));
    }
    assert_eq!(names(&world.path("in")), [""; 0]);
}

#[test]
fn slashes_and_dots_at_the_end_lead_nowhere_else() {
    let world = World::new();
    world.write("in/a", "text").unwrap();
    symlink("../out", world.path("in/dir")).unwrap();
    for path in ["in/./a", "in//a", "in/../in/a", "more/../in/./a"] {
        assert_eq!(world.read(path).unwrap(), "text", "{path}");
    }
    for path in ["in/a/", "in/a/.", "in/a/..", "in/a/../a", "in/", "in/.", "more/../in/"] {
        let read = world.read(path);
        assert!(matches!(read, Err(FsError::Io { .. } | FsError::NotAFile { .. })), "{read:?}");
        world.write(path, "x").unwrap_err();
    }
    for path in ["in/dir/", "in/dir/.", "in/dir/./secret", "in/dir/../out/secret", "in/...", ".."] {
        match world.read(path).unwrap_err() {
            FsError::Outside { .. } => world.assert_refused(path),
            error => assert!(matches!(error, FsError::NotFound { .. }), "{path}: {error}"),
        }
    }
    assert_eq!(world.on_disk("in/a"), "text");
    world.assert_outside_untouched();
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_this_process_holds_open_and_other_spellings_are_no_way_out() {
    use std::os::fd::AsRawFd as _;
    let world = World::new();
    world.write("in/a", "text").unwrap();
    let (file, dir) = (File::open(world.path("out/secret")), File::open(world.path("out")));
    let (file, dir) = (file.unwrap(), dir.unwrap());
    let held = format!("/proc/self/fd/{}", file.as_raw_fd());
    let below = format!("/dev/fd/{}/secret", dir.as_raw_fd());
    symlink(&held, world.path("in/held")).unwrap();
    for path in [&held, &below, "in/held", "IN/a", "/proc/self/mem", "/proc/self/cwd/Cargo.toml"] {
        world.assert_refused(path);
    }
    assert!(matches!(world.read("in/A"), Err(FsError::NotFound { .. })), "it is another name");
}
