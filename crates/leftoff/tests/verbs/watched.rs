//! A server that is watched over HTTP: is it alive, is it ready, its numbers; and who is told where that is.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;

use crate::process::until;
use crate::serve::Server;
use crate::told::{get, parse};

/// Where the server says that its HTTP side is.
pub fn http_at(dir: &Path) -> String {
    until("the address", || {
        let text = std::fs::read_to_string(dir.join("stderr")).ok()?;
        let (_, rest) = text.rsplit_once("numbers and the API are at http://")?;
        Some(rest.split_once('\n')?.0.to_owned())
    })
}

#[test]
fn numbers_say_how_the_server_and_its_groups_stand() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), "");
    let http = http_at(dir.path());
    assert_eq!(get(&http, "/healthz"), "ok\n");
    assert_eq!(get(&http, "/readyz"), "ok\n");
    let mut client = server.connect();
    assert_eq!(client.create("t"), 0);
    assert_eq!(client.produce("t", &["a", "b", "c"]), (0, 0));
    assert_eq!(
        (client.commit("done", "t", 3), client.commit("far", "t", 9), client.commit("g", "t", 1)),
        (0, 0, 0)
    );
    let series = parse(&get(&http, "/metrics"));
    let of = |name: &str, group: &str| {
        series[&format!("leftoff_group_{name}{{group=\"{group}\",topic=\"t\",partition=\"0\"}}")]
    };
    assert_eq!(
        [of("waiting_offsets", "g"), of("waiting_offsets", "done"), of("waiting_offsets", "far")],
        [2.0, 0.0, 0.0]
    );
    assert_eq!([of("ahead_of_end_offsets", "far"), of("next_offset", "g")], [6.0, 1.0]);
    assert_eq!([of("flagged_offsets", "far"), of("flagged_offsets", "g")], [1.0, 0.0]);
    // The events say that they are of long ago.
    assert!(of("waiting_age_seconds", "g") > 1e9 && of("stuck_seconds", "g") < 1e6, "{series:?}");
    assert_eq!([of("waiting_age_seconds", "done"), of("stuck_seconds", "done")], [0.0, 0.0]);
    assert_eq!(series["leftoff_requests_total{api=\"OffsetCommit\"}"], 3.0);
    assert_eq!(series["leftoff_connections_open"], 1.0);
    assert!(series["leftoff_request_bytes_total"] > 100.0 && series["leftoff_answer_bytes_total"] > 100.0);
    assert!(series["leftoff_sync_seconds_count"] >= 5.0, "{series:?}");
    assert_eq!(series["leftoff_sync_seconds_bucket{le=\"+Inf\"}"], series["leftoff_sync_seconds_count"]);
}

#[test]
fn the_lock_says_where_the_server_is_and_its_token_is_for_its_owner_only() {
    let dir = TempDir::new().unwrap();
    let mut server = Server::start(dir.path(), "");
    let http = http_at(dir.path());
    let lock = std::fs::read_to_string(dir.path().join("d/lock")).unwrap();
    let pid = server.process.0.id();
    assert_eq!(lock, format!("pid {pid} (serve, listens at {}, http at {http})", server.address));
    let token = dir.path().join("d/lock.token");
    assert_eq!(std::fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    let before = std::fs::read_to_string(&token).unwrap();
    server.process.signal("-KILL");
    server.process.end();
    // Nothing of the one that was killed opens the next.
    let mut server = Server::start(dir.path(), "");
    assert_ne!(std::fs::read_to_string(&token).unwrap(), before);
    server.process.signal("-TERM");
    assert_eq!(server.process.end(), Some(0));
    assert!(!token.exists());
    let server = Server::start(dir.path(), "--ui-listen off");
    let pid = server.process.0.id();
    let lock = std::fs::read_to_string(dir.path().join("d/lock")).unwrap();
    assert_eq!(lock, format!("pid {pid} (serve, listens at {})", server.address));
    assert!(!token.exists());
}
