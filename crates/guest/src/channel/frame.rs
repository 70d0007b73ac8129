//! Frames on a line that may lose, change or add bytes: a head with a checksum of its own, the content, a CRC32 of both.

/// Where a frame begins.
pub const MARK: [u8; 4] = [0xa5, 0x5a, b't', b'c'];
/// Mark, kind, number, length, checksum of these.
const HEAD: usize = 13;
/// The CRC32 behind the content.
const TAIL: usize = 4;
/// Longest content of a frame in bytes: what a byte lost on the line costs at most.
pub const MOST: usize = 8 << 10;
/// Bytes that are done with and stay in front of the buffer before they are removed.
const SPENT: usize = 64 << 10;

/// A frame as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What kind of content it has.
    pub kind: u8,
    /// The content, at most [`MOST`] bytes.
    pub content: Vec<u8>,
    /// Frames lost before it.
    pub lost: u32,
}

/// Adds a frame to bytes to be sent. Content beyond [`MOST`] is left out: whoever sends splits it.
pub fn encode(kind: u8, number: u32, content: &[u8], out: &mut Vec<u8>) {
    let content = &content[..content.len().min(MOST)];
    let begin = out.len();
    out.extend(MARK);
    out.push(kind);
    out.extend(number.to_le_bytes());
    out.extend((content.len() as u16).to_le_bytes());
    out.extend(short(&out[begin..]).to_le_bytes());
    out.extend(content);
    out.extend(crc32fast::hash(&out[begin..]).to_le_bytes());
}

/// The checksum of a head.
fn short(head: &[u8]) -> u16 {
    let long = crc32fast::hash(head);
    (long ^ (long >> 16)) as u16
}

/// Finds the frames in what arrives.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// How much of the buffer is done with.
    at: usize,
    /// The number of the next frame; `None` before the first one.
    next: Option<u32>,
    /// Bytes that belonged to no frame.
    skipped: u64,
}

impl Decoder {
    /// Adds what has arrived, in pieces of any size.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at > SPENT {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// How many bytes belonged to no frame: noise, and frames that were damaged.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next whole frame; `None` until more arrives.
    pub fn frame(&mut self) -> Option<Frame> {
        loop {
            let left = &self.buffer[self.at..];
            let found = left.windows(MARK.len()).position(|four| four == MARK);
            let Some(begin) = found else {
                // The mark may have begun.
                self.skip(left.len().saturating_sub(MARK.len() - 1));
                return None;
            };
            self.skip(begin);
            let left = &self.buffer[self.at..];
            let head = left.get(..HEAD)?;
            if u16::from_le_bytes([head[11], head[12]]) != short(&head[..11]) {
                self.skip(1);
                continue;
            }
            let length = usize::from(u16::from_le_bytes([head[9], head[10]]));
            if length > MOST {
                self.skip(1);
                continue;
            }
            let whole = left.get(..HEAD + length + TAIL)?;
            let (body, tail) = whole.split_at(HEAD + length);
            if crc32fast::hash(body).to_le_bytes() != tail {
                self.skip(1);
                continue;
            }
            let number = u32::from_le_bytes([head[5], head[6], head[7], head[8]]);
            let lost = self.next.map_or(0, |next| number.wrapping_sub(next));
            let frame = Frame {
                kind: head[4],
                content: body[HEAD..].to_vec(),
                lost,
            };
            self.next = Some(number.wrapping_add(1));
            self.at += HEAD + length + TAIL;
            return Some(frame);
        }
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        self.skipped += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn all(decoder: &mut Decoder) -> Vec<Frame> {
        std::iter::from_fn(|| decoder.frame()).collect()
    }

    fn sent(contents: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let numbered = contents.iter().zip(0_u32..);
        let encoded = numbered.map(|(content, number)| {
            let mut out = Vec::new();
            encode(7, number, content, &mut out);
            out
        });
        encoded.collect()
    }

    fn contents(frames: &[Frame]) -> Vec<Vec<u8>> {
        frames.iter().map(|frame| frame.content.clone()).collect()
    }

    #[test]
    fn content_that_looks_like_a_mark_is_content() {
        let content = [MARK.to_vec(), vec![0; 40], MARK.to_vec()].concat();
        let mut decoder = Decoder::default();
        sent(&[content.clone(), content.clone()])
            .iter()
            .for_each(|bytes| decoder.push(bytes));
        assert_eq!(contents(&all(&mut decoder)), [content.clone(), content]);
        assert_eq!(decoder.skipped(), 0);
    }

    #[test]
    fn the_longest_content_fits_and_more_is_cut() {
        let mut out = Vec::new();
        encode(1, 0, &vec![9; MOST + 5], &mut out);
        let mut decoder = Decoder::default();
        decoder.push(&out);
        assert_eq!(decoder.frame().unwrap().content, vec![9; MOST]);
    }

    proptest! {
        #[test]
        fn frames_arrive_in_pieces_of_any_size(
            frames in vec(vec(any::<u8>(), 0..300), 0..20),
            pieces in vec(1_usize..97, 1..50),
        ) {
            let bytes = sent(&frames).concat();
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            let (mut left, mut sizes) = (&bytes[..], pieces.iter().cycle());
            while !left.is_empty() {
                let size = (*sizes.next().unwrap()).min(left.len());
                decoder.push(&left[..size]);
                found.extend(all(&mut decoder));
                left = &left[size..];
            }
            prop_assert!(found.iter().all(|frame| frame.lost == 0 && frame.kind == 7));
            prop_assert_eq!(contents(&found), frames);
        }

        #[test]
        fn noise_between_frames_costs_none(
            frames in vec((vec(any::<u8>(), 0..100), vec(any::<u8>(), 0..50)), 1..20),
        ) {
            let clean: Vec<Vec<u8>> = frames.iter().map(|(content, _)| content.clone()).collect();
            let mut decoder = Decoder::default();
            let mut noise = 0;
            for (bytes, (_, more)) in sent(&clean).iter().zip(&frames) {
                decoder.push(more);
                decoder.push(bytes);
                noise += more.len() as u64;
            }
            prop_assert_eq!(contents(&all(&mut decoder)), clean);
            prop_assert_eq!(decoder.skipped(), noise);
        }

        #[test]
        fn a_damaged_byte_costs_one_frame_and_is_told(
            frames in vec(vec(any::<u8>(), 0..100), 3..20),
            hit in any::<prop::sample::Index>(),
            place in any::<prop::sample::Index>(),
            change in 1_u8..=255,
            how in 0..3,
        ) {
            let mut bytes = sent(&frames);
            // What is in flight after it is needed to find the next frame, and what is lost is seen by the frame behind it.
            let hit = hit.index(frames.len() - 2) + 1;
            let place = place.index(bytes[hit].len());
            match how {
                0 => bytes[hit][place] ^= change,
                1 => drop(bytes[hit].remove(place)),
                _ => bytes[hit].insert(place, change),
            }
            // The next frame may begin with the byte that is missing at the end of this one, and is the damaged one then.
            prop_assume!([&bytes[hit][..], &MARK[..1]].concat() != sent(&frames)[hit]);
            let mut decoder = Decoder::default();
            bytes.iter().for_each(|bytes| decoder.push(bytes));
            decoder.push(&vec![0; MOST + HEAD + TAIL]);
            let found = all(&mut decoder);
            let mut rest = frames.clone();
            rest.remove(hit);
            // A byte may be added before or behind a frame, or be the same again.
            if found.len() == frames.len() {
                prop_assert_eq!(contents(&found), frames);
            } else {
                prop_assert_eq!(contents(&found), rest);
                prop_assert_eq!(found[hit].lost, 1);
            }
        }

        #[test]
        fn nothing_that_arrives_makes_it_panic(bytes in vec(any::<u8>(), 0..500)) {
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            prop_assert_eq!(all(&mut decoder), vec![]);
        }
    }
}
