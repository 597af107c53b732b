use super::*;

fn profile(folded: &str) -> Profile {
    Profile::new(&Stacks::from_folded(folded).expect("parses"), &Rules::built_in())
}

/// The category of a single stack.
fn of(stack: &str) -> Category {
    let profile = profile(&format!("{stack} 1\n"));
    let own = profile.categories.iter().find(|one| one.own.samples == 1);
    own.map(|one| one.category).expect("has one")
}

#[test]
fn the_innermost_function_with_a_rule_decides() {
    for (stack, category) in [
        ("main;SSL_do_handshake;frobnicate", Category::Tls),
        ("main;SSL_do_handshake;ssl_derive;frobnicate", Category::KeyExchange),
        ("main;SSL_read;malloc", Category::Allocation),
        ("main;SSL_read;__memmove_avx_unaligned_erms [libc.so.6]", Category::Copying),
        ("main;frobnicate", Category::Unknown),
    ] {
        assert_eq!(of(stack), category, "{stack}");
    }
}

#[test]
fn the_purpose_of_arithmetic_is_its_callers() {
    for (stack, category) in [
        ("ecp_nistz256_point_double", Category::ExchangeOrSignature),
        ("ssl_derive;EVP_PKEY_derive;ecp_nistz256_point_double", Category::KeyExchange),
        ("tls_construct_cert_verify;EVP_DigestSign;ecp_nistz256_point_double", Category::Signature),
        ("X509_verify_cert;EVP_DigestVerify;ecp_nistz256_point_double", Category::CertificateVerification),
        ("X509_verify_cert;EVP_DigestVerify;sha256_block_data_order", Category::CertificateVerification),
        ("tls13_generate_secret;EVP_KDF_derive;sha256_block_data_order", Category::Hashing),
        ("EVP_PKEY_keygen;RAND_bytes;aesni_ctr32_encrypt_blocks", Category::KeyExchange),
        ("SSL_write;aesni_gcm_encrypt", Category::RecordEncryption),
    ] {
        assert_eq!(of(stack), category, "{stack}");
    }
}

/// Regression test: `JSON.parse` counted as compilation, since its class is a parser too.
#[test]
fn what_an_interpreter_does_for_a_program_is_the_programs() {
    for (stack, category) in [
        ("main [node];v8::internal::JsonParser<unsigned char>::ParseJson [node]", Category::Application),
        ("main [node];v8::internal::JsonStringifier::SerializeString [node]", Category::Application),
        (
            "main [node];v8::internal::parsing::ParseProgram [node];v8::internal::Parser::Do [node]",
            Category::Runtime,
        ),
        ("_PyEval_EvalFrameDefault [python3.11]", Category::Application),
        (
            "_PyEval_EvalFrameDefault [python3.11];scan_once [_json.cpython-311-x86_64-linux-gnu.so]",
            Category::Application,
        ),
        (
            "_PyEval_EvalFrameDefault [libpython3.12.so.1.0];gc_collect_main [libpython3.12.so.1.0]",
            Category::Runtime,
        ),
        ("_PyEval_EvalFrameDefault [python3.11];_PyObject_Malloc [python3.11]", Category::Allocation),
        ("sock_recv [_socket.cpython-311-x86_64-linux-gnu.so]", Category::SystemCalls),
        (
            "_PyEval_EvalFrameDefault [python3.11];_ssl__SSLSocket_read [_ssl.cpython-311-x86_64-linux-gnu.so]",
            Category::Tls,
        ),
        (
            "_ssl__SSLSocket_read [_ssl.cpython-311-x86_64-linux-gnu.so];SSL_read [libssl.so.3];aesni_gcm_encrypt [libcrypto.so.3]",
            Category::RecordEncryption,
        ),
    ] {
        assert_eq!(of(stack), category, "{stack}");
    }
}

#[test]
fn the_kernels_rest_belongs_to_what_called_it() {
    let kernel = |names: &str| {
        let frames: Vec<String> = names.split(';').map(|name| format!("{name} [kernel.kallsyms]")).collect();
        of(&frames.join(";"))
    };
    for (stack, category) in [
        ("entry_SYSCALL_64_after_hwframe;do_syscall_64", Category::SystemCalls),
        ("do_syscall_64;__sys_sendto;tcp_sendmsg;_raw_spin_lock", Category::KernelTcp),
        ("do_syscall_64;ep_poll;_raw_spin_lock_irq", Category::Polling),
        ("tcp_rcv_established;sock_def_readable;ep_poll_callback;_raw_spin_lock", Category::Polling),
        ("tcp_sendmsg_locked;_copy_from_iter", Category::Copying),
        ("asm_exc_page_fault;handle_mm_fault", Category::Kernel),
        ("do_idle;default_idle;native_safe_halt", Category::Idle),
    ] {
        assert_eq!(kernel(stack), category, "{stack}");
    }
}

#[test]
fn an_event_loop_says_nothing_about_its_callees() {
    assert_eq!(of("main;uv_run;uv__io_poll"), Category::Polling);
    assert_eq!(of("main;uv_run;uv__io_poll;frobnicate"), Category::Unknown);
}

#[test]
fn code_without_a_name_is_unknown_unless_its_caller_shows_its_purpose() {
    assert_eq!(of("ngx_http_process_request;[unknown] [libcrypto.so.3]"), Category::Unknown);
    assert_eq!(of("ngx_http_process_request;[unknown] [nginx]"), Category::Http);
    assert_eq!(of("SSL_do_handshake [libssl.so.3];[unknown] [libssl.so.3]"), Category::Tls);
    assert_eq!(of("SSL_do_handshake [libssl.so.3];[unknown] [libcrypto.so.3]"), Category::Unknown);
    assert_eq!(of("EVP_PKEY_derive [libcrypto.so.3];[unknown] [libcrypto.so.3]"), Category::KeyExchange);
}

#[test]
fn own_shares_add_up_and_inclusive_ones_count_a_stack_once_per_category() {
    let profile =
        profile("main;SSL_do_handshake;SSL_do_handshake;ssl_derive;x25519_scalar_mult 90\nmain;memcpy 10\n");
    let sum: u64 = profile.categories.iter().map(|one| one.own.samples).sum();
    assert_eq!((sum, profile.samples), (100, 100));
    assert_eq!(profile.own(Category::Tls).samples, 0);
    assert_eq!(profile.inclusive(Category::Tls).share, 0.9);
    let exchange = profile.of(Category::KeyExchange).expect("has samples");
    assert_eq!((exchange.own.share, exchange.inclusive.share), (0.9, 0.9));
    assert_eq!(exchange.functions[0].symbol, "x25519_scalar_mult");
    assert_eq!(exchange.outermost[0].symbol, "ssl_derive");
    assert!(exchange.own.low > 0.82 && exchange.own.high < 0.95, "{exchange:?}");
}
