//! tonic's client through the gateway, to `weir origin` and to a tonic service.

mod calls;
mod client;
mod ends;

use super::behind::Behind;
use crate::servers::Server;
use client::Calls;

/// Calls in a runtime of one thread, which must end within the deadline.
fn run<T>(calls: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let calls = async { tokio::time::timeout(crate::common::DEADLINE, calls).await };
    runtime.block_on(calls).expect("the calls end within the deadline")
}

/// Calls through a gateway to `weir origin`, over TLS on both sides and in cleartext on both.
fn each(check: impl AsyncFn(&mut Calls, &Behind)) {
    for tls in [false, true] {
        let behind = Behind::start(tls, |_, tls| Some(Server::origin(tls))).unwrap();
        run(async {
            let ca = tls.then_some(&behind.certificates);
            check(&mut Calls::connect(behind.weir.address(), ca).await, &behind).await;
        });
        let ended = behind.weir.stop();
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}
