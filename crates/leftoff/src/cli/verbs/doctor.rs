//! `leftoff doctor`

use leftoff::store::{DirectoryLock, random_id};
use leftoff_engine::broker::doctor::{Diagnosis, examine};
use leftoff_engine::broker::{Broker, BrokerConfig};

use crate::cli::args::upkeep::DoctorArgs;
use crate::cli::args::{FormatArg, Global};
use crate::cli::failure::Failure;
use crate::cli::notes::Notes;
use crate::cli::session::{self, WAIT_FOR_LOCK};
use crate::cli::table::{Column, Table};
use crate::cli::verbs::printed;

const COLUMNS: [Column; 4] = [
    Column { title: "PLACE", key: "place", is_wide: false },
    Column { title: "SEVERITY", key: "severity", is_wide: false },
    Column { title: "FINDING", key: "finding", is_wide: false },
    Column { title: "REPAIRED", key: "repaired", is_wide: false },
];

/// Looks for damage; exit 5 if some is left.
pub fn doctor(global: &Global, args: &DoctorArgs) -> Result<(), Failure> {
    let data = &global.data;
    let disk = session::disk(data)?;
    let notes = Notes::new(global.quiet);
    let lock = if args.repair {
        let wait = global.timeout.unwrap_or(WAIT_FOR_LOCK);
        let lock = DirectoryLock::take(data, "doctor", wait);
        let lock = lock.map_err(|error| session::from_store(data, error.into()))?;
        // A start settles tails and commit sets first; where it cannot, the repair says why below.
        restart(&disk).unwrap_or_else(|why| notes.note(&format!("before the repair: {why}")));
        Some(lock)
    } else {
        None
    };
    let mut found: Vec<Diagnosis> = Vec::new();
    let examined = examine(&disk, args.repair, &mut |diagnosis| found.push(diagnosis));
    let examined = examined.map_err(|error| session::from_open(data, error))?;
    let mut table = Table::new(&COLUMNS);
    for diagnosis in &found {
        let severity = if diagnosis.ailment.is_damage() { "damage" } else { "remark" };
        table.push(vec![
            diagnosis.place.as_str().into(),
            severity.into(),
            diagnosis.ailment.to_string().into(),
            diagnosis.repaired.as_deref().into(),
        ]);
    }
    if !found.is_empty() || !matches!(global.format, FormatArg::Text | FormatArg::Wide) {
        printed(|out| table.write(out, global.format.into(), !global.no_headers))?;
    }
    notes.note(&format!(
        "looked at {} partitions, {} segments, {} batches, {} bytes",
        examined.partitions, examined.segments, examined.batches, examined.bytes
    ));
    if args.repair {
        restart(&disk).map_err(|why| Failure::storage(format!("after the repair: {why}")))?;
    }
    drop(lock);
    let left = found.iter().filter(|it| it.ailment.is_damage() && it.repaired.is_none()).count();
    match left {
        0 => {
            if found.iter().all(|it| !it.ailment.is_damage()) {
                notes.note("no damage");
            }
            Ok(())
        }
        left if args.repair => Err(Failure::storage(format!("{left} findings could not be repaired"))),
        left => Err(Failure::storage(format!("{left} findings of damage"))
            .hint("`leftoff doctor --repair` sets damaged bytes aside, so that the rest can be served; nothing is deleted")),
    }
}

fn restart(disk: &std::sync::Arc<dyn leftoff_engine::disk::Disk>) -> Result<(), String> {
    let broker = Broker::open(disk.clone(), leftoff::store::now(), random_id(), BrokerConfig::default());
    broker.map_err(|error| error.to_string())?.close().map_err(|error| error.to_string())
}
