//! `allow` and `deny` of a `stream` server, which admit or reject connections.

use crate::access::{Admitted, Clients, Rule};
use crate::note::Notes;
use crate::values;
use weir_syntax::nginx::{Directive, Scope};

/// Returns the clients that a server admits. The error is a `deny` without a counterpart.
pub(super) fn admitted<'a>(scope: &Scope<'a>, notes: &mut Notes) -> Result<Admitted, &'a Directive> {
    let mut rules = Vec::new();
    let written = scope.all_of(&["allow", "deny"]);
    for directive in &written {
        let clients = match directive.arg() {
            "all" => Some(Clients::All),
            network => values::network(network).map(|network| Clients::In(vec![network])),
        };
        let admits = directive.is("allow");
        match clients {
            Some(clients) => rules.push(Rule { clients, admits }),
            None if admits => {
                notes.loss(&directive.at, directive.text(), "expected a network; name its addresses");
            }
            None => return Err(directive),
        }
    }
    let admitted = Admitted::of(&rules);
    if admitted.is_narrowed
        && let Some(first) = written.iter().find(|directive| directive.is("allow"))
    {
        let message = "`deny` of a listener has precedence over `allow`, SO MORE IS DENIED: all networks of a later `deny`";
        notes.loss(&first.at, first.text(), message);
    }
    Ok(admitted)
}
