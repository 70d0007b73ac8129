//! Colours and line breaks of text for a terminal.

/// Colours and line breaks of text for a terminal. The default is plain: no colour and 120 columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether ANSI colours are used. They only repeat the words.
    pub colour: bool,
    /// Width of the terminal in characters. Sentences are wrapped to it and long names shortened, but never numbers.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            colour: false,
            width: 120,
        }
    }
}

/// The meaning of a colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// Nothing to note.
    #[default]
    Plain,
    /// Needs attention.
    Caution,
    /// Something was lost or went wrong.
    Bad,
    /// Better than the baseline.
    Good,
}

impl Style {
    /// The text in the colour of `tone`, or unchanged without colours.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Caution => 33,
            Tone::Bad => 31,
            Tone::Good => 32,
            Tone::Plain => return text.to_owned(),
        };
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Sentences below a table, each on lines of its own; control characters become `?`.
    pub fn sentences(self, sentences: &[String]) -> String {
        let line = |sentence: &String| self.wrap(&crate::words::clean(sentence), 4) + "\n";
        sentences.iter().map(line).collect()
    }

    /// Breaks a sentence at spaces so that lines stay within the width; lines after the first are indented.
    pub fn wrap(self, text: &str, indent: usize) -> String {
        let mut out = String::new();
        let mut column = 0;
        for word in text.split(' ') {
            let length = word.chars().count();
            if column > indent && column + 1 + length > self.width {
                out.push('\n');
                out.push_str(&" ".repeat(indent));
                column = indent;
            } else if column > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_at_spaces_and_keeps_long_words_whole() {
        let style = Style {
            width: 12,
            ..Style::default()
        };
        assert_eq!(
            style.wrap("one two three averyveryverylongword x", 2),
            "one two\n  three\n  averyveryverylongword\n  x"
        );
        assert_eq!(style.wrap("a  b", 2), "a  b");
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        assert_eq!(Style::default().paint(Tone::Bad, "2"), "2");
        let style = Style {
            colour: true,
            ..Style::default()
        };
        assert_eq!(style.paint(Tone::Bad, "2"), "\u{1b}[31m2\u{1b}[0m");
        assert_eq!(style.paint(Tone::Plain, "2"), "2");
    }
}
