//! A session in which others work, followed for a caller that waits for a turn in it.
//!
//! ```text
//!  begin: initialize ─▶ attach, as an observer ─▶ a turn ended, the state changed, it was deleted, acpd is back ─▶ news
//!                                              └─▶ the connection cannot be taken up again ─▶ an error, the last word
//!  dropped ─▶ the connection ends
//! ```
//!
//! News only report that something has changed: the new state must be requested.

use std::thread;

use acp_wire::{Message, parse};
use acpd_api::{Role, SessionInfo, method};
use acpd_client::{Incoming, LinkReader, LinkWriter, Options};
use tokio::sync::watch;

use crate::failure::Failure;
use crate::line::{Line, closed};

/// Notifications after which a turn may have another state.
const NEWS: [&str; 4] =
    [method::TURN_STARTED, method::TURN_ENDED, method::SESSION_STATE, method::SESSION_REMOVED];

/// A connection to a session.
#[derive(Debug)]
pub(crate) struct Followed {
    writer: LinkWriter,
    news: watch::Receiver<Option<Failure>>,
}

impl Followed {
    /// Follows a session from now on, without a part in it. May wait.
    pub(crate) fn begin(options: &Options, session: &SessionInfo) -> Result<Followed, Failure> {
        let mut line = Line::open(options)?;
        let greeted = line.greet(Some(session.agent.raw().to_owned()), None);
        let attached = greeted.and_then(|()| line.attach(session.exactly(), Role::Observer));
        let Line { reader, writer, .. } = line;
        attached.inspect_err(|_| writer.end())?;
        let (told, news) = watch::channel(None);
        let followed = Followed { writer, news };
        thread::Builder::new()
            .name("followed".to_owned())
            .spawn(move || {
                let end = follow(reader, &told);
                told.send_replace(Some(end));
            })
            .map_err(|error| Failure::new(format!("cannot follow the session: {error}")))?;
        Ok(followed)
    }

    /// Waits until something has changed since it was begun or since the last time.
    pub(crate) async fn news(&mut self) -> Result<(), Failure> {
        self.news.changed().await.map_err(|_| closed())?;
        match self.news.borrow_and_update().clone() {
            Some(end) => Err(end),
            None => Ok(()),
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.writer.end();
    }
}

/// Reads to the end of the connection; why it has ended.
fn follow(mut reader: LinkReader, told: &watch::Sender<Option<Failure>>) -> Failure {
    loop {
        let is_news = match reader.recv() {
            Ok(Incoming::Line(line)) => matches!(parse(&line),
                Ok(Message::Notification { method, .. }) if NEWS.contains(&&*method)),
            // Lines may have come while it was away that are none of a session.
            Ok(Incoming::Back) => true,
            Ok(Incoming::Lost | Incoming::Stopped) => false,
            Ok(Incoming::Closed) => return closed(),
            Err(error) => return error.into(),
        };
        if is_news {
            told.send_modify(|_| {});
        }
    }
}
