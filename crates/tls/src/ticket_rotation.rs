//! Creating and rotating files of ticket secrets.
//!
//! The machines of a fleet get a rotated file one after the other. So a secret opens tickets for one step before it
//! issues them, and for two steps afterwards. This way, a machine whose file is one step behind and the up-to-date
//! machines open each other's tickets.

mod replace;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::rand;

use crate::FileError;
use crate::identity::secrets_in;
use crate::pem::File;
use crate::ticket_secrets::SECRET_LEN;
use replace::Locked;

/// The maximum number of secrets after a rotation: one issues tickets, one is next, and two open old tickets.
///
/// A machine that is one step behind issues tickets under the secret that the up-to-date files list in third place.
/// Other machines need this secret for one more step, in fourth place. So no ticket is lost if a step takes at least as
/// long as a ticket is valid.
const KEPT: usize = 4;

/// Begins a line that marks the file's second secret as the next one. Without this line, the second secret may be an
/// old one, which must not issue tickets again.
const MARK: &str = "# weir tickets:";
const ROLES: &str = "the first secret issues tickets, the second is next, the others open old tickets";

/// The changes that a rotation made to the file of secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TicketRotation {
    /// The number of secrets now, 2 to 4.
    pub count: usize,
    /// The number of removed secrets.
    pub dropped: usize,
    /// Whether the next secret now issues tickets. False if there was no next secret: the first secret then still
    /// issues tickets.
    pub is_promoted: bool,
}

/// The reason for not creating or rotating a file of ticket secrets.
#[derive(Debug, thiserror::Error)]
pub enum RotationError {
    /// The file, or its directory, cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file to be created exists.
    #[error("{path} exists: expected the name of a new file", path = path.display())]
    Exists {
        /// The existing file.
        path: PathBuf,
    },
    /// Another process is rotating the file.
    #[error("{path}: another process rotates it; nothing is changed", path = path.display())]
    Busy {
        /// The file of secrets.
        path: PathBuf,
    },
    /// The system has no randomness.
    #[error("the system has no randomness for a secret")]
    NoRandomness,
}

/// Creates a file with two random secrets and mode 0600: the first one issues tickets, the second one is next. Fails if
/// the file exists or cannot be written.
pub fn create_ticket_secrets(path: &Path) -> Result<(), RotationError> {
    match replace::create(path, text_of(&[random()?, random()?]).as_bytes()) {
        Err(FileError::System { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
            Err(RotationError::Exists { path: path.to_owned() })
        }
        created => Ok(created?),
    }
}

/// Moves a file one step: the next secret, in second place, moves to first place; a random secret becomes the next one;
/// the former first secret opens tickets for two more steps. A file without a next secret, such as a hand-written one,
/// only gets a next secret.
///
/// Replaces the file atomically and keeps its owner, group and mode, but not its comments. Fails if the file is not
/// regular, is not a file of secrets, or cannot be read, locked or replaced, or if another process is rotating it.
pub fn rotate_ticket_secrets(path: &Path) -> Result<TicketRotation, RotationError> {
    let locked = Locked::open(path)?.ok_or_else(|| RotationError::Busy { path: path.to_owned() })?;
    let before = File { origin: path.display().to_string(), content: locked.content()? };
    let mut secrets = secrets_in(&before)?;
    let has_next = before.content.split(|byte| *byte == b'\n').any(|line| line.starts_with(MARK.as_bytes()));
    let rotation = step(&mut secrets, has_next, random()?);
    locked.replace(text_of(&secrets).as_bytes())?;
    Ok(rotation)
}

/// Rotates a non-empty list of secrets by one step. `has_next` says whether the second secret is the next one.
fn step<T>(secrets: &mut Vec<T>, has_next: bool, fresh: T) -> TicketRotation {
    let is_promoted = has_next && secrets.len() > 1;
    if is_promoted {
        secrets.swap(0, 1);
    }
    secrets.insert(1, fresh);
    let dropped = secrets.len().saturating_sub(KEPT);
    secrets.truncate(KEPT);
    TicketRotation { count: secrets.len(), dropped, is_promoted }
}

fn random() -> Result<Vec<u8>, RotationError> {
    let mut secret = vec![0; SECRET_LEN];
    rand::fill(&mut secret).map_err(|_| RotationError::NoRandomness)?;
    Ok(secret)
}

fn text_of(secrets: &[Vec<u8>]) -> String {
    let mut text = format!("{MARK} {ROLES}\n");
    for secret in secrets {
        for byte in secret {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    /// A letter stands for a secret: from `before`, four steps add `n` to `q` and lead to the four expected files.
    #[test]
    fn secrets_move_one_place_per_step() {
        let after = |before: &str, has_next: bool| {
            let mut secrets: Vec<char> = before.chars().collect();
            let steps = ('n'..='q').enumerate().map(|(done, fresh)| {
                let TicketRotation { count, dropped, is_promoted } =
                    step(&mut secrets, has_next || done > 0, fresh);
                assert_eq!((count, is_promoted), (secrets.len(), has_next || done > 0));
                (secrets.iter().collect::<String>(), dropped)
            });
            steps.collect::<Vec<_>>()
        };
        let expected = |files: [(&str, usize); 4]| files.map(|(file, dropped)| (file.to_owned(), dropped));
        for (before, has_next, files) in [
            ("ab", true, [("bna", 0), ("noba", 0), ("opnb", 1), ("pqon", 1)]),
            ("abcd", true, [("bnac", 1), ("noba", 1), ("opnb", 1), ("pqon", 1)]),
            // Without a next secret, the first one issues for one more step, so that all machines get its successor.
            ("a", false, [("an", 0), ("noa", 0), ("opna", 0), ("pqon", 1)]),
            ("ab", false, [("anb", 0), ("noab", 0), ("opna", 1), ("pqon", 1)]),
            ("abcde", false, [("anbc", 2), ("noab", 1), ("opna", 1), ("pqon", 1)]),
        ] {
            assert_eq!(after(before, has_next), expected(files), "{before}");
        }
    }

    /// Two machines open each other's tickets if their files are at most one step apart.
    #[test]
    fn machines_that_are_a_step_apart_open_each_others_tickets() {
        for (first, has_next) in [("a", false), ("ab", false), ("abcde", false), ("ab", true), ("abcd", true)]
        {
            let mut early: Vec<char> = first.chars().collect();
            for (done, fresh) in ('n'..='z').enumerate() {
                let late = early.clone();
                step(&mut early, has_next || done > 0, fresh);
                assert!(early.contains(&late[0]) && late.contains(&early[0]), "{late:?} {early:?}");
            }
        }
    }

    fn lines(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn a_new_file_and_each_rotation_have_fresh_secrets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secrets");
        create_ticket_secrets(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let mut all = lines(&path);
        for count in [3, 4, 4] {
            let before = lines(&path);
            let rotation = rotate_ticket_secrets(&path).unwrap();
            assert!(rotation.is_promoted && rotation.count == count, "{rotation:?}");
            let now = lines(&path);
            assert_eq!([&now[0], &now[2]], [&before[1], &before[0]]);
            all.push(now[1].clone());
            assert_eq!(crate::TicketSecrets::read(&path).unwrap().count(), count);
        }
        assert!(all.iter().all(|secret| secret.len() == 2 * SECRET_LEN));
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!((all.len(), count), (5, 5));
        let error = create_ticket_secrets(&path).unwrap_err();
        assert!(matches!(error, RotationError::Exists { .. }), "{error}");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "no other file stays");
    }

    #[test]
    fn a_file_by_hand_keeps_its_issuing_secret_for_one_step() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secrets");
        let [new, old] = ["AB".repeat(40), "cd".repeat(32)];
        fs::write(&path, format!("# By hand.\r\n\n{new}\r\n{old}")).unwrap();
        assert!(!rotate_ticket_secrets(&path).unwrap().is_promoted);
        let first = lines(&path);
        assert_eq!([&first[0], &first[2]], [&new.to_lowercase(), &old]);
        assert!(rotate_ticket_secrets(&path).unwrap().is_promoted);
        let second = lines(&path);
        assert_eq!([&second[0], &second[2], &second[3]], [&first[1], &new.to_lowercase(), &old]);
    }

    #[test]
    fn a_rotation_keeps_the_mode_and_removes_what_a_killed_one_left() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secrets");
        create_ticket_secrets(&path).unwrap();
        // If rotation followed the link, its owner could have another file overwritten.
        let other = directory.path().join("other");
        fs::write(&other, "other").unwrap();
        symlink(&other, directory.path().join(".secrets.new")).unwrap();
        for mode in [0o640, 0o400, 0o666] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let before = fs::metadata(&path).unwrap();
            rotate_ticket_secrets(&path).unwrap();
            let after = fs::metadata(&path).unwrap();
            assert_eq!((after.mode() & 0o777, after.uid(), after.gid()), (mode, before.uid(), before.gid()));
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
        assert!(!directory.path().join(".secrets.new").exists());
    }

    #[test]
    fn one_process_at_a_time_rotates() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secrets");
        create_ticket_secrets(&path).unwrap();
        let before = lines(&path);
        let locked = Locked::open(&path).unwrap().unwrap();
        let error = rotate_ticket_secrets(&path).unwrap_err();
        assert!(matches!(error, RotationError::Busy { .. }), "{error}");
        assert_eq!(lines(&path), before);
        drop(locked);
        rotate_ticket_secrets(&path).unwrap();
    }

    #[test]
    fn rejected_files_are_named_and_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let [good, link, short, empty, missing] =
            ["good", "link", "short", "empty", "missing"].map(|name| directory.path().join(name));
        create_ticket_secrets(&good).unwrap();
        symlink(&good, &link).unwrap();
        let good_before = lines(&good);
        let short_before = format!("{}\n{}\n", "ab".repeat(32), "cd".repeat(31));
        fs::write(&short, &short_before).unwrap();
        fs::write(&empty, format!("{MARK} none\n")).unwrap();
        for (path, expected) in [
            (link.as_path(), "not a regular file: a symbolic link; name the file that it leads to"),
            (directory.path(), "not a regular file: a directory"),
            (&short, "not a file of secrets: line 2: expected at least 64 hexadecimal digits"),
            (&empty, "not a file of secrets: expected at least one line"),
            (&missing, "No such file or directory"),
        ] {
            let error = rotate_ticket_secrets(path).unwrap_err().to_string();
            assert!(error.contains(&path.display().to_string()) && error.contains(expected), "{error}");
            assert!(!error.contains("cdcd"), "a secret in a message: {error}");
        }
        assert!(link.is_symlink() && lines(&good) == good_before);
        assert_eq!(fs::read_to_string(&short).unwrap(), short_before);
        assert!(create_ticket_secrets(&directory.path().join("no/such")).is_err());
    }
}
