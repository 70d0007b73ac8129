//! Splits input into lines.

/// Input split into lines of bounded length.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// How far it was searched for a newline.
    searched: usize,
}

/// A line is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the line is longer than {most_bytes} bytes")]
pub struct TooLong {
    /// How long it may be, its newline included.
    pub most_bytes: usize,
}

impl LineBuffer {
    /// Adds input.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the first line, without its newline, if it is there whole.
    ///
    /// # Errors
    /// When it is longer than `most_bytes` with its newline, whole or not. Nothing more can be read then.
    pub fn take(&mut self, most_bytes: usize) -> Result<Option<Vec<u8>>, TooLong> {
        let too_long = TooLong { most_bytes };
        let end = self.bytes[self.searched..]
            .iter()
            .position(|byte| *byte == b'\n');
        match end.map(|at| at + self.searched) {
            Some(end) if end < most_bytes => {
                let rest = self.bytes.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.bytes, rest);
                line.pop();
                self.searched = 0;
                Ok(Some(line))
            }
            Some(_) => Err(too_long),
            None if self.bytes.len() >= most_bytes => Err(too_long),
            None => {
                self.searched = self.bytes.len();
                Ok(None)
            }
        }
    }

    /// Whether anything is left in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}
