//! The directories of a session, and the resolution of paths in them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use acpd_sys::files::{LONGEST_PATH, NEVER_WAIT, is_no_file};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};

use super::error::FsError;

/// Maximum number of dangling symbolic links that a path may lead through.
const MOST_LINKS: usize = 40;

/// The open directories of a session. Renaming one does not make it another one.
#[derive(Debug)]
pub struct Roots {
    roots: Vec<Root>,
    pub(super) umask: u32,
}

#[derive(Debug)]
struct Root {
    named: PathBuf,
    real: PathBuf,
    dir: Dir,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    Other,
}

/// A path in one of the directories; nothing has to exist there.
pub(super) struct Place<'a> {
    pub(super) dir: &'a Dir,
    /// Relative to `dir`, and empty for `dir` itself. Had no symbolic links and `..` when resolved.
    pub(super) path: PathBuf,
}

impl Roots {
    /// Opens the working directory and the additional directories. New files and directories get
    /// the user's `umask`, not that of this process.
    pub fn open(
        cwd: &Path,
        additional_directories: &[PathBuf],
        umask: u32,
    ) -> Result<Roots, FsError> {
        let named: Vec<PathBuf> =
            std::iter::once(cwd.to_owned()).chain(additional_directories.iter().cloned()).collect();
        if let Some(path) = named.iter().find(|path| !path.is_absolute()).cloned() {
            return Err(FsError::Outside { path, why: "it is not absolute", roots: named });
        }
        let open = |named: PathBuf| {
            let root = Root::open(&named);
            root.map_err(|error| FsError::of(&named, error))
        };
        let roots = named.into_iter().map(open).collect::<Result<_, _>>()?;
        Ok(Roots { roots, umask })
    }

    /// Returns the kind of a path. A path that is missing or outside is an error.
    pub fn kind(&self, path: &Path) -> Result<Kind, FsError> {
        let Place { dir, path: inside } = self.locate(path)?;
        let is_root = inside.as_os_str().is_empty();
        let found = if is_root { dir.dir_metadata() } else { dir.metadata(&inside) };
        let found = found.map_err(|error| self.error(path, error))?;
        Ok(match found.is_dir() {
            true => Kind::Directory,
            false if found.is_file() => Kind::File,
            false => Kind::Other,
        })
    }

    /// Resolves a path. The error for a path outside does not reveal whether the path exists.
    pub(super) fn locate(&self, path: &Path) -> Result<Place<'_>, FsError> {
        if !path.is_absolute() {
            return Err(self.outside(path, "it is not absolute"));
        }
        let leads_to = match destination(path, MOST_LINKS) {
            Ok(leads_to) => leads_to,
            Err(error) if self.names(path) => return Err(FsError::of(path, error)),
            Err(_) => return Err(self.leads_out(path)),
        };
        let mut places = self.roots.iter().filter_map(|root| {
            let path = leads_to.strip_prefix(&root.real).ok()?.to_owned();
            Some(Place { dir: &root.dir, path })
        });
        places.next().ok_or_else(|| self.leads_out(path))
    }

    /// Returns the error of an operation on a resolved path. A path that leads out was changed
    /// after it was resolved.
    pub(super) fn error(&self, path: &Path, error: io::Error) -> FsError {
        // cap-std's refusal; an error of the system has a number.
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            return self.leads_out(path);
        }
        FsError::of(path, error)
    }

    fn leads_out(&self, path: &Path) -> FsError {
        self.outside(path, "it leads out of the session's directories")
    }

    fn outside(&self, path: &Path, why: &'static str) -> FsError {
        let roots = self.roots.iter().map(|root| root.named.clone()).collect();
        FsError::Outside { path: path.to_owned(), why, roots }
    }

    fn names(&self, path: &Path) -> bool {
        let is_under = |root: &Root| path.starts_with(&root.named) || path.starts_with(&root.real);
        self.roots.iter().any(is_under)
    }
}

impl Root {
    fn open(named: &Path) -> io::Result<Root> {
        let real = named.canonicalize()?;
        let dir = Dir::open_ambient_dir(&real, ambient_authority())?;
        Ok(Root { named: named.to_owned(), real, dir })
    }
}

/// Resolves a path that need not exist. A dangling symbolic link at its end is followed.
fn destination(path: &Path, links: usize) -> io::Result<PathBuf> {
    if path.as_os_str().len() >= LONGEST_PATH {
        // Created step by step, such a path could not be opened by its full name.
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, "file name too long"));
    }
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        found => return found,
    }
    // A path that ends with `..` has no name, and a missing directory has no parent.
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    let parent = destination(parent, links)?;
    let place = parent.join(name);
    match (place.read_link(), links.checked_sub(1)) {
        (Err(_), _) => Ok(place),
        (Ok(target), Some(links)) => destination(&parent.join(target), links),
        (Ok(_), None) => Err(io::Error::other("too many symbolic links")),
    }
}

/// Opens a file without waiting: the other end of a pipe may never be opened. `None` if it is no
/// regular file.
pub(super) fn open_regular(
    dir: &Dir,
    path: &Path,
    options: &mut OpenOptions,
) -> io::Result<Option<File>> {
    options.custom_flags(NEVER_WAIT);
    match dir.open_with(path, options) {
        // A socket, or a pipe without a reader.
        Err(error) if is_no_file(&error) => Ok(None),
        Err(error) => Err(error),
        Ok(file) => {
            let file = file.into_std();
            Ok(file.metadata()?.is_file().then_some(file))
        }
    }
}
