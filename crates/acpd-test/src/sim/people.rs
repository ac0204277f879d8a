//! Actions of the model clients, chosen by the seed: sessions, prompts, answers, administration.

use acpd_api::method;
use acpd_core::ids::{ClientId, SessionKey};
use acpd_core::record::{Dormant, TurnRow, TurnStage};
use bytes::Bytes;
use serde_json::{Value, json};

use super::client::{Asked, Client, Place, line};
use super::world::{AGENTS, World, client_line};

pub(super) const DIRECTORIES: [&str; 3] = ["/w", "/w", "/v"];

impl World {
    pub(super) fn person(&mut self) -> Result<(), String> {
        let ids: Vec<ClientId> = self.clients.keys().copied().collect();
        if ids.is_empty() || (ids.len() < 6 && self.rng.permille(60)) {
            let agent = self.rng.pick(&AGENTS).copied().unwrap_or_default();
            self.connect(agent)?;
            return Ok(());
        }
        let Some(id) = self.rng.pick(&ids).copied() else { return Ok(()) };
        if self.rng.permille(25) {
            self.truth.hit("client closed");
            return self.lose(id);
        }
        if self.rng.permille(300) {
            self.answer_one(id)?;
            return Ok(());
        }
        match self.rng.below(100) {
            0..10 => self.new_session(id),
            10..16 => self.prompt_again(id),
            16..50 => self.prompt(id),
            50..58 if self.steers && self.rng.permille(500) => self.steer(id),
            50..58 => self.open_some(id),
            58..67 => self.attach(id),
            67..70 => self.cancel(id),
            70..75 => self.set_mode(id),
            75..84 => self.manage_session(id),
            84..88 => self.manage_agent(id),
            88..92 => self.malformed(id),
            92 if !self.calm && self.rng.permille(200) => {
                self.say(id, "_acpd/daemon/restart", json!({}), Asked::Plain)
            }
            93..96 => self.say(id, "authenticate", json!({"methodId":"x"}), Asked::Login),
            _ => self.say(id, "session/list", json!({}), Asked::Plain),
        }
    }

    fn say(
        &mut self,
        id: ClientId,
        method: &str,
        params: Value,
        asked: Asked,
    ) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(&id) else { return Ok(()) };
        let line = client.ask(method, params, asked, &mut self.rng);
        self.send(id, line)
    }

    pub(super) fn logged_in(&mut self, id: ClientId, agent: &str) -> Result<(), String> {
        self.say(id, method::AUTH_DONE, json!({"agent":agent}), Asked::Plain)
    }

    fn send(&mut self, client: ClientId, line: Option<Bytes>) -> Result<(), String> {
        match line {
            Some(line) => self.feed(client_line(client, line)),
            None => Ok(()),
        }
    }

    fn notify(&mut self, id: ClientId, method: &str, params: Value) -> Result<(), String> {
        self.tell(id, &json!({"jsonrpc":"2.0","method":method,"params":params}))
    }

    /// Sends a line that is no request.
    fn tell(&mut self, id: ClientId, message: &Value) -> Result<(), String> {
        let line = self.clients.get_mut(&id).and_then(|client| client.say(line(message)));
        self.send(id, line)
    }

    /// A session of this client's agent, or of any.
    fn some_session(&mut self, agent: Option<&str>) -> Option<String> {
        let sessions = self.store.sessions();
        let fits = |agent: Option<&str>, of: &str| agent.is_none_or(|agent| agent == of);
        let ids: Vec<String> = sessions
            .filter(|session| fits(agent, &session.row.agent))
            .map(|session| session.row.public_id.clone())
            .collect();
        self.rng.pick(&ids).cloned()
    }

    fn its_session(&mut self, id: ClientId) -> Option<String> {
        let agent = self.clients.get(&id)?.agent.clone();
        self.some_session(Some(&agent))
    }

    fn new_session(&mut self, id: ClientId) -> Result<(), String> {
        if self.store.snapshot.sessions.len() > 8 {
            return Ok(());
        }
        let name = format!("n{}", self.rng.below(4));
        let meta = if self.rng.permille(300) { json!({"_acpd":{"name":name}}) } else { json!({}) };
        let cwd = self.rng.pick(&DIRECTORIES).copied().unwrap_or_default();
        self.say(id, "session/new", json!({"cwd":cwd,"mcpServers":[],"_meta":meta}), Asked::New)
    }

    fn prompt(&mut self, id: ClientId) -> Result<(), String> {
        let Some(session) = self.its_session(id) else { return Ok(()) };
        if self.clients.get(&id).is_none_or(|client| !client.may_work(&session)) {
            return self.open(id, session);
        }
        self.prompt_in(id, session)?;
        Ok(())
    }

    fn prompt_in(&mut self, id: ClientId, session: String) -> Result<String, String> {
        self.next_text += 1;
        let text = format!("P{}.", self.next_text);
        let mut params = json!({"sessionId":session,"prompt":[{"type":"text","text":text}]});
        if self.next_text.is_multiple_of(2)
            && let Some(key) = self.store.public.get(&session).copied()
        {
            params["_meta"] = json!({"_acpd":{"idempotencyKey":text}});
            self.keyed.push_front((key, session.clone(), text.clone()));
            self.keyed.truncate(8);
        }
        let asked = Asked::Prompt { session, text: text.clone() };
        self.say(id, "session/prompt", params, asked)?;
        Ok(text)
    }

    /// A client repeats a prompt under its key. One with a token may do that after a long time,
    /// when the session is another one.
    fn prompt_again(&mut self, id: ClientId) -> Result<(), String> {
        let Some(client) = self.clients.get(&id) else { return Ok(()) };
        let may_send = |(key, session, _): &&(SessionKey, String, String)| {
            let is_same = self.store.public.get(session) == Some(key) && self.store.has(*key);
            let agent = self.of_id(session).map(|(_, state)| state.row.agent.as_str());
            is_same && agent == Some(&client.agent) && client.may_work(session)
        };
        let Some((_, session, text)) = self.keyed.iter().find(may_send).cloned() else {
            return Ok(());
        };
        if client.ride.is_some() {
            return Ok(());
        }
        self.truth.hit("prompt sent again under its key");
        self.truth.shared.insert(text.clone());
        self.truth.given_back.remove(&text);
        let params = json!({"sessionId":session,"prompt":[{"type":"text","text":text}],
            "_meta":{"_acpd":{"idempotencyKey":text}}});
        self.say(id, "session/prompt", params, Asked::Prompt { session, text })
    }

    fn open_some(&mut self, id: ClientId) -> Result<(), String> {
        match self.its_session(id) {
            Some(session) => self.open(id, session),
            None => Ok(()),
        }
    }

    fn open(&mut self, id: ClientId, session: String) -> Result<(), String> {
        if self.clients.get(&id).is_none_or(|client| client.is_opening(&session)) {
            return Ok(());
        }
        let may_load = self.clients.get(&id).is_some_and(|client| client.may_load(&session));
        let load = may_load && self.rng.permille(500);
        let method = if load { "session/load" } else { "session/resume" };
        let cwd = self.directory_of(&session);
        let params = json!({"sessionId":session,"cwd":cwd,"mcpServers":[]});
        self.say(id, method, params, Asked::Open { session, load })
    }

    fn directory_of(&self, session: &str) -> String {
        self.of_id(session)
            .map_or_else(|| DIRECTORIES[0].to_owned(), |(_, state)| state.row.cwd.clone())
    }

    fn attach(&mut self, id: ClientId) -> Result<(), String> {
        let Some(session) = self.some_session(None) else { return Ok(()) };
        let Some(client) = self.clients.get(&id).filter(|client| !client.is_opening(&session))
        else {
            return Ok(());
        };
        let after = match client.places.get(&session) {
            Some(Place::At(seen)) => Some(*seen),
            _ if self.rng.permille(500) => Some(self.rng.below(20) as u64),
            _ => None,
        };
        let role = if self.rng.permille(300) { "observer" } else { "controller" };
        let mut params = json!({"ref":{"session":session},"role":role});
        if let Some(after) = after {
            params["after"] = json!(after);
        }
        self.say(id, "_acpd/session/attach", params, Asked::Attach { session, after })
    }

    fn cancel(&mut self, id: ClientId) -> Result<(), String> {
        let Some(client) = self.clients.get(&id) else { return Ok(()) };
        let open: Vec<String> = client.open.keys().cloned().collect();
        if self.rng.permille(400)
            && let Some(request) = self.rng.pick(&open)
        {
            let request: Value = serde_json::from_str(request).unwrap_or_default();
            return self.notify(id, "$/cancel_request", json!({"requestId":request}));
        }
        let Some(session) = self.its_session(id) else { return Ok(()) };
        self.notify(id, "session/cancel", json!({"sessionId":session}))
    }

    fn set_mode(&mut self, id: ClientId) -> Result<(), String> {
        let Some(session) = self.its_session(id) else { return Ok(()) };
        if self.clients.get(&id).is_none_or(|client| !client.may_work(&session)) {
            return Ok(());
        }
        let (method, params) = if self.rng.permille(700) {
            let mode = if self.rng.permille(500) { "ask" } else { "code" };
            ("session/set_mode", json!({"sessionId":session,"modeId":mode}))
        } else {
            let params = json!({"sessionId":session,"configId":"model","value":"b"});
            ("session/set_config_option", params)
        };
        self.say(id, method, params, Asked::Mode { session })
    }

    fn manage_session(&mut self, id: ClientId) -> Result<(), String> {
        let Some(session) = self.some_session(None) else { return Ok(()) };
        let reference = json!({"session":session});
        let opening = self.clients.get(&id).is_none_or(|client| client.is_opening(&session));
        let leave = Asked::Leave { session: session.clone() };
        let is_second = self.clients.get(&id).is_some_and(Client::is_second);
        match self.rng.below(20) {
            0 => self.say(id, "_acpd/session/close", reference, Asked::Plain),
            1 => self.delete(id, &session, reference),
            2 => {
                let name = format!("n{}", self.rng.below(4));
                let params = json!({"ref":reference,"name":name});
                self.say(id, "_acpd/session/rename", params, Asked::Plain)
            }
            3 if !opening => self.say(id, "_acpd/session/detach", reference, leave),
            4 if !opening => self.say(id, "session/close", json!({"sessionId":session}), leave),
            17.. if is_second && !opening => {
                self.say(id, "session/close", json!({"sessionId":session}), leave)
            }
            5 => self.say(id, "_acpd/session/log", json!({"ref":reference}), Asked::Plain),
            6 if self.rng.permille(500) => {
                let [add, remove] = [4, 4].map(|most| [format!("l{}", self.rng.below(most))]);
                let params = json!({"ref":reference,"add":add,"remove":remove});
                self.say(id, method::SESSION_LABEL, params, Asked::Plain)
            }
            6 => self.say(id, "_acpd/session/show", reference, Asked::Plain),
            7 => {
                self.truth.hit("session moved");
                let cwd = self.rng.pick(&DIRECTORIES).copied().unwrap_or_default();
                let params = json!({"ref":reference,"cwd":cwd});
                self.say(id, "_acpd/session/move", params, Asked::Plain)
            }
            8..10 => {
                let discard = self.rng.permille(500);
                let params = json!({"ref":reference,"discard":discard});
                self.say(id, "_acpd/session/reseed", params, Asked::Plain)
            }
            10..16 => self.fork(id),
            16..20 if self.steers => self.put_away(id, reference),
            _ => self.say(id, "_acpd/status", json!({}), Asked::Plain),
        }
    }

    fn delete(&mut self, id: ClientId, session: &str, reference: Value) -> Result<(), String> {
        let keeps = self.keep_deleted > 0;
        match self.next_text % 3 {
            0 if keeps => {
                let of_its = self.of_id(session).map(|(_, state)| state.row.agent.clone());
                let is_its = of_its.is_some_and(|agent| self.clients[&id].agent == agent);
                if is_its {
                    self.truth.hit("deleted in an editor");
                    let params = json!({"sessionId":session});
                    return self.say(id, "session/delete", params, Asked::Plain);
                }
                Ok(())
            }
            1 if keeps => {
                self.truth.hit("brought back");
                self.say(id, "_acpd/session/undo", json!({}), Asked::Plain)
            }
            _ => self.say(id, "_acpd/session/remove", reference, Asked::Plain),
        }
    }

    fn steer(&mut self, id: ClientId) -> Result<(), String> {
        let Some(session) = self.busy_session(id) else { return Ok(()) };
        if self.clients.get(&id).is_none_or(|client| !client.may_work(&session)) {
            return Ok(());
        }
        self.next_text += 1;
        let text = format!("P{}.", self.next_text);
        let blocks = json!([{"type":"text","text":text}]);
        let (method, params) = match self.rng.below(4) {
            0 => {
                let params = json!({"sessionId":session,"mode":"steer","content":blocks});
                ("session/inject", params)
            }
            1 => ("_session/steering", json!({"sessionId":session,"prompt":blocks})),
            _ => {
                let meta = json!({"steering":{"idleBehavior":"promptRequired"}});
                let params = json!({"sessionId":session,"prompt":blocks,"_meta":meta});
                ("_session/steering", params)
            }
        };
        self.say(id, method, params, Asked::Steer { session, text })
    }

    /// A session of this client's agent, preferably with a running turn.
    fn busy_session(&mut self, id: ClientId) -> Option<String> {
        let agent = self.clients.get(&id)?.agent.clone();
        let snapshot = &self.store.snapshot;
        let runs = |turn: &&TurnRow| matches!(turn.state, TurnStage::Dispatched { .. });
        let busy = snapshot.turns.values().filter(runs);
        let busy = busy.filter_map(|turn| snapshot.sessions.get(&turn.session));
        let busy: Vec<String> = busy
            .filter(|state| state.row.agent == agent)
            .map(|state| state.row.public_id.clone())
            .collect();
        match self.rng.pick(&busy) {
            Some(session) => Some(session.clone()),
            None => self.its_session(id),
        }
    }

    /// A client archives or unarchives a session, sets its title, or reads it.
    fn put_away(&mut self, id: ClientId, reference: Value) -> Result<(), String> {
        let session = reference["session"].as_str().unwrap_or_default().to_owned();
        let opening = self.clients.get(&id).is_none_or(|client| client.is_opening(&session));
        let own = json!({"sessionId":session});
        match self.rng.below(5) {
            0 => {
                self.truth.hit("session put away");
                self.say(id, method::SESSION_ARCHIVE, reference, Asked::Plain)
            }
            1 => self.say(id, method::SESSION_UNARCHIVE, reference, Asked::Plain),
            2 if !opening => {
                self.truth.hit("session put away by its own client");
                self.say(id, "session/archive", own, Asked::Leave { session })
            }
            3 => {
                self.truth.hit("session titled");
                let title = format!("t{}", self.rng.below(4));
                let params = json!({"ref":reference,"title":title});
                self.say(id, method::SESSION_TITLE, params, Asked::Plain)
            }
            _ => self.say(id, "session/status", own, Asked::Plain),
        }
    }

    fn fork(&mut self, id: ClientId) -> Result<(), String> {
        let Some(session) = self.its_session(id) else { return Ok(()) };
        if self.store.snapshot.sessions.len() > 8 {
            return Ok(());
        }
        self.say(id, "session/fork", json!({"sessionId":session,"cwd":"/w"}), Asked::New)
    }

    fn manage_agent(&mut self, id: ClientId) -> Result<(), String> {
        let agent = self.rng.pick(&AGENTS).copied().unwrap_or_default();
        let method = match self.rng.below(12) {
            0 if !self.calm => "_acpd/agent/stop",
            1 | 2 => "_acpd/agent/restart",
            3..9 => "_acpd/agent/start",
            _ => "_acpd/agent/show",
        };
        // The other methods ignore it.
        let force = self.rng.permille(500);
        self.say(id, method, json!({"agent":agent,"force":force}), Asked::Plain)
    }

    fn malformed(&mut self, id: ClientId) -> Result<(), String> {
        let Some(client) = self.clients.get_mut(&id) else { return Ok(()) };
        let open = client.open.keys().next().cloned();
        let line = match (self.rng.below(4), open) {
            (0, _) => Bytes::from_static(b"{nonsense"),
            (1, _) => Bytes::from_static(b"[]"),
            (_, Some(request)) if client.ride.is_none() => {
                client.open.entry(request.clone()).or_default().push(Asked::Duplicate);
                let line = format!("{{\"id\":{request},\"method\":\"_acpd/status\"}}");
                return self.feed(client_line(id, Bytes::from(line)));
            }
            _ => return Ok(()),
        };
        client.malformed += 1;
        let line = client.say(line);
        self.send(id, line)
    }

    /// A client answers one of its questions; with faults in any way.
    pub(super) fn answer_one(&mut self, id: ClientId) -> Result<bool, String> {
        let Some(client) = self.clients.get_mut(&id) else { return Ok(false) };
        if client.questions.is_empty() {
            return Ok(false);
        }
        let at = self.rng.below(client.questions.len());
        let (request, tool) = client.questions.swap_remove(at);
        let outcome = match if self.faults { self.rng.below(8) } else { 7 } {
            0 => json!({"outcome":{"outcome":"selected","optionId":"perhaps"}}),
            1 => json!({"outcome":"selected","optionId":"yes"}),
            2 => json!([{"outcome":"selected","optionId":"yes"}]),
            3 => {
                let error = json!({"code":-32800,"message":"cancelled"});
                self.tell(id, &json!({"jsonrpc":"2.0","id":request,"error":error}))?;
                return Ok(true);
            }
            _ => {
                let option = if self.rng.permille(500) { "yes" } else { "no" };
                self.truth.consents.insert((tool, option.to_owned()));
                json!({"outcome":{"outcome":"selected","optionId":option}})
            }
        };
        self.tell(id, &json!({"jsonrpc":"2.0","id":request,"result":outcome}))?;
        Ok(true)
    }

    /// Prompts every session that may continue; returns the sessions and prompts.
    pub(super) fn prompt_everywhere(&mut self) -> Result<Vec<(String, String)>, String> {
        let mut texts = Vec::new();
        let rows = self.store.sessions();
        let rows: Vec<_> = rows
            .filter(|state| state.row.rest != Dormant::Lost && !self.is_down(&state.row.agent))
            .map(|state| (state.row.agent.clone(), state.row.public_id.clone()))
            .collect();
        for (agent, session) in rows {
            let mut clients = self.clients.iter();
            // The last client that handled the session.
            let may = clients.rfind(|(_, client)| {
                client.agent == agent && client.may_work(&session) && !client.is_opening(&session)
            });
            let Some(id) = may.map(|(id, _)| *id) else { continue };
            let text = self.prompt_in(id, session.clone())?;
            texts.push((session, text));
        }
        Ok(texts)
    }

    /// A client gives up sessions that cannot be restored.
    pub(super) fn give_up_what_is_stuck(&mut self) -> Result<(), String> {
        let stuck: Vec<(String, String)> = self
            .store
            .snapshot
            .sessions
            .values()
            .filter(|state| matches!(state.row.rest, Dormant::Failed | Dormant::Lost))
            .map(|state| (state.row.agent.clone(), state.row.public_id.clone()))
            .collect();
        for (agent, session) in stuck {
            let mut clients = self.clients.iter();
            let Some((id, _)) = clients.find(|(_, client)| client.agent == agent) else { continue };
            let params = json!({"ref":{"session":session,"agent":agent}});
            self.truth.hit("given up in the end");
            self.say(*id, "_acpd/session/reseed", params, Asked::Plain)?;
        }
        Ok(())
    }

    /// Opens every session and ends running turns, or restarts agents that hang.
    pub(super) fn tidy_up(&mut self, restart: bool) -> Result<(), String> {
        for agent in AGENTS {
            let id = self.connect(agent)?;
            let mut hosts = self.hosts.values().filter(|host| host.agent == agent);
            if restart && hosts.any(|host| host.process.is_stuck()) {
                self.say(id, "_acpd/agent/restart", json!({"agent":agent}), Asked::Plain)?;
            }
            self.say(id, "authenticate", json!({"methodId":"x"}), Asked::Login)?;
            let sessions = self.store.sessions();
            let ids: Vec<String> = sessions
                .filter(|session| session.row.agent == agent)
                .map(|session| session.row.public_id.clone())
                .collect();
            for session in ids {
                let cwd = self.directory_of(&session);
                let params = json!({"sessionId":session,"cwd":cwd,"mcpServers":[]});
                let asked = Asked::Open { session: session.clone(), load: true };
                self.say(id, "session/load", params, asked)?;
                self.notify(id, "session/cancel", json!({"sessionId":session}))?;
            }
        }
        Ok(())
    }
}
