//! A link that is lost, and one that is not there.

use super::*;

#[test]
fn of_a_piece_only_what_is_new_counts() {
    assert_eq!(new_of(0, b"abc", 0), Some(&b"abc"[..]));
    assert_eq!(new_of(0, b"abc", 2), Some(&b"c"[..]));
    assert_eq!(new_of(0, b"abc", 9), Some(&b""[..]));
    assert_eq!(new_of(5, b"abc", 4), None);
}

/// Sees the times of notes, and wants to end after so many.
struct Seen(std::cell::RefCell<Vec<Instant>>, usize);

impl Watch for Seen {
    fn see(&self, _: Output, _: &[u8]) {}

    fn note(&self, text: &str) {
        if text.contains("the link was lost") {
            self.0.borrow_mut().push(Instant::now());
        }
    }

    fn signal(&self) -> Option<i32> {
        (self.0.borrow().len() >= self.1).then_some(libc::SIGTERM)
    }

    fn made(&self, _: File) -> Result<(), GuestError> {
        Ok(())
    }
}

/// Has a job carried out by this script in place of ssh, whose last argument is `$there`, and a server that ends at once.
fn carried(script: &str, job: &Job, watch: &Seen) -> Result<Option<i32>, GuestError> {
    let dir = tempfile::tempdir().unwrap();
    let ssh = dir.path().join("ssh");
    std::fs::write(&ssh, format!("for there; do :; done\n{script}\n")).unwrap();
    let reach = Reach {
        ssh: vec!["sh".to_owned(), ssh.display().to_string()],
        dir: Some(dir.path().join("there").display().to_string()),
        may_ask: false,
    };
    let remote = Remote {
        target: &Target::Ssh("ssh://board".to_owned()),
        reach: &reach,
        programs: &|architecture| {
            let loaded = b"#!/bin/sh\nexit\n".to_vec();
            Ok(crate::Program {
                architecture,
                loaded,
            })
        },
        cache: &Cache::at(&dir.path().join("cache")),
    };
    remote.carry(job, watch)
}

#[test]
fn a_link_that_opens_and_dies_is_made_again_after_longer_pauses() {
    let seen = Seen(std::cell::RefCell::default(), 3);
    let status = carried("exec sh -c \"$there\"", &Job::default(), &seen).unwrap();
    assert_eq!(status, Some(128 + libc::SIGTERM));
    let times = seen.0.take();
    assert!(times[2] - times[1] > Duration::from_secs(1));
}

#[test]
fn an_order_that_is_attached_to_has_no_files_and_its_host_may_be_refused() {
    let job = Job {
        with: vec![("none".to_owned(), "/no/file".into())],
        attach: Some("0123456789abcdef".to_owned()),
        ..Job::default()
    };
    let refused = "echo Host key verification failed. >&2; exit 255";
    let seen = Seen(std::cell::RefCell::default(), 1);
    let error = carried(refused, &job, &seen).unwrap_err();
    assert!(matches!(error, GuestError::Ssh { .. }), "{error}");
}
