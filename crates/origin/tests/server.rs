//! A running test server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use weir_origin::{Handle, Origin, Settings, Totals};

pub(crate) struct Server {
    pub(crate) handle: Handle,
    pub(crate) address: SocketAddr,
    thread: JoinHandle<Totals>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::with(Settings::default())
    }

    pub(crate) fn with(settings: Settings) -> Self {
        let listen = vec!["http://127.0.0.1:0".parse().unwrap()];
        let origin = Origin::bind(&Settings { listen, workers: Some(1), ..settings }).unwrap();
        let (handle, address) = (origin.handle(), origin.addresses().next().unwrap());
        Self { handle, address, thread: thread::spawn(move || origin.run().unwrap()) }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends `request` and reads to the end of the connection; the `Date` fields are cut out.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response.split_inclusive("\r\n").filter(|line| !line.starts_with("Date: ")).collect()
    }

    pub(crate) fn stop(self) -> Totals {
        self.handle.drain();
        self.thread.join().unwrap()
    }
}
