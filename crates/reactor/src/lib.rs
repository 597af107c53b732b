//! One event loop per core: poller, timers, listeners, mailboxes, CPU placement.
