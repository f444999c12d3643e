//! Apache Kafka's own tools, from Maven Central.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, ensure};

use super::{leftoff, nothing_may_be_skipped};

/// Which jars: Kafka's version stands in there.
const POM: &str = include_str!("../../kafka/pom.xml");

/// Kafka's jars, in a folder.
pub struct Kafka {
    jars: PathBuf,
}

impl Kafka {
    /// Fetches the jars, once, into the target folder. `Err` inside names what is missing on this machine.
    pub fn install() -> anyhow::Result<Result<Kafka, String>> {
        if let Err(missing) = have_java()? {
            return Ok(Err(missing));
        }
        let home = leftoff::target()?.join("apache-kafka");
        let jars = home.join("jars");
        // The pom is copied last, so it stands for a folder that is complete and of this version.
        let complete = home.join("pom.xml");
        if std::fs::read_to_string(&complete).is_ok_and(|text| text == POM) {
            return Ok(Ok(Kafka { jars }));
        }
        fetch(&home, &jars)?;
        std::fs::write(&complete, POM).with_context(|| format!("cannot write {}", complete.display()))?;
        Ok(Ok(Kafka { jars }))
    }

    /// All its jars, for `java -cp`.
    pub fn class_path(&self) -> PathBuf {
        self.jars.join("*")
    }

    /// Runs a class with a `main`, and gives all that it said; failure is an error.
    pub fn tool(&self, class: &str, arguments: &[String]) -> anyhow::Result<String> {
        let output = Command::new("java")
            .args(["-Dfile.encoding=UTF-8", "-Dsun.stdout.encoding=UTF-8", "-Dstdout.encoding=UTF-8"])
            .args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"])
            .arg("-cp")
            .arg(self.class_path())
            .arg(class)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .context("cannot run java")?;
        let said = all_said(&output);
        ensure!(output.status.success(), "{class}: {}: {said}", output.status);
        Ok(said)
    }
}

fn fetch(home: &Path, jars: &Path) -> anyhow::Result<()> {
    eprintln!("fetching Apache Kafka's tools into {}", home.display());
    // Jars of another version must not lie beside ours on the class path.
    if home.exists() {
        std::fs::remove_dir_all(home).with_context(|| format!("cannot empty {}", home.display()))?;
    }
    std::fs::create_dir_all(jars).with_context(|| format!("cannot create {}", jars.display()))?;
    let output = Command::new("mvn")
        .args(["--quiet", "--batch-mode", "dependency:copy-dependencies", "-DincludeScope=runtime"])
        .arg("--file")
        .arg(crate::root()?.join("xtask/kafka/pom.xml"))
        .arg(format!("-DoutputDirectory={}", jars.display()))
        .stdin(Stdio::null())
        .output()
        .context("cannot run mvn")?;
    ensure!(output.status.success(), "mvn cannot fetch the jars: {}", all_said(&output));
    Ok(())
}

/// Looks for Java and Maven; where nothing may be skipped, tries once to install them.
fn have_java() -> anyhow::Result<Result<(), String>> {
    let mut missing = missing_programs();
    if !missing.is_empty() && nothing_may_be_skipped() {
        eprintln!("no {}: installing a Java runtime and Maven", missing.join(" and no "));
        apt_get(&["update", "-q"])?;
        apt_get(&["install", "-q", "-y", "--no-install-recommends", "default-jre-headless", "maven"])?;
        missing = missing_programs();
    }
    if missing.is_empty() {
        return Ok(Ok(()));
    }
    let programs = missing.join(" and no ");
    Ok(Err(format!("no {programs} here; apt-get install default-jre-headless maven brings both")))
}

fn missing_programs() -> Vec<&'static str> {
    let runs = |program: &str| {
        Command::new(program).arg("-version").output().is_ok_and(|output| output.status.success())
    };
    ["java", "mvn"].into_iter().filter(|program| !runs(program)).collect()
}

fn apt_get(arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("apt-get")
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .context("cannot run apt-get")?;
    ensure!(output.status.success(), "apt-get {}: {}", arguments.join(" "), all_said(&output));
    Ok(())
}

fn all_said(output: &Output) -> String {
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    said
}
