//! Facts from a running process: its product, its TLS library, its workers and cores.

mod activity;
mod image;

pub(crate) use activity::Activity;

use crate::fact::Facts;
use crate::product::Product;
use image::Image;
use std::fs;
use std::path::Path;
use weir_doctor::proc::{text, with_descendants};

/// A running process, with its descendants.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// Its process ID.
    pub pid: u32,
}

/// A process that uses less than this share of a core is not serving requests.
const AT_WORK: f64 = 0.05;

/// A worker counts if it used at least this share of the busiest one's CPU time.
const WORKER: f64 = 0.1;

/// JVM switches that select interpretation, or only a quick compilation.
const JAVA_UNOPTIMISED: [&str; 3] = ["-Xint", "-XX:TieredStopAtLevel=0", "-XX:TieredStopAtLevel=1"];

/// Node.js switches that select interpretation.
const NODE_UNOPTIMISED: [&str; 2] = ["--jitless", "--no-opt"];

impl Process {
    /// Whether it exists.
    pub fn exists(self) -> bool {
        Path::new(&format!("/proc/{}", self.pid)).exists()
    }

    /// `nginx (PID 4711)`.
    pub fn name(self) -> String {
        match self.text("comm").as_str() {
            "" => format!("PID {}", self.pid),
            comm => format!("{comm} (PID {})", self.pid),
        }
    }

    /// The product, by the program's name and content.
    pub fn product(self) -> Product {
        let program = fs::read_link(format!("/proc/{}/exe", self.pid)).ok();
        let name = program.as_ref().and_then(|path| path.file_name());
        let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match Product::of_program(&name) {
            Product::Generic if weir_profile::is_go(self.pid) => Product::Go,
            product => product,
        }
    }

    /// A file below /proc/PID; empty if it cannot be read.
    fn text(self, name: &str) -> String {
        text(&format!("{}/{name}", self.pid)).unwrap_or_default()
    }

    /// The process and its descendants.
    pub(crate) fn tree(self) -> Vec<u32> {
        with_descendants(&[self.pid])
    }

    /// The switch that turns optimisation off, from the program's build or its command line.
    fn debug_build(self, image: &Image) -> Option<String> {
        match self.product() {
            Product::Go => image.go_flags().filter(|flags| has_switch(flags, &["-N"])),
            Product::Java => self.switch(&JAVA_UNOPTIMISED, &["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"]),
            Product::Node => self.switch(&NODE_UNOPTIMISED, &["NODE_OPTIONS"]),
            _ => None,
        }
    }

    /// The first of these switches in its arguments or in these environment variables.
    fn switch(self, switches: &[&str], variables: &[&str]) -> Option<String> {
        let (arguments, environment) = (self.text("cmdline"), self.text("environ"));
        let values = environment.split('\0').filter_map(|one| one.split_once('='));
        let values =
            values.filter(|(name, _)| variables.contains(name)).flat_map(|(_, value)| value.split(' '));
        let found = arguments.split('\0').chain(values).find(|one| switches.contains(one));
        found.map(str::to_owned)
    }

    /// The number of workers, from the configuration or the activity; `None` if the product has no fixed number.
    fn workers(self, product: Product, used: &Activity) -> Option<f64> {
        match product {
            // The runtime has more threads than it runs at once.
            Product::Go => {
                let environment = self.text("environ");
                environment.split('\0').find_map(|one| one.strip_prefix("GOMAXPROCS="))?.parse().ok()
            }
            // Threads include one per connection, and the JVM's own.
            Product::Java => None,
            Product::Haproxy | Product::Weir => Some(used.threads(WORKER) as f64),
            Product::Nginx | Product::Node | Product::Generic => Some(used.processes(WORKER) as f64),
        }
        .filter(|workers: &f64| *workers > 0.0)
    }
}

impl Facts {
    /// Adds the facts about a process that the system exposes.
    pub fn add_process(&mut self, process: Process) {
        let source = format!("process {}", process.pid);
        let image = Image::of(process.pid);
        if let Some(version) = image.openssl() {
            let minor: Vec<&str> = version.split('.').take(2).collect();
            self.add("library.openssl_version", minor.join("."), &source);
            self.add("library.openssl", version, &source);
        }
        self.add_known("product.version", image.nginx(), &source);
        self.add_known("process.debug_build", process.debug_build(&image), &source);
        self.add_known("process.cores", weir_doctor::usable_cores(process.pid), &source);
    }

    /// Adds the process's activity during a load: its existing load if `is_own_load`, else this program's.
    pub(crate) fn add_activity(
        &mut self,
        process: Process,
        product: Product,
        used: &Activity,
        is_own_load: bool,
    ) {
        let source = format!("process {}, CPU of {:.1} s", process.pid, used.seconds());
        self.add_known("process.workers", process.workers(product, used), &source);
        if is_own_load {
            self.add("process.busiest_worker", used.busiest_thread(), &source);
            self.add("process.cpu_cores", used.cores(), &source);
        } else {
            self.add("load.busiest_worker", used.busiest_thread(), &source);
            self.add("load.queued", used.most_queued(), &source);
        }
    }

    /// Adds the ratio of workers to cores.
    pub(crate) fn add_worker_ratio(&mut self) {
        let (workers, cores) = (self.number("process.workers"), self.number("process.cores"));
        if let (Some(workers), Some(cores)) = (workers, cores.filter(|cores| *cores > 0.0)) {
            let ratio = workers / cores;
            self.add("process.workers_over_cores", ratio, "their ratio");
        }
    }
}

/// Whether flags such as `all=-N -l` contain one of these switches.
fn has_switch(flags: &str, switches: &[&str]) -> bool {
    flags.split([' ', '=', '"']).any(|flag| switches.contains(&flag))
}

/// Whether the process has load without this program's requests.
pub(crate) fn is_at_work(used: &Activity) -> bool {
    used.cores() > AT_WORK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_against_optimisation_is_a_word_of_its_own() {
        for (flags, is_one) in
            [("\"all=-N -l\"", true), ("-N", true), ("\"-N -l\"", true), ("-Nothing -l", false), ("", false)]
        {
            assert_eq!(has_switch(flags, &["-N"]), is_one, "{flags}");
        }
        assert_eq!(Process { pid: std::process::id() }.switch(&NODE_UNOPTIMISED, &["PATH"]), None);
    }

    #[test]
    fn this_process_has_a_name() {
        let process = Process { pid: std::process::id() };
        assert!(process.exists());
        assert!(process.name().ends_with(&format!("(PID {})", process.pid)), "{}", process.name());
        assert!(!Process { pid: u32::MAX }.exists());
    }
}
