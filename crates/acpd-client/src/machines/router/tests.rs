use serde_json::Value;

use super::*;

const HERE_AT: usize = 0;
const BOX: usize = 1;

struct Scene {
    router: Router,
    start: Instant,
}

fn scene() -> Scene {
    let router = Router::new(["", "box"].map(str::to_owned).into());
    Scene { router, start: Instant::now() }
}

/// Steps as text: `here` or `box` with the line for it, or `client`, or `close`.
fn shown_steps(steps: Vec<RouteStep>) -> Vec<(&'static str, Value)> {
    let value = |line: Bytes| serde_json::from_slice(&line).expect("JSON");
    let step = |step| match step {
        ToClient(line) => ("client", value(line)),
        ToMachine(HERE_AT, line) => ("here", value(line)),
        ToMachine(_, line) => ("box", value(line)),
        Close => ("close", Value::Null),
    };
    steps.into_iter().map(step).collect()
}

impl Scene {
    fn client(&mut self, line: &Value) -> Vec<(&'static str, Value)> {
        shown_steps(self.router.on_client(line.to_string().into(), self.start))
    }

    fn machine(&mut self, machine: usize, line: &Value) -> Vec<(&'static str, Value)> {
        shown_steps(self.router.on_machine(machine, &line.to_string().into()))
    }

    fn down(&mut self, machine: usize) -> Vec<(&'static str, Value)> {
        shown_steps(self.router.on_down(machine, "box is away", self.start))
    }

    /// Watches rows: one session of each machine.
    fn watch(&mut self) {
        self.client(&request(1, method::WATCH, json!({})));
        for machine in [HERE_AT, BOX] {
            self.machine(machine, &answer(1, rows(&["s"])));
        }
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn answer(id: impl Into<Value>, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": result})
}

fn session(id: &str) -> Value {
    json!({"sessionId": id, "agent": "demo", "cwd": "/w", "state": "live",
        "turn": {"state": "idle", "since": 0}, "queued": 0, "clients": 0, "prompts": 1, "seq": 4,
        "created": 0, "updated": id.len()})
}

fn rows(sessions: &[&str]) -> Value {
    let sessions: Vec<_> = sessions.iter().map(|id| session(id)).collect();
    json!({"sessions": sessions, "agents": [], "interactions": []})
}

fn ids(rows: &Value) -> Vec<&str> {
    let rows = rows["sessions"].as_array().expect("sessions").iter();
    rows.map(|row| row["sessionId"].as_str().expect("an id")).collect()
}

#[test]
fn a_list_is_joined_from_all_machines() {
    let mut scene = scene();
    let asked = scene.client(&request(7, method::SESSION_LIST, json!({})));
    assert_eq!(asked.iter().map(|(to, _)| *to).collect::<Vec<_>>(), ["here", "box"]);
    assert_eq!(scene.machine(HERE_AT, &answer(7, json!({"sessions": [session("a")]}))), []);
    let joined = scene.machine(BOX, &answer(7, json!({"sessions": [session("bb")]})));
    let (to, line) = &joined[0];
    assert_eq!(
        (*to, &line["id"], ids(&line["result"])),
        ("client", &json!(7), vec!["box/bb", "a"])
    );
    assert_eq!(line["result"]["hosts"], json!([{"name": "here"}, {"name": "box"}]));
}

#[test]
fn a_list_does_not_wait_for_a_machine_that_is_late_or_away() {
    let mut late = scene();
    late.client(&request(7, method::SESSION_LIST, json!({})));
    late.machine(HERE_AT, &answer(7, json!({"sessions": [session("a")]})));
    assert_eq!(late.router.wakes_at(), Some(late.start + LIST));
    let joined = shown_steps(late.router.on_time(late.start + LIST));
    let error = "no answer from `box` within 2 s";
    assert_eq!(joined[0].1["result"]["hosts"][1], json!({"name": "box", "error": error}));
    assert_eq!(late.machine(BOX, &answer(7, json!({"sessions": []}))), [], "too late");

    let mut away = scene();
    away.client(&request(7, method::SESSION_LIST, json!({})));
    away.machine(HERE_AT, &answer(7, json!({"sessions": [session("a")]})));
    let joined = away.down(BOX);
    assert_eq!(joined[0].1["result"]["hosts"][1]["error"], "box is away");
    assert_eq!(ids(&joined[0].1["result"]), ["a"]);

    let mut none = scene();
    none.client(&request(7, method::SESSION_LIST, json!({})));
    none.down(HERE_AT);
    assert_eq!(none.down(BOX)[0].1["error"]["message"], "box is away; box is away");
}

#[test]
fn a_conversation_stays_with_its_machine() {
    let mut scene = scene();
    let meta = json!({NAMESPACE: {"agent": "box/demo"}});
    let hello = scene.client(&request(1, "initialize", json!({"_meta": meta})));
    assert_eq!(hello[0].0, "box");
    assert_eq!(hello[0].1["params"]["_meta"][NAMESPACE]["agent"], "demo");
    // Requests without a name go where `initialize` went.
    let new = scene.client(&request(2, "session/new", json!({"cwd": "/w"})));
    assert_eq!((new.len(), new[0].0), (1, "box"));
    let session = scene.machine(BOX, &answer(2, json!({"sessionId": "s-1"})));
    assert_eq!(session, [("client", answer(2, json!({"sessionId": "box/s-1"})))]);
    // A question, its answer, and the end of the question.
    let meta = json!({NAMESPACE: {"id": "3-15"}});
    let params = json!({"sessionId": "s-1", "toolCall": {"sessionId": "s-1"}, "_meta": meta});
    let asked = scene.machine(BOX, &json!({"id": "3-15", "method": "ask", "params": params}));
    assert_eq!(asked[0].1["id"], "box/3-15");
    assert_eq!(asked[0].1["params"]["_meta"][NAMESPACE]["id"], "box/3-15");
    assert_eq!(asked[0].1["params"]["sessionId"], "box/s-1");
    assert_eq!(asked[0].1["params"]["toolCall"]["sessionId"], "s-1", "content stays");
    let answered = scene.client(&answer("box/3-15", json!("yes")));
    assert_eq!(answered, [("box", answer("3-15", json!("yes")))]);
    let cancel = json!({"method": CANCEL_REQUEST, "params": {"requestId": "3-15"}});
    assert_eq!(scene.machine(BOX, &cancel)[0].1["params"]["requestId"], "box/3-15");
    // The client's own cancel follows its request.
    scene.client(&request(3, "session/prompt", json!({"sessionId": "box/s-1"})));
    let cancel = json!({"method": CANCEL_REQUEST, "params": {"requestId": 3}});
    assert_eq!(scene.client(&cancel), [("box", cancel)]);
    assert_eq!(scene.down(BOX).last(), Some(&("close", Value::Null)));
}

#[test]
fn another_machine_is_greeted_before_it_is_used() {
    let mut scene = scene();
    scene.client(&request(1, "initialize", json!({"clientInfo": {"name": "test"}})));
    let session = json!({"ref": {"session": "box/s", "agent": "box/other"}});
    let steps = scene.client(&request(2, method::SESSION_ATTACH, session));
    assert_eq!(steps.len(), 2);
    assert_eq!((steps[0].0, &steps[0].1["method"]), ("box", &json!("initialize")));
    assert_eq!(steps[0].1["params"]["_meta"][NAMESPACE]["agent"], "other");
    assert_eq!(steps[0].1["params"]["clientInfo"]["name"], "test");
    let id = steps[0].1["id"].clone();
    assert_eq!(scene.machine(BOX, &answer(id, json!({}))), [], "not for the client");
    let session = json!({"ref": {"session": "box/s"}});
    assert_eq!(scene.client(&request(3, method::SESSION_ATTACH, session)).len(), 1);
}

#[test]
fn rows_of_a_machine_stay_while_it_is_away() {
    let mut scene = scene();
    scene.watch();
    let away = shown_steps(scene.router.on_away(BOX));
    let error = "the connection to `box` was lost; connecting again";
    assert_eq!(away[0].1["params"]["hosts"][1]["error"], error);
    assert_eq!(away[0].1["params"].get("removed"), None);
    let back = shown_steps(scene.router.on_back(BOX));
    assert_eq!(back[0].1["params"]["hosts"][1], json!({"name": "box"}));
    assert_eq!((back[1].0, &back[1].1["method"]), ("box", &json!(method::WATCH)));
    let changed = scene.machine(BOX, &answer(back[1].1["id"].clone(), rows(&["other"])));
    assert_eq!(ids(&changed[0].1["params"]), ["box/other"]);
    let removed = &changed[0].1["params"]["removed"]["sessions"];
    assert_eq!(*removed, json!([{"agent": "box/demo", "sessionId": "box/s"}]));
}

#[test]
fn a_watched_machine_that_cannot_be_reached_is_tried_again() {
    let mut scene = scene();
    scene.client(&request(1, method::WATCH, json!({})));
    scene.machine(HERE_AT, &answer(1, rows(&["s"])));
    let joined = scene.down(BOX);
    assert_eq!(ids(&joined[0].1["result"]), ["s"]);
    let at = scene.router.wakes_at().expect("another attempt");
    let again = shown_steps(scene.router.on_time(at));
    assert_eq!((again.len(), again[0].0), (1, "box"));
    assert_eq!(
        shown_steps(scene.router.on_up(BOX))[0].1["params"]["hosts"][1],
        json!({"name": "box"})
    );
    let changed = scene.machine(BOX, &answer(again[0].1["id"].clone(), rows(&["s"])));
    assert_eq!(ids(&changed[0].1["params"]), ["box/s"]);
}

#[test]
fn lines_of_a_journal_keep_their_content() {
    let mut scene = scene();
    let session = json!({"ref": {"session": "box/s"}, "after": 0});
    scene.client(&request(1, method::SESSION_LOG, session));
    let line = json!({"method": "session/update", "params": {"sessionId": "s",
        "update": {"name": "a", "agent": "b", "sessionId": "c"}}});
    let answered = json!({"method": method::ANSWERED, "params": {"sessionId": "s", "id": "3-15",
        "answer": {"name": "Allow"}}});
    let entries = [json!({"seq": 1, "line": line}), json!({"seq": 2, "line": answered})];
    let page = json!({"sessionId": "s", "entries": entries});
    let shared = scene.machine(BOX, &answer(1, page));
    let params = &shared[0].1["result"]["entries"][0]["line"]["params"];
    assert_eq!(params["sessionId"], "box/s");
    assert_eq!(params["update"], line["params"]["update"]);
    let notice = &shared[0].1["result"]["entries"][1]["line"]["params"];
    assert_eq!((&notice["id"], &notice["answer"]), (&json!("box/3-15"), &json!({"name": "Allow"})));
    assert_eq!(shared[0].1["result"]["sessionId"], "box/s");
}

#[test]
fn what_has_no_machine_is_here_after_another_one_was_greeted() {
    let mut scene = scene();
    let meta = json!({NAMESPACE: {"agent": "box/demo"}});
    scene.client(&request(1, "initialize", json!({"_meta": meta})));
    let own = json!({"ref": {"session": "s", "agent": "demo"}});
    let steps = scene.client(&request(2, method::SESSION_ATTACH, own));
    assert!(steps.iter().all(|(to, _)| *to == "here"), "{steps:?}");
    let asked = json!({"id": "3-15", "method": "ask", "params": {"sessionId": "s"}});
    assert_eq!(scene.machine(HERE_AT, &asked)[0].1["id"], "3-15");
    assert_eq!(scene.client(&answer("3-15", json!("yes")))[0].0, "here");
}

#[test]
fn rows_of_a_machine_continue_if_a_request_connects_again() {
    let mut scene = scene();
    scene.watch();
    scene.down(BOX);
    scene.client(&request(2, method::SESSION_SHOW, json!({"session": "box/s"})));
    let up = shown_steps(scene.router.on_up(BOX));
    assert_eq!((up[1].0, &up[1].1["method"]), ("box", &json!(method::WATCH)));
    assert_eq!(scene.router.wakes_at(), None);
}

#[test]
fn a_machine_that_was_late_is_shown_as_reachable() {
    let mut scene = scene();
    scene.client(&request(1, method::WATCH, json!({})));
    scene.machine(HERE_AT, &answer(1, rows(&["s"])));
    let joined = shown_steps(scene.router.on_time(scene.start + LIST));
    assert_eq!((joined[0].0, joined[1].0), ("box", "client"));
    let changed = scene.machine(BOX, &answer(joined[0].1["id"].clone(), rows(&["s"])));
    assert_eq!(changed[0].1["params"]["hosts"][1], json!({"name": "box"}));
    assert_eq!(ids(&changed[1].1["params"]), ["box/s"]);
}

#[test]
fn a_machine_has_no_way_to_names_of_another_one() {
    let mut scene = scene();
    scene.watch();
    let mut sent = |line: &str| {
        shown_steps(scene.router.on_machine(BOX, &Bytes::copy_from_slice(line.as_bytes())))
    };
    let twice = r#"{"method":"session/update","params":{"sessionId":"a","x":1,"sessionId":"s"}}"#;
    assert_eq!(sent(twice)[0].1["params"]["sessionId"], "box/a");
    let odd = r#"{"method":"session/update","params":{"sessionId":1,"sessionId":"s"}}"#;
    assert_eq!(sent(odd)[0].1["params"].get("sessionId"), None);
    assert_eq!(sent(r#"{"id":"x","id":"3-15","method":"ask","params":{}}"#), []);
    let hosts = r#"{"method":"_acpd/changed","params":{"hosts":[{"name":"here","error":"x"}]}}"#;
    assert_eq!(sent(hosts)[0].1["params"].get("hosts"), None);
}

#[test]
fn a_machine_answers_only_its_own_requests() {
    let mut scene = scene();
    scene.client(&request(1, method::SESSION_SHOW, json!({"session": "s"})));
    assert_eq!(scene.machine(BOX, &answer(1, session("s"))), [], "a request to here");
    assert_eq!(scene.machine(HERE_AT, &answer(1, session("s")))[0].0, "client");
    scene.client(&request(2, "initialize", json!({})));
    let steps = scene.client(&request(3, "session/prompt", json!({"sessionId": "box/s"})));
    let greeting = answer(steps[0].1["id"].clone(), json!({}));
    assert_eq!(scene.machine(HERE_AT, &greeting), []);
    // An id stands for one request.
    let again = scene.client(&request(3, method::STATUS, json!({})));
    assert_eq!((again[0].0, &again[0].1["error"]["code"]), ("client", &json!(-32600)));
    assert_eq!(scene.machine(BOX, &answer(3, json!({})))[0].1["result"], json!({}));
}

#[test]
fn failed_attempts_leave_no_open_requests() {
    let mut scene = scene();
    scene.watch();
    for _ in 0..3 {
        scene.down(BOX);
        let at = scene.router.wakes_at().expect("another attempt");
        scene.router.on_time(at);
    }
    assert_eq!(scene.router.open.len(), 1);
}
