use acpd_api::{SessionInfo, SessionState, TurnState, Untrusted};
use acpd_view::human::{self, directory};
use acpd_view::text::{BOLD, Text};
use acpd_view::{Block, Consent, Folding, Kind, Progress, Role, Row, Style, text};
use ratatui::layout::Rect;
use ratatui::widgets::Widget as _;

use super::conversation::{id, is_prompt};
use super::layout::{ChatLayout, OnRows, Visible};
use super::{ChatScreen, Phase, Prompted};
use crate::app::{AWAY_AFTER_MS, AppState, OnScreen, Spot};
use crate::canvas::{Canvas, DOT};
use crate::fleet::{short, shown};
use crate::keymap::{Action, KeyPlace};
use crate::question;

const MARGIN: u16 = 3;
const TYPED_WIDTH: usize = 40;

/// A conversation and its row.
#[derive(Clone, Copy)]
struct Of<'a> {
    state: &'a AppState,
    chat: &'a ChatScreen,
    session: Option<&'a SessionInfo>,
}

pub(in crate::app) fn view(
    state: &AppState,
    chat: &ChatScreen,
    layout: &mut ChatLayout,
    canvas: &mut Canvas<'_>,
    area: Rect,
) -> OnScreen {
    let session = state.chat_session();
    let of = Of { state, chat, session };
    let place = chat.place();
    let width = area.width;

    // From the bottom: the prompt, the status, a question or a menu, the conversation.
    let room = area.height.saturating_sub(3);
    let prompt = chat.editor.height(width.saturating_sub(2)).min((room / 3).max(1));
    let status = area.bottom().saturating_sub(prompt + 1);
    let question = chat.card.id().and_then(|id| state.fleet.question(id));
    let prompt_list = chat.prompt_list.as_ref().filter(|_| place == KeyPlace::List);
    let refused = chat.refused.as_ref().map_or_else(Vec::new, |refused| refused.lines(width));
    let over = match (&chat.menu, prompt_list, question) {
        (Some(menu), ..) => menu.len(),
        (None, Some(prompt_list), _) => prompt_list.height(),
        (None, None, Some(question)) => question::height(question, width),
        (None, None, None) => refused.len(),
    };
    let over = u16::try_from(over).unwrap_or(u16::MAX);
    let left = status.saturating_sub(area.y + 2);
    let is_aside = place == KeyPlace::Prompt && question.is_some();
    let most = if is_aside { left / 2 } else { left.saturating_sub(2) };
    let over = over.min(most);
    let ruled = u16::from(over > 0);
    let end = status.saturating_sub(over + ruled);
    let body = Rect { y: area.y + 2, height: end.saturating_sub(area.y + 2), ..area };

    head(of, canvas, area);
    let (visible, is_empty, spots) = conversation(of, layout, canvas, body);
    rule_above(of, &visible, canvas, area.y + 1);
    if is_empty {
        nothing(state, chat, canvas, body);
    }
    if over > 0 {
        let is_question = chat.menu.is_none() && prompt_list.is_none();
        let words = question.filter(|_| is_question).map(|question| {
            text!(" asked {} ago ", human::duration(state.now.saturating_sub(question.at)))
        });
        let ruled = Text::repeated("═", usize::from(width.saturating_sub(2)));
        canvas.line(1, end, width, &Text::of(Role::Warning, ruled));
        let words = Text::of(Role::Warning, words.unwrap_or_default());
        canvas.right(0, end, width.saturating_sub(4), &words);
    }
    let pane = Rect { y: end + ruled, height: over, ..area };
    let mut drawn = None;
    match (&chat.menu, prompt_list, question) {
        (Some(menu), ..) => canvas.lines(pane, menu.lines(usize::from(over))),
        (None, Some(prompt_list), _) => canvas.lines(pane, prompt_list.lines(usize::from(over))),
        (None, None, Some(question)) => {
            let head = text!(" ? {}", question::asks(question, state.scene.home.as_deref()));
            let head = Text::of(Style::of(Role::Warning).strong(), head);
            drawn = question::view(canvas, pane, &chat.card, question, &head);
        }
        (None, None, None) => {
            let pane = Rect { x: area.x + 1, width: width.saturating_sub(1), ..pane };
            canvas.lines(pane, refused);
        }
    }
    draw_status(of, canvas, status, width);
    let editor = Rect { x: 1, y: status + 1, width: width.saturating_sub(2), height: prompt };
    let editor = editor.intersection(canvas.buffer().area);
    chat.editor.widget(chat.takes_words()).render(editor, canvas.buffer());
    let page = usize::from(body.height);
    let is_near_beginning = visible.is_near_beginning;
    OnScreen { question: drawn, page, is_near_beginning, spots }
}

fn head(Of { state, chat, session }: Of<'_>, canvas: &mut Canvas<'_>, area: Rect) {
    let home = state.scene.home.as_deref();
    let title = session.filter(|s| s.name.is_none()).and_then(|s| s.title.as_ref());
    let name = match (title, session) {
        (Some(title), _) => Text::from(title).cut(usize::from(area.width / 3)),
        (None, Some(session)) => shown(session),
        (None, None) if chat.is_beginning() => "new session".into(),
        (None, None) => short(&chat.key.session_id),
    };
    let mut left =
        Text::of(BOLD, text!(" {}", name)).and(Role::Dim, text!("{}{}", DOT, chat.key.agent));
    let begins_in = chat.is_beginning().then(|| Untrusted::from(state.scene.cwd.as_str()));
    if let Some(cwd) = session.map(|session| &session.cwd).or(begins_in.as_ref()) {
        left = left.and(Role::Dim, DOT).and(Role::Name, directory(cwd, home));
    }
    let header = chat.conversation.folded.header();
    let mut facts: Vec<Text> = Vec::new();
    facts.extend(header.mode.as_ref().map(|mode| Text::from(header.mode_name(mode))));
    facts.extend(header.option("model").map(|model| Text::from(&model.value_name())));
    let reported = header.usage.as_ref();
    if let Some((used, size)) = reported.and_then(|usage| usage.used.zip(usage.size)) {
        facts.push(text!("{}% of {}", used.saturating_mul(100) / size, human::count(size)));
    }
    let known = session.and_then(|session| session.usage.as_ref());
    let mut usages = reported.into_iter().chain(known);
    facts.extend(usages.find_map(|usage| usage.cost.as_ref()).map(human::cost));
    // Connections of this program are not other clients. With a place, they count as one client.
    let apart = if state.scene.who.place.is_some() { 0 } else { chat.prompts.len() };
    let own = u32::try_from(1 + apart).unwrap_or(u32::MAX);
    match session.map_or(0, |session| session.clients.saturating_sub(own)) {
        0 => {}
        1 => facts.push("1 other here".into()),
        others => facts.push(text!("{} others here", others)),
    }
    let facts = Text::of(Role::Dim, Text::join(facts, DOT));
    let taken = canvas.right(area.x, area.y, area.width.saturating_sub(1), &facts);
    canvas.line(area.x, area.y, area.width.saturating_sub(taken + 2), &left);
}

fn rule_above(of: Of<'_>, visible: &Visible, canvas: &mut Canvas<'_>, y: u16) {
    let Of { state, chat, session } = of;
    let last = session.map_or(0, |session| session.seq);
    let width = canvas.buffer().area.width;
    canvas.rule(y);
    let place = if chat.in_blocks { KeyPlace::Blocks } else { KeyPlace::Prompt };
    let key = |action| state.key_of(place, action);
    let words = match (&chat.phase, visible.is_live, visible.below) {
        (Phase::Starting { .. }, ..) => " starting ".into(),
        (Phase::NotBegun, ..) => " no session ".into(),
        (Phase::Opening | Phase::CatchingUp, ..) => " reading ".into(),
        (Phase::Stopped { .. } | Phase::Over(_), true, _) => Text::new(),
        (_, true, _) => text!(" {} live ", "↓"),
        (_, false, 0) => text!(" {} more: {} ", "↓", key(Action::PageDown)),
        (_, false, 1) => text!(" {} 1 block below: {} ", "↓", key(Action::Last)),
        (_, false, below) => text!(" {} {} blocks below: {} ", "↓", below, key(Action::Last)),
    };
    let is_known = !visible.is_live && visible.first > 0 && last >= visible.first;
    let words = if is_known {
        text!(" line {} of {} {}{}", visible.first, last, "──", words)
    } else {
        words
    };
    let style = if visible.is_live { Role::Dim } else { Role::Warning };
    canvas.right(0, y, width.saturating_sub(4), &Text::of(style, words));
}

/// Returns the visible part, whether the conversation is empty, and the click targets.
fn conversation(
    of: Of<'_>,
    layout: &mut ChatLayout,
    canvas: &mut Canvas<'_>,
    area: Rect,
) -> (Visible, bool, Vec<(u16, Spot)>) {
    let Of { state, chat, .. } = of;
    let conversation = &chat.conversation;
    let rows = conversation.rows();
    let width = usize::from(area.width.saturating_sub(MARGIN + 1)).max(8);
    let height = usize::from(area.height);
    let words = &chat.search.words;
    let on_rows = OnRows { conversation, rows: &rows, height };
    let visible = layout.lay_out(chat.link, on_rows, width, words);
    let mut spots = Vec::new();
    for (y, placed) in (area.y..area.bottom()).zip(&visible.lines) {
        let Some(row) = placed.row.map(|at| &rows[at]) else { continue };
        spots.push((y, Spot::Block(id(row))));
        let is_selected = conversation.is_selected(row);
        if placed.is_head {
            let (sign, style) = mark(chat, row);
            canvas.line(area.x + 1, y, 1, &Text::of(style, sign));
        }
        if is_selected {
            canvas.line(area.x, y, 1, &Text::of(Style::of(Role::Name).strong(), "▌"));
        }
        let time = match row {
            [block] if placed.is_head => running(state, chat, block),
            _ => None,
        };
        let taken = time.map_or(0, |time| {
            canvas.right(area.x, y, area.width.saturating_sub(1), &Text::of(Role::Dim, time)) + 2
        });
        let margin = if is_prompt(row) { 1 } else { MARGIN };
        let room = area.width.saturating_sub(margin + taken);
        canvas.line(area.x + margin, y, room, &placed.line);
        canvas.mark(area.x + margin, y, room, &placed.line, words);
    }
    (visible, rows.is_empty(), spots)
}

fn mark(chat: &ChatScreen, row: Row<'_>) -> (&'static str, Style) {
    let [block] = row else { return ("▸", Role::Dim.into()) };
    let can_fold = block.tool_call().is_some()
        || matches!(block.kind, Kind::Thought(_) | Kind::Plan(_) | Kind::Subagent(_));
    match block.progress {
        _ if !can_fold => ("", Role::Plain.into()),
        Progress::Running => ("*", Style::of(Role::Good).strong()),
        Progress::Failed => ("!", Style::of(Role::Bad).strong()),
        _ if chat.conversation.folding(block) == Folding::Closed => ("▸", Role::Dim.into()),
        _ => ("▾", Role::Dim.into()),
    }
}

/// Returns the running time of a call.
fn running(state: &AppState, chat: &ChatScreen, block: &Block) -> Option<Text> {
    let waits = block.consent() == Some(Consent::Asked);
    let is_running = block.tool_call().is_some() && block.progress == Progress::Running && !waits;
    let began = chat.conversation.began(block.id).filter(|_| is_running)?;
    Some(text!("running {}", human::duration(state.now.saturating_sub(began))))
}

fn nothing(state: &AppState, chat: &ChatScreen, canvas: &mut Canvas<'_>, area: Rect) {
    let key = state.key_of(KeyPlace::Prompt, Action::Confirm);
    let (style, words) = match &chat.phase {
        Phase::Starting { .. } => {
            (Role::Dim, text!("write below: {} sends it as soon as the session is there", key))
        }
        Phase::NotBegun => (Role::Dim, text!("the session did not begin: {} tries it again", key)),
        Phase::Opening => (Role::Dim, "opening".into()),
        Phase::CatchingUp => (Role::Dim, "reading".into()),
        Phase::Stopped { .. } => (Role::Bad, state.start_hint(KeyPlace::Prompt)),
        Phase::Over(why) => (Role::Bad, why.clone()),
        Phase::Live | Phase::AwaySince(_) => {
            (Role::Dim, text!("nothing was said yet: write below, {} sends it", key))
        }
    };
    canvas.line(area.x + MARGIN, area.y + 1, area.width.saturating_sub(4), &Text::of(style, words));
}

fn draw_status(of: Of<'_>, canvas: &mut Canvas<'_>, y: u16, width: u16) {
    canvas.rule(y);
    let space = |line: Text| Text::from(" ") + line + " ";
    let mut taken = 0;
    if let Some(left) = now(of).map(space) {
        taken = u16::try_from(left.width()).unwrap_or(u16::MAX).min(width.saturating_sub(4));
        canvas.line(3, y, width.saturating_sub(4), &left);
    }
    if let Some(right) = next(of).map(space) {
        let room = width.saturating_sub(taken + 10);
        let x = width.saturating_sub(4 + room);
        canvas.right(x, y, room, &right.cut(usize::from(room)));
    }
}

/// The left part of the status: search, message, trouble or turn.
fn now(of: Of<'_>) -> Option<Text> {
    let Of { state, chat, session } = of;
    if let Some(typed) = &chat.search.typed {
        let line = Text::of(Style::of(Role::Name).strong(), "/ ");
        let typed = typed.shown(TYPED_WIDTH).0;
        return Some(line.and(Role::Plain, typed).and(Role::Name, "▌"));
    }
    if let Some(searches) = state.search_status() {
        return Some(Text::of(Role::Warning, searches));
    }
    let is_draft = |doubted: &&String| **doubted == chat.editor.said().text;
    if let Some(doubted) = chat.doubted.as_ref().filter(is_draft) {
        let doubted = Untrusted::from(doubted.trim());
        let key = |action| state.key_of(KeyPlace::Prompt, action);
        let (answers, sends) = (key(Action::Blocks), key(Action::Confirm));
        let words =
            text!("to answer: {}; {} again sends \"{}\" as a prompt", answers, sends, doubted);
        return Some(Text::of(Role::Warning, words));
    }
    if let Some((flash, _)) = &state.flash {
        return Some(flash.clone());
    }
    if let Some(trouble) = trouble(of) {
        return Some(trouble);
    }
    let turn = &session.filter(|session| session.turn.state != TurnState::Idle)?.turn;
    Some(match turn.state {
        TurnState::NeedsAction => {
            let words = if chat.card.has_keys() {
                "? choose an answer; Esc goes back without one".into()
            } else {
                text!("? {} goes to the question", state.key_of(KeyPlace::Prompt, Action::Blocks))
            };
            Text::of(Style::of(Role::Warning).strong(), words)
        }
        _ => {
            let since = human::duration(state.now.saturating_sub(turn.since));
            Text::of(Style::of(Role::Good).strong(), text!("* works {}", since))
        }
    })
}

/// The right part of the status: queue, other questions or step of the plan.
fn next(of: Of<'_>) -> Option<Text> {
    let Of { state, chat, session } = of;
    let has_begun =
        |prompt: &Prompted| chat.conversation.has_prompt(&prompt.said.text, prompt.after);
    let sent = chat.prompts.iter().filter(|prompt| !has_begun(prompt)).map(|prompt| &prompt.said);
    let first = sent.chain(&chat.waits).next();
    let waits = u32::try_from(chat.waits.len()).unwrap_or(u32::MAX);
    let queued = session.map_or(0, |session| session.queued).saturating_add(waits);
    if queued > 0 {
        let key = state.key_of(KeyPlace::Prompt, Action::Queue);
        let words = match (queued, first) {
            (1, Some(only)) => {
                text!("1 queued: {} ({} changes it)", only.summary().cut(24), key)
            }
            (1, None) => text!("1 queued ({} changes it)", key),
            _ => text!("{} queued ({} changes them)", queued, key),
        };
        return Some(Text::of(Role::Dim, words));
    }
    if chat.card.id().is_some()
        && let Some(others) = state.other_questions()
    {
        return Some(Text::of(Role::Dim, others));
    }
    let steps = chat.conversation.folded.header().plan.as_deref().unwrap_or_default();
    let is_at_work = steps.iter().any(|step| step.status == "in_progress");
    is_at_work.then(|| Text::of(Role::Dim, acpd_view::plan(steps)))
}

fn trouble(of: Of<'_>) -> Option<Text> {
    let Of { state, chat, session } = of;
    match &chat.phase {
        Phase::Starting { since, .. } => {
            let words = text!("* starting {}", chat.key.agent);
            let since = human::duration(state.now.saturating_sub(*since));
            let line = Text::of(Style::of(Role::Good).strong(), words);
            return Some(line.and(Role::Dim, text!("  {}", since)));
        }
        Phase::AwaySince(since) if state.now >= since + AWAY_AFTER_MS => {
            return Some(Text::of(
                Role::Warning,
                "acpd is not running, reconnecting; the draft stays",
            ));
        }
        Phase::Stopped { .. } => {
            return Some(Text::of(Role::Bad, state.start_hint(KeyPlace::Prompt)));
        }
        Phase::Over(why) => return Some(Text::of(Role::Bad, why)),
        _ => {}
    }
    let session = session?;
    let word = match session.state {
        SessionState::Restoring => return Some(Text::of(Role::Dim, "the session comes back")),
        SessionState::Blocked => "blocked",
        SessionState::Lost => "lost",
        _ => return None,
    };
    let reason = session.reason.as_ref().map(|reason| text!(": {}", reason));
    Some(Text::of(Role::Bad, text!("{}{}", word, reason)))
}

/// Returns the word of a key for the footer; none for a key without a use.
pub(in crate::app) fn footer_word(
    state: &AppState,
    chat: &ChatScreen,
    (place, action): (KeyPlace, Action),
    word: &'static str,
) -> Option<&'static str> {
    let (is_running, has_draft) = (state.is_turn_running(), !chat.editor.is_empty());
    let is_useful = match (place, action) {
        (KeyPlace::Prompt, Action::Steer) => is_running,
        (KeyPlace::Prompt, Action::Cancel) => is_running || has_draft,
        (KeyPlace::Line, Action::Steer | Action::NextAgent) => false,
        (KeyPlace::Question, Action::PageDown) => {
            state.on_screen.question.as_ref().is_some_and(|drawn| drawn.most > 0)
        }
        _ => true,
    };
    let word = match action {
        Action::Blocks if chat.card.id().is_some() => "question",
        Action::Cancel if has_draft => "clear",
        Action::Confirm if chat.search.typed.is_some() => "search",
        _ => word,
    };
    is_useful.then_some(word)
}
