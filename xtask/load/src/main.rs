//! The client of the server's benches: the same librdkafka on whichever broker it is told. It prints one line of numbers,
//! `name=value` each, times in seconds.
//!
//! ```text
//! load make    ADDR TOPIC PARTITIONS
//! load produce ADDR TOPIC PARTITIONS COUNT SIZE_BYTES
//! load fetch   ADDR TOPIC COUNT
//! load latency ADDR TOPIC COUNT SIZE_BYTES
//! load commit  ADDR TOPIC GROUP COUNT
//! ```

use std::process::ExitCode;
use std::time::{Duration, Instant};

use rdkafka::ClientContext;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Message as _};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Longer than any answer of a broker that works.
const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["make", addr, topic, partitions] => make(addr, topic, partitions),
        ["produce", addr, topic, partitions, count, size] => produce(addr, topic, partitions, count, size),
        ["fetch", addr, topic, count] => fetch(addr, topic, count),
        ["latency", addr, topic, count, size] => latency(addr, topic, count, size),
        ["commit", addr, topic, group, count] => commit(addr, topic, group, count),
        _ => Err("usage: load make|produce|fetch|latency|commit ADDR TOPIC …".into()),
    };
    match done {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Makes a topic, and waits until the broker leads all of its partitions.
fn make(addr: &str, topic: &str, partitions: &str) -> Outcome<String> {
    let partitions: i32 = partitions.parse()?;
    let admin: AdminClient<DefaultClientContext> = client(addr).create()?;
    let new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
    let made = block_on(admin.create_topics([&new], &AdminOptions::new().request_timeout(Some(PATIENCE))))?;
    for one in made {
        one.map_err(|(name, code)| format!("{name} was not made: {code}"))?;
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let metadata = admin.inner().fetch_metadata(Some(topic), PATIENCE)?;
        let led = metadata.topics().iter().flat_map(|topic| topic.partitions());
        if led.filter(|partition| partition.leader() >= 0).count() == usize::try_from(partitions)? {
            return Ok(format!("partitions={partitions}"));
        }
        if Instant::now() > deadline {
            return Err("the topic's partitions have no leaders".into());
        }
    }
}

/// Counts what the broker acknowledged, and keeps the first refusal.
#[derive(Default)]
struct Acknowledged {
    count: std::sync::atomic::AtomicU64,
    refused: std::sync::Mutex<Option<String>>,
}

impl ClientContext for Acknowledged {}

impl ProducerContext for Acknowledged {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        match result {
            Ok(_) => drop(self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed)),
            Err((error, _)) => *self.refused.lock().expect("nobody panics with it") = Some(error.to_string()),
        }
    }
}

fn producer(addr: &str, linger_ms: &str) -> Outcome<BaseProducer<Acknowledged>> {
    let mut config = client(addr);
    config.set("acks", "all").set("linger.ms", linger_ms).set("queue.buffering.max.messages", "200000");
    Ok(config.create_with_context(Acknowledged::default())?)
}

/// Records of random-looking bytes, so that nobody gains by compressing, over all partitions in turn.
fn produce(addr: &str, topic: &str, partitions: &str, count: &str, size: &str) -> Outcome<String> {
    let (partitions, count, size): (u64, u64, usize) = (partitions.parse()?, count.parse()?, size.parse()?);
    let producer = producer(addr, "5")?;
    let value = value(size);
    let started = Instant::now();
    for number in 0..count {
        let partition = i32::try_from(number % partitions)?;
        let mut record = BaseRecord::<(), [u8]>::to(topic).partition(partition).payload(&value);
        while let Err((error, back)) = producer.send(record) {
            if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                return Err(error.into());
            }
            record = back;
            producer.poll(Duration::from_millis(10));
        }
        if number % 1024 == 0 {
            producer.poll(Duration::ZERO);
        }
    }
    producer.flush(PATIENCE)?;
    let took = started.elapsed().as_secs_f64();
    let context = producer.context();
    if let Some(refused) = context.refused.lock().expect("nobody panics with it").take() {
        return Err(refused.into());
    }
    let acknowledged = context.count.load(std::sync::atomic::Ordering::Relaxed);
    if acknowledged != count {
        return Err(format!("{acknowledged} of {count} records were acknowledged").into());
    }
    Ok(format!("seconds={took:.6} bytes={}", count * size as u64))
}

/// Reads a topic from its start, by all its partitions, until so many records came.
fn fetch(addr: &str, topic: &str, count: &str) -> Outcome<String> {
    let count: u64 = count.parse()?;
    let mut config = client(addr);
    config.set("group.id", "bench").set("enable.auto.commit", "false").set("check.crcs", "false");
    let consumer: BaseConsumer = config.create()?;
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE)?;
    let mut list = TopicPartitionList::new();
    for partition in metadata.topics().iter().flat_map(|topic| topic.partitions()) {
        list.add_partition_offset(topic, partition.id(), Offset::Beginning)?;
    }
    consumer.assign(&list)?;
    let (started, mut seen, mut bytes) = (Instant::now(), 0, 0);
    let mut heard = Instant::now();
    while seen < count {
        match consumer.poll(Duration::from_millis(100)) {
            Some(message) => {
                bytes += message?.payload_len() as u64;
                seen += 1;
                heard = Instant::now();
            }
            None if heard.elapsed() > PATIENCE => {
                return Err(format!("{seen} of {count} records came").into());
            }
            None => {}
        }
    }
    Ok(format!("seconds={:.6} bytes={bytes}", started.elapsed().as_secs_f64()))
}

/// One record at a time, the next when the last is acknowledged.
fn latency(addr: &str, topic: &str, count: &str, size: &str) -> Outcome<String> {
    let (count, size): (usize, usize) = (count.parse()?, size.parse()?);
    let producer = producer(addr, "0")?;
    let value = value(size);
    let mut times = Vec::with_capacity(count);
    // The first ones find connections and leaders.
    for number in 0..count + 50 {
        let started = Instant::now();
        let record = BaseRecord::<(), [u8]>::to(topic).partition(0).payload(&value);
        producer.send(record).map_err(|(error, _)| error)?;
        producer.flush(PATIENCE)?;
        if number >= 50 {
            times.push(started.elapsed());
        }
    }
    match producer.context().refused.lock().expect("nobody panics with it").take() {
        Some(refused) => Err(refused.into()),
        None => Ok(percentiles(times)),
    }
}

/// One commit at a time, each of an offset higher than the last.
fn commit(addr: &str, topic: &str, group: &str, count: &str) -> Outcome<String> {
    let count: usize = count.parse()?;
    let mut config = client(addr);
    config.set("group.id", group).set("enable.auto.commit", "false");
    let consumer: BaseConsumer = config.create()?;
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Beginning)?;
    consumer.assign(&list)?;
    let mut times = Vec::with_capacity(count);
    for number in 0..count + 50 {
        let mut next = TopicPartitionList::new();
        next.add_partition_offset(topic, 0, Offset::Offset(i64::try_from(number)?))?;
        let started = Instant::now();
        consumer.commit(&next, CommitMode::Sync)?;
        if number >= 50 {
            times.push(started.elapsed());
        }
    }
    Ok(percentiles(times))
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64();
    let total: Duration = times.iter().sum();
    format!("seconds={:.6} p50={:.6} p99={:.6}", total.as_secs_f64(), at(50), at(99))
}

fn client(addr: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", addr);
    config
}

/// Bytes of a fixed xorshift sequence.
fn value(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    (0..size).map(|_| next()).collect()
}

/// The admin client answers through a future that its own thread wakes.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}
