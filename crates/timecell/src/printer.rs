//! Printing from a loop that must not block: a separate thread prints the lines, so that a reader that has stopped reading
//! standard output delays nobody.

use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::{Duration, Instant};

use crate::out;

/// Most lines that wait to be printed; further ones are dropped and counted.
const WAITING: usize = 4096;
/// How long printing the last lines may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval between two attempts to print how many lines were lost.
const STEP: Duration = Duration::from_millis(5);

/// Prints on a separate thread.
#[derive(Debug)]
pub struct Printer {
    lines: Option<SyncSender<String>>,
    ended: Receiver<()>,
    lost: u64,
}

impl Printer {
    /// Starts the thread, printing to standard output.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start() -> std::io::Result<Printer> {
        Printer::of(out::foreign)
    }

    /// The same for standard error, which may have the same reader.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn of_errors() -> std::io::Result<Printer> {
        Printer::of(out::note)
    }

    fn of(print: impl Fn(&str) + Send + 'static) -> std::io::Result<Printer> {
        let (lines, to_print) = sync_channel::<String>(WAITING);
        let (end, ended): (Sender<()>, _) = channel();
        let thread = std::thread::Builder::new().name("timecell-print".to_owned());
        thread.spawn(move || {
            for line in to_print {
                print(&line);
            }
            // If it took too long, nobody waits for it any more.
            let _ = end.send(());
        })?;
        Ok(Printer {
            lines: Some(lines),
            ended,
            lost: 0,
        })
    }

    /// Prints a line, after a line that says how many before it were lost, if any.
    pub fn print(&mut self, line: &str) {
        if self.lost > 0 && !self.tell_lost() {
            self.lost += 1;
            return;
        }
        let Some(lines) = &self.lines else { return };
        if let Err(TrySendError::Full(_)) = lines.try_send(line.to_owned()) {
            self.lost += 1;
        }
    }

    /// Waits for a limited time until everything is printed, including how many of the last lines were lost.
    ///
    /// # Errors
    /// The output not printed by then, as a sentence.
    pub fn finish(mut self) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while self.lost > 0 && !self.tell_lost() && Instant::now() < until {
            std::thread::sleep(STEP);
        }
        self.lines = None;
        let left = until.saturating_duration_since(Instant::now());
        match self.ended.recv_timeout(left) {
            Ok(()) => Ok(()),
            Err(_) if self.lost == 0 => {
                Err("the last lines were not printed: nobody read them".to_owned())
            }
            Err(_) => Err(format!(
                "the last lines were not printed, and {} more were lost: nobody read them",
                self.lost
            )),
        }
    }

    /// Prints how many lines were lost; returns whether that was possible.
    fn tell_lost(&mut self) -> bool {
        let Some(lines) = &self.lines else {
            return false;
        };
        let told = lines.try_send(lost(self.lost)).is_ok();
        if told {
            self.lost = 0;
        }
        told
    }
}

fn lost(lines: u64) -> String {
    format!("{lines} lines were not printed: nobody read them")
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
        assert_eq!(printer.finish(), Ok(()));
        assert_eq!(*said.lock().unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_reader_that_does_not_read_holds_up_nobody() {
        let mut printer = Printer::of(|_| std::thread::sleep(Duration::from_secs(60))).unwrap();
        for _ in 0..WAITING + 10 {
            printer.print("x");
        }
        assert!(printer.lost >= 9, "{}", printer.lost);
        assert!(
            printer
                .finish()
                .is_err_and(|why| why.contains("not printed"))
        );
    }

    #[test]
    fn how_many_of_the_last_lines_were_lost_is_told_once_somebody_reads_again() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&said);
        let (read, reads) = channel::<()>();
        let mut printer = Printer::of(move |line| {
            // Nobody reads until it is said so; from then on somebody does.
            let _ = reads.recv();
            theirs.lock().unwrap().push(line.to_owned());
        })
        .unwrap();
        for _ in 0..WAITING + 10 {
            printer.print("x");
        }
        let lost = printer.lost;
        drop(read);
        assert_eq!(printer.finish(), Ok(()));
        let said = said.lock().unwrap();
        let told = format!("{lost} lines were not printed: nobody read them");
        assert_eq!(said.last(), Some(&told));
    }
}
