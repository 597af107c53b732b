//! The loads, their order, and the errors that prevent them.

use super::*;

/// Regression test: cleartext responded sooner and got a higher rate, which made each request cheaper; TLS looked worse
/// than it is.
#[test]
fn kept_connections_are_compared_at_nearly_one_rate() {
    let asked = |world: &World| {
        let mut asked = Vec::new();
        let mut measure = |options: &Options| {
            asked.push((case_of(options), is_paced(options)));
            Ok(result(case_of(options), options, 1.0))
        };
        answer(&world.question, world.probe.clone(), &mut measure, |_| ()).unwrap();
        asked
    };
    let mut world = World::new();
    let all = asked(&world);
    assert_eq!(all[0], (Case::KeptTls, false), "finds the pace");
    assert!(all[1..].iter().all(|(case, is_paced)| *is_paced == case.keeps()), "{all:?}");
    world.question.plain = None;
    assert!(asked(&world).iter().all(|(_, is_paced)| !is_paced), "nothing to compare with");
}

#[test]
fn an_invalid_url_is_rejected_with_the_expected_one() {
    let measure = |_: &Options| unreachable!("nothing is to be measured");
    let mut question = World::new().question;
    question.plain = Some("https://127.0.0.1:8443".parse().unwrap());
    let error = cost(&question, measure, |_| ()).unwrap_err();
    assert!(
        error.is_usage()
            && error.to_string().starts_with("--plain: invalid value `https://127.0.0.1:8443/`: expected")
    );
    question.url = "http://127.0.0.1:8080/x".parse().unwrap();
    let error = cost(&question, measure, |_| ()).unwrap_err();
    let next = "weir cost https://HOST:PORT/PATH --plain http://127.0.0.1:8080/x";
    assert!(error.is_usage() && error.to_string().ends_with(next), "{error}");
}

#[test]
fn cleartext_is_guessed_on_port_80_alone_and_never_silently() {
    let mut world = World::new();
    world.question.plain = None;
    world.question.url = "https://a.test/x".parse().unwrap();
    let cost = world.measured();
    assert_eq!(cost.cleartext.target().unwrap().to_string(), "http://a.test/x");
    assert!(cost.notes[0].starts_with("Compared with http://a.test/x, which responds"), "{:?}", cost.notes);
    world.spoil = |_, options, result| {
        if !options.endpoint.tls {
            result.errors.insert("status".into(), 9);
            result.error_examples.insert("status".into(), "status 301".into());
            result.validity = "invalid: errors (9 status)".into();
        }
    };
    let cost = world.measured();
    assert!(cost.cleartext.target().is_none() && cost.invalid().is_empty());
    assert!(
        cost.notes[0]
            .starts_with("Not compared with cleartext: http://a.test/x: errors (9 status): status 301"),
        "{:?}",
        cost.notes
    );
}

#[test]
fn rounds_alternate_and_an_interrupt_ends_them() {
    let world = World::new();
    let cases = || -> Vec<(Case, Options)> {
        let plain = world.question.plain.as_ref();
        Case::ALL
            .into_iter()
            .map(|case| (case, case.options(&world.question, plain, &world.probe).unwrap()))
            .collect()
    };
    let (mut seen, mut started) = (Vec::new(), Vec::new());
    let phases = run(
        cases(),
        |options| {
            seen.push(case_of(options));
            Ok(result(case_of(options), options, 1.0))
        },
        |round, left| started.push((round, left)),
    );
    assert!(phases.unwrap().iter().all(|phase| phase.rounds.len() == 5));
    let backwards: Vec<Case> = Case::ALL.into_iter().rev().collect();
    let rounds: Vec<&[Case]> = seen.chunks(5).collect();
    assert_eq!(rounds, [&Case::ALL[..], &backwards, &Case::ALL, &backwards, &Case::ALL]);
    let second = |seconds| Duration::from_secs(seconds);
    assert_eq!(started, [(0, second(25)), (1, second(20)), (2, second(15)), (3, second(10)), (4, second(5))]);

    let ended = run(cases(), |_| Err(LoadError::NoWindow), |_, _| ());
    assert!(matches!(ended, Err(CostError::Interrupted)));
    let partial = |options: &Options| Ok(LoadResult { partial: true, ..result(Case::KeptTls, options, 1.0) });
    assert!(matches!(run(cases(), partial, |_, _| ()), Err(CostError::Interrupted)));

    // The server exits in the third round: two rounds are not enough.
    let mut left = 12;
    let gone = |options: &Options| {
        left -= 1;
        match left {
            0.. => Ok(result(case_of(options), options, 1.0)),
            _ => Err(LoadError::System(std::io::ErrorKind::ConnectionRefused.into())),
        }
    };
    let phases = run(cases(), gone, |_, _| ()).unwrap();
    assert!(phases.iter().all(|phase| phase.invalid().is_some_and(|why| why.contains("refused"))));
}

#[test]
fn every_case_has_the_load_of_its_name() {
    let mut world = World::new();
    let options = |world: &World, case: Case| {
        let plain: Target = "http://127.0.0.1:8080/x".parse().unwrap();
        case.options(&world.question, Some(&plain), &world.probe).unwrap()
    };
    for case in Case::ALL {
        let options = options(&world, case);
        options.check().unwrap();
        assert_eq!(case_of(&options), case);
        assert_eq!((options.connections, options.phases.window), (4, Duration::from_millis(800)));
        assert_eq!(options.phases.warmup, Duration::from_millis(200));
        assert_eq!(options.servers[0].meter, Meter::Process(4711));
        assert!(options.tls.insecure && options.tls.groups.is_empty());
        assert!(case.options(&world.question, None, &world.probe).is_some() == options.endpoint.tls);
    }
    world.probe.negotiated.as_mut().unwrap().group = Some("x25519mlkem768".into());
    assert_eq!(options(&world, Case::NewFull).tls.groups[0].name(), "x25519mlkem768");
}

#[test]
fn case_names_are_those_of_the_json() {
    let names: BTreeMap<Case, &str> = Case::ALL.into_iter().map(|case| (case, case.name())).collect();
    let value = serde_json::to_value(&names).unwrap();
    assert!(value.as_object().unwrap().iter().all(|(key, name)| key == name), "{value}");
}
