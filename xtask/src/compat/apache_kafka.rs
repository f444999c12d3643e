//! A real Apache Kafka broker, one node, in a process of its own.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};

use super::kafka::Kafka;

/// So long a broker may take to listen.
const PATIENCE: Duration = Duration::from_secs(90);

/// A broker that runs until it is dropped.
#[derive(Debug)]
pub struct ApacheKafka {
    child: Child,
    /// Where it listens.
    pub address: String,
}

impl ApacheKafka {
    /// Starts a broker with its data in `dir`, which is made, and with these settings beside those of one node; pinned to a core
    /// if one is named.
    ///
    /// # Errors
    /// If it does not listen in time; what it said is in `dir/broker.log`.
    pub fn start(
        kafka: &Kafka,
        dir: &Path,
        settings: &[&str],
        core: Option<&str>,
    ) -> anyhow::Result<ApacheKafka> {
        std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let properties = dir.join("server.properties");
        let port = if properties.exists() { port_in(&properties)? } else { format(kafka, dir, settings)? };
        let log = std::fs::File::create(dir.join("broker.log"))?;
        let mut command = match core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", core, "java"]);
                command
            }
            None => Command::new("java"),
        };
        command.args(["-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]);
        command.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp"]).arg(kafka.class_path());
        command.arg("kafka.Kafka").arg(&properties).stdin(Stdio::null());
        let child = command.stdout(log.try_clone()?).stderr(log).spawn().context("cannot start java")?;
        let mut broker = ApacheKafka { child, address: format!("127.0.0.1:{port}") };
        broker.wait_until_it_listens(dir)?;
        Ok(broker)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_it_listens(&mut self, dir: &Path) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(&self.address).is_err() {
            let log = || std::fs::read_to_string(dir.join("broker.log")).unwrap_or_default();
            if let Some(status) = self.child.try_wait()? {
                bail!("Apache Kafka ended: {status}: {}", log());
            }
            ensure!(Instant::now() < deadline, "Apache Kafka did not listen: {}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for ApacheKafka {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes the settings of one node and formats its folder. Gives the port for clients.
fn format(kafka: &Kafka, dir: &Path, settings: &[&str]) -> anyhow::Result<u16> {
    let [port, controller] = free_ports()?;
    let of_one_node = format!(
        "process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
log.dirs={}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=8
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
",
        dir.join("logs").display()
    );
    let properties = dir.join("server.properties");
    std::fs::write(&properties, of_one_node + &settings.join("\n") + "\n")?;
    let properties = properties.display().to_string();
    let id = "bGVmdG9mZi1jb21wYXQtMQ";
    let arguments = ["format", "-t", id, "-c", &properties].map(str::to_owned);
    kafka.tool("kafka.tools.StorageTool", &arguments)?;
    Ok(port)
}

fn port_in(properties: &Path) -> anyhow::Result<u16> {
    let text = std::fs::read_to_string(properties)?;
    let line = text.lines().find_map(|line| line.strip_prefix("advertised.listeners=")).unwrap_or_default();
    line.rsplit(':').next().and_then(|port| port.parse().ok()).context("server.properties names no port")
}

/// Two ports that nobody listens on now.
fn free_ports() -> anyhow::Result<[u16; 2]> {
    let bound = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    Ok([bound[0].local_addr()?.port(), bound[1].local_addr()?.port()])
}
