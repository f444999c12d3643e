#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::sync::Mutex;

use rustix::fs::FlockOperation;

use super::*;
use crate::handler::Record;
use crate::source::Event;
use crate::testing::{event, id};

type Heard = Arc<Mutex<Vec<(Option<String>, String)>>>;

/// A shell that reads events and does `body` for each, with `$id` its id, `$line` the line, and `answer`.
fn shell(body: &str) -> (ChildConfig, Heard) {
    let script = format!(
        r#"answer() {{ printf '{{"id":"%s"%s}}\n' "$id" "$1"; }}
        while IFS= read -r line; do
            case $line in '{{"leftoff"'*) continue;; '{{"stop"'*) exit 0;; esac
            id=${{line#*'"id":"'}}; id=${{id%%'"'*}}
            {body}
        done"#
    );
    raw(&script)
}

fn raw(script: &str) -> (ChildConfig, Heard) {
    let heard = Heard::default();
    let to = heard.clone();
    let config = ChildConfig {
        topic: "quakes".to_owned(),
        group: "alerts".to_owned(),
        stderr: Box::new(move |event, line| {
            to.lock().unwrap().push((event.map(str::to_owned), line.to_owned()));
        }),
        ..ChildConfig::new("sh", ["-c", script])
    };
    (config, heard)
}

fn give(child: &mut Child, event: &Event) -> Result<Answer, HandlerError> {
    child.handle(&Delivery { topic: "quakes", id: id(0), event, attempt: 1 })
}

/// Gives events 1, 2, … until there is an error, which must have all of `words`.
#[track_caller]
fn fails(body: &str, words: &[&str]) {
    fails_with(shell(body).0, words);
}

#[track_caller]
fn fails_with(config: ChildConfig, words: &[&str]) {
    let mut child = Child::new(config);
    let error = (1..=3).find_map(|offset| give(&mut child, &event(offset)).err()).expect("an error");
    let text = error.to_string();
    words.iter().for_each(|word| assert!(text.contains(word), "{word:?} is not in: {text}"));
    assert!(child.pid().is_none(), "a child that broke the rules is not kept");
}

fn answers(body: &str) -> Answer {
    give(&mut Child::new(shell(body).0), &event(1)).unwrap()
}

fn jsons(answer: &Answer) -> Vec<&str> {
    match answer {
        Answer::Handled { records } => records.iter().map(Record::json).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_an_answer_can_be() {
    assert!(jsons(&answers("answer")).is_empty());
    assert!(jsons(&answers(r#"answer ',"records":[],"filtered":false,"error":null,"new":1'"#)).is_empty());
    let records = answers(r#"answer ',"records":[{"a": 1.10, "b": 12345678901234567890123}, "x"]'"#);
    assert_eq!(jsons(&records), [r#"{"a": 1.10, "b": 12345678901234567890123}"#, r#""x""#]);
    assert!(matches!(answers(r#"answer ',"filtered":true'"#), Answer::Filtered));
    let failed = |body: &str| match answers(body) {
        Answer::Failed { error, retry } => (error, retry),
        other => panic!("{other:?}"),
    };
    assert_eq!(failed(r#"answer ',"error":"no \"way\""'"#), (r#"no "way""#.to_owned(), true));
    assert_eq!(failed(r#"answer ',"error":{"code":7},"retry":false'"#), (r#"{"code":7}"#.to_owned(), false));
    // The hello may be answered, once.
    assert!(jsons(&answers(r#"[ ${id%.*} = 'quakes/0/1#1' ] && echo '{"leftoff":1}'; answer"#)).is_empty());
}

#[test]
fn everything_else_is_not_handled_and_named() {
    fails("exit 3", &["exited with code 3"]);
    fails("exit 0", &["exited with code 0"]);
    fails("kill -9 $$", &["killed by signal 9"]);
    fails(r#"printf '{"id"'; exit 0"#, &["exited with code 0", r#"unfinished line: {"id""#]);
    fails("echo working on it", &["working on it", "stray print"]);
    fails("echo", &["not a JSON object"]);
    fails("echo '[1]'", &["not a JSON object"]);
    fails("echo '{\"id\": nope}'", &["no answer", "{\"id\": nope}"]);
    fails("echo '{\"ok\":true}'", &["it has no id"]);
    fails("printf '\\377\\n'", &["not UTF-8"]);
    fails("answer ',\"records\":{\"a\":1}'", &["no answer", "sequence"]);
    fails("answer ',\"records\":[],\"error\":\"x\"'", &["both an error and records"]);
    fails("answer ',\"filtered\":true,\"error\":\"x\"'", &["both an error and filtered"]);
    fails("answer ',\"filtered\":true,\"records\":[1]'", &["both records and filtered"]);
    fails("id=quakes/0/77#1; answer", &["quakes/0/77#1", "in flight: quakes/0/1#1"]);
    fails(r#"printf '{"id":"%s"}\n{"id":"%s"}\n' "$id" "$id""#, &["answered twice for quakes/0/1#1"]);
    fails("last=${last:-$id}; new=$id; id=$last; answer; id=$new", &["answered twice for quakes/0/1#1"]);
    fails(r#"echo '{"leftoff":1}'; echo '{"leftoff":1}'; answer"#, &["it has no id"]);
    fails("head -c 9000000 /dev/zero | tr '\\0' x", &["more than 8388608 bytes", "xxx"]);
    // Garbage ahead of an answer on the same line, as a print without line end makes it.
    fails("printf 'debug '; answer", &["debug {\"id\":"]);
}

#[test]
fn a_child_that_is_silent_or_does_not_read_times_out() {
    let timeout = Some(Duration::from_millis(100));
    let slow = |script: (ChildConfig, Heard)| ChildConfig { timeout, ..script.0 };
    fails_with(slow(shell("sleep 1000")), &["no answer within 100ms"]);
    fails_with(slow(raw("while :; do echo x >&2; done")), &["no answer within 100ms"]);
    let mut deaf = Child::new(slow(raw("exec sleep 1000")));
    let large = Event { value: Some(vec![b'x'; 4 << 20]), ..event(1) };
    assert!(matches!(give(&mut deaf, &large), Err(HandlerError::TimedOut { .. })));
}

/// With a descriptor of its own for answers.
fn on_fd(fd: u8, script: (ChildConfig, Heard)) -> (ChildConfig, Heard) {
    (ChildConfig { protocol_fd: Some(fd), ..script.0 }, script.1)
}

#[test]
fn with_a_descriptor_for_answers_a_print_is_harmless() {
    for fd in [3, 9] {
        let (config, heard) = on_fd(fd, shell("echo \"stray $LEFTOFF_FD\"; answer >&$LEFTOFF_FD"));
        let mut child = Child::new(config);
        assert!(jsons(&give(&mut child, &event(1)).unwrap()).is_empty());
        assert!(child.stop(Duration::from_secs(60)).is_ok());
        let label = Some("quakes/0/1".to_owned());
        assert_eq!(*heard.lock().unwrap(), [(label, format!("stray {fd}"))]);
    }
    let garbage = on_fd(3, shell("echo garbage >&3"));
    fails_with(garbage.0, &["no answer: garbage", "descriptor 3 is for answers only"]);
    // Without it, the way out is named.
    fails("echo working on it", &["--protocol-fd 3"]);
    // The end of the shell between us is not mistaken for the program's.
    for program in ["/no/such/handler", "no-such-command-anywhere", "/etc/passwd"] {
        let config = ChildConfig { protocol_fd: Some(3), ..ChildConfig::new(program, [""; 0]) };
        let error = Child::new(config).start().unwrap_err().to_string();
        let why = if program == "/etc/passwd" { "Permission denied" } else { "No such file" };
        assert!(error.contains("cannot start the handler") && error.contains(why), "{error}");
    }
}

/// An answer to an event whose line is not written yet: it reads nothing and counts on.
#[test]
fn an_answer_to_what_it_cannot_have_read_is_a_guess() {
    let guess = r#"while :; do printf '{"id":"quakes/0/1#1"}\n'; done"#;
    let large = Event { value: Some(vec![b'x'; 4 << 20]), ..event(1) };
    let error = give(&mut Child::new(raw(guess).0), &large).unwrap_err().to_string();
    assert!(error.contains("answered for quakes/0/1#1, which it has not"), "{error}");
    let mut child = Child::new(ChildConfig { pipeline: 2, ..raw(guess).0 });
    let delivery = Delivery { topic: "quakes", id: id(0), event: &large, attempt: 1 };
    child.give(1, &delivery).unwrap();
    let error = child.take(Duration::from_secs(60)).unwrap_err().to_string();
    assert!(error.contains("answered for quakes/0/1#1, which it has not"), "{error}");
}

/// It has read its events, and answers for the next one, whose id it made from theirs: with a pipeline, and with one at a time.
#[test]
fn the_id_of_the_next_event_cannot_be_counted() {
    let next = r#"answer; id=${id%%/1#*}/2#${id#*#}; answer"#;
    let mut child = Child::new(shell(next).0);
    let first = give(&mut child, &event(1));
    let error = first.and_then(|_| give(&mut child, &event(2))).unwrap_err().to_string();
    assert!(error.contains("answered for quakes/0/2#1.") && error.contains("which it has not"), "{error}");
    let (answered, error) =
        pipelined(r#"case $id in */1#*) answer; id=${id%%/1#*}/2#${id#*#}; answer; esac"#);
    assert_eq!(answered, [1]);
    assert!(error.unwrap().contains("answered for quakes/0/2#1."), "the second event has another token");
}

/// Gives the events 1 to 4 at once and takes what comes.
fn pipelined(body: &str) -> (Vec<u64>, Option<String>) {
    let mut child = Child::new(ChildConfig { pipeline: 4, ..shell(body).0 });
    for offset in 1..=4 {
        let delivery = Delivery { topic: "quakes", id: id(0), event: &event(offset), attempt: 1 };
        child.give(u64::try_from(offset).unwrap(), &delivery).unwrap();
    }
    let mut answered = Vec::new();
    while answered.len() < 4 {
        match child.take(Duration::from_secs(60)) {
            Ok(taken) => answered.extend(taken.map(|(token, _)| token)),
            Err(error) => {
                assert!(child.pid().is_none(), "it is started anew, with nothing of before");
                let delivery = Delivery { topic: "quakes", id: id(0), event: &event(1), attempt: 2 };
                child.give(9, &delivery).unwrap();
                assert!(matches!(child.take(Duration::from_secs(60)), Ok(Some((9, _))) | Err(_)));
                return (answered, Some(error.to_string()));
            }
        }
    }
    (answered, None)
}

#[test]
fn a_pipeline_is_answered_in_any_order_and_a_fault_names_what_it_had() {
    assert_eq!(pipelined("answer"), (vec![1, 2, 3, 4], None));
    let backwards = r#"ids="$id $ids"; case ${id%.*} in *4#1) for id in $ids; do answer; done;; esac"#;
    assert_eq!(pipelined(backwards), (vec![4, 3, 2, 1], None));
    let fails = |body: &str, words: &[&str]| {
        let (answered, error) =
            pipelined(&format!("case ${{id%.*}} in *1#1) first=$id; answer;; *) {body};; esac"));
        let error = error.unwrap();
        words.iter().for_each(|word| assert!(error.contains(word), "{word:?} is not in: {error}"));
        let had = "(it had 3 events: quakes/0/2, quakes/0/3, quakes/0/4; they are handed out again)";
        assert!(answered == [1] && error.contains(had), "{answered:?} {error}");
    };
    fails("exit 3", &["exited with code 3"]);
    fails("echo garbage", &["no answer: garbage"]);
    fails("id=quakes/0/9#1; answer", &["answered for quakes/0/9#1, which it has not"]);
    fails("id=${first:-none}; answer", &["answered twice for quakes/0/1#1"]);
}

/// Whoever it started holds its pipes open: its end is seen all the same, and theirs follows.
#[test]
fn its_end_is_seen_while_its_own_children_hold_its_pipes() {
    fails("sleep 1000 & exit 3", &["exited with code 3"]);
    let mut exec = Exec::new(raw("sleep 1000 & echo $!").0);
    let answer = exec.handle(&Delivery { topic: "quakes", id: id(0), event: &event(1), attempt: 1 });
    let grandchild = jsons(&answer.unwrap())[0].to_owned();
    while !is_dead(&grandchild) {
        std::thread::yield_now();
    }
}

#[test]
fn what_it_says_does_not_reach_a_terminal_as_it_is() {
    let (config, heard) = shell(r#"printf 'a\033[2Jb\tc\n' >&2; answer ',"error":"\u001b[2Jno\nway"'"#);
    let answer = give(&mut Child::new(config), &event(1)).unwrap();
    assert_eq!(heard.lock().unwrap()[0].1, "a\\u{1b}[2Jb\tc");
    assert!(matches!(answer, Answer::Failed { error, .. } if error == "\\u{1b}[2Jno\nway"));
    let long = answers("answer \",\\\"error\\\":\\\"$(head -c 100000 /dev/zero | tr '\\0' x)\\\"\"");
    assert!(
        matches!(long, Answer::Failed { error, .. } if error.len() < 2_100 && error.ends_with("(100000 bytes)"))
    );
}

#[test]
fn all_handlers_can_be_ended_at_once() {
    let (config, _) = shell("trap '' TERM; sleep 1000 & answer \",\\\"records\\\":[$!]\"");
    let running = config.running.clone();
    let mut child = Child::new(config);
    let answer = give(&mut child, &event(1)).unwrap();
    assert_eq!(running.end(), 1);
    let own = child.pid().unwrap().to_string();
    while !(is_dead(jsons(&answer)[0]) && is_dead(&own)) {
        std::thread::yield_now();
    }
    assert!(give(&mut child, &event(2)).is_err());
    let error = child.start().unwrap_err().to_string();
    assert!(error.contains("the run is at its end"), "{error}");
    assert_eq!(running.end(), 0);
}

#[test]
fn closed_pipes_are_named() {
    fails_with(raw("exec 0<&-; exit 4").0, &["exited with code 4"]);
    fails_with(raw("exec >&-; sleep 1000").0, &["closed its output"]);
}

#[test]
fn large_events_and_answers_pass() {
    let mut child = Child::new(shell("answer \",\\\"records\\\":[$line]\"").0);
    let large = Event { value: Some(vec![b'x'; 2 << 20]), ..event(1) };
    assert!(jsons(&give(&mut child, &large).unwrap())[0].len() > 2 << 20);
    assert!(give(&mut child, &event(2)).is_ok());
}

#[test]
fn stderr_is_passed_on_with_its_event() {
    let (config, heard) = shell(
        "echo \"begin ${id%.*}\" >&2; [ ${id%.*} = 'quakes/0/2#1' ] && head -c 300000 /dev/zero | tr '\\0' x >&2; answer",
    );
    let mut child = Child::new(config);
    (1..=3).for_each(|offset| assert!(give(&mut child, &event(offset)).is_ok()));
    assert!(child.stop(Duration::from_secs(60)).is_ok());
    let heard = heard.lock().unwrap();
    let of = |offset: i64| {
        let label = format!("quakes/0/{offset}");
        heard.iter().filter(move |(event, _)| event.as_deref() == Some(&label)).map(|(_, line)| line.as_str())
    };
    assert_eq!(of(1).collect::<Vec<_>>(), ["begin quakes/0/1#1"]);
    let second: Vec<_> = of(2).collect();
    assert_eq!((second.len(), second[0]), (2, "begin quakes/0/2#1"));
    assert!(second[1].ends_with("x… (cut)") && second[1].len() < 2 * MAX_STDERR_LINE_BYTES);
}

#[test]
fn its_last_words_are_heard() {
    let (config, heard) = shell("echo 'Traceback' >&2; printf 'ValueError: x' >&2; exit 1");
    fails_with(config, &["exited with code 1"]);
    let words: Vec<_> = heard.lock().unwrap().iter().map(|(_, line)| line.clone()).collect();
    assert_eq!(words, ["Traceback", "ValueError: x"]);
}

#[test]
fn after_a_fault_the_next_event_starts_it_anew() {
    let mut child = Child::new(shell("[ ${id%.*} = 'quakes/0/1#1' ] && exit 3; answer").0);
    child.start().unwrap();
    let first = child.pid();
    assert!(give(&mut child, &event(1)).is_err());
    assert!(give(&mut child, &event(2)).is_ok());
    assert!(child.pid().is_some() && child.pid() != first);
}

#[test]
fn what_it_does_between_events_is_noticed() {
    let mut child = Child::new(shell("answer; echo stray").0);
    let answered = give(&mut child, &event(1));
    let error = match answered {
        Err(error) => error,
        Ok(_) => loop {
            if let Err(error) = child.idle() {
                break error;
            }
        },
    };
    assert!(error.to_string().contains("no answer: stray"), "{error}");
}

#[test]
fn how_it_stops() {
    let stops = |script: (ChildConfig, Heard), drain_ms| {
        let mut child = Child::new(script.0);
        child.start().unwrap();
        let ended = child.stop(Duration::from_millis(drain_ms));
        assert!(child.pid().is_none());
        ended.map_err(|error| error.to_string())
    };
    assert_eq!(stops(shell("answer"), 60_000), Ok(()));
    // One that knows nothing of the stop line sees the end of its input.
    assert_eq!(stops(raw("cat > /dev/null"), 60_000), Ok(()));
    assert_eq!(stops(raw("cat > /dev/null; exit 3"), 60_000).unwrap_err(), "the handler exited with code 3");
    let stubborn = stops(raw("while :; do sleep 1000; done"), 50).unwrap_err();
    assert!(stubborn.contains("did not exit within 50ms"), "{stubborn}");
    assert_eq!(Child::new(shell("answer").0).stop(Duration::ZERO).map_err(|e| e.to_string()), Ok(()));
}

#[test]
fn a_stop_gives_an_event_back_that_takes_too_long() {
    let stop = Arc::new(AtomicBool::new(true));
    let drain = Duration::from_millis(50);
    let mut child = Child::new(ChildConfig { stop: Some(stop), drain, ..shell("sleep 1000").0 });
    assert!(matches!(give(&mut child, &event(1)), Err(HandlerError::GivenBack { .. })));
}

#[test]
fn a_command_that_is_not_there() {
    let error = Child::new(ChildConfig::new("/no/such/handler", [""; 0])).start().unwrap_err();
    assert!(error.to_string().contains("cannot start the handler /no/such/handler"), "{error}");
}

/// Gone, or dead and not reaped by whoever took it over.
fn is_dead(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')),
    }
}

#[test]
fn its_own_children_end_with_it() {
    let mut child = Child::new(shell("sleep 1000 & answer \",\\\"records\\\":[$!]\"").0);
    let answer = give(&mut child, &event(1)).unwrap();
    let (own, grandchild) = (child.pid().unwrap(), jsons(&answer)[0].to_owned());
    assert!(!is_dead(&grandchild));
    drop(child);
    assert!(!std::path::Path::new(&format!("/proc/{own}")).exists(), "it is reaped");
    while !is_dead(&grandchild) {
        std::thread::yield_now();
    }
}

#[test]
fn it_holds_the_lock_as_long_as_it_lives() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("alerts.lock");
    let lock = |file: &File| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
    let held = File::create(&path).unwrap();
    lock(&held).unwrap();
    let mut child = Child::new(ChildConfig { lock: Some(held.into()), ..shell("answer").0 });
    give(&mut child, &event(1)).unwrap();
    // As if the runner had been killed: its own copy is closed, the child lives.
    child.config.lock = None;
    let other = File::open(&path).unwrap();
    assert_eq!(lock(&other), Err(rustix::io::Errno::WOULDBLOCK));
    drop(child);
    // Another test that starts a process just then may have inherited it for the time until its own exec.
    while lock(&other).is_err() {
        std::thread::yield_now();
    }
}
