//! Printing from a loop that others wait for: lines go to a thread of their own, so that a reader of standard output that has
//! stopped reading holds up nobody.

use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use crate::out;

/// Lines that wait for their reader; of more, the newest are lost and counted.
const WAITING: usize = 4096;
/// How long the last lines may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Prints on a thread of its own.
#[derive(Debug)]
pub struct Printer {
    lines: Option<SyncSender<String>>,
    ended: Receiver<()>,
    lost: u64,
}

impl Printer {
    /// With the thread.
    ///
    /// # Errors
    /// When the system gives none.
    pub fn start() -> std::io::Result<Printer> {
        Printer::of(out::foreign)
    }

    fn of(print: impl Fn(&str) + Send + 'static) -> std::io::Result<Printer> {
        let (lines, to_print) = sync_channel::<String>(WAITING);
        let (end, ended): (Sender<()>, _) = channel();
        let thread = std::thread::Builder::new().name("timecell-print".to_owned());
        thread.spawn(move || {
            for line in to_print {
                print(&line);
            }
            // Nobody waits for it any more when it took too long.
            let _ = end.send(());
        })?;
        Ok(Printer {
            lines: Some(lines),
            ended,
            lost: 0,
        })
    }

    /// Has a line printed, with how many before it were lost.
    pub fn print(&mut self, line: &str) {
        let Some(lines) = &self.lines else { return };
        if self.lost > 0 {
            let told = format!("{} lines were not printed: nobody read them", self.lost);
            if lines.try_send(told).is_err() {
                self.lost += 1;
                return;
            }
            self.lost = 0;
        }
        if let Err(TrySendError::Full(_)) = lines.try_send(line.to_owned()) {
            self.lost += 1;
        }
    }

    /// Waits for a while until all is printed; whether it is.
    pub fn finish(mut self) -> bool {
        self.lines = None;
        self.ended.recv_timeout(PATIENCE).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn all_is_printed_in_order() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&said);
        let mut printer =
            Printer::of(move |line| theirs.lock().unwrap().push(line.to_owned())).unwrap();
        printer.print("a");
        printer.print("b");
        assert!(printer.finish());
        assert_eq!(*said.lock().unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_reader_that_does_not_read_holds_up_nobody() {
        let mut printer = Printer::of(|_| std::thread::sleep(Duration::from_secs(60))).unwrap();
        for _ in 0..WAITING + 10 {
            printer.print("x");
        }
        assert!(printer.lost >= 9, "{}", printer.lost);
        assert!(!printer.finish());
    }
}
