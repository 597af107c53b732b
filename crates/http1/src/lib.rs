//! HTTP/1.1 on the wire: heads as spans, one framing decision, body decoder, writer.
