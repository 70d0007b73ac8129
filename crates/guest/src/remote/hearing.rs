//! What is heard of an answer that comes in many messages: when to ask again, and when to give the link up.

use std::time::{Duration, Instant};

use super::message::FromRemote;

/// How long a server may be silent, which sends a sign of life every four seconds.
pub const SILENT: Duration = Duration::from_secs(20);
/// After this time without an answer a question is asked again.
pub const ANSWER: Duration = Duration::from_secs(5);

/// What was heard of a streamed answer, and when.
pub struct Hearing {
    heard: Instant,
    /// When more than a sign of life came.
    moved: Instant,
    asked: Instant,
    /// Whether something is missing.
    pub is_gap: bool,
}

impl Hearing {
    /// Of an answer that was asked for just now.
    pub fn new() -> Hearing {
        let now = Instant::now();
        Hearing {
            heard: now,
            moved: now,
            asked: now,
            is_gap: false,
        }
    }

    /// Takes note of a message and whether something was lost before it; an error if nothing has come for long.
    ///
    /// # Errors
    /// That sentence.
    pub fn heard(
        &mut self,
        next: Option<(FromRemote, bool)>,
    ) -> Result<Option<FromRemote>, String> {
        let Some((message, is_after_gap)) = next else {
            return match self.heard.elapsed() > SILENT {
                true => Err(silent()),
                false => Ok(None),
            };
        };
        self.heard = Instant::now();
        self.is_gap |= is_after_gap;
        if message != FromRemote::Alive {
            self.moved = self.heard;
        }
        Ok(Some(message))
    }

    /// Whether to ask again from where the answer is: something is missing, or the question itself was lost.
    pub fn asks_again(&mut self) -> bool {
        let is_lost = self.asked.elapsed() > SILENT && self.moved.elapsed() > SILENT;
        let again = (self.is_gap || is_lost) && self.asked.elapsed() > ANSWER / 5;
        if again {
            (self.asked, self.is_gap) = (Instant::now(), false);
        }
        again
    }
}

/// The sentence of a link on which nothing is heard.
fn silent() -> String {
    format!("it has said nothing for {} s", SILENT.as_secs())
}
