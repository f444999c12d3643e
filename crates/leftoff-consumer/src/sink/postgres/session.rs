//! A connection, and what its failures mean. Nothing is kept on it beyond a transaction: no prepared statements, no settings of
//! the session, so that a pooler between two transactions does no harm.

use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

use futures_util::future::join3;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{address, tls};
use crate::crash_point;
use crate::sink::PostgresUrl;

/// No answer for so long is a lost connection.
const ANSWER: Duration = Duration::from_secs(60);
/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// What the client says of a server that declines TLS; its interface has no other sign of it.
const NO_TLS: &str = "server does not support TLS";

/// What each transaction begins with. A commit that is acknowledged is durable, whatever the role's or the server's settings
/// say; a stricter setting stays. What a server cancels by itself while we wait on purpose is waited for.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED;
SELECT pg_catalog.set_config('synchronous_commit', 'on', true)
 WHERE pg_catalog.current_setting('synchronous_commit') NOT IN ('on', 'remote_apply');
SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = '20s';
SET LOCAL TimeZone = 'UTC'; SET LOCAL DateStyle = 'ISO, YMD'; SET LOCAL standard_conforming_strings = on";

/// Why a statement did not do what it should.
#[derive(Debug)]
pub(super) enum Fault {
    /// The connection, or the server, is gone. What the statement did is not known.
    Lost(String),
    /// The database rolled the transaction back for another's sake: the same may be tried again.
    Again(String),
    /// It was refused.
    Said(Box<DbError>),
    /// The two sides do not understand each other.
    Strange(String),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Fault {
        if let Some(said) = error.as_db_error() {
            let is_end = matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
            let text = said.message().to_owned();
            return match said.code() {
                code if is_lost(code) => Fault::Lost(text),
                &SqlState::T_R_SERIALIZATION_FAILURE | &SqlState::T_R_DEADLOCK_DETECTED => Fault::Again(text),
                code if is_end && !is_denied(code) => Fault::Lost(text),
                _ => Fault::Said(Box::new(said.clone())),
            };
        }
        let distrust = error.source().and_then(tls::distrust);
        let text = error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
        if text.contains(NO_TLS) {
            return Fault::Strange("the server has no TLS, and the address asks for it: set ssl=on there, or allow sending in clear with sslmode=disable".to_owned());
        }
        if let Some(why) = distrust {
            return Fault::Strange(format!("{error}: {why}"));
        }
        let begins = |with: &str| text.starts_with(with);
        if begins("error serializing")
            || begins("error deserializing")
            || begins("invalid")
            || begins("authentication")
        {
            Fault::Strange(text)
        } else {
            Fault::Lost(text)
        }
    }
}

/// The server ends, begins, or has ended this connection.
fn is_lost(code: &SqlState) -> bool {
    let code = code.code();
    code.starts_with("08")
        || matches!(code, "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" | "53300")
}

/// Nobody gets in with this user, password or database.
fn is_denied(code: &SqlState) -> bool {
    code.code().starts_with("28") || matches!(code.code(), "3D000" | "42501")
}

/// A parameter and its type.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// A connection and the runtime that drives it.
pub(super) struct Session {
    // Before the runtime: what is dropped first closes the connection.
    client: Client,
    runtime: Runtime,
    is_open: bool,
}

impl Session {
    /// Connects.
    pub(super) fn connect(url: &PostgresUrl) -> Result<Session, Fault> {
        let config = address::config(url).map_err(Fault::Strange)?;
        Session::connect_by(&config, tls::connector(url).map_err(Fault::Strange)?)
    }

    fn connect_by(config: &Config, tls: MakeRustlsConnect) -> Result<Session, Fault> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Fault::Strange(format!("no runtime: {error}")))?;
        let connected = runtime.block_on(async {
            let connected = tokio::time::timeout(CONNECT, config.connect(tls)).await;
            let (client, connection) =
                connected.map_err(|_| Fault::Lost("no answer to a connection".to_owned()))??;
            // It ends with an error where a statement does: that tells it.
            drop(tokio::spawn(connection));
            Ok::<_, Fault>(client)
        });
        Ok(Session { client: connected?, runtime, is_open: false })
    }

    /// Whether a transaction is open.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn begin(&mut self) -> Result<(), Fault> {
        crash_point::pass("begin-before");
        self.batch(BEGIN)?;
        self.is_open = true;
        Ok(())
    }

    /// A transaction that sees one moment and changes nothing.
    pub(super) fn begin_to_read(&mut self) -> Result<(), Fault> {
        self.batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0")?;
        self.is_open = true;
        Ok(())
    }

    pub(super) fn commit(&mut self) -> Result<(), Fault> {
        self.is_open = false;
        crash_point::pass("commit-before");
        self.batch("COMMIT")?;
        crash_point::pass("commit-after");
        Ok(())
    }

    pub(super) fn roll_back(&mut self) -> Result<(), Fault> {
        if std::mem::take(&mut self.is_open) { self.batch("ROLLBACK") } else { Ok(()) }
    }

    /// Statements without parameters or answers.
    pub(super) fn batch(&self, sql: &str) -> Result<(), Fault> {
        self.wait(self.client.batch_execute(sql))
    }

    pub(super) fn query(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<Vec<Row>, Fault> {
        self.wait(self.client.query_typed(sql, parameters))
    }

    /// How many rows were changed.
    pub(super) fn execute(&self, sql: &str, parameters: &[Parameter<'_>]) -> Result<u64, Fault> {
        self.wait(self.client.execute_typed(sql, parameters))
    }

    /// Executes something between two statements, all of them sent before the first answer is waited for.
    pub(super) fn between(
        &self,
        before: &str,
        sql: &str,
        parameters: &[Parameter<'_>],
        after: &str,
    ) -> Result<(), Fault> {
        // Polled in this order, so sent in it.
        let all = join3(
            self.client.batch_execute(before),
            self.client.execute_typed(sql, parameters),
            self.client.batch_execute(after),
        );
        self.wait(async {
            let (before, executed, after) = all.await;
            before?;
            executed?;
            after
        })
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Fault> {
        let answered = self.runtime.block_on(async { tokio::time::timeout(ANSWER, answer).await });
        match answered {
            Ok(answer) => answer.map_err(Fault::from),
            Err(_) => Err(Fault::Lost(format!("no answer for {} s", ANSWER.as_secs()))),
        }
    }
}
