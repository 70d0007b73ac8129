//! FAT32 file systems on a part of a file: written once, with some files, and read back (Microsoft's FAT specification, 1.03). Short
//! names have long ones beside them, so that upper and lower case stay. The same files give the same bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

const SECTOR: usize = 512;
/// Sectors of a cluster that is written; FAT32 has at least 65,525 clusters, which are 64 MiB.
const PER_CLUSTER: usize = 2;
const CLUSTER: usize = PER_CLUSTER * SECTOR;
/// Sectors in front of the tables.
const RESERVED: usize = 32;
const ENTRY: usize = 32;
const DIRECTORY: u8 = 0x10;
const LABEL: u8 = 0x08;
const LONG: u8 = 0x0f;
/// The end of a chain of clusters, and the least number that means one.
const END: u32 = 0x0fff_ffff;
const LEAST_END: u32 = 0x0fff_fff8;
/// 1 January 1980.
const DAY: [u8; 2] = [0x21, 0];
/// The largest directory that is read, bytes.
const MOST_DIRECTORY: usize = 1 << 20;

/// Makes a file system with these files, in directories of one level at most, on a part of a file whose other bytes are 0. The part
/// has at least 65 MiB.
///
/// # Errors
/// Those of writing, or if the files do not fit.
pub fn write(file: &File, begin: u64, length: u64, files: &[(&str, Vec<u8>)]) -> io::Result<()> {
    let full = || io::Error::from(io::ErrorKind::StorageFull);
    let sectors = usize::try_from(length / SECTOR as u64).map_err(|_| full())?;
    let table = ((sectors - RESERVED) / PER_CLUSTER + 2).div_ceil(SECTOR / 4);
    let data = RESERVED + 2 * table;
    let clusters = (sectors - data) / PER_CLUSTER;
    // The root directory is in the first cluster, which has number 2.
    let mut chains: Vec<u32> = vec![LEAST_END, END, END];
    let at = |cluster: usize| begin + ((cluster - 2) * CLUSTER + data * SECTOR) as u64;
    let put = |chains: &mut Vec<u32>, bytes: &[u8]| {
        let (first, count) = (chains.len(), bytes.len().div_ceil(CLUSTER));
        if first + count > clusters + 2 {
            return Err(full());
        }
        file.write_all_at(bytes, at(first))?;
        chains.extend((1..count).map(|next| (first + next) as u32));
        chains.extend((count > 0).then_some(END));
        Ok(if count > 0 { first as u32 } else { 0 })
    };
    let mut directories: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    let root = entry(b"BOOT       ", LABEL, 0, 0);
    directories.insert("", root.into());
    for (path, bytes) in files {
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        let first = put(&mut chains, bytes)?;
        let entries = directories.entry(above).or_default();
        named(entries, name, 0x20, first, bytes.len());
    }
    let mut root = directories.remove("").unwrap_or_default();
    for (name, entries) in directories {
        let first = chains.len() as u32;
        let mut bytes = [
            entry(b".          ", DIRECTORY, first, 0),
            entry(b"..         ", DIRECTORY, 0, 0),
        ]
        .concat();
        bytes.extend(entries);
        put(&mut chains, &bytes)?;
        named(&mut root, name, DIRECTORY, first, 0);
    }
    if root.len() > CLUSTER {
        return Err(full());
    }
    file.write_all_at(&root, at(2))?;
    let bytes: Vec<u8> = chains.iter().flat_map(|next| next.to_le_bytes()).collect();
    for copy in 0..2 {
        let at = (RESERVED + copy * table) * SECTOR;
        file.write_all_at(&bytes, begin + at as u64)?;
    }
    let free = (clusters + 2 - chains.len()) as u32;
    let head = [boot_sector(sectors, table), information(free, chains.len())].concat();
    // The second copy is for whoever repairs it.
    file.write_all_at(&head, begin)?;
    file.write_all_at(&head, begin + 6 * SECTOR as u64)
}

fn set(sector: &mut [u8], at: usize, bytes: &[u8]) {
    sector[at..at + bytes.len()].copy_from_slice(bytes);
}

fn boot_sector(sectors: usize, table: usize) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    set(&mut sector, 0, b"\xeb\x58\x90timecell");
    set(&mut sector, 11, &(SECTOR as u16).to_le_bytes());
    set(&mut sector, 13, &[PER_CLUSTER as u8, RESERVED as u8, 0, 2]);
    // A fixed disk; heads and sectors of a track, which nobody uses.
    set(&mut sector, 21, &[0xf8, 0, 0, 63, 0, 255, 0]);
    set(&mut sector, 32, &(sectors as u32).to_le_bytes());
    set(&mut sector, 36, &(table as u32).to_le_bytes());
    set(&mut sector, 44, &[2, 0, 0, 0, 1, 0, 6, 0]);
    set(&mut sector, 64, b"\x80\0\x29emitBOOT       FAT32   ");
    set(&mut sector, 510, &[0x55, 0xaa]);
    sector
}

/// How much is free, and where.
fn information(free: u32, next: usize) -> [u8; SECTOR] {
    let mut sector = [0; SECTOR];
    set(&mut sector, 0, b"RRaA");
    set(&mut sector, 484, b"rrAa");
    set(&mut sector, 488, &free.to_le_bytes());
    set(&mut sector, 492, &(next as u32).to_le_bytes());
    set(&mut sector, 510, &[0x55, 0xaa]);
    sector
}

fn entry(short: &[u8; 11], kind: u8, first: u32, bytes: usize) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    set(&mut entry, 0, short);
    entry[11] = kind;
    for at in [16, 18, 24] {
        set(&mut entry, at, &DAY);
    }
    let [low, lower, high, higher] = first.to_le_bytes();
    set(&mut entry, 20, &[high, higher]);
    set(&mut entry, 26, &[low, lower]);
    set(&mut entry, 28, &(bytes as u32).to_le_bytes());
    entry
}

/// Adds an entry with its long name in front, of at most 13 letters.
fn named(entries: &mut Vec<u8>, name: &str, kind: u8, first: u32, bytes: usize) {
    let (stem, end) = name.rsplit_once('.').unwrap_or((name, ""));
    let mut short = *b"           ";
    let number = entries.len() / ENTRY % 9 + 1;
    let stem = match stem.len() > 8 || end.len() > 3 {
        true => format!("{:.6}~{number}", stem),
        false => stem.to_owned(),
    };
    for (to, from) in short[..8].iter_mut().zip(stem.bytes()) {
        *to = from.to_ascii_uppercase();
    }
    for (to, from) in short[8..].iter_mut().zip(end.bytes()) {
        *to = from.to_ascii_uppercase();
    }
    let mut letters: Vec<u16> = name.encode_utf16().take(13).collect();
    if letters.len() < 13 {
        letters.push(0);
    }
    letters.resize(13, 0xffff);
    let sum = short
        .iter()
        .fold(0_u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte));
    let mut long = [0; ENTRY];
    long[0] = 0x41;
    long[11] = LONG;
    long[13] = sum;
    for (letter, at) in letters.iter().zip(LETTERS) {
        set(&mut long, at, &letter.to_le_bytes());
    }
    entries.extend(long);
    entries.extend(entry(&short, kind, first, bytes));
}

/// Where the letters of a long name are.
const LETTERS: [usize; 13] = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];

/// A file system that is read.
#[derive(Debug)]
pub struct Volume<'f> {
    file: &'f File,
    begin: u64,
    cluster: usize,
    tables: u64,
    data: u64,
    root: u32,
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let part = bytes.get(at..at + 4).and_then(|part| part.try_into().ok());
    u32::from_le_bytes(part.unwrap_or_default())
}

impl Volume<'_> {
    /// The file system at this place of a file, if it is FAT32.
    pub fn at(file: &File, begin: u64) -> Option<Volume<'_>> {
        let mut sector = [0; SECTOR];
        file.read_exact_at(&mut sector, begin).ok()?;
        let bytes = u64::from(number(&sector, 11) & 0xffff);
        let (per_cluster, reserved) = (sector[13], number(&sector, 14) & 0xffff);
        let table = u64::from(number(&sector, 36));
        let is_fat = sector[510..] == [0x55, 0xaa] && number(&sector, 22) & 0xffff == 0;
        let is_possible =
            bytes.is_power_of_two() && (512..=4096).contains(&bytes) && per_cluster > 0;
        (is_fat && is_possible).then(|| Volume {
            file,
            begin,
            cluster: usize::from(per_cluster) * bytes as usize,
            tables: u64::from(reserved) * bytes,
            data: (u64::from(reserved) + u64::from(sector[16]) * table) * bytes,
            root: number(&sector, 44),
        })
    }

    /// The content of a file, by its path with any letter case; `None` if it is not there, damaged, or has more than `most` bytes.
    pub fn read(&self, path: &str, most: usize) -> Option<Vec<u8>> {
        let mut first = self.root;
        let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
        while let Some(part) = parts.next() {
            let entries = self.chain(first, MOST_DIRECTORY)?;
            let (found, kind, bytes) = find(&entries, part)?;
            first = found;
            let is_directory = kind & DIRECTORY != 0;
            match (parts.peek(), is_directory) {
                (Some(_), true) => {}
                (None, false) if bytes == 0 => return Some(Vec::new()),
                (None, false) if bytes <= most => {
                    let mut content = self.chain(first, bytes)?;
                    return (content.len() >= bytes).then(|| {
                        content.truncate(bytes);
                        content
                    });
                }
                _ => return None,
            }
        }
        None
    }

    /// What is in the clusters from this one on: at least `most` bytes, or all.
    fn chain(&self, mut cluster: u32, most: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        while cluster < LEAST_END && bytes.len() < most {
            let place = u64::from(cluster.checked_sub(2)?) * self.cluster as u64;
            let old = bytes.len();
            bytes.resize(old + self.cluster, 0);
            let at = self.begin + self.data + place;
            self.file.read_exact_at(&mut bytes[old..], at).ok()?;
            let mut next = [0; 4];
            let at = self.begin + self.tables + u64::from(cluster) * 4;
            self.file.read_exact_at(&mut next, at).ok()?;
            cluster = u32::from_le_bytes(next) & END;
        }
        Some(bytes)
    }
}

/// First cluster, kind and bytes of the entry of this name.
fn find(entries: &[u8], name: &str) -> Option<(u32, u8, usize)> {
    let mut long: Vec<u16> = Vec::new();
    for entry in entries.chunks_exact(ENTRY) {
        match (entry[0], entry[11]) {
            (0, _) => return None,
            (0xe5, _) => long.clear(),
            (order, LONG) => {
                if order & 0x40 != 0 {
                    long.clear();
                }
                let letters = LETTERS.map(|at| u16::from_le_bytes([entry[at], entry[at + 1]]));
                let letters = letters.into_iter().take_while(|letter| *letter != 0);
                long.splice(0..0, letters);
            }
            (_, kind) => {
                let text = |part: &[u8]| String::from_utf8_lossy(part).trim_end().to_owned();
                let (stem, end) = (text(&entry[..8]), text(&entry[8..11]));
                let short = if end.is_empty() {
                    stem
                } else {
                    format!("{stem}.{end}")
                };
                let is_it = [short, String::from_utf16_lossy(&long)]
                    .iter()
                    .any(|known| known.eq_ignore_ascii_case(name));
                if kind & LABEL == 0 && is_it {
                    let first = number(entry, 26) & 0xffff | number(entry, 20) << 16;
                    return Some((first, kind, number(entry, 28) as usize));
                }
                long.clear();
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const LENGTH: u64 = 66 << 20;
    const BEGIN: u64 = 4096;

    fn volume() -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(BEGIN + LENGTH).unwrap();
        let files = [
            ("Image", vec![7; 5000]),
            ("system.dtb", Vec::new()),
            ("extlinux/extlinux.conf", b"default".to_vec()),
        ];
        write(&file, BEGIN, LENGTH, &files).unwrap();
        file
    }

    #[test]
    fn files_are_read_as_they_were_written() {
        let file = volume();
        let fat = Volume::at(&file, BEGIN).unwrap();
        assert_eq!(fat.read("/Image", 5000).unwrap(), [7; 5000]);
        assert_eq!(fat.read("system.dtb", 9).unwrap(), b"");
        for path in ["/extlinux/extlinux.conf", "EXTLINUX/EXTLIN~1.CON"] {
            assert_eq!(fat.read(path, 9).unwrap(), b"default", "{path}");
        }
        for path in ["", "extlinux", "Image/x", "BOOT", "imag"] {
            assert_eq!(fat.read(path, 9000), None, "{path}");
        }
        assert_eq!(fat.read("Image", 4999), None);
        assert!(Volume::at(&file, 0).is_none());
        let files = [("a", vec![1; LENGTH as usize])];
        let error = write(&file, BEGIN, LENGTH, &files).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn dosfstools_find_no_fault() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("fat");
        let mut bytes = vec![0; LENGTH as usize];
        volume().read_exact_at(&mut bytes, BEGIN).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let fsck = std::process::Command::new("/usr/sbin/fsck.fat")
            .arg("-n")
            .arg(&path)
            .output();
        // Where there is none, the boards are the judges.
        let Ok(fsck) = fsck else { return };
        assert!(
            fsck.status.success(),
            "{}",
            String::from_utf8_lossy(&fsck.stdout)
        );
    }

    proptest! {
        #[test]
        fn no_damage_makes_it_panic(changes in vec((0..9_000_u64, any::<u8>()), 1..60), deep in any::<bool>()) {
            let file = volume();
            // The boot sector, and the directories.
            let table = number(&{ let mut head = [0; SECTOR]; file.read_exact_at(&mut head, BEGIN).unwrap(); head }, 36);
            let data = (RESERVED as u64 + 2 * u64::from(table)) * 512;
            for (at, byte) in changes {
                let at = BEGIN + if deep { data + at } else { at % 512 };
                file.write_all_at(&[byte], at).unwrap();
            }
            if let Some(fat) = Volume::at(&file, BEGIN) {
                let _ = fat.read("extlinux/extlinux.conf", 1 << 20);
            }
        }
    }
}
