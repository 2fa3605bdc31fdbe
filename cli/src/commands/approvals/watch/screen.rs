//! The screen of `callgate approvals watch`: what is on it, and what keys do. It decides nothing and reads no terminal.

use callgate_core::confirm::Verdict;
use callgate_core::digest::Digest;
use callgate_std::confirmations::PendingApproval;
use callgate_std::render::approver::{self, Strict};
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, List, ListItem, ListState, Paragraph, Wrap};

use super::super::request;

/// How many lines a page moves.
const PAGE: u16 = 10;

/// What is to be done because of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Nothing,
    Leave,
    /// Leave as by a signal: Ctrl-C is a key on a screen.
    Interrupt,
    /// Look again at what waits.
    Refresh,
    /// Decide, as was asked for and confirmed.
    Decide(Digest, Verdict),
}

/// What is on the screen.
#[derive(Default)]
pub(super) struct Screen {
    waiting: Vec<PendingApproval>,
    /// The request that is looked at, by its ticket: the list may change under it.
    selected: Option<Digest>,
    /// How far its text is moved up.
    scroll: u16,
    /// What is asked: whether this request really is to be decided so.
    asking: Option<(Digest, Verdict)>,
    /// What was done last, and whether it went well.
    message: Option<(String, bool)>,
}

impl Screen {
    /// Takes what waits now. The request that is looked at stays the same, as long as it waits.
    pub(super) fn update(&mut self, waiting: Vec<PendingApproval>) {
        self.waiting = waiting;
        let there = |ticket: Digest| self.waiting.iter().any(|request| request.ticket == ticket);
        if self.selected.is_none_or(|ticket| !there(ticket)) {
            self.selected = self.waiting.first().map(|request| request.ticket);
            self.scroll = 0;
        }
        if let Some((ticket, _)) = self.asking
            && !there(ticket)
        {
            self.asking = None;
            self.message = Some(("the request does not wait any more".to_owned(), false));
        }
    }

    /// Says what became of something.
    pub(super) fn say(&mut self, text: impl Into<String>, well: bool) {
        self.message = Some((text.into(), well));
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: KeyEvent) -> Act {
        if key.kind == KeyEventKind::Release {
            return Act::Nothing;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Act::Interrupt;
        }
        if let Some((ticket, verdict)) = self.asking.take() {
            return match key.code {
                KeyCode::Char('y' | 'Y') => Act::Decide(ticket, verdict),
                _ => {
                    self.say("not decided", true);
                    Act::Nothing
                }
            };
        }
        self.message = None;
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Act::Leave,
            KeyCode::Char('r') => return Act::Refresh,
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => {
                self.scroll = self.scroll.saturating_add(PAGE).min(self.last_line());
            }
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::Char('a') => self.ask(Verdict::Approve),
            KeyCode::Char('d') => self.ask(Verdict::Deny),
            _ => {}
        }
        Act::Nothing
    }

    fn ask(&mut self, verdict: Verdict) {
        let Some(request) = self.current() else { return };
        // D2: it takes the digest of what was read elsewhere.
        if verdict == Verdict::Approve && !approver::is_whole(&request.summary) {
            let id = request::short_id(request);
            self.say(format!("not shown whole: callgate approvals approve {id} --digest DIGEST"), false);
            return;
        }
        self.asking = Some((request.ticket, verdict));
    }

    fn current(&self) -> Option<&PendingApproval> {
        self.waiting.iter().find(|request| Some(request.ticket) == self.selected)
    }

    fn place(&self) -> Option<usize> {
        self.waiting.iter().position(|request| Some(request.ticket) == self.selected)
    }

    fn step(&mut self, by: isize) {
        let last = self.waiting.len().saturating_sub(1);
        let place = self.place().unwrap_or(0).saturating_add_signed(by).min(last);
        self.selected = self.waiting.get(place).map(|request| request.ticket);
        self.scroll = 0;
    }

    fn last_line(&self) -> u16 {
        let lines = self.current().map_or(0, |request| request.summary.lines().count());
        u16::try_from(lines).unwrap_or(u16::MAX).saturating_sub(1)
    }

    /// Draws it.
    pub(super) fn draw(&self, frame: &mut Frame<'_>) {
        let heights = [Constraint::Length(1), Constraint::Fill(1), Constraint::Fill(3), Constraint::Length(1)];
        let [head, list, view, foot] = Layout::vertical(heights).areas(frame.area());
        let count = match self.waiting.len() {
            1 => "1 request waits".to_owned(),
            count => format!("{count} requests wait"),
        };
        frame.render_widget(Line::from(format!("callgate approvals: {count}")).bold(), head);
        self.draw_list(frame, list);
        self.draw_request(frame, view);
        frame.render_widget(self.foot(), foot);
    }

    fn draw_list(&self, frame: &mut Frame<'_>, area: Rect) {
        let items = self.waiting.iter().map(|request| {
            let who = request.principal.as_deref().unwrap_or("nobody known");
            let (id, tool) = (request::short_id(request), Strict(&request.tool));
            ListItem::new(format!("{id}  {tool}  by {}  until {}", Strict(who), request.expires_at))
        });
        let list = List::new(items)
            .block(Block::bordered().title("waiting"))
            .highlight_symbol("> ")
            .highlight_style(Style::new().add_modifier(Modifier::REVERSED));
        frame.render_stateful_widget(list, area, &mut ListState::default().with_selected(self.place()));
    }

    fn draw_request(&self, frame: &mut Frame<'_>, area: Rect) {
        let Some(request) = self.current() else {
            let nothing = Paragraph::new("nothing waits that this approver could decide");
            return frame.render_widget(nothing.block(Block::bordered()), area);
        };
        let mut lines: Vec<Line<'_>> = request::about(request)
            .into_iter()
            .map(|(name, value)| Line::from(format!("{name:<10} {value}")).dim())
            .collect();
        for line in request.summary.lines() {
            // A bar before what the gate shows, as on the command line.
            let line = format!("| {line}");
            lines.push(if approver::is_whole(line.trim_start_matches("| ")) {
                line.into()
            } else {
                Line::from(line).yellow()
            });
        }
        let title = format!("what would run ({} lines)", request.summary.lines().count());
        let text = Paragraph::new(lines).wrap(Wrap { trim: false }).scroll((self.scroll, 0));
        frame.render_widget(text.block(Block::bordered().title(title)), area);
    }

    fn foot(&self) -> Line<'_> {
        if let Some((ticket, verdict)) = self.asking {
            let mut id = ticket.to_string();
            id.truncate(request::SHORT);
            let what = match verdict {
                Verdict::Approve => "approve",
                Verdict::Deny => "deny",
            };
            return Line::from(format!("{what} {id}? y / any other key")).bold();
        }
        match &self.message {
            Some((text, true)) => Line::from(text.as_str()).green(),
            Some((text, false)) => Line::from(text.as_str()).red(),
            None => Line::from("up/down select  pgup/pgdn scroll  a approve  d deny  r refresh  q quit").dim(),
        }
    }
}

#[cfg(test)]
mod tests {
    use callgate_core::time::Timestamp;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn asked(number: u8, summary: &str) -> PendingApproval {
        PendingApproval {
            ticket: Digest::from_bytes([number; 32]),
            tool: format!("tool.{number}"),
            tenant: None,
            principal: Some("alice".into()),
            channel: "mcp".into(),
            request_id: format!("r-{number}"),
            scope: "approve".into(),
            summary: summary.into(),
            issued_at: Timestamp::from_unix_millis(0),
            expires_at: Timestamp::from_unix_millis(60_000),
        }
    }

    fn press(screen: &mut Screen, code: KeyCode) -> Act {
        screen.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn drawn(screen: &Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().to_string()
    }

    fn screen() -> Screen {
        let mut screen = Screen::default();
        screen.update(vec![asked(1, "tool.1\n  a = 1\n"), asked(2, "tool.2\n  b = \"\\u{202e}\"\n")]);
        screen
    }

    #[test]
    fn d1_what_would_run_is_on_the_screen() {
        let mut screen = screen();
        let first = drawn(&screen, 100, 24);
        for text in [
            "2 requests wait",
            "> 010101010101  tool.1  by alice",
            "|   a = 1",
            "asked by   alice through mcp, request r-1",
        ] {
            assert!(first.contains(text), "{text}: {first}");
        }
        press(&mut screen, KeyCode::Down);
        let second = drawn(&screen, 100, 24);
        assert!(second.contains(r#"|   b = "\u{202e}""#) && second.contains("> 020202020202"), "{second}");
        press(&mut screen, KeyCode::Down);
        assert_eq!(drawn(&screen, 100, 24), second, "there is no third");
        screen.update(Vec::new());
        assert!(drawn(&screen, 100, 24).contains("nothing waits"));
        assert_eq!(press(&mut screen, KeyCode::Char('a')), Act::Nothing);
    }

    // A12 in small: what was asked about is what is decided, whatever comes into the list meanwhile.
    #[test]
    fn a8_a_yes_is_for_the_request_that_was_asked_about() {
        let mut screen = screen();
        press(&mut screen, KeyCode::Down);
        assert_eq!(press(&mut screen, KeyCode::Char('a')), Act::Nothing);
        assert!(drawn(&screen, 100, 24).contains("approve 020202020202? y"));
        screen.update(vec![asked(9, "tool.9\n"), asked(1, "tool.1\n"), asked(2, "tool.2\n")]);
        let two = Digest::from_bytes([2; 32]);
        assert_eq!(press(&mut screen, KeyCode::Char('y')), Act::Decide(two, Verdict::Approve));
        assert_eq!(press(&mut screen, KeyCode::Char('y')), Act::Nothing, "once");
        press(&mut screen, KeyCode::Char('d'));
        assert_eq!(press(&mut screen, KeyCode::Char('n')), Act::Nothing);
        press(&mut screen, KeyCode::Char('d'));
        assert_eq!(press(&mut screen, KeyCode::Char('Y')), Act::Decide(two, Verdict::Deny));
        // One that is gone is not decided, and no other one instead of it.
        press(&mut screen, KeyCode::Char('a'));
        screen.update(vec![asked(1, "tool.1\n")]);
        assert_eq!(press(&mut screen, KeyCode::Char('y')), Act::Nothing);
    }

    // D2
    #[test]
    fn d2_what_is_not_shown_whole_is_not_approved_here() {
        let mut screen = Screen::default();
        let view = approver::view(
            "t",
            &format!("{{\"a\":\"{}\"}}", "x".repeat(20_000)),
            &[],
            &[],
            Digest::from_bytes([3; 32]),
        );
        screen.update(vec![asked(1, &view)]);
        press(&mut screen, KeyCode::Char('a'));
        assert_eq!(press(&mut screen, KeyCode::Char('y')), Act::Nothing);
        press(&mut screen, KeyCode::Char('a'));
        assert!(drawn(&screen, 100, 24).contains("--digest DIGEST"));
        press(&mut screen, KeyCode::Char('d'));
        assert!(matches!(press(&mut screen, KeyCode::Char('y')), Act::Decide(_, Verdict::Deny)));
    }

    #[test]
    fn keys_leave_scroll_and_refresh() {
        let mut screen = Screen::default();
        let lines: String = (0..200).map(|line| format!("  line[{line}] = 1\n")).collect();
        screen.update(vec![asked(1, &lines)]);
        assert!(drawn(&screen, 80, 30).contains("line[0]"));
        for _ in 0..50 {
            press(&mut screen, KeyCode::PageDown);
        }
        let end = drawn(&screen, 80, 30);
        assert!(end.contains("line[199]") && !end.contains("line[0]"), "{end}");
        press(&mut screen, KeyCode::PageUp);
        for (code, act) in [
            (KeyCode::Char('r'), Act::Refresh),
            (KeyCode::Char('q'), Act::Leave),
            (KeyCode::Esc, Act::Leave),
            (KeyCode::Char('x'), Act::Nothing),
        ] {
            assert_eq!(press(&mut screen, code), act, "{code:?}");
        }
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.press(interrupt), Act::Interrupt);
        press(&mut screen, KeyCode::Char('a'));
        assert_eq!(screen.press(interrupt), Act::Interrupt, "also while it asks");
    }

    #[test]
    fn it_is_drawn_in_any_size() {
        let screen = screen();
        for (width, height) in [(1, 1), (2, 2), (10, 3), (40, 5), (200, 60)] {
            drawn(&screen, width, height);
        }
    }
}
