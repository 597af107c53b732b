//! Prints the most frequent stacks of a profile with their categories, for `testdata`: read each line before it is
//! committed. Usage: `label FILE [COUNT]`, where FILE is a perf.data file or folded stacks.

#![allow(clippy::print_stdout)]

use std::env;
use std::path::PathBuf;
use weir_profile::{Profile, Rules, Stacks};

fn main() -> Result<(), String> {
    let mut arguments = env::args().skip(1);
    let file = PathBuf::from(arguments.next().ok_or("usage: label FILE [COUNT]")?);
    let count =
        arguments.next().map_or(Ok(40), |count| count.parse()).map_err(|_| "COUNT: expected a number")?;
    let stacks = weir_profile::read(&file).map_err(|error| error.to_string())?;
    let folded = stacks.folded();
    let samples = |line: &&str| line.rsplit(' ').next().and_then(|samples| samples.parse::<u64>().ok());
    let mut lines: Vec<&str> = folded.lines().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(samples(line)));
    let rules = Rules::built_in();
    for line in lines.into_iter().take(count) {
        let one = Stacks::from_folded(line).map_err(|(_, why)| why)?;
        let profile = Profile::new(&one, &rules);
        let own = profile.categories.iter().find(|one| one.own.samples > 0);
        println!("{}\t{line}", own.map_or("unknown", |one| one.category.words()));
    }
    Ok(())
}
