//! Targets that send a number of session tickets of their own, whatever an experiment asks for.

use super::words;
use crate::error::ConfigError;
use crate::experiment::{Experiment, Level};
use crate::instrument::gateway::target::Targets;
use crate::instrument::gateway::{Side, TlsVersion};

const KEY: &str = "tls.tickets";

/// Looks at the number of tickets that an experiment asks for, where there are any: in TLS 1.3. A target that cannot send
/// it says so in its title. Several numbers would make cells that differ in nothing.
///
/// # Errors
/// A number among several that a target does not send.
pub(crate) fn check_tickets(experiment: &Experiment, targets: &mut Targets) -> Result<(), ConfigError> {
    let asked = experiment.any_conditions()?.tls;
    let is_tls = experiment.modes().iter().any(|mode| mode.client() == Side::H1);
    let versions = experiment.levels("tls.version");
    let is_13 = versions.is_empty() || versions.contains(&Level::new(TlsVersion::V1_3));
    if !is_13 || !is_tls {
        return Ok(());
    }
    let levels = experiment.levels(KEY);
    for target in targets.present.values_mut() {
        let Some(sent) = target.description.tickets.as_deref() else { continue };
        let is_sent = |level: &str| sent.iter().any(|number| number.to_string() == level);
        match levels.iter().find(|level| !is_sent(level.as_str())) {
            Some(level) if levels.len() > 1 => {
                let message = format!("`{level}`: target `{}` sends {} alone", target.name, words(sent));
                return Err(ConfigError::new(
                    KEY,
                    format!("{message}: allowed are one value, or other targets"),
                ));
            }
            _ if !sent.contains(&asked.tickets) => {
                let note = format!(" (tickets: {}, not {})", nearest(sent, asked.tickets), asked.tickets);
                target.title.push_str(&note);
            }
            _ => {}
        }
    }
    Ok(())
}

/// What is sent where another number is asked for.
fn nearest(sent: &[u8], asked: u8) -> u8 {
    sent.iter().copied().min_by_key(|number| number.abs_diff(asked)).unwrap_or(asked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::gateway::testing::experiment;
    use toml::Value;

    /// The title of the target `fast` that sends so many tickets, in an experiment in this mode that asks for these.
    fn title(sent: &[u8], mode: &str, asked: &[i64]) -> Result<String, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut targets = crate::instrument::gateway::testing::targets(directory.path());
        let fast = targets.present.get_mut("fast").expect("is here");
        fast.description.tickets = Some(sent.to_vec());
        let mut experiment = experiment();
        experiment.set_constant("mode", mode.into());
        match asked {
            [one] => experiment.set_constant(KEY, (*one).into()),
            several => experiment.set_factor(KEY, several.iter().copied().map(Value::from).collect()),
        }
        check_tickets(&experiment, &mut targets).map_err(|error| error.to_string())?;
        let plan =
            crate::instrument::gateway::testing::plan(experiment, &targets, &crate::RunOptions::default())
                .expect("is planned");
        assert!(plan.cells.iter().any(|cell| cell.subject == "fast"), "it runs");
        Ok(targets.present["fast"].title.clone())
    }

    /// `tls.tickets=[0, 2, 4]` made cells of rivals that always send 2, and labelled them as if they had sent 0 and 4.
    #[test]
    fn a_number_that_is_not_sent_makes_no_cells_of_its_own() {
        assert_eq!(
            title(&[2], "h1-h1c", &[2, 4]),
            Err("tls.tickets: `4`: target `fast` sends 2 alone: allowed are one value, or other targets"
                .into())
        );
        assert_eq!(title(&[0, 1], "h1-h1c", &[0, 1]), Ok("T".into()));
    }

    /// With TLS 1.2 as the first of two versions the number was not looked at.
    #[test]
    fn a_number_is_looked_at_where_any_cell_is_of_tls_1_3() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut targets = crate::instrument::gateway::testing::targets(directory.path());
        targets.present.get_mut("fast").expect("is here").description.tickets = Some(vec![2]);
        let mut experiment = experiment();
        experiment.set_constant("mode", "h1-h1c".into());
        experiment.set_factor(KEY, vec![2.into(), 4.into()]);
        for (versions, is_right) in [(vec!["1.2"], true), (vec!["1.2", "1.3"], false)] {
            experiment.set_factor("tls.version", versions.into_iter().map(Value::from).collect());
            assert_eq!(check_tickets(&experiment, &mut targets).is_ok(), is_right);
        }
    }

    /// A rival that sends one ticket ran among those that send two, and only its description told so.
    #[test]
    fn another_number_than_asked_for_stands_in_the_title() {
        assert_eq!(title(&[1], "h1-h1c", &[2]), Ok("T (tickets: 1, not 2)".into()));
        assert_eq!(title(&[0, 1], "h1-h1c", &[4]), Ok("T (tickets: 1, not 4)".into()));
        assert_eq!(title(&[2], "h1-h1c", &[2]), Ok("T".into()));
        assert_eq!(title(&[1], "h1c-h1c", &[2]), Ok("T".into()), "there are none");
    }
}
