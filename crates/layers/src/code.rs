//! The text of a source file as `cargo fmt` lays it out, without comments and tests.

/// The code without comment lines, and without the items behind `#[cfg(test)]`.
pub(crate) fn of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        match line.trim_start() {
            start if start.starts_with("//") => {}
            "#[cfg(test)]" => skip_item(&mut lines, indent(line)),
            _ => {
                code.push_str(line.split(" // ").next().unwrap_or_default());
                code.push('\n');
            }
        }
    }
    code
}

/// Skips the item that follows at this indentation: a block up to its brace, anything else up to its semicolon or comma.
fn skip_item<'a>(lines: &mut impl Iterator<Item = &'a str>, indentation: usize) {
    let mut is_block = false;
    for line in lines.filter(|line| indent(line) == indentation) {
        match is_block {
            true if line.trim_start().starts_with('}') => return,
            true => {}
            false if line.ends_with([';', ',']) => return,
            false => is_block = line.ends_with('{'),
        }
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The names of the modules that the code declares in files of their own.
pub(crate) fn declared_modules(code: &str) -> impl Iterator<Item = &str> {
    code.lines().filter_map(|line| {
        let declared = line.strip_suffix(';')?;
        let (visibility, name) = declared.rsplit_once("mod ")?;
        let is_declaration = visibility.is_empty() || visibility.starts_with("pub");
        is_declaration.then_some(name)
    })
}

/// The names that the crate's root gives to other crates: `stats` in `pub use weir_stats as stats;`.
pub(crate) fn renamed_crates(code: &str) -> Vec<String> {
    let lines = code.lines().filter(|line| line.contains("use ") && !line.contains("::"));
    lines.filter_map(|line| Some(line.strip_suffix(';')?.rsplit_once(" as ")?.1.to_owned())).collect()
}
