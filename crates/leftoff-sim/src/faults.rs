//! Lets calls of the disk fail: each one of a script, once or from then on.
//!
//! Whatever fails, the broker never panics, never acknowledges what is not on the disk, and keeps nothing of what it
//! refused. A failed sync ends it. A start afterwards finds everything that was acknowledged, and a power cut takes
//! nothing of what that start made readable: bytes of a failed sync are still in the page cache and count as clean.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use leftoff_engine::disk::Disk;
use leftoff_engine::disk::fault::{Fault, FaultDisk, FaultKind, Op, Plan};
use leftoff_engine::disk::mem::MemDisk;

use crate::crash::{AFTERWARDS, seed};
use crate::driver::{Mood, Run, Stop};
use crate::history::History;
use crate::script::Script;

/// The variable of the environment that runs one case only: `NAME` or `NAME:NUMBER`.
pub const ONLY: &str = "LEFTOFF_FAULT";

/// Images of a power cut after the start that follows a fault.
const IMAGES: usize = 4;

/// Images of a power cut right after a sync has failed: it takes one mark that is torn and another one that is missing.
const IMAGES_AFTER_A_FAILED_SYNC: usize = 100;

/// Where it went wrong.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The script's name.
    pub name: String,
    /// The script.
    pub text: String,
    /// The number of the case, as [`cases`] orders them.
    pub number: usize,
    /// What failed.
    pub plan: Plan,
    /// In which part of the trial.
    pub during: &'static str,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { name, text, number, plan, during, what } = self;
        writeln!(f, "script {name}: {text}")?;
        writeln!(f, "with {plan:?}, {during}:")?;
        writeln!(f, "  {what}")?;
        write!(f, "run only this: {ONLY}={name}:{number} cargo test -p leftoff-sim --test faults")
    }
}

/// What is tried with a script: each call that it makes fails, once or from then on, in each way. Of reads, which are
/// many, every seventh.
pub fn cases(text: &str, base: &MemDisk) -> Vec<Plan> {
    let script = Script::parse(text);
    let disk = FaultDisk::over_mem(&base.image(), Plan::none());
    // How far it comes does not matter: what it calls is counted.
    let _ = live(Arc::new(disk.clone()), &script);
    let mut plans = Vec::new();
    for (op, every, kinds) in OPS {
        for nth in (1..=disk.calls(*op)).step_by(*every) {
            for kind in *kinds {
                plans.push(Plan::one(Fault::new(*op, nth, *kind)));
                plans.push(Plan::one(Fault::new(*op, nth, *kind).lasting()));
            }
        }
    }
    plans
}

/// All of a write can be there although it failed.
const OPS: &[(Op, usize, &[FaultKind])] = &[
    (Op::Write, 1, &[FaultKind::Io, FaultKind::ShortWrite(usize::MAX), FaultKind::NoSpace(7)]),
    (Op::Sync, 1, &[FaultKind::Io]),
    (Op::SyncDir, 1, &[FaultKind::Io]),
    (Op::Create, 1, &[FaultKind::Io, FaultKind::NoSpace(0)]),
    (Op::CreateDir, 1, &[FaultKind::NoSpace(0)]),
    (Op::SetLen, 1, &[FaultKind::Io]),
    (Op::Rename, 1, &[FaultKind::Io, FaultKind::NoSpace(0)]),
    (Op::Remove, 1, &[FaultKind::Io]),
    (Op::Open, 3, &[FaultKind::Io]),
    (Op::List, 5, &[FaultKind::Io]),
    (Op::Read, 7, &[FaultKind::Io]),
];

/// Runs a script with a plan of faults, then starts without them.
///
/// # Errors
/// [`Failure`].
pub fn hold(name: &str, text: &str, number: usize, base: &MemDisk, plan: &Plan) -> Result<(), Box<Failure>> {
    let failure = |during: &'static str, what: String| {
        let (name, text, plan) = (name.to_owned(), text.to_owned(), plan.clone());
        Box::new(Failure { name, text, number, plan, during, what })
    };
    let mut during = "while calls failed";
    let held = catch_unwind(AssertUnwindSafe(|| hold_parts(text, base, plan, &mut during)));
    match held {
        Ok(held) => held.map_err(|what| failure(during, what)),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(failure(during, format!("panic: {}", text.unwrap_or_default())))
        }
    }
}

fn hold_parts(text: &str, base: &MemDisk, plan: &Plan, during: &mut &'static str) -> Result<(), String> {
    let script = Script::parse(text);
    let mem = base.image();
    let disk = FaultDisk::over_mem(&mem, plan.clone());
    let (history, stop) = live(Arc::new(disk.clone()), &script);
    if let Some(Stop::Wrong(what)) = stop {
        return Err(what);
    }
    let sync_failed = plan
        .faults
        .iter()
        .any(|fault| matches!(fault.on, Op::Sync | Op::SyncDir) && disk.calls(fault.on) >= fault.nth);
    if sync_failed && stop.is_none() {
        return Err("a sync failed, and the broker went on".to_owned());
    }

    *during = "a power cut instead of a start";
    // No disk fails a write of which all is there; it stands for what fails right behind one, and that is synced by a start.
    if !plan.faults.iter().any(|fault| fault.kind == FaultKind::ShortWrite(usize::MAX)) {
        let mut possible = history.clone();
        possible.let_ghosts_be();
        let once = plan.faults.iter().all(|fault| !fault.lasts);
        let images = if sync_failed && once { IMAGES_AFTER_A_FAILED_SYNC } else { IMAGES };
        for image in mem.survivors(images, seed(2)) {
            open(&image, &script, &possible)?;
        }
    }
    *during = "the start afterwards";
    let mut run = open(&mem, &script, &history)?;
    *during = "a power cut after that start";
    for image in mem.survivors(IMAGES, seed(0)) {
        open(&image, &script, &run.history)?;
    }
    *during = "going on after that start";
    let mut afterwards = Script::parse(AFTERWARDS);
    afterwards.config = script.config.clone();
    run.set_script(afterwards);
    run.go().map_err(|stop| format!("{stop:?}"))?;
    *during = "a power cut after going on";
    for image in mem.survivors(IMAGES, seed(1)) {
        open(&image, &script, &run.history)?;
    }
    Ok(())
}

fn open(disk: &MemDisk, script: &Script, history: &History) -> Result<Run, String> {
    let opened = Run::open(Arc::new(disk.clone()), script, history.clone(), Mood::AfterFaults);
    opened.map_err(|(_, stop)| format!("{stop:?}"))
}

/// From the start to a clean stop, or to whatever comes in between. `None`: it came to its end.
fn live(disk: Arc<dyn Disk>, script: &Script) -> (History, Option<Stop>) {
    let mut run = match Run::open(disk, script, History::default(), Mood::Failing) {
        Ok(run) => run,
        Err((history, stop)) => return (history, Some(stop)),
    };
    let stop = run.go().and_then(|()| run.close()).err();
    (run.history.clone(), stop)
}

/// On a disk that is full after so many bytes more than a new directory takes, a script goes its way: what may be refused
/// (`?`) is, the rest is taken. Then the power is cut.
///
/// # Errors
/// What is wrong.
pub fn hold_full(text: &str, base: &MemDisk, more_bytes: u64) -> Result<(), String> {
    let script = Script::parse(text);
    let mem = base.image();
    let disk = FaultDisk::over_mem(&mem, Plan::capacity(u64::MAX));
    let used = u64::MAX - disk.free_bytes().map_err(|error| error.to_string())?.unwrap_or(0);
    disk.set_plan(Plan::capacity(used + more_bytes));
    let opened = Run::open(Arc::new(disk), &script, History::default(), Mood::AfterFaults);
    let mut run = opened.map_err(|(_, stop)| format!("{stop:?}"))?;
    run.go().map_err(|stop| format!("{stop:?}"))?;
    for image in mem.survivors(IMAGES, seed(more_bytes)) {
        open(&image, &script, &run.history)?;
    }
    Ok(())
}
