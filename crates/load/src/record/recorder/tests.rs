//! Recording and merging.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn recorder(from: Instant) -> Recorder {
    let mut recorder = Recorder::new(true);
    recorder.window = Some(Window { from, to: from + MS * 1000 });
    recorder
}

#[test]
fn the_window_is_what_lies_between_its_edges_and_errors_run_on() {
    let mut recorders = [Recorder::new(false), Recorder::new(false)];
    for recorder in &mut recorders {
        recorder.counters.answered = 5;
        recorder.error(&Wrong::fixed(ErrorClass::Reset, "in the warm-up"));
        recorder.window_begins();
        recorder.counters.answered += 7;
        recorder.window_ends();
        recorder.counters.answered += 1;
        recorder.error(&Wrong::fixed(ErrorClass::Timeout, "in the drain"));
    }
    let [mut all, other] = recorders;
    all.merge(&other);
    let within = all.within();
    assert_eq!((within.answered, all.counters.answered), (14, 26));
    assert_eq!(within.errors[ErrorClass::Reset as usize], 0);
    assert_eq!(within.errors[ErrorClass::Timeout as usize], 2);
    assert_eq!(all.examples()["reset"], "in the warm-up");
}

#[test]
fn the_wait_before_the_first_byte_is_in_the_response_time_and_not_in_the_service_time() {
    let from = Instant::now();
    let mut recorder = recorder(from);
    for planned in [0, 999, 1000] {
        let planned = from + MS * planned;
        recorder.answer(Course {
            planned,
            written: planned + MS * 30,
            first: Some(planned + MS * 35),
            end: planned + MS * 40,
        });
    }
    let near = |latency: Latency, ms: f64| {
        assert_eq!(latency.count, 2, "arrivals planned after the window do not belong to it");
        assert!((latency.mean_us / (ms * 1e3) - 1.0).abs() < 0.002, "{latency:?}");
    };
    near(recorder.response.distribution(), 40.0);
    near(recorder.service(), 10.0);
    near(recorder.first_byte.distribution(), 5.0);
    assert_eq!(recorder.counters.answered, 3);
}

#[test]
fn service_times_part_from_response_times_when_the_first_request_waits() {
    let from = Instant::now();
    let mut parts = [Recorder::new(false), Recorder::new(false)];
    for part in &mut parts {
        part.window = Some(Window { from, to: from + MS * 1000 });
        part.answer(Course { planned: from, written: from, first: None, end: from + MS * 10 });
    }
    let [mut all, other] = parts;
    assert_eq!(other.service(), other.response.distribution());
    // This one opened a connection.
    all.answer(Course { planned: from, written: from + MS * 30, first: None, end: from + MS * 40 });
    all.merge(&other);
    let (response, service) = (all.response.distribution(), all.service());
    assert_eq!((response.count, service.count), (3, 3));
    assert!((service.max_us / 10e3 - 1.0).abs() < 0.002 && response.max_us > 39e3, "{service:?}");
}

#[test]
fn what_is_given_up_censors_the_part_that_it_was_in() {
    let from = Instant::now();
    let mut recorder = recorder(from);
    recorder.first_byte_given_up(from, from, from + MS * 50);
    recorder.opening_given_up(from, None, false, from + MS * 60);
    recorder.opening_given_up(from, Some(from + MS * 10), true, from + MS * 60);
    let censored = |latency: Latency| (latency.count, latency.censored);
    assert_eq!(censored(recorder.first_byte.distribution()), (1, 1));
    assert_eq!(censored(recorder.connect.distribution()), (1, 1));
    let handshakes = recorder.handshake_distributions();
    assert_eq!(censored(handshakes["full"].clone()), (1, 1), "no resumption was ever seen");
}

#[test]
fn unsent_arrivals_are_counted_with_their_age_and_censor_the_response_time() {
    let from = Instant::now();
    let mut recorder = recorder(from);
    for planned in [400, 800] {
        recorder.unsent(from + MS * planned, from + MS * 1000);
    }
    let mut all = super::tests::recorder(from);
    all.merge(&recorder);
    let unsent = all.unsent_in_all();
    assert_eq!((unsent.count, unsent.oldest_us, unsent.mean_us), (2, 600_000.0, 400_000.0));
    let response = all.response.distribution();
    assert_eq!((response.count, response.censored), (2, 2));
    assert_eq!(all.service().count, 0, "no byte of it was ever written");
}

#[test]
fn a_step_has_what_was_planned_in_it() {
    let from = Instant::now();
    let mut recorder = recorder(from);
    recorder.by_step([from + MS * 500, from + MS * 1000].into_iter());
    for planned in [0, 499, 500] {
        let planned = from + MS * planned;
        recorder.arrival(planned, planned + MS);
        recorder.answer(Course { planned, written: planned, first: None, end: planned + MS * 600 });
    }
    let steps: Vec<(u64, u64)> =
        recorder.steps().map(|step| (step.planned, step.response.distribution().count)).collect();
    assert_eq!(steps, [(2, 2), (1, 1)]);
}

#[test]
fn each_second_has_its_own() {
    let from = Instant::now();
    let mut recorder = recorder(from);
    let answer = Course { planned: from, written: from, first: None, end: from + MS };
    recorder.answer(answer);
    assert_eq!(recorder.second(-1, 3, 0).second.requests, 1);
    recorder.answer(answer);
    recorder.answer(answer);
    recorder.error(&Wrong::fixed(ErrorClass::Reset, "once"));
    let part = recorder.second(0, 3, 2).second;
    assert_eq!((part.requests, part.errors, part.connections, part.waiting), (2, 1, 3, 2));
}
