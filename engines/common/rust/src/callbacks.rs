//! One end of a connection of a library in C that fetches bytes by one callback and hands them over by another.
#![allow(unsafe_code)] // callbacks know what they work on by its address

use std::ffi::c_void;
use std::ptr;

use crate::error::Error;
use crate::names::Side;
use crate::stack::{Outcome, Session};

/// A connection of such a library: its calls, which use its wire.
pub trait Calls {
    /// Which end it is.
    fn side(&self) -> Side;

    /// What the callbacks have for a context.
    fn wire(&mut self) -> &mut Wire;

    /// Goes on with the handshake, as far as there is input.
    fn handshake(&mut self) -> isize;

    /// Encrypts.
    fn write(&mut self, plain: &[u8]) -> isize;

    /// Decrypts, as far as there is input.
    fn read(&mut self, plain: &mut [u8]) -> isize;

    /// What a call says by its result: how much it did, none if it waits for input, an error if it failed.
    fn done(&self, result: isize, doing: &str) -> Result<Option<usize>, Error>;

    /// What was negotiated: the handshake is over.
    fn outcome(&self) -> Outcome;

    /// Keeps the session, where the callbacks do not: the handshake is over, and what came after it is read.
    fn keep(&mut self) {}
}

/// What the callbacks read from and write to: set for the time of a call.
pub struct Wire {
    input: *const u8,
    left: usize,
    output: *mut Vec<u8>,
}

impl Wire {
    /// One with nothing on it. Its address is the callbacks' context.
    pub fn boxed() -> Box<Wire> {
        Box::new(Wire::NOTHING)
    }

    /// Gives the library at most `size` bytes of the input; none if there are none.
    ///
    /// # Safety
    ///
    /// `context` must be the address of a wire that nobody else uses meanwhile, and `into` have room for `size` bytes.
    #[inline]
    pub unsafe fn give(context: *mut c_void, into: *mut u8, size: usize) -> Option<usize> {
        // SAFETY: as the caller promises.
        let wire = unsafe { &mut *context.cast::<Wire>() };
        let count = wire.left.min(size);
        if count == 0 {
            return None;
        }
        // SAFETY: both have so many bytes, and are apart.
        unsafe {
            ptr::copy_nonoverlapping(wire.input, into, count);
            wire.input = wire.input.add(count);
        }
        wire.left -= count;
        Some(count)
    }

    /// Takes what the library has for the peer. Says whether there was anyone to take it: outside a call there is not.
    ///
    /// # Safety
    ///
    /// `context` must be the address of a wire that nobody else uses meanwhile, and `from` have `size` bytes.
    #[inline]
    pub unsafe fn take(context: *mut c_void, from: *const u8, size: usize) -> bool {
        // SAFETY: as the caller promises; the output is there for the time of a call, or null.
        let (output, bytes) =
            unsafe { ((*context.cast::<Wire>()).output.as_mut(), std::slice::from_raw_parts(from, size)) };
        let Some(output) = output else { return false };
        output.extend_from_slice(bytes);
        true
    }

    const NOTHING: Wire = Wire { input: ptr::null(), left: 0, output: ptr::null_mut() };
}

/// Calls with input and output at hand. What is taken of the input is taken off.
fn call<C: Calls>(
    calls: &mut C,
    input: &mut &[u8],
    output: &mut Vec<u8>,
    call: impl FnOnce(&mut C) -> isize,
) -> isize {
    *calls.wire() = Wire { input: input.as_ptr(), left: input.len(), output };
    let result = call(calls);
    let left = std::mem::replace(calls.wire(), Wire::NOTHING).left;
    *input = &input[input.len() - left..];
    result
}

/// One end of a connection.
pub struct Ended<C> {
    calls: C,
    /// Whether the handshake is.
    over: bool,
    /// What the peer is to be sent next.
    output: Vec<u8>,
}

impl<C: Calls> Ended<C> {
    /// One that has not begun.
    pub fn new(calls: C) -> Ended<C> {
        Ended { calls, over: false, output: Vec::new() }
    }

    fn negotiate(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        let result = call(&mut self.calls, input, &mut self.output, C::handshake);
        self.over = self.calls.done(result, "handshake")?.is_some();
        Ok(())
    }
}

impl<C: Calls> Session for Ended<C> {
    fn receive(&mut self, mut input: &[u8]) -> Result<(), Error> {
        if !self.over {
            self.negotiate(&mut input)?;
        }
        if self.over {
            // What follows the handshake, tickets, is found by reading data, of which there is none.
            if !input.is_empty() && self.read(input, &mut [0])? > 0 {
                return Err(Error::stack("handshake", "data came that nobody sent"));
            }
            self.calls.keep();
        }
        Ok(())
    }

    fn send(&mut self, output: &mut Vec<u8>) -> Result<(), Error> {
        // A client speaks first.
        if !self.over && self.output.is_empty() && self.calls.side() == Side::Client {
            self.negotiate(&mut &[][..])?;
        }
        output.append(&mut self.output);
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.over.then(|| self.calls.outcome())
    }

    fn write(&mut self, plain: &[u8], output: &mut Vec<u8>) -> Result<(), Error> {
        let result = call(&mut self.calls, &mut &[][..], output, |calls| calls.write(plain));
        match self.calls.done(result, "writing")? {
            Some(written) if written == plain.len() => Ok(()),
            _ => Err(Error::stack("writing", "not all of it was written")),
        }
    }

    fn read(&mut self, mut input: &[u8], plain: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        let mut unsent = Vec::new();
        while filled < plain.len() {
            let rest = &mut plain[filled..];
            let result = call(&mut self.calls, &mut input, &mut unsent, |calls| calls.read(rest));
            match self.calls.done(result, "reading")? {
                Some(count) if count > 0 => filled += count,
                _ => break,
            }
        }
        if input.is_empty() {
            Ok(filled)
        } else {
            Err(Error::stack("reading", "more was sent than was to be read"))
        }
    }
}
