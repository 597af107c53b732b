//! One side of a connection for a C library that reads and writes through callbacks.
#![allow(unsafe_code)] // callbacks get their context as an address

use std::ffi::c_void;
use std::ptr;

use crate::error::Error;
use crate::names::{Named, Side};
use crate::stack::{Outcome, Session};

/// A connection of such a library: its calls, which use its wire.
pub trait Calls {
    /// Continues the handshake, as far as there is input.
    fn handshake(&mut self) -> isize;

    /// Encrypts.
    fn write(&mut self, plain: &[u8]) -> isize;

    /// Decrypts, as far as there is input.
    fn read(&mut self, plain: &mut [u8]) -> isize;

    /// The result of a call: the amount done, none if it needs input, the library's error if it failed.
    fn done(&self, result: isize) -> Result<Option<usize>, String>;

    /// What was negotiated: the handshake is over.
    fn outcome(&self) -> Outcome;

    /// Stores the session, if the callbacks do not. Called after the handshake, once the data after it is read.
    fn keep(&mut self) {}
}

/// The callbacks' input and output, set during a call.
pub struct Wire {
    input: *const u8,
    left: usize,
    output: *mut Vec<u8>,
}

impl Wire {
    /// Gives the library at most `size` bytes of the input; none if there are none.
    ///
    /// # Safety
    ///
    /// `context` must be the address of a wire that nothing else uses meanwhile, and `into` have room for `size` bytes.
    #[inline]
    pub unsafe fn give(context: *mut c_void, into: *mut u8, size: usize) -> Option<usize> {
        // SAFETY: as the caller promises.
        let wire = unsafe { &mut *context.cast::<Wire>() };
        let count = wire.left.min(size);
        if count == 0 {
            return None;
        }
        // SAFETY: both have this many bytes and do not overlap.
        unsafe {
            ptr::copy_nonoverlapping(wire.input, into, count);
            wire.input = wire.input.add(count);
        }
        wire.left -= count;
        Some(count)
    }

    /// Takes the library's output for the peer. Returns false outside a call, when nothing can take it.
    ///
    /// # Safety
    ///
    /// `context` must be the address of a wire that nothing else uses meanwhile, and `from` have `size` bytes.
    #[inline]
    pub unsafe fn take(context: *mut c_void, from: *const u8, size: usize) -> bool {
        // SAFETY: as the caller promises; the output is valid during a call, or null.
        let (output, bytes) =
            unsafe { ((*context.cast::<Wire>()).output.as_mut(), std::slice::from_raw_parts(from, size)) };
        let Some(output) = output else { return false };
        output.extend_from_slice(bytes);
        true
    }

    const NOTHING: Wire = Wire { input: ptr::null(), left: 0, output: ptr::null_mut() };
}

/// One side of a connection.
pub struct Ended<C> {
    side: Side,
    calls: C,
    /// Dropped after the calls, so that it outlives them.
    wire: Box<Wire>,
    /// Whether the handshake is over.
    over: bool,
    /// Output for the peer.
    output: Vec<u8>,
}

impl<C: Calls> Ended<C> {
    /// A new side, before its handshake. `make` gets the context for the callbacks.
    pub fn new(side: Side, make: impl FnOnce(*mut c_void) -> Result<C, Error>) -> Result<Ended<C>, Error> {
        let mut wire = Box::new(Wire::NOTHING);
        let calls = make(ptr::from_mut(&mut *wire).cast())?;
        Ok(Ended { side, calls, wire, over: false, output: Vec::new() })
    }

    fn negotiate(&mut self, input: &mut &[u8]) -> Result<(), Error> {
        let mut output = std::mem::take(&mut self.output);
        let done = self.call("handshake", input, &mut output, C::handshake);
        self.output = output;
        self.over = done?.is_some();
        Ok(())
    }

    /// Calls with input and output set, and returns the amount done. Consumed input is removed.
    fn call(
        &mut self,
        doing: &str,
        input: &mut &[u8],
        output: &mut Vec<u8>,
        call: impl FnOnce(&mut C) -> isize,
    ) -> Result<Option<usize>, Error> {
        *self.wire = Wire { input: input.as_ptr(), left: input.len(), output };
        let result = call(&mut self.calls);
        let left = std::mem::replace(&mut *self.wire, Wire::NOTHING).left;
        *input = &input[input.len() - left..];
        let done = self.calls.done(result);
        done.map_err(|error| Error::stack(&format!("{}, {doing}", self.side.name()), error))
    }
}

impl<C: Calls> Session for Ended<C> {
    fn receive(&mut self, mut input: &[u8]) -> Result<(), Error> {
        if !self.over {
            self.negotiate(&mut input)?;
        }
        if self.over {
            // Reading processes the tickets after the handshake; there is no data.
            if !input.is_empty() && self.read(input, &mut [0])? > 0 {
                return Err(Error::stack("handshake", "unexpected application data"));
            }
            self.calls.keep();
        }
        Ok(())
    }

    fn send(&mut self, output: &mut Vec<u8>) -> Result<(), Error> {
        // A client speaks first.
        if !self.over && self.output.is_empty() && self.side == Side::Client {
            self.negotiate(&mut &[][..])?;
        }
        output.append(&mut self.output);
        Ok(())
    }

    fn outcome(&self) -> Option<Outcome> {
        self.over.then(|| self.calls.outcome())
    }

    fn write(&mut self, plain: &[u8], output: &mut Vec<u8>) -> Result<(), Error> {
        match self.call("writing", &mut &[][..], output, |calls| calls.write(plain))? {
            Some(written) if written == plain.len() => Ok(()),
            _ => Err(Error::stack("writing", "not all of it was written")),
        }
    }

    fn read(&mut self, mut input: &[u8], plain: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        let mut unsent = Vec::new();
        while filled < plain.len() {
            let rest = &mut plain[filled..];
            match self.call("reading", &mut input, &mut unsent, |calls| calls.read(rest))? {
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
