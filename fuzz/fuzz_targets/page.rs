//! The supervisor's reader of a page that a hostile cell writes: nothing panics it, and what it passes on is bounded.
#![no_main]

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use supervise::page::{Declared, Page};

static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::temp_dir().join(format!("timecell-fuzz-page-{}", std::process::id()))
});

fuzz_target!(|bytes: &[u8]| {
    let task = Declared { name: "control".to_owned(), deadline_ns: Some(1_000) };
    let Ok(mut page) = Page::create(&PLACE, &[task], 1, None) else {
        return;
    };
    let file = std::fs::File::options().write(true).open(&*PLACE).expect("the page just made");
    // The first byte says where what the cell writes begins, and whether it cuts the file off behind it.
    let [how, bytes @ ..] = bytes else { return };
    let at = u64::from(how >> 1) * 8;
    for part in bytes.chunks(512) {
        file.write_all_at(part, at).expect("room for a page");
        if how & 1 == 1 {
            file.set_len(at + part.len() as u64).expect("a file can be cut");
        }
        for news in page.scan().unwrap_or_default() {
            assert!(news.jobs.len() < timecell_client::layout::RING);
            assert!(news.unseen_late <= news.unseen);
            assert!(news.jobs.iter().all(|job| job.response_ns().is_none_or(|ns| ns >= 0)));
        }
    }
});
