//! certbot's deploy hook, run on a directory with certbot's layout.

use super::file;
use crate::common::{Certificates, Client, DEADLINE, Weir, poll_until};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const FILES: [&str; 2] = ["fullchain.pem", "privkey.pem"];

/// `live/example.org/fullchain.pem` is a link to `archive/example.org/fullchain1.pem`, and so on.
struct Certbot {
    folder: TempDir,
    renewals: u32,
}

impl Certbot {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["live", "archive"] {
            fs::create_dir_all(folder.path().join(name).join("example.org")).unwrap();
        }
        // As certbot leaves it.
        fs::set_permissions(folder.path().join("live"), fs::Permissions::from_mode(0o700)).unwrap();
        Self { folder, renewals: 0 }
    }

    fn lineage(&self) -> PathBuf {
        self.folder.path().join("live/example.org")
    }

    /// The directory of the gateway's copies.
    fn copies(&self) -> PathBuf {
        self.folder.path().join("weir")
    }

    fn link(&self) -> PathBuf {
        self.copies().join("example.org")
    }

    /// Simulates a renewal with this chain and key.
    fn renew(&mut self, chain: &[u8], key: &[u8]) {
        self.renewals += 1;
        for (file, bytes) in FILES.into_iter().zip([chain, key]) {
            let numbered = file.replace('.', &format!("{}.", self.renewals));
            let archived = self.folder.path().join("archive/example.org").join(&numbered);
            fs::write(&archived, bytes).unwrap();
            fs::set_permissions(&archived, fs::Permissions::from_mode(0o600)).unwrap();
            let link = self.lineage().join(file);
            let _ = fs::remove_file(&link);
            symlink(Path::new("../../archive/example.org").join(numbered), link).unwrap();
        }
    }

    /// The hook. Instead of a reload, it appends to the file `reloads`.
    fn hook(&self) -> Command {
        let reloads = self.folder.path().join("reloads");
        let mut hook = Command::new(file("certbot-deploy-hook"));
        hook.env("RENEWED_LINEAGE", self.lineage())
            .env("RENEWED_DOMAINS", "example.org")
            .env("WEIR_CERTIFICATES", self.copies())
            .env("WEIR_GROUP", self.folder.path().metadata().unwrap().gid().to_string())
            .env("WEIR", env!("CARGO_BIN_EXE_weir"))
            .env("WEIR_RELOAD", format!("tee -a {}", reloads.display()))
            .stdin(fs::File::open(file("weir.toml")).unwrap());
        hook
    }

    fn reloads(&self) -> usize {
        let size = |path| fs::metadata(path).map_or(0, |found| found.len());
        (size(self.folder.path().join("reloads")) / size(file("weir.toml"))) as usize
    }

    /// The gateway's copies of both files.
    fn copied(&self) -> [Vec<u8>; 2] {
        FILES.map(|file| fs::read(self.link().join(file)).unwrap())
    }
}

fn pair() -> (Certificates, [Vec<u8>; 2]) {
    let certificates = Certificates::new();
    let files = [&certificates.cert, &certificates.key].map(|path| fs::read(path).unwrap());
    (certificates, files)
}

#[track_caller]
fn succeeds(mut hook: Command) {
    let Output { status, stderr, .. } = hook.output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
}

#[test]
fn a_renewed_pair_is_copied_for_the_gateway_and_in_use_after_the_reload() {
    let mut certbot = Certbot::new();
    let (first, files) = pair();
    certbot.renew(&files[0], &files[1]);
    succeeds(certbot.hook());
    assert_eq!((certbot.copied(), certbot.reloads()), (files, 1));
    let config = certbot.folder.path().join("weir.toml");
    let [chain, key] = FILES.map(|file| certbot.link().join(file).display().to_string());
    let text = format!(
        "[listener.web]\nbind = '127.0.0.1:0'\ntls = {{}}\n[[certificate]]\nchain = '{chain}'\nkey = '{key}'\n\
         [[route]]\nrespond.status = 200\n"
    );
    fs::write(&config, text).unwrap();
    let weir = Weir::of_file(&config, 1);
    let get = |certificates: &Certificates| {
        let mut client = Client::connect(weir.address(), Some(certificates.session()));
        client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").status
    };
    assert_eq!(get(&first), 200);
    let (second, files) = pair();
    certbot.renew(&files[0], &files[1]);
    let mut hook = certbot.hook();
    hook.env("WEIR_RELOAD", format!("kill -HUP {}", weir.pid()));
    succeeds(hook);
    weir.wait_for_stderr(&["weir: reloaded"]);
    assert_eq!(get(&second), 200, "signed by another CA");
    assert_eq!(certbot.copied(), files);
}

#[test]
fn the_copies_are_for_the_gateways_group_alone_and_there_is_one_pair() {
    let mut certbot = Certbot::new();
    for _ in 0..3 {
        let (_, [chain, key]) = pair();
        certbot.renew(&chain, &key);
        succeeds(certbot.hook());
    }
    let group = certbot.folder.path().metadata().unwrap().gid();
    let mode = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        assert_eq!(found.gid(), group);
        found.permissions().mode() & 0o777
    };
    assert_eq!((mode(&certbot.copies()), mode(&certbot.link())), (0o750, 0o750));
    assert!(FILES.iter().all(|file| mode(&certbot.link().join(file)) == 0o640));
    // The link and its target directory.
    assert_eq!(fs::read_dir(certbot.copies()).unwrap().count(), 2);
    assert_eq!(fs::read_dir(certbot.link()).unwrap().count(), 2);
    assert_eq!(certbot.reloads(), 3);
}

#[test]
fn whatever_goes_wrong_leaves_the_old_pair_in_place() {
    type Harm = fn(&mut Certbot, [Vec<u8>; 2], &mut Command);
    let harms: [(&str, Harm); 11] = [
        ("is not usable", |certbot, [_, key], _| certbot.renew(&pair().1[0], &key)),
        ("is not usable", |certbot, [chain, _], _| certbot.renew(&chain, b"")),
        ("is not usable", |certbot, [chain, key], _| certbot.renew(&chain[..chain.len() / 2], &key)),
        ("is not usable", |certbot, [chain, key], _| certbot.renew(&key, &chain)),
        ("privkey.pem cannot be copied", |certbot, [chain, key], _| {
            certbot.renew(&chain, &key);
            fs::remove_file(certbot.folder.path().join("archive/example.org/privkey2.pem")).unwrap();
        }),
        ("fullchain.pem cannot be copied", |certbot, _, _| fs::remove_dir_all(certbot.lineage()).unwrap()),
        ("RENEWED_LINEAGE is not set", |_, _, hook| {
            hook.env_remove("RENEWED_LINEAGE");
        }),
        ("RENEWED_LINEAGE is not set", |_, _, hook| {
            hook.env("RENEWED_LINEAGE", "");
        }),
        ("fullchain.pem cannot be copied", |_, _, hook| {
            hook.env("WEIR_GROUP", "no such group");
        }),
        ("is not usable", |certbot, [chain, key], hook| {
            certbot.renew(&chain, &key);
            hook.env("WEIR", "/no/such/program");
        }),
        ("is no symbolic link", |certbot, [chain, key], _| {
            certbot.renew(&chain, &key);
            let kept = certbot.copied();
            fs::remove_file(certbot.link()).unwrap();
            fs::create_dir(certbot.link()).unwrap();
            for (file, bytes) in FILES.into_iter().zip(kept) {
                fs::write(certbot.link().join(file), bytes).unwrap();
            }
        }),
    ];
    for (number, (why, harm)) in harms.into_iter().enumerate() {
        let mut certbot = Certbot::new();
        let (_, old) = pair();
        certbot.renew(&old[0], &old[1]);
        succeeds(certbot.hook());
        let mut hook = certbot.hook();
        harm(&mut certbot, pair().1, &mut hook);
        let entries = fs::read_dir(certbot.copies()).unwrap().count();
        let Output { status, stderr, .. } = hook.output().unwrap();
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(!status.success() && stderr.contains(why), "{number}: {stderr}");
        assert!(stderr.contains("the old certificate stays"), "{number}: {stderr}");
        assert_eq!(certbot.copied(), old, "{number}");
        assert_eq!(
            fs::read_dir(certbot.copies()).unwrap().count(),
            entries,
            "{number}: nothing is left behind"
        );
        assert_eq!(certbot.reloads(), 1, "{number}: no reload");
    }
}

#[test]
fn a_reload_that_fails_is_reported_and_the_new_pair_is_for_the_next() {
    let mut certbot = Certbot::new();
    let (_, files) = pair();
    certbot.renew(&files[0], &files[1]);
    let mut hook = certbot.hook();
    let Output { status, stderr, .. } = hook.env("WEIR_RELOAD", "false").output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && stderr.contains("in place, but not in use: false: failed"), "{stderr}");
    assert_eq!(certbot.copied(), files);
}

/// A reader that opens the chain and then the key gets files of the same directory, and so a matching pair. Otherwise a
/// reload follows.
#[test]
fn chain_and_key_change_together() {
    let mut certbot = Certbot::new();
    let mut pairs = Vec::new();
    for _ in 0..4 {
        let (_, files) = pair();
        certbot.renew(&files[0], &files[1]);
        succeeds(certbot.hook());
        let target = fs::read_link(certbot.link()).unwrap();
        assert!(target.parent().is_some_and(|parent| parent == Path::new("")), "{target:?}");
        pairs.push(target);
        assert_eq!(certbot.copied(), files);
    }
    pairs.dedup();
    assert_eq!(pairs.len(), 4, "each pair has a directory of its own, complete before the link leads there");
    poll_until(DEADLINE, "one is left", || fs::read_dir(certbot.copies()).unwrap().count() == 2);
}
