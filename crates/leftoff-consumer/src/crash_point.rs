//! Named places on the way of a save at which a process can be made to die as by SIGKILL, for tests: nothing is flushed, no
//! destructor runs. `LEFTOFF_DIE_AT=NAME` or `NAME:N` dies when the place is passed for the first, or the N-th, time.
//!
//! Only builds with debug assertions look at the variable; in a release there is nothing here. The names are in
//! `docs/faults.md`.

/// Passes the place of this name, or dies there.
#[inline]
pub fn pass(name: &str) {
    #[cfg(debug_assertions)]
    wanted::pass(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod wanted {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Wanted {
        name: String,
        left: AtomicU64,
    }

    static WANTED: OnceLock<Option<Wanted>> = OnceLock::new();

    pub(super) fn pass(name: &str) {
        let wanted = WANTED.get_or_init(|| std::env::var("LEFTOFF_DIE_AT").ok().map(|text| parse(&text)));
        let Some(wanted) = wanted.as_ref().filter(|wanted| wanted.name == name) else { return };
        if wanted.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            let own = rustix::process::getpid();
            rustix::process::kill_process(own, rustix::process::Signal::KILL).expect("it is our own process");
        }
    }

    fn parse(text: &str) -> Wanted {
        let (name, count) = text.rsplit_once(':').unwrap_or((text, "1"));
        let count = count.parse().ok().filter(|count| *count > 0);
        let count = count.expect("LEFTOFF_DIE_AT is NAME or NAME:N, with N from 1 on");
        Wanted { name: name.to_owned(), left: AtomicU64::new(count) }
    }
}
