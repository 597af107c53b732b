//! This crate detects the same features as the standard library.

use weir_ifma::Ifma;

#[test]
#[cfg(target_arch = "x86_64")]
fn as_the_standard_library() {
    let present = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512ifma");
    let detected = Ifma::detect();
    assert_eq!(detected.is_ok(), present);
    if let Err(missing) = detected {
        assert!(missing.feature().starts_with("AVX-512"));
        assert_eq!(missing.to_string(), format!("the processor lacks {}", missing.feature()));
    }
}

#[test]
#[cfg(not(target_arch = "x86_64"))]
fn absent_on_other_processors() {
    assert!(Ifma::detect().is_err());
}
