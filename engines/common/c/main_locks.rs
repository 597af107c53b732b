// The same, with lock_watch.c linked in.

include!("main.rs");
