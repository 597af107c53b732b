//! From stored runs to findings: values over blocks, comparisons with verdicts, and claims. Pure functions of the stored
//! data, in numbers; the room `report` puts them into words.

pub mod claims;
pub mod comparison;
pub mod evidence;
pub mod foreign;
pub mod judge;
pub(crate) mod pairing;
pub mod results;
pub mod summary;
pub mod value;
