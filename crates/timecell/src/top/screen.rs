//! The screen: the keys, the drawing, and the loop of the terminal.

use std::io;
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::columns;
use super::order::Order;
use super::scene::{Scene, Source};

const KEYS: &str =
    "q quit   s sort by the next column   r reverse   / filter   arrows, page keys scroll";

/// The state of the screen.
pub struct Screen {
    seen: Result<Scene, String>,
    order: Order,
    /// First row shown.
    top: usize,
    /// Rows that fit.
    room: usize,
    /// Whether keys go to the filter.
    typing: bool,
    colour: bool,
}

/// Shows the source until the user quits.
///
/// # Errors
/// If the terminal cannot be used.
pub fn show(source: &mut dyn Source, interval: Duration, order: Order) -> io::Result<()> {
    let mut screen = Screen::new(source.look(), order);
    let mut terminal = ratatui::try_init()?;
    let shown = (|| {
        let mut next = Instant::now() + interval;
        loop {
            terminal.draw(|frame| screen.draw(frame))?;
            let wait = next.saturating_duration_since(Instant::now());
            if event::poll(wait)? {
                if let Event::Key(key) = event::read()?
                    && key.kind != KeyEventKind::Release
                    && screen.key(key)
                {
                    return Ok(());
                }
                continue;
            }
            next = Instant::now() + interval;
            screen.seen = source.look();
        }
    })();
    ratatui::restore();
    shown
}

impl Screen {
    fn new(seen: Result<Scene, String>, order: Order) -> Screen {
        Screen {
            seen,
            order,
            top: 0,
            room: 0,
            typing: false,
            colour: std::env::var_os("NO_COLOR").is_none_or(|word| word.is_empty()),
        }
    }

    /// Handles a key; returns whether to quit.
    fn key(&mut self, key: KeyEvent) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return true;
        }
        if self.typing {
            match key.code {
                KeyCode::Enter => self.typing = false,
                KeyCode::Esc => {
                    self.typing = false;
                    self.order.filter.clear();
                }
                KeyCode::Backspace => {
                    self.order.filter.pop();
                }
                KeyCode::Char(letter) => self.order.filter.push(letter),
                _ => {}
            }
            self.top = 0;
            return false;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('s') => {
                let kind = self.seen.as_ref().map(|scene| scene.kind);
                self.order.turn(kind.unwrap_or(&columns::EXPERIMENT).orders);
            }
            KeyCode::Char('r') => self.order.reversed = !self.order.reversed,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Down | KeyCode::Char('j') => self.top += 1,
            KeyCode::Up | KeyCode::Char('k') => self.top = self.top.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => self.top += self.room,
            KeyCode::PageUp => self.top = self.top.saturating_sub(self.room),
            KeyCode::Home => self.top = 0,
            KeyCode::End => self.top = usize::MAX,
            _ => {}
        }
        false
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let [heads, body, foot] = Layout::vertical([
            Constraint::Length(3),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(frame.area());
        self.room = usize::from(body.height).saturating_sub(1);
        let lines = match &self.seen {
            Err(why) => {
                frame.render_widget(Paragraph::new(why.as_str()), heads);
                Vec::new()
            }
            Ok(scene) => {
                let said: Vec<Line<'_>> = (columns::heads(scene).into_iter())
                    .map(Line::from)
                    .collect();
                frame.render_widget(Paragraph::new(said), heads);
                let rows = self.order.lines(scene);
                self.top = self.top.min(rows.len().saturating_sub(self.room));
                // Only visible rows are formatted: 4,096 cells cost no more than 40.
                let seen = rows.iter().skip(self.top).take(self.room);
                let kind = scene.kind;
                let texts: Vec<Vec<String>> = (seen.clone())
                    .map(|line| columns::texts(kind, *line))
                    .collect();
                let widths = columns::widths(kind, texts.iter().map(Vec::as_slice));
                let bold = Style::new().add_modifier(Modifier::BOLD);
                let head = Span::styled(columns::head_line(kind, &widths), bold);
                let mut lines = vec![Line::from(head)];
                for (text, (row, _)) in texts.iter().zip(seen) {
                    let line = columns::line(kind, text, &widths);
                    lines.push(Line::from(Span::styled(line, self.style(row.state))));
                }
                lines
            }
        };
        frame.render_widget(Paragraph::new(lines), body);
        frame.render_widget(Paragraph::new(self.foot()), foot);
    }

    /// Colour never stands alone: the state column says the same in a word.
    fn style(&self, state: &str) -> Style {
        match state {
            "failed" if self.colour => Style::new().fg(Color::Red),
            "done" if self.colour => Style::new().add_modifier(Modifier::DIM),
            _ => Style::new(),
        }
    }

    fn foot(&self) -> String {
        if self.typing {
            return format!(
                "filter: {}_   enter keeps it, escape removes it",
                self.order.filter
            );
        }
        let by = self.order.by.head();
        let way = if self.order.reversed {
            ", reversed"
        } else {
            ""
        };
        let only = match self.order.filter.as_str() {
            "" => String::new(),
            filter => format!("; only `{filter}`"),
        };
        format!("by {by}{way}{only}   {KEYS}")
    }
}

#[cfg(test)]
mod tests {
    use super::super::columns::tests::three;
    use super::*;
    use crate::cli::TopSort;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen() -> Screen {
        Screen::new(Ok(three()), Order::of(TopSort::Cell, None))
    }

    fn drawn(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let rows = buffer.content().chunks(usize::from(width));
        rows.map(|row| {
            let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
            line.trim_end().to_owned()
        })
        .collect()
    }

    fn press(screen: &mut Screen, code: KeyCode) -> bool {
        screen.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn every_cell_has_a_line_below_its_heads() {
        let lines = drawn(&mut screen(), 130, 12);
        assert!(lines[0].starts_with("scale: trial 2 of 15"), "{lines:#?}");
        assert!(lines[3].starts_with("cell         engine"), "{lines:#?}");
        assert!(lines[4].starts_with("1-embedded"), "{lines:#?}");
        assert!(lines[6].starts_with("10-embedded"), "{lines:#?}");
        assert!(lines[11].starts_with("by cell   q quit"), "{lines:#?}");
    }

    #[test]
    fn keys_sort_filter_scroll_and_quit() {
        let mut screen = screen();
        for _ in 0..3 {
            assert!(!press(&mut screen, KeyCode::Char('s')));
        }
        assert_eq!(screen.order.by, TopSort::Skipped);
        assert!(drawn(&mut screen, 130, 12)[4].starts_with("10-embedded"));
        for code in [
            KeyCode::Char('/'),
            KeyCode::Char('a'),
            KeyCode::Char('r'),
            KeyCode::Char('m'),
        ] {
            press(&mut screen, code);
        }
        let lines = drawn(&mut screen, 130, 12);
        assert!(
            lines[4].starts_with("2-embedded") && lines[5].is_empty(),
            "{lines:#?}"
        );
        assert!(lines[11].starts_with("filter: arm_"), "{lines:#?}");
        press(&mut screen, KeyCode::Esc);
        // Room for one row: the end is the last cell, and beyond it there is nothing.
        drawn(&mut screen, 130, 6);
        press(&mut screen, KeyCode::End);
        assert!(drawn(&mut screen, 130, 6)[4].starts_with("2-embedded"));
        press(&mut screen, KeyCode::PageUp);
        assert!(drawn(&mut screen, 130, 6)[4].starts_with("1-embedded"));
        assert!(press(&mut screen, KeyCode::Char('q')));
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(screen.key(interrupt));
    }

    #[test]
    fn nothing_to_see_is_a_sentence() {
        let mut screen = Screen::new(
            Err("nothing runs here".to_owned()),
            Order::of(TopSort::Cell, None),
        );
        assert_eq!(drawn(&mut screen, 60, 8)[0], "nothing runs here");
    }
}
