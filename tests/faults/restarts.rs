//! A server that dies and restarts a hundred times under load.

use crate::common::{Client, DEADLINE, Over, Weir, poll_until};
use crate::gateway::metric;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use weir_http::Method;

/// Number of arrivals of each request, by target.
type Seen = Arc<Mutex<BTreeMap<String, u32>>>;

/// A server that can be killed: it frees its port at once and cuts its connections at any point.
struct Mortal {
    stopping: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    address: SocketAddr,
    thread: JoinHandle<()>,
}

impl Mortal {
    fn start(at: SocketAddr, seen: &Seen) -> Self {
        let mut listener = None;
        // Another test may hold the port meanwhile.
        poll_until(DEADLINE, "the port", || {
            listener = TcpListener::bind(at).ok();
            listener.is_some()
        });
        let listener = listener.unwrap();
        let address = listener.local_addr().unwrap();
        let (stopping, streams) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let (stops, kept, seen) = (Arc::clone(&stopping), Arc::clone(&streams), Arc::clone(seen));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                kept.lock().unwrap().push(stream.try_clone().unwrap());
                if stops.load(Ordering::SeqCst) {
                    return;
                }
                let seen = Arc::clone(&seen);
                // The thread ends with its stream.
                std::thread::spawn(move || serve(stream, &seen));
            }
        });
        Self { stopping, streams, address, thread }
    }

    fn kill(self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes the listener, which then closes.
        let _ = TcpStream::connect(self.address);
        self.thread.join().unwrap();
        for stream in self.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Responds to requests without a body.
fn serve(mut stream: TcpStream, seen: &Seen) {
    let (mut bytes, mut some) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut some) {
        bytes.extend_from_slice(&some[..read]);
        while let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = bytes.drain(..end + 4).collect();
            let target = String::from_utf8_lossy(&head).split(' ').nth(1).unwrap().to_owned();
            *seen.lock().unwrap().entry(target).or_default() += 1;
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
                return;
            }
        }
    }
}

#[test]
fn a_hundred_restarts_lose_only_what_may_not_be_sent_again() {
    const RESTARTS: usize = 100;
    let seen = Seen::default();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    // The second server is always up, so a refused connection loses no request.
    let (mut mortal, other) = (Mortal::start(any, &seen), Mortal::start(any, &seen));
    let config = format!(
        "workers = 2
        [listener.web]
        bind = '127.0.0.1:0'
        [service.app]
        servers = ['http://{}', 'http://{}']
        retry_percent = 100
        eject.failures = 0
        [[route]]
        service = 'app'
        [admin]
        bind = '127.0.0.1:0'",
        mortal.address, other.address
    );
    let weir = Weir::configured(&config, 1);
    let (is_over, number) = (AtomicBool::new(false), AtomicU64::new(0));
    let served = AtomicU64::new(0);
    let lost = Mutex::new(BTreeMap::<String, String>::new());
    std::thread::scope(|scope| {
        for method in ["GET", "GET", "PUT", "POST"] {
            let (is_over, number, served, lost, address) =
                (&is_over, &number, &served, &lost, weir.address());
            scope.spawn(move || {
                let mut client = Client::connect(address, None);
                while !is_over.load(Ordering::Relaxed) {
                    let target = format!("/{method}/{}", number.fetch_add(1, Ordering::Relaxed));
                    client
                        .send(format!("{method} {target} HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"));
                    let answer = client
                        .next_answer(Method::of(method.as_bytes()))
                        .expect("an answer to every request");
                    match (answer.status, answer.complete) {
                        (200, true) => drop(served.fetch_add(1, Ordering::Relaxed)),
                        (502, true) => {
                            lost.lock().unwrap().insert(target, answer.text().trim().to_owned());
                        }
                        other => panic!("{other:?} for {target}: {}", answer.text()),
                    }
                    if answer.says_close() {
                        client = Client::connect(address, None);
                    }
                }
            });
        }
        let over = Over(&is_over);
        for _ in 0..RESTARTS {
            let before = served.load(Ordering::Relaxed);
            poll_until(DEADLINE, "requests", || served.load(Ordering::Relaxed) > before + 40);
            let at = mortal.address;
            mortal.kill();
            mortal = Mortal::start(at, &seen);
        }
        drop(over);
        mortal.kill();
    });
    let (lost, seen) = (lost.into_inner().unwrap(), seen.lock().unwrap().clone());
    for (target, why) in &lost {
        assert!(why.contains("upstream_closed") || why.contains("upstream_truncated"), "{target}: {why}");
        // The gateway had sent the request, so it may not retry it, or has already done so.
        assert!(
            target.starts_with("/POST") || seen.get(target).is_none_or(|times| *times <= 2),
            "{target}: {why}"
        );
    }
    for (target, times) in &seen {
        let most = if target.starts_with("/POST") { 1 } else { 2 };
        assert!(*times <= most, "{target} was carried out {times} times");
    }
    // The metrics count each loss.
    let counted = metric(&weir, "weir_ended_early_total{reason=\"upstream_closed\"}")
        + metric(&weir, "weir_ended_early_total{reason=\"upstream_truncated\"}");
    assert_eq!(counted, lost.len() as u64);
    let twice = seen.values().filter(|times| **times == 2).count() as u64;
    assert!(twice <= metric(&weir, "weir_retries_total"));
    println!("{} served, {} lost, {twice} carried out twice", served.load(Ordering::Relaxed), lost.len());
    other.kill();
    assert_eq!(weir.stop().code, Some(0));
}
