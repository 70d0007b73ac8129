//! The mount that holds a page.

use std::ffi::CString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use host::file::gone;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use timecell_client::layout;

use super::PageError;

/// Name of the page in its place.
pub const FILE: &str = "page";

/// The directory that holds one cell's page and nothing else: a tmpfs of the page's size, in which a second file cannot
/// be created and the first cannot grow. The file, not the directory, is mounted into the cell.
#[derive(Debug)]
pub struct Place {
    dir: PathBuf,
}

impl Place {
    /// Mounts the place of a page of this many slots on `dir`, creating it if it is not there. Needs CAP_SYS_ADMIN.
    ///
    /// # Errors
    /// When the directory cannot be made or nothing can be mounted on it.
    pub fn mount(dir: &Path, slots: usize) -> Result<Place, PageError> {
        let failed = |tried| {
            move |source| PageError::System {
                path: dir.to_owned(),
                tried,
                source,
            }
        };
        let mut builder = DirBuilder::new();
        // Others may not write, even under a lax mask.
        let made = builder.recursive(true).mode(0o755).create(dir);
        made.map_err(failed("made"))?;
        let size_bytes = layout::page_bytes(slots);
        let options = format!("size={size_bytes},nr_inodes=2,mode=0711");
        mount(dir, &options).map_err(failed("mounted"))?;
        Ok(Place {
            dir: dir.to_owned(),
        })
    }

    /// The place that an earlier supervisor has mounted on `dir`.
    pub fn at(dir: &Path) -> Place {
        Place {
            dir: dir.to_owned(),
        }
    }

    /// Where the page is or will be.
    pub fn page(&self) -> PathBuf {
        self.dir.join(FILE)
    }

    /// Removes the place and its directory. A process that still has the page open or mapped keeps it.
    ///
    /// # Errors
    /// When it cannot be unmounted; fine if it is not mounted.
    pub fn remove(self) -> Result<(), PageError> {
        let dir = &self.dir;
        let failed = |tried| {
            move |source| PageError::System {
                path: dir.clone(),
                tried,
                source,
            }
        };
        unmount(&self.dir).map_err(failed("unmounted"))?;
        gone(std::fs::remove_dir(&self.dir)).map_err(failed("removed"))
    }
}

fn mount(dir: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount(c"timecell-page", dir, c"tmpfs", flags, options.as_c_str())?;
    Ok(())
}

fn unmount(dir: &Path) -> io::Result<()> {
    let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
    match rustix::mount::unmount(dir, flags) {
        // Not a mount point, or not there.
        Err(Errno::INVAL | Errno::NOENT) => Ok(()),
        done => Ok(done?),
    }
}
