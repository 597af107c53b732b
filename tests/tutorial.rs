//! docs/TUTORIAL.md, pasted block by block into a shell, with free ports.

use crate::common::load::{ATTEMPTS, undisturbed};
use crate::common::{DEADLINE, peer, poll_until};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The timeout for the longest block: an experiment on a busy machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// A shell that runs one block after the other; dropping it ends everything that it started.
struct Shell {
    child: Child,
    folder: PathBuf,
    blocks: usize,
}

impl Shell {
    fn new(folder: &Path) -> Self {
        let weir = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let path = std::env::join_paths([weir.to_owned()].into_iter().chain(std::env::split_paths(&path)));
        let output = OpenOptions::new().create(true).append(true).open(folder.join("output")).unwrap();
        // `-m` makes each job a process group, so that a signal reaches the whole job.
        let child = Command::new("bash")
            .args(["-m", "-s"])
            .current_dir(folder)
            .env("PATH", path.unwrap())
            .env("XDG_STATE_HOME", folder.join("state"))
            .stdin(Stdio::piped())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Self { child, folder: folder.to_owned(), blocks: 0 }
    }

    /// All output so far.
    fn output(&self) -> String {
        fs::read_to_string(self.folder.join("output")).unwrap()
    }

    /// Pastes a block, waits for its last command, and returns the exit code of that.
    fn paste(&mut self, block: &str) -> String {
        self.blocks += 1;
        let code = self.folder.join(format!("code-{}", self.blocks));
        let text = format!("{block}\necho $? > {0}.new && mv {0}.new {0}\n", code.display());
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        poll_until(PATIENCE, block, || code.exists());
        fs::read_to_string(&code).unwrap().trim().to_owned()
    }

    /// Pastes a block whose last command must succeed. If it finds no evidence on a busy machine, it gets more time.
    fn paste_well(&mut self, block: &str) {
        let mut block = block.to_owned();
        for _ in 1..ATTEMPTS {
            match self.paste(&block).as_str() {
                NO_EVIDENCE => block = with_more_time(&block),
                code => return assert_eq!(code, "0", "{block}:\n{}", self.output()),
            }
        }
        panic!("no evidence: {block}:\n{}", self.output());
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(mut stdin) = self.child.stdin.take() {
            // The shell may have exited already.
            let _ = stdin.write_all(b"kill $(jobs -p) 2> /dev/null; exit\n");
        }
        let _ = self.child.wait();
    }
}

/// The exit code of a measurement without evidence.
const NO_EVIDENCE: &str = "3";

/// Doubles the time of each `-d 3s`.
fn with_more_time(block: &str) -> String {
    let mut parts = block.split("-d ");
    let mut longer = parts.next().unwrap().to_owned();
    for part in parts {
        let (seconds, rest) = part.split_once('s').unwrap();
        longer += &format!("-d {}s{rest}", 2 * seconds.parse::<u32>().unwrap());
    }
    longer
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The `sh` blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("```sh\n").skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

/// Runs the experiment and the proof. Errors: the lab reports that the machine disturbed them; the next attempt uses
/// longer windows.
fn experiment_and_proof(shell: &mut Shell, blocks: &[String]) -> Result<(), String> {
    // Removes the result of an earlier attempt.
    let _ = fs::remove_dir_all(shell.folder.join("out"));
    let before = shell.output().len();
    let has_failed = blocks.iter().any(|block| shell.paste(block) != "0");
    let output = shell.output()[before..].to_owned();
    let is_proved = !has_failed && output.contains(": proved.");
    if !is_proved && output.contains("BUSY: foreign load took ") {
        double_windows(&shell.folder.join("service.toml"));
        return Err(output);
    }
    assert!(is_proved, "{output}");
    Ok(())
}

/// Windows of 1 s to 8 s.
fn double_windows(experiment: &Path) {
    let text = fs::read_to_string(experiment).unwrap();
    let (before, after) = text.split_once("window_ms = ").unwrap();
    let milliseconds: u32 = after.trim().parse().unwrap();
    fs::write(experiment, format!("{before}window_ms = {}\n", (2 * milliseconds).min(8000))).unwrap();
}

#[test]
fn the_tutorial_ends_with_a_proof() {
    if ["node", "perf", "pgrep", "bash"].iter().any(|program| peer(program).is_none()) {
        return;
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("targets/service");
    fs::create_dir_all(&target).unwrap();
    for file in ["service.js", "service.toml", "targets/service/target.toml"] {
        fs::copy(docs.join("tutorial").join(file), folder.path().join(file)).unwrap();
    }
    let ports = [free_port(), free_port()];
    let page = fs::read_to_string(docs.join("TUTORIAL.md")).unwrap();
    let page = page.replace("9443", &ports[0].to_string()).replace("9080", &ports[1].to_string());
    let blocks: Vec<String> = blocks(&page).into_iter().filter(|block| !block.starts_with("cd ")).collect();
    let experiment = blocks.iter().position(|block| block.starts_with("weir run ")).unwrap();
    let (before, rest) = blocks.split_at(experiment);
    let (measured, after) = rest.split_at(2);
    let mut shell = Shell::new(folder.path());
    for block in before {
        shell.paste_well(block);
        for (port, start) in ports.iter().zip(["weir origin", "node service.js"]) {
            if block.starts_with(start) {
                let is_up = || TcpStream::connect(("127.0.0.1", *port)).is_ok();
                poll_until(DEADLINE, &format!("{start}: {}", shell.output()), is_up);
            }
        }
    }
    undisturbed("the tutorial's experiment", || experiment_and_proof(&mut shell, measured));
    for block in after {
        shell.paste_well(block);
    }
    let output = shell.output();
    println!("{output}");
    assert!(output.contains("connections to the upstream per request"), "{output}");
    assert!(output.contains("upstream-keep-alive of service"), "{output}");
    assert!(output.contains("(keep_alive: off -> on): proved."), "{output}");
    assert!(folder.path().join("profile.html").exists() && folder.path().join("out/report.html").exists());
}
