//! Measures the CPU time per request with five pollers: level-triggered epoll; edge-triggered epoll that reads until
//! the socket is empty; edge-triggered epoll that stops at a short read; mio (edge-triggered); and Weir's reactor. Run
//! it with `cargo run --release -p weir-reactor --example trigger [BLOCKS]`.
//!
//! Each measurement starts a fresh server process on the first core. The server responds to every read with 500 bytes;
//! 64 closed-loop connections run on the last core. The figure is the server's CPU time per request; the order of the
//! pollers rotates from block to block.

#![allow(clippy::print_stdout)]

use nix::time::{ClockId, clock_gettime};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::io::Errno;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use weir_reactor::{Events, Interest, Key, Listener, Reactor, Slab, cores, socket};

const VARIANTS: [&str; 5] = ["level", "reactor", "edge", "edge-short", "mio"];
const CONNECTIONS: usize = 64;
const WINDOW: Duration = Duration::from_millis(1500);
const REQUEST: &[u8] = b"GET /bytes/500 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const ANSWER: [u8; 500] = [b'x'; 500];

fn main() -> std::io::Result<()> {
    let argument = std::env::args().nth(1).unwrap_or("8".into());
    match argument.as_str() {
        "reactor" => serve_reactor(),
        "level" => serve_raw(epoll::EventFlags::IN, answer_once),
        "edge" => serve_raw(epoll::EventFlags::IN | epoll::EventFlags::ET, drain),
        "edge-short" => serve_raw(epoll::EventFlags::IN | epoll::EventFlags::ET, answer_once),
        "mio" => serve_mio(),
        blocks => compare(blocks.parse().map_err(|_| std::io::Error::other("expected a number of blocks"))?),
    }
}

fn compare(blocks: usize) -> std::io::Result<()> {
    cores::pin(*cores::allowed()?.0.last().unwrap_or(&0))?;
    let mut ratios = vec![Vec::new(); VARIANTS.len()];
    for block in 0..blocks {
        let mut costs = [0.0; VARIANTS.len()];
        for step in 0..VARIANTS.len() {
            // Rotate the order: each variant takes each position equally often.
            let variant = (block + step) % VARIANTS.len();
            costs[variant] = measure(VARIANTS[variant])?;
        }
        let shown: Vec<String> =
            VARIANTS.iter().zip(costs).map(|(v, cost)| format!("{v} {cost:.2}")).collect();
        println!("block {block}, CPU us per request: {}", shown.join(", "));
        for (variant, cost) in costs.iter().enumerate() {
            ratios[variant].push(cost / costs[0]);
        }
    }
    for (variant, ratios) in ratios.iter_mut().enumerate().skip(1) {
        ratios.sort_by(f64::total_cmp);
        let (low, median, high) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        println!("{} / level: median {median:.3}, from {low:.3} to {high:.3}", VARIANTS[variant]);
    }
    Ok(())
}

/// Puts one fresh server under load; returns its CPU microseconds per request.
fn measure(variant: &str) -> std::io::Result<f64> {
    let mut server = Command::new(std::env::current_exe()?)
        .arg(variant)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let Some(mut lines) = server.stdout.take() else { return Err(std::io::Error::other("no stdout")) };
    let mut address = [0; 64];
    let len = lines.read(&mut address)?;
    let address: SocketAddr =
        String::from_utf8_lossy(&address[..len]).trim().parse().map_err(std::io::Error::other)?;
    let clock = ClockId::pid_cpu_clock_id(nix::unistd::Pid::from_raw(server.id() as i32))?;
    let mut clients: Vec<TcpStream> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(address)).collect::<Result<_, _>>()?;
    for client in &mut clients {
        client.set_nodelay(true)?;
        client.write_all(REQUEST)?;
    }
    let (start, before) = (Instant::now(), Duration::from(clock_gettime(clock)?));
    let (mut requests, mut answer) = (0u64, [0; ANSWER.len()]);
    while start.elapsed() < WINDOW {
        for client in &mut clients {
            client.read_exact(&mut answer)?;
            client.write_all(REQUEST)?;
            requests += 1;
        }
    }
    let used = Duration::from(clock_gettime(clock)?) - before;
    server.kill()?;
    server.wait()?;
    Ok(used.as_secs_f64() * 1e6 / requests as f64)
}

fn listen() -> std::io::Result<TcpListener> {
    cores::pin(cores::allowed()?.0[0])?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    Ok(listener)
}

fn accept(listener: &TcpListener) -> std::io::Result<TcpStream> {
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn serve_reactor() -> std::io::Result<()> {
    cores::pin(cores::allowed()?.0[0])?;
    let address: SocketAddr = ([127, 0, 0, 1], 0).into();
    let listener = Listener::bind(address, 1).map_err(std::io::Error::other)?.remove(0);
    println!("{}", listener.address());
    let (mut reactor, mut events, mut inbox) = (Reactor::new()?, Events::default(), Vec::new());
    let key = Key::fixed(0, 0);
    reactor.register(&listener, key, Interest::READ)?;
    let mut connections: Slab<OwnedFd> = Slab::new(1);
    loop {
        reactor.turn(&mut events, None)?;
        for ready in events.ready() {
            if ready.key == key {
                while let Some((socket, _)) = listener.accept()? {
                    let key = connections.insert(socket);
                    if let Some(socket) = connections.get(key) {
                        reactor.register(socket, key, Interest::READ)?;
                    }
                }
            } else if let Some(connection) = connections.get(ready.key) {
                inbox.clear();
                match socket::read(connection, &mut inbox, 65_536)? {
                    socket::Read::Bytes(_) => drop(socket::write(connection, &ANSWER)?),
                    _ => drop(connections.remove(ready.key)),
                }
            }
        }
    }
}

fn serve_raw(flags: epoll::EventFlags, answer: Answerer) -> std::io::Result<()> {
    let listener = listen()?;
    let connections: Vec<TcpStream> =
        (0..CONNECTIONS).map(|_| accept(&listener)).collect::<Result<_, _>>()?;
    let poller = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (index, connection) in connections.iter().enumerate() {
        epoll::add(&poller, connection, epoll::EventData::new_u64(index as u64), flags)?;
    }
    let (mut events, mut inbox) = (Vec::with_capacity(512), Vec::with_capacity(65_536));
    loop {
        events.clear();
        epoll::wait(&poller, spare_capacity(&mut events), None)?;
        for event in &events {
            answer(connections[event.data.u64() as usize].as_fd(), &mut inbox)?;
        }
    }
}

fn serve_mio() -> std::io::Result<()> {
    let listener = listen()?;
    let mut poll = mio::Poll::new()?;
    let mut connections = Vec::new();
    for index in 0..CONNECTIONS {
        let mut stream = mio::net::TcpStream::from_std(accept(&listener)?);
        poll.registry().register(&mut stream, mio::Token(index), mio::Interest::READABLE)?;
        connections.push(stream);
    }
    let (mut events, mut inbox) = (mio::Events::with_capacity(512), Vec::with_capacity(65_536));
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            drain(connections[event.token().0].as_fd(), &mut inbox)?;
        }
    }
}

type Answerer = fn(BorrowedFd<'_>, &mut Vec<u8>) -> std::io::Result<()>;

/// Reads once: a short read means that the socket is empty.
fn answer_once(socket: BorrowedFd<'_>, inbox: &mut Vec<u8>) -> std::io::Result<()> {
    inbox.clear();
    match socket::read(socket, inbox, 65_536)? {
        socket::Read::Bytes(_) => drop(socket::write(socket, &ANSWER)?),
        _ => std::process::exit(0),
    }
    Ok(())
}

/// Reads and responds until a read would block.
fn drain(socket: BorrowedFd<'_>, inbox: &mut Vec<u8>) -> std::io::Result<()> {
    loop {
        inbox.clear();
        match rustix::net::recv(socket, spare_capacity(inbox), rustix::net::RecvFlags::empty()) {
            Ok(_) if inbox.is_empty() => return Ok(()),
            Ok(_) => drop(socket::write(socket, &ANSWER)?),
            Err(Errno::AGAIN) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}
