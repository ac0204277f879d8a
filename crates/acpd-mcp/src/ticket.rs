//! A ticket names a turn: it is enough to find that turn again after a restart of everything.

use std::fmt::{self, Write as _};

/// A turn of a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket {
    /// The number of the turn in its session, from 1.
    pub(crate) turn: u64,
    /// The agent's profile.
    pub(crate) agent: String,
    /// The id of the session.
    pub(crate) session: String,
}

impl Ticket {
    /// Reads what a tool has given out.
    pub(crate) fn parse(text: &str) -> Option<Ticket> {
        let (turn, rest) = text.strip_prefix("turn:")?.split_once(':')?;
        let (agent, session) = rest.split_once(':')?;
        let is_one = !agent.is_empty() && !session.is_empty();
        let turn = turn.parse().ok().filter(|turn| *turn > 0 && is_one)?;
        Some(Ticket { turn, agent: decoded(agent)?, session: decoded(session)? })
    }

    /// Where the full text of the turn is.
    pub(crate) fn uri(&self) -> String {
        format!("{SCHEME}{}/{}/{}", encoded(&self.agent), encoded(&self.session), self.turn)
    }

    /// Reads such an address.
    pub(crate) fn from_uri(uri: &str) -> Option<Ticket> {
        let mut parts = uri.strip_prefix(SCHEME)?.split('/');
        let (agent, session) = (decoded(parts.next()?)?, decoded(parts.next()?)?);
        let turn = parts.next()?.parse().ok().filter(|turn| *turn > 0)?;
        parts.next().is_none().then_some(Ticket { turn, agent, session })
    }
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Agents choose the ids of sessions: nothing in one may look like something else.
        write!(f, "turn:{}:{}:{}", self.turn, encoded(&self.agent), encoded(&self.session))
    }
}

/// How addresses of turns begin.
const SCHEME: &str = "acpd://turn/";

/// The address of any turn, for those who make one.
pub(crate) const TEMPLATE: &str = "acpd://turn/{agent}/{session}/{turn}";

/// A text as a part of an address.
pub(crate) fn encoded(text: &str) -> String {
    let mut part = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            part.push(char::from(byte));
        } else {
            let _ = write!(part, "%{byte:02X}");
        }
    }
    part
}

/// Reads such a part.
pub(crate) fn decoded(part: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = part.bytes();
    while let Some(byte) = rest.next() {
        let hex = |byte: u8| char::from(byte).to_digit(16);
        match byte {
            b'%' => bytes.push((hex(rest.next()?)? * 16 + hex(rest.next()?)?) as u8),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_and_its_address_lead_back_to_the_turn() {
        for session in ["s-1", "a:b/c", "ü %"] {
            let ticket = Ticket { turn: 3, agent: "demo".into(), session: session.into() };
            assert_eq!(Ticket::parse(&ticket.to_string()), Some(ticket.clone()));
            assert_eq!(Ticket::from_uri(&ticket.uri()), Some(ticket));
        }
        for text in ["", "fix", "turn:", "turn:0:a:s", "turn:x:a:s", "turn:1::s", "turn:1:a:"] {
            assert_eq!(Ticket::parse(text), None, "{text}");
        }
        for uri in [
            "",
            "acpd://turn/a/s",
            "acpd://turn/a/s/x",
            "acpd://turn/a/s/1/",
            "acpd://turn/%zz/s/1",
        ] {
            assert_eq!(Ticket::from_uri(uri), None, "{uri}");
        }
    }
}
