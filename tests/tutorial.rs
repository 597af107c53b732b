//! docs/TUTORIAL.md, pasted block by block into a shell, with ports that are free.

use crate::common::{DEADLINE, peer, poll_until};
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The longest block: an experiment, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A shell that runs one block after the other; when dropped, all that it started is gone.
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
        // `-m` makes each job a process group, which a signal to the job reaches as a whole.
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

    /// Pastes a block, and waits for its last command.
    fn paste(&mut self, block: &str) {
        self.blocks += 1;
        let code = self.folder.join(format!("code-{}", self.blocks));
        let text = format!("{block}\necho $? > {0}.new && mv {0}.new {0}\n", code.display());
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        poll_until(PATIENCE, block, || code.exists());
        assert_eq!(fs::read_to_string(&code).unwrap().trim(), "0", "{block}:\n{}", self.output());
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

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The blocks of `sh` in a page.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("```sh\n").skip(1);
    parts.map(|part| part.split("```").next().unwrap().to_owned()).collect()
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
    let mut shell = Shell::new(folder.path());
    for block in blocks(&page).iter().filter(|block| !block.starts_with("cd ")) {
        shell.paste(block);
        for (port, start) in ports.iter().zip(["weir origin", "node service.js"]) {
            if block.starts_with(start) {
                let is_up = || TcpStream::connect(("127.0.0.1", *port)).is_ok();
                poll_until(DEADLINE, &format!("{start}: {}", shell.output()), is_up);
            }
        }
    }
    let output = shell.output();
    println!("{output}");
    assert!(output.contains("connections to the upstream per request"), "{output}");
    assert!(output.contains("upstream-keep-alive of service"), "{output}");
    assert!(output.contains("(keep_alive: off -> on): proved."), "{output}");
    assert!(folder.path().join("profile.html").exists() && folder.path().join("out/report.html").exists());
}
