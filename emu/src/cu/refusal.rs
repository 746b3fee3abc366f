//! Why operations of the tables are refused, by name.

use super::lower::Unsupported;

/// Operations without semantics here: a name, or its beginning where it ends in `*`, and the reason.
const REASONS: &[(&str, &str)] = &[
    ("s_rfe_*", "it returns from a trap handler, and there is none"),
    ("s_alloc_vgpr", "dynamic VGPR allocation is not emulated"),
    ("s_barrier_init", "named barriers are not emulated"),
    ("s_barrier_join", "named barriers are not emulated"),
    ("ds_gws_*", "GWS is not emulated: no global wave sync resource can be had"),
    ("ds_ordered_count", "the ordered count is of graphics, and needs the global data share"),
    ("ds_add_gs_reg_rtn", "geometry shaders' registers are not emulated"),
    ("ds_sub_gs_reg_rtn", "geometry shaders' registers are not emulated"),
    ("ds_bvh_stack_*", "it is for ray tracing, and needs an image unit"),
    ("global_atomic_ordered_add_b64", "it is for stream output of graphics, whose wave ids are not emulated"),
    ("global_load_tr_*", "which lanes a transposing load exchanges data with is not documented"),
    ("v_illegal", "it is illegal on purpose"),
    ("v_smfmac_*", "sparse matrix instructions are not emulated"),
    ("v_swmmac_*", "sparse matrix instructions are not emulated"),
];

/// Replaces the general [`Unsupported::Operation`] by the reason for this operation.
pub fn explain(mnemonic: &str, error: Unsupported) -> Unsupported {
    if error != Unsupported::Operation {
        return error;
    }
    let named = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => mnemonic.starts_with(start),
        None => mnemonic == pattern,
    };
    match REASONS.iter().find(|(pattern, _)| named(pattern)) {
        Some((_, reason)) => Unsupported::Refused(reason),
        None => error,
    }
}
