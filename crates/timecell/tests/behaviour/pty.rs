//! A program on a real pseudo-terminal: script(1) creates it and passes bytes on, and a terminal emulator keeps the contents of the screen. A
//! terminal library draws only the parts that have changed, so words arrive in pieces and in any order.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The programs that this requires of the machine.
pub const PROGRAMS: [&str; 3] = ["script", "stty", "timeout"];
/// Nothing that is waited for takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// When everything is ended from outside, at any outcome of the test.
const LIFETIME: &str = "300";

/// A terminal with one program on it, which is ended on drop.
pub struct Pty {
    child: Child,
    keys: ChildStdin,
    drawn: Receiver<Vec<u8>>,
    screen: vt100::Parser<Window>,
}

/// The window operations that the terminal received.
#[derive(Default)]
struct Window {
    title: Option<String>,
}

impl vt100::Callbacks for Window {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = Some(String::from_utf8_lossy(title).into_owned());
    }
}

impl Pty {
    /// Starts `command`, words for a shell, in `dir` on a terminal of this size.
    pub fn start(dir: &Path, rows: NonZero<u16>, columns: NonZero<u16>, command: &str) -> Pty {
        let mut child = Command::new("timeout")
            .args(["--kill-after=5", LIFETIME])
            .args(["script", "--quiet", "--return", "--flush", "--command"])
            // Without a terminal of its own, script cannot pass its size on.
            .arg(format!("stty rows {rows} cols {columns}; exec {command}"))
            .arg("/dev/null")
            .current_dir(dir)
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm")
            .env_remove("COLUMNS")
            .env_remove("LINES")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (keys, mut out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, drawn) = channel();
        // Ends with the other end of its pipe.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(some @ 1..) = out.read(&mut bytes) {
                if tell.send(bytes[..some].to_vec()).is_err() {
                    return;
                }
            }
        });
        Pty {
            child,
            keys,
            drawn,
            screen: vt100::Parser::new_with_callbacks(rows, columns, 0, Window::default()),
        }
    }

    /// The terminal as it is.
    pub fn screen(&self) -> &vt100::Screen {
        self.screen.screen()
    }

    /// The title that its window was given, if any.
    pub fn title(&self) -> Option<&str> {
        self.screen.callbacks().title.as_deref()
    }

    /// Types these keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// The lines of the screen, without trailing blanks.
    pub fn lines(&self) -> Vec<String> {
        let screen = self.screen();
        let (_, columns) = screen.size();
        screen
            .rows(0, columns.get())
            .map(|row| row.trim_end().to_owned())
            .collect()
    }

    /// Waits until the screen is as expected.
    #[track_caller]
    pub fn shows(&mut self, what: &str, right: impl Fn(&[String]) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !right(&self.lines()) {
            let left = until.saturating_duration_since(Instant::now());
            match self.drawn.recv_timeout(left) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(error) => panic!("{error}; never on the screen: {what}\n{:#?}", self.lines()),
            }
        }
    }

    /// Waits until the program ends by itself; returns its exit code, and the terminal as it left it.
    #[track_caller]
    pub fn ends(&mut self) -> (Option<i32>, vt100::Screen) {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.drawn.recv_timeout(left) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("never ended\n{:#?}", self.lines()),
            }
        }
        let code = self.child.wait().unwrap().code();
        (code, self.screen().clone())
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            // SAFETY: our own child, which has not been reaped. It passes the signal on, and kills a program that does not obey.
            unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGTERM) };
            let _ = self.child.wait();
        }
    }
}
