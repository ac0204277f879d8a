//! Tickets name turns, and stay valid after a restart of everything.

use std::borrow::Cow;
use std::fmt;

use acp_wire::acp::uri_part;
use percent_encoding::percent_decode_str;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ticket {
    /// The number of the turn in its session, from 1.
    pub(crate) turn: u64,
    pub(crate) agent: String,
    pub(crate) session: String,
}

impl Ticket {
    pub(crate) fn parse(text: &str) -> Option<Ticket> {
        let mut parts = text.strip_prefix(SCHEME)?.split('/');
        let (agent, session) = (decoded(parts.next()?)?, decoded(parts.next()?)?);
        let turn = parts.next()?.parse().ok().filter(|turn| *turn > 0)?;
        let is_one = parts.next().is_none() && !agent.is_empty() && !session.is_empty();
        is_one.then_some(Ticket { turn, agent, session })
    }
}

/// The address of the resource with the whole turn.
impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Agents choose the ids of sessions: encoded, an id cannot imitate another part.
        write!(f, "{SCHEME}{}/{}/{}", uri_part(&self.agent), uri_part(&self.session), self.turn)
    }
}

const SCHEME: &str = "acpd://turn/";

/// The address of any turn.
pub(crate) const TEMPLATE: &str = "acpd://turn/{agent}/{session}/{turn}";

pub(crate) fn decoded(part: &str) -> Option<String> {
    percent_decode_str(part).decode_utf8().ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_an_agent_calls_its_session_the_ticket_leads_back_and_is_one_word(
            turn in 1_u64.., agent in "[a-z][a-z0-9_.-]{0,20}", session in ".{1,40}",
        ) {
            let ticket = Ticket { turn, agent, session };
            let text = ticket.to_string();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            prop_assert_eq!(Ticket::parse(&text), Some(ticket));
        }

        #[test]
        fn any_text_is_a_ticket_or_none(text in ".{0,60}", rest in "[a-z0-9/%]{0,30}") {
            for text in [text, format!("{SCHEME}{rest}")] {
                if let Some(ticket) = Ticket::parse(&text) {
                    prop_assert_eq!(Ticket::parse(&ticket.to_string()), Some(ticket));
                }
            }
        }
    }

    #[test]
    fn other_text_is_no_ticket() {
        for text in [
            "",
            "fix",
            "acpd://turn/a/s",
            "acpd://turn/a/s/x",
            "acpd://turn/a/s/0",
            "acpd://turn/a//1",
            "acpd://turn/a/s/1/",
            "acpd://turn/%ff/s/1",
        ] {
            assert_eq!(Ticket::parse(text), None, "{text}");
        }
    }
}
