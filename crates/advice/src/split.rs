//! The division of a profile's CPU time between the application's own code, TLS and the rest, as a sentence.

use crate::advice::Profiled;
use serde::Serialize;
use weir_profile::{Category, Contributor, Profile, UNRESOLVED, hints};
use weir_report::text::cut;

/// The division of a profile's CPU time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Split {
    /// The sentence.
    pub words: String,
    /// The number of samples.
    pub samples: u64,
    /// The parts with samples, the largest first; their shares add up to 1.
    pub parts: Vec<Shared>,
    /// The part to optimise first; `None` if no part is large enough, or too many samples are unknown.
    pub first: Option<Part>,
    /// The functions with most of that part's own time, if the findings do not cover it.
    pub functions: Vec<Function>,
}

/// A broad category of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The application's own code and the runtime of its language.
    Application,
    /// Handshakes, records, certificates.
    Tls,
    /// HTTP.
    Http,
    /// Allocating and copying in user space.
    Memory,
    /// Sockets, polling and anything else in the kernel.
    Kernel,
    /// No rule of the profile covers it.
    Unknown,
}

/// A part and its share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shared {
    /// The part.
    pub part: Part,
    /// Its share of all samples, 0 to 1.
    pub share: f64,
}

/// A function and its share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Its name; `[unknown]` without a symbol.
    pub symbol: String,
    /// Its module; may be empty.
    pub module: String,
    /// Its share of all samples, 0 to 1.
    pub share: f64,
}

/// Fewer samples are not divided: with this many, a share of one half is accurate to 10 %.
const FEW: u64 = 100;

/// A part with this share is the one to optimise first.
const DOMINANT: f64 = 0.5;

/// If this share is unknown, the other shares are lower limits.
const MUCH_UNKNOWN: f64 = 0.25;

/// Smaller shares are not mentioned, except those of the application and TLS.
const MENTIONED: f64 = 0.05;

/// The maximum number of listed functions.
const LISTED: usize = 5;

/// The maximum length of a function's name in text; C++ templates have names of several lines.
const NAME: usize = 60;

impl Split {
    /// The split of a profile that was taken under this load.
    pub fn new(profile: &Profile, profiled: Profiled) -> Self {
        let samples = profile.samples;
        let parts = parts(profile);
        let (first, functions, words) = match samples {
            0..FEW => (None, Vec::new(), few(samples)),
            _ => divided(profile, profiled, &parts),
        };
        Self { words, samples, parts, first, functions }
    }

    /// The functions and their shares, if any are listed.
    pub(crate) fn mostly(&self) -> Option<String> {
        let one = |function: &Function| format!("{} {}", function.name(), percent(function.share));
        let all: Vec<String> = self.functions.iter().map(one).collect();
        (!all.is_empty()).then(|| format!("mostly {}", all.join(", ")))
    }
}

fn few(samples: u64) -> String {
    format!("too few samples ({samples}) to say how its CPU time divides; put more load on it, or raise -d")
}

/// The part to optimise first, its functions, and the sentence.
fn divided(profile: &Profile, profiled: Profiled, parts: &[Shared]) -> (Option<Part>, Vec<Function>, String) {
    let share = |part: Part| share(parts, part);
    let unknown = functions(profile, Part::Unknown);
    let is_named = unknown.first().is_some_and(Function::has_name);
    let is_lower_limit = share(Part::Unknown) >= MUCH_UNKNOWN && !is_named;
    let largest = parts.first().filter(|one| one.share >= DOMINANT).map(|one| one.part);
    let first = largest.filter(|part| *part != Part::Unknown || is_named);
    let mut shares: Vec<String> = Vec::new();
    for one in parts.iter().filter(|one| !(is_lower_limit && one.part == Part::Unknown)) {
        if one.share >= MENTIONED || matches!(one.part, Part::Application | Part::Tls) {
            // Only the first share names the total.
            let of = if shares.is_empty() { " of its CPU time is" } else { "" };
            shares.push(format!("{}{of} {}", percent(one.share), name(one.part, profile, is_named)));
        }
    }
    let least = if is_lower_limit { "at least " } else { "" };
    let mut words = format!("{}, {least}{}", profiled.load(), shares.join(", "));
    if is_lower_limit {
        let hint = hints(profile).pop().unwrap_or_default();
        words += &format!(". {}", hint.trim_end_matches('.'));
    }
    let listed = match first {
        Some(Part::Application) => {
            words += ": look at the application first";
            functions(profile, Part::Application)
        }
        Some(Part::Unknown) => {
            words += ": look at those functions first";
            unknown
        }
        _ => Vec::new(),
    };
    if listed.first().is_some_and(|one| !one.has_name() && one.module.starts_with("perf-")) {
        words += ". Node.js names the functions with --perf-basic-prof";
    }
    (first, listed, words)
}

impl Function {
    fn has_name(&self) -> bool {
        self.symbol != UNRESOLVED && !self.symbol.starts_with("0x")
    }

    fn name(&self) -> String {
        match (self.has_name(), self.module.as_str()) {
            (true, _) => cut(&self.symbol, NAME).to_owned(),
            (false, map) if map.starts_with("perf-") => "compiled code without names".to_owned(),
            (false, "") => "code without names".to_owned(),
            (false, module) => format!("code without names in {module}"),
        }
    }
}

impl Part {
    fn of(category: Category) -> Self {
        match category {
            Category::Application | Category::Runtime => Self::Application,
            Category::KeyExchange
            | Category::Signature
            | Category::ExchangeOrSignature
            | Category::CertificateVerification
            | Category::RecordEncryption
            | Category::Hashing
            | Category::Tls => Self::Tls,
            Category::Http => Self::Http,
            Category::Allocation | Category::Copying => Self::Memory,
            Category::KernelTcp
            | Category::Polling
            | Category::SystemCalls
            | Category::Kernel
            | Category::Idle => Self::Kernel,
            Category::Unknown => Self::Unknown,
        }
    }
}

const ALL: [Part; 6] = [Part::Application, Part::Tls, Part::Http, Part::Memory, Part::Kernel, Part::Unknown];

/// The parts with samples, and those of the application and TLS, the largest first.
fn parts(profile: &Profile) -> Vec<Shared> {
    let sum = |part: Part| -> f64 {
        let of = profile.categories.iter().filter(|one| Part::of(one.category) == part);
        of.fold(0.0, |sum, one| sum + one.own.share)
    };
    let mut parts: Vec<Shared> = ALL.map(|part| Shared { part, share: sum(part) }).into();
    parts.retain(|one| one.share > 0.0 || matches!(one.part, Part::Application | Part::Tls));
    parts.sort_by(|one, other| other.share.total_cmp(&one.share));
    parts
}

fn share(parts: &[Shared], part: Part) -> f64 {
    parts.iter().find(|one| one.part == part).map_or(0.0, |one| one.share)
}

/// The functions with most of a part's own time.
fn functions(profile: &Profile, part: Part) -> Vec<Function> {
    let of = profile.categories.iter().filter(|one| Part::of(one.category) == part);
    let mut all: Vec<&Contributor> = of.flat_map(|one| &one.functions).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.samples));
    let function = |one: &Contributor| Function {
        symbol: one.symbol.clone(),
        module: one.module.clone(),
        share: one.samples as f64 / profile.samples.max(1) as f64,
    };
    all.into_iter().take(LISTED).map(function).collect()
}

fn name(part: Part, profile: &Profile, is_named: bool) -> String {
    let runtime = profile.own(Category::Runtime).share;
    match part {
        Part::Application if runtime >= MENTIONED => {
            format!("the application's own code ({} JIT and garbage collection)", percent(runtime))
        }
        Part::Application => "the application's own code".to_owned(),
        Part::Tls => "TLS".to_owned(),
        Part::Http => "HTTP".to_owned(),
        Part::Memory => "allocation and copying".to_owned(),
        Part::Kernel => "the kernel".to_owned(),
        Part::Unknown if is_named => {
            "in functions that no rule of the profile covers, as a program's own are".to_owned()
        }
        Part::Unknown => "in code without symbols".to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_profile::{Rules, Stacks};

    fn split(folded: &str) -> Split {
        let stacks = Stacks::from_folded(folded).expect("parses");
        Split::new(&Profile::new(&stacks, &Rules::built_in()), Profiled::OwnLoad)
    }

    #[test]
    fn an_application_that_takes_most_is_named_with_its_functions() {
        let split = split(
            "node::Start [node];v8::internal::JsonStringifier::Serialize_ [node] 500\n\
             LazyCompile:*handle app.js:1 [perf-1.map] 150\nv8::internal::Heap::CollectGarbage [node] 120\n\
             SSL_read [node];aesni_gcm_encrypt [node] 60\ndo_syscall_64 [kernel.kallsyms];tcp_sendmsg [kernel.kallsyms] 170\n",
        );
        assert_eq!(
            split.words,
            "under its own load, 77 % of its CPU time is the application's own code (12 % JIT and garbage collection), \
             17 % the kernel, 6 % TLS: look at the application first"
        );
        assert_eq!(split.first, Some(Part::Application));
        let mostly = split.mostly().expect("has functions");
        assert!(mostly.starts_with("mostly v8::internal::JsonStringifier::Serialize_ 50 %, "), "{mostly}");
        assert!(mostly.contains("LazyCompile:*handle app.js:1 15 %"), "{mostly}");
        let sum: f64 = split.parts.iter().map(|one| one.share).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{:?}", split.parts);
    }

    #[test]
    fn tls_that_takes_most_needs_no_functions_since_the_findings_are_on_it() {
        let split = split("SSL_do_handshake;ECDSA_do_sign 700\nmain;malloc 300\n");
        let expected = "under its own load, 70 % of its CPU time is TLS, 30 % allocation and copying, 0 % the \
                        application's own code";
        assert_eq!((split.words.as_str(), split.first, split.mostly()), (expected, Some(Part::Tls), None));
    }

    #[test]
    fn few_samples_divide_nothing() {
        let split = split("SSL_do_handshake;ECDSA_do_sign 99\n");
        assert!(split.words.starts_with("too few samples (99)"), "{}", split.words);
        assert_eq!((split.first, split.mostly()), (None, None));
    }

    #[test]
    fn code_without_symbols_makes_the_other_shares_lower_limits() {
        let split = split("main;[unknown] [libown.so] 600\nSSL_do_handshake;ECDSA_do_sign 400\n");
        assert_eq!(
            split.words,
            "under its own load, at least 40 % of its CPU time is TLS, 0 % the application's own code. 60 % is unknown, \
             mostly in libown.so, which has no symbols: install its debug package, or profile a build that is not \
             stripped"
        );
        assert_eq!((split.first, split.mostly()), (None, None));
    }

    #[test]
    fn functions_that_no_rule_covers_are_probably_the_programs_own() {
        let split = split("main [own];own::parse [own] 600\nSSL_do_handshake;ECDSA_do_sign 400\n");
        assert_eq!(
            split.words,
            "under its own load, 60 % of its CPU time is in functions that no rule of the profile covers, as a program's \
             own are, 40 % TLS, 0 % the application's own code: look at those functions first"
        );
        assert_eq!(split.first, Some(Part::Unknown));
        assert_eq!(split.mostly().as_deref(), Some("mostly own::parse 60 %"));
    }

    #[test]
    fn compiled_code_without_names_gets_the_switch_that_names_it() {
        let split = split("[unknown] [perf-7.map] 900\nmain;malloc 100\n");
        assert!(
            split.words.ends_with("Node.js names the functions with --perf-basic-prof"),
            "{}",
            split.words
        );
        assert_eq!(split.mostly().as_deref(), Some("mostly compiled code without names 90 %"));
    }
}
