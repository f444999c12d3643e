//! The ways in which a command, or a URL, gets its events, and what ends them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;

use crate::process::{Background, folder, kill, pid_in, until};
use crate::script::{check_in, leftoff};

fn file(dir: &Path, name: &str, text: &str) {
    fs::write(dir.join(name), text).unwrap();
}

/// Gone, or dead and not reaped by whoever took it over.
fn is_dead(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Err(_) => true,
        Ok(stat) => stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z')),
    }
}

#[test]
fn a_stray_print_is_harmless_with_a_descriptor_for_answers() {
    let dir = folder(1);
    file(
        dir.path(),
        "prints.sh",
        r#"while IFS= read -r line; do
            case $line in '{"leftoff"'*) continue;; '{"stop"'*) exit 0;; esac
            id=${line#*'"id":"'}; id=${id%%'"'*}
            echo 'hello there'
            printf '{"id":"%s","records":[1]}\n' "$id" >&${LEFTOFF_FD:-1}
        done"#,
    );
    check_in(
        &dir,
        r"
        $ run -t t -g g --out file:out --until-end -- sh prints.sh
        ! file:out: exactly once: [..]
        ! t/0: --on-no-offset earliest: starts at offset 0
        ! t/0 starts at offset 0
        ! stopped by a failure: 0 handled, 0 written, 1 failed attempt, the handler ended or broke the rules 1 times
        ! t/0 goes on at offset 0
        ! error: t/0 offset 0 was not handled: the handler wrote a line that is no answer: hello there
        !   (it is not a JSON object; answers go to stdout, everything else to stderr: is this a stray print? with --protocol-fd 3 answers go to a descriptor of their own, and prints are harmless)
        !   key:   k0
        !   value: {[..]}
        ! everything before it is saved, nothing past it; [..]
        ! hint: [..]
        = 1
        $ run -t t -g g --out file:out --until-end --protocol-fd 3 --max 1 -- sh prints.sh
        ! file:out: exactly once: [..]
        ! t/0 starts at offset 0
        ! t/0/0 | hello there
        ! stopped after --max events: 1 handled, 1 written
        ! t/0 goes on at offset 1
        $ run -t t -g g --protocol-fd 2 -- sh prints.sh
        ! error: --protocol-fd <N>: '2' is not a descriptor for answers
        ! hint: expected a number from 3 to 9, for example 3
        = 2
        $ run -t t -g g --protocol-fd 3 -q -- no-such-command-anywhere
        ! error: cannot start the handler no-such-command-anywhere: No such file or directory (os error 2)
        ! hint: the words behind -- are the command and its arguments
        = 1
        ",
    );
}

#[test]
fn a_command_for_each_event() {
    let dir = folder(1);
    file(dir.path(), "each.sh", "echo \"{\\\"key\\\":\\\"$LEFTOFF_KEY\\\",\\\"at\\\":$LEFTOFF_OFFSET}\"\n");
    file(dir.path(), "fails.sh", "[ $LEFTOFF_OFFSET = 4 ] && { echo 'no way' >&2; exit 3; }; true\n");
    check_in(
        &dir,
        r#"
        $ run -t t -g g -q --until-end --exec-per-event --max 2 -- sh each.sh
        > {"key":"k0","at":0,"leftoff_id":"[..]/0/0/0"}
        > {"key":"k1","at":1,"leftoff_id":"[..]/0/1/0"}
        $ run -t t -g h -q --until-end --exec-per-event --out file:out -- sh fails.sh
        ! t/0/4 | no way
        ! error: t/0 offset 4 was not handled: the command exited with code 3; its last words: no way
        !   key:   k4
        !   value: {"id":"k4"}
        ! everything before it is saved, nothing past it; [..]
        ! hint: [..]
        = 1
        $ run -t t -g h -q --until-end --exec-per-event --out file:out --on-fail skip --backoff 0s -- sh fails.sh
        ! t/0/4 | no way
        ! t/0/4 | no way
        ! t/0/4 | no way
        $ check -g h --out file:out --drained
        > skipped by decision: ['t/0/4']
        > handled without output: ['t/0/0-3', 't/0/5-9']
        > nothing left
        > lost: [] | handled twice: []
        "#,
    );
    let explained = crate::process::stdout(dir.path(), "run -t t -g g --explain --exec-per-event");
    assert!(explained.contains("effects     of the command: at least once;"), "{explained}");
}

/// Answers so many requests with 200 and a record; gives back the idempotency keys.
fn server(requests: usize) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let mut keys = Vec::new();
        while keys.len() < requests {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while keys.len() < requests {
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
                let field =
                    |name: &str| head.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
                let Some(length) = field("content-length: ").or_else(|| field("Content-Length: ")) else {
                    break;
                };
                let mut body = vec![0; length.parse().unwrap()];
                reader.read_exact(&mut body).unwrap();
                keys.push(field("idempotency-key: ").or_else(|| field("Idempotency-Key: ")).unwrap());
                let answer = format!("{{\"records\":[{}]}}", keys.len());
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len())
                    .unwrap();
            }
        }
        keys
    };
    (port, std::thread::spawn(serve))
}

#[test]
fn each_event_is_posted() {
    let dir = folder(1);
    let (port, server) = server(10);
    check_in(
        &dir,
        &format!(
            "
            $ run -t t -g g -q --until-end --out file:out --http http://me:secret@127.0.0.1:{port}/hook
            $ run -t t -g g -q --until-end --http htp://me:secret@h
            ! error: --http <URL>: cannot post to that URL: it does not begin with http:// or https://
            ! hint: expected http://HOST[:PORT][/PATH] or https://…, for example http://localhost:8080/events
            = 2
            $ run -t t -g h -q --until-end --http http://me:secret@127.0.0.1:1/hook
            ! error: t/0 offset 0 was not handled: the handler reports: POST http://127.0.0.1:1/hook: io: Connection refused[..]
            !   key:   k0
            !   value: {{\"id\":\"k0\"}}
            ! everything before it is saved, nothing past it; [..]
            ! hint: [..]
            = 1
            "
        ),
    );
    let keys = server.join().unwrap();
    assert!(keys[9].ends_with("/0/9/g"), "{keys:?}");
    assert_eq!(fs::read_to_string(dir.path().join("out")).unwrap().lines().count(), 10);
    let explained = crate::process::stdout(dir.path(), "run -t t -g g --explain --http http://me:secret@h/");
    assert!(explained.contains("effects     of the URL: at least once;"), "{explained}");
    assert!(!explained.contains("secret"), "{explained}");
}

#[test]
fn a_second_signal_ends_the_handler_too() {
    for flags in ["", "--exec-per-event"] {
        let dir = folder(1);
        file(
            dir.path(),
            "stubborn.sh",
            "trap '' TERM INT HUP\necho $$ > pid.new && mv pid.new pid\nwhile :; do sleep 1000; done\n",
        );
        let mut runner =
            Background::start(dir.path(), &format!("run -t t -g g --out file:out {flags} -- sh stubborn.sh"));
        let handler = pid_in(&dir.path().join("pid"));
        runner.signal("-INT");
        // The second of two that come together would be the first one's.
        until("the end", || {
            kill("-TERM", runner.0.id());
            runner.0.try_wait().unwrap()
        });
        assert_eq!(runner.end(), Some(130));
        until("the handler's end", || is_dead(handler).then_some(()));
        let said = fs::read_to_string(dir.path().join("stderr")).unwrap();
        assert!(
            said.contains("stopped at once; the handler was killed; what was saved stays saved"),
            "{said}"
        );
    }
}

#[test]
fn a_hangup_is_a_clean_stop_unless_it_is_ignored() {
    let dir = folder(1);
    let mut runner = Background::start(dir.path(), "run -t t -g g --out file:out -- sh copy.sh pid");
    check_in(&dir, "$ wait -g g -t t -q --timeout 60s");
    runner.signal("-HUP");
    assert_eq!(runner.end(), Some(0));
    let mut command = std::process::Command::new("sh");
    command.current_dir(dir.path()).env("LEFTOFF_DATA", "d");
    command.args(["-c", "trap '' HUP; exec \"$0\" run -q -t t -g g --out file:out -- sh copy.sh pid2"]);
    let mut ignoring = command.arg(leftoff(dir.path()).get_program()).spawn().unwrap();
    pid_in(&dir.path().join("pid2"));
    kill("-HUP", ignoring.id());
    check_in(&dir, "$ produce t -q -k late <<< '1\\n'\n$ wait -g g -q --timeout 60s");
    assert!(ignoring.try_wait().unwrap().is_none());
    kill("-TERM", ignoring.id());
    assert!(ignoring.wait().unwrap().success());
}
