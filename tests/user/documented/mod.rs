//! Pastes every command in README, docs and `--help` into a shell, with the servers, certificates and stored results
//! that the commands name. A command that would take minutes is cut short, and its progress is checked.
//!
//! Each command needs a rule, or the test fails: to document a new command, add its rule below.

mod sandbox;
mod shown;

use sandbox::{Sandbox, Servers};
use shown::{Shown, mentions};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

/// The way to run a command, and the proof that it was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum How {
    /// Until it exits with 0.
    Done,
    /// Until it exits with 0, 3 or 4: with a verdict, or with too little evidence for one.
    Judged,
    /// Until it listens; after SIGTERM it exits with 0.
    Listens,
    /// Until it would write its results or build its engines, after all checks of the command: exit code 1, with these
    /// words.
    Stops(&'static str),
    /// The command is not run, for this reason.
    Not(&'static str),
}

/// The rules by the start of a command; the longest match applies.
const RULES: [(&str, How); 47] = [
    ("weir advise", How::Done),
    ("weir advise nginx-current", How::Stops("nothing to run")),
    ("weir advise node-26", How::Stops("nothing to run")),
    ("weir calibrate", How::Done),
    ("weir compare", How::Judged),
    ("weir check", How::Done),
    ("weir completions", How::Done),
    ("weir cost", How::Judged),
    ("weir doctor", How::Judged),
    ("weir history", How::Judged),
    ("cat ", How::Done),
    ("weir import", How::Done),
    ("weir load", How::Judged),
    ("weir man", How::Done),
    ("weir origin", How::Listens),
    ("weir plan", How::Done),
    ("weir probe", How::Done),
    ("weir profile", How::Stops("`perf` is not on the PATH")),
    ("weir profile --data", How::Not("reads a recording of yours; tests/profile.rs covers it")),
    ("weir relay", How::Listens),
    ("weir report", How::Judged),
    ("weir run", How::Stops(sandbox::NO_PLACE)),
    ("weir run outbound", How::Stops("nothing to run")),
    ("weir doctor --strict &&", How::Stops(sandbox::NO_PLACE)),
    ("weir serve", How::Listens),
    ("weir stacks build", How::Stops("not on the PATH")),
    ("weir stacks list", How::Done),
    ("weir stacks plan", How::Done),
    ("weir stacks run", How::Stops("nothing to run")),
    ("weir stacks run --only engine=", How::Stops("not on the PATH")),
    ("weir stacks run tickets --only engine=", How::Stops("not on the PATH")),
    ("weir studies", How::Done),
    ("weir studies run", How::Stops("nothing to run")),
    ("weir studies out/", How::Stops("measured no statement of a study")),
    ("weir targets", How::Done),
    ("weir targets install", How::Stops("with bash: No such file")),
    ("weir tickets", How::Done),
    ("weir top", How::Not("needs a gateway that runs beside; tests/gateway covers it")),
    ("source <(weir completions", How::Done),
    ("mkdir -p targets/", How::Done),
    ("mkdir -p ~/.local/", How::Done),
    ("sed ", How::Done),
    ("cargo ", How::Not("builds for minutes; the other commands run its output")),
    ("curl ", How::Not("is not part of Weir")),
    ("jq ", How::Not("is not part of Weir")),
    ("openssl ", How::Not("is not part of Weir")),
    ("printf ", How::Not("the runner protocol of engines; tests/stacks.rs covers it")),
];

#[test]
fn every_documented_command_works_when_pasted() {
    let shown = Mutex::new(shown::all());
    let servers = Servers::start();
    let counted = Mutex::new(BTreeMap::<How, u32>::new());
    let wrong = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((source, commands)) = { shown.lock().unwrap().pop() } {
                    let sandbox = Sandbox::new(&source, &servers);
                    for command in &commands {
                        match judge(&sandbox, command) {
                            Ok(how) => *counted.lock().unwrap().entry(how).or_default() += 1,
                            Err(why) => wrong.lock().unwrap().push(format!("{source}: {command}\n    {why}")),
                        }
                    }
                }
            });
        }
    });
    let counted = counted.into_inner().unwrap();
    let wrong = wrong.into_inner().unwrap();
    for (how, count) in &counted {
        println!("{count:3}  {how:?}");
    }
    assert!(wrong.is_empty(), "{} documented commands failed:\n{}", wrong.len(), wrong.join("\n"));
    let run: u32 =
        counted.iter().filter(|(how, _)| !matches!(how, How::Not(_))).map(|(_, count)| count).sum();
    assert!(run > 60, "the commands were not found: {counted:?}");
}

/// A command in a sentence may have placeholders for values, but its subcommand and flags must exist.
#[test]
fn every_mentioned_command_has_valid_flags() {
    let helps = shown::helps();
    let mut count = 0;
    for (file, mention) in mentions() {
        let words: Vec<&str> = mention.split_whitespace().collect();
        let mut path = words[0].to_owned();
        for word in &words[1..] {
            let longer = format!("{path} {word}");
            if !helps.contains_key(&longer) {
                break;
            }
            path = longer;
        }
        let is_known = words.len() == 1 || words[1].starts_with('-') || path != "weir";
        assert!(is_known, "{file}: `{mention}`: unknown subcommand");
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            let name = flag.split('=').next().unwrap();
            let is_flag = |word: &str| word.trim_end_matches([',', ']']) == name;
            assert!(
                helps[&path].split_whitespace().any(is_flag),
                "{file}: `{mention}`: `{path}` has no flag {name}"
            );
        }
        count += 1;
    }
    println!("{count} mentions");
    assert!(count > 20, "the mentions were not found");
}

fn judge(sandbox: &Sandbox<'_>, command: &Shown) -> Result<How, String> {
    // Environment variables may precede a command.
    let is_setting = |word: &&str| word.split_once('=').is_some_and(|(name, _)| name.chars().all(is_upper));
    let words: Vec<&str> = command.0.split_whitespace().skip_while(is_setting).collect();
    let words = words.join(" ") + " ";
    let rule =
        RULES.iter().filter(|(start, _)| words.starts_with(start)).max_by_key(|(start, _)| start.len());
    let Some((_, how)) = rule else {
        return Err("no rule in tests/user/documented; add one".into());
    };
    let ended = match how {
        How::Not(_) => return Ok(*how),
        How::Listens => sandbox.listen(command),
        _ => sandbox.run(command),
    };
    let is_right = match how {
        How::Done | How::Listens => ended.code == Some(0),
        How::Judged => matches!(ended.code, Some(0 | 3 | 4)) || ended.stderr.contains(sandbox::NO_VALUE),
        How::Stops(words) => {
            ended.code == Some(1) && [&ended.stderr, &ended.stdout].iter().any(|text| text.contains(words))
        }
        How::Not(_) => true,
    };
    let last = |text: &str| text.lines().rev().take(3).collect::<Vec<_>>().join(" | ");
    match is_right {
        true => Ok(*how),
        false => {
            Err(format!("{how:?}: exit {:?}: {} {}", ended.code, last(&ended.stderr), last(&ended.stdout)))
        }
    }
}

fn is_upper(c: char) -> bool {
    c.is_ascii_uppercase() || c == '_'
}
