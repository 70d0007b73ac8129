//! QEMU's monitor, which speaks QMP: one line of JSON each way.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// A connection to the monitor of one QEMU.
#[derive(Debug)]
pub(super) struct Monitor {
    line: BufReader<UnixStream>,
    greeted: bool,
}

/// A virtual cpu.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cpu {
    cpu_index: u32,
    thread_id: i32,
}

impl Monitor {
    /// The monitor at the other end of this line.
    pub(super) fn new(line: UnixStream) -> Monitor {
        Monitor {
            line: BufReader::new(line),
            greeted: false,
        }
    }

    /// The threads that execute the virtual cpus, in their order.
    pub(super) fn vcpus(&mut self) -> io::Result<Vec<i32>> {
        if !self.greeted {
            self.line.get_ref().set_read_timeout(Some(ANSWER))?;
            // The greeting comes by itself.
            self.line.read_line(&mut String::new())?;
            self.ask("qmp_capabilities")?;
            self.greeted = true;
        }
        let mut cpus: Vec<Cpu> = serde_json::from_value(self.ask("query-cpus-fast")?)?;
        cpus.sort_by_key(|cpu| cpu.cpu_index);
        Ok(cpus.iter().map(|cpu| cpu.thread_id).collect())
    }

    fn ask(&mut self, command: &str) -> io::Result<Value> {
        let question = json!({ "execute": command });
        writeln!(self.line.get_mut(), "{question}")?;
        loop {
            let mut text = String::new();
            if self.line.read_line(&mut text)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut answer: Value = serde_json::from_str(&text)?;
            if let Some(why) = answer.pointer("/error/desc") {
                return Err(io::Error::other(
                    why.as_str().unwrap_or_default().to_owned(),
                ));
            }
            // Else it is an event that nobody waits for.
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(answers: &str) -> io::Result<Vec<i32>> {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(answers.as_bytes()).unwrap();
        drop(there.shutdown(std::net::Shutdown::Write));
        Monitor::new(here).vcpus()
    }

    #[test]
    fn threads_are_in_the_order_of_their_cpus() {
        let greeting = "{\"QMP\": {}}\n{\"return\": {}}\n{\"event\": \"RESUME\"}\n";
        let cpus = "{\"return\": [{\"cpu-index\": 1, \"thread-id\": 12}, {\"cpu-index\": 0, \"thread-id\": 11}]}\n";
        assert_eq!(answered(&(greeting.to_owned() + cpus)).unwrap(), [11, 12]);
        let refused = "{\"error\": {\"class\": \"x\", \"desc\": \"no\"}}\n";
        let error = answered(&(greeting.to_owned() + refused)).unwrap_err();
        assert_eq!(error.to_string(), "no");
        assert!(answered(greeting).is_err() && answered("").is_err());
    }
}
