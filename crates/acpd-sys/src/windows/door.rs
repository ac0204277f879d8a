//! Named pipes on the runtime: the daemon's door, and its connections to shims. Who may connect, and how each knows
//! the other, is as in [`socket`](crate::socket).

use std::convert::Infallible;
use std::io;
use std::os::windows::io::{AsHandle as _, AsRawHandle as _};
use std::path::Path;
use std::time::Duration;

use interprocess::local_socket::tokio::{Listener, Stream};
use interprocess::os::windows::ToWtf16 as _;
use interprocess::os::windows::named_pipe::PipeListenerOptions;
use interprocess::os::windows::named_pipe::local_socket::tokio::Listener as PipeListener;
use interprocess::os::windows::named_pipe::pipe_mode::Bytes;
use interprocess::os::windows::security_descriptor::{
    AsSecurityDescriptorExt as _, BorrowedSecurityDescriptor,
};
use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;

use crate::os::PrivateTo;
use crate::process_table::Peer;
use crate::socket::{BUFFER, client_of, server_of};

/// Nothing that listens passes from one process to the next.
pub type Handed = Infallible;

/// A connection to a shim.
pub type Link = NamedPipeClient;

/// How long a client waits before it tries a busy pipe again.
const BUSY: Duration = Duration::from_millis(2);

/// Listens on a free name; only this user may connect, from this machine. To be called on the runtime.
pub fn listen(path: &Path) -> io::Result<Listener> {
    let private = PrivateTo::user()?;
    // SAFETY: it is whole, and lives longer than this copy is made.
    let private =
        unsafe { BorrowedSecurityDescriptor::from_ptr(private.as_ptr()) }.to_owned_sd()?;
    let mut options = PipeListenerOptions::new();
    options.path = path.to_wtf_16().map_err(io::Error::other)?;
    options.security_descriptor = Some(private);
    options.accept_remote = false;
    (options.input_buffer_size_hint, options.output_buffer_size_hint) = (BUFFER, BUFFER);
    // The first instance of its name, or nothing.
    let listener = options.create_tokio_duplex::<Bytes>()?;
    Ok(PipeListener::from(listener).into())
}

pub fn listen_again(socket: Handed) -> io::Result<Listener> {
    match socket {}
}

/// Gives the name back: the next listener makes it again.
pub fn let_go(listener: Listener) -> Option<Handed> {
    drop(listener);
    None
}

/// The peer: the process, and the user whose token it has.
pub fn other_end(stream: &Stream) -> io::Result<Peer> {
    let Stream::NamedPipe(pipe) = stream;
    client_of(pipe.as_handle().as_raw_handle())
}

/// Connects to a shim, and waits while it takes up others. Lets itself be identified, and not be acted for.
pub async fn connect(path: &Path) -> io::Result<Link> {
    loop {
        match ClientOptions::new().open(path) {
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY as i32) => {
                tokio::time::sleep(BUSY).await;
            }
            opened => return opened,
        }
    }
}

/// The process that listens there, and the owner of the pipe.
pub fn listener_of(link: &Link) -> io::Result<Peer> {
    server_of(link.as_raw_handle())
}

/// Tells when the name of the door is removed. No one can do that here.
#[derive(Debug)]
pub struct Removals(());

impl Removals {
    pub fn of(_dir: &Path) -> Removals {
        Removals(())
    }

    pub async fn next(&mut self) {
        std::future::pending().await
    }
}
