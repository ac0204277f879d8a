//! `session/prompt` of a client.

use bytes::Bytes;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{Requester, SessionKey};
use crate::process::slot::Asker;
use crate::prompt::{has_yes, idempotency_key};

impl Hub {
    /// A client's `session/prompt`.
    ///
    /// # Errors
    /// When it cannot wait in line.
    pub(crate) fn prompt(
        &mut self,
        to: Requester,
        key: SessionKey,
        line: Bytes,
    ) -> Result<(), Fault> {
        if let Some(own) = idempotency_key(&line)?
            && self.prompt_repeated(&to, key, &own, has_yes(&line))
        {
            return Ok(());
        }
        let client = to.client;
        let ahead = self.put_in_line(key, Some(to), line)?;
        if ahead > 0 {
            self.tell_ahead(client, key, ahead);
        }
        self.go_on_with(key);
        Ok(())
    }

    /// A prompt has come into the line.
    pub(crate) fn go_on_with(&mut self, key: SessionKey) {
        self.try_without_login(key);
        self.need_session(key, Asker::Person);
    }
}
