//! The kernels' work on this host in Rust, vectorised where the compiler can.

/// A function compiled with AVX2 and FMA where the host has them.
macro_rules! native {
    ($name:ident($($arg:ident: $type:ty),*) $body:block) => {
        pub fn $name($($arg: $type),*) {
            #[inline(always)]
            fn body($($arg: $type),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn wide($($arg: $type),*) { body($($arg),*) }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                    // SAFETY: the host has the features.
                    return unsafe { wide($($arg),*) };
                }
            }
            body($($arg),*)
        }
    };
}

native!(ten(out: &mut [u32], turns: u32) {
    for (chunk, out) in out.chunks_mut(32).enumerate() {
        let mut a: [u32; 32] = std::array::from_fn(|i| (chunk * 32 + i) as u32);
        let b: [u32; 32] = std::array::from_fn(|i| a[i] * 3 + 1);
        let mut f: [f32; 32] = std::array::from_fn(|i| 1.0 + a[i] as f32);
        let mut rest = [0; 32];
        for _ in 0..turns {
            for i in 0..32 {
                let x = a[i].wrapping_add(b[i]);
                let c = x.wrapping_mul(b[i]);
                f[i] = f[i].mul_add(0.999, 0.5);
                let d = x ^ c;
                let e = if d > b[i] { c } else { x };
                a[i] = e.wrapping_add(d);
                rest[i] = c ^ d ^ e;
            }
        }
        for (i, out) in out.iter_mut().enumerate() {
            *out = a[i] ^ rest[i] ^ f[i].to_bits();
        }
    }
});
native!(xorshift(out: &mut [u32], turns: u32) {
    for (chunk, out) in out.chunks_mut(32).enumerate() {
        let mut x: [u32; 32] = std::array::from_fn(|i| (chunk * 32 + i + 1) as u32);
        for _ in 0..turns {
            for x in &mut x {
                *x ^= *x << 13;
                *x ^= *x >> 17;
                *x ^= *x << 5;
            }
        }
        out.copy_from_slice(&x[..out.len()]);
    }
});
native!(collatz(out: &mut [u32]) {
    for (i, out) in out.iter_mut().enumerate() {
        let (mut x, mut steps) = (i as u32 + 1, 0);
        while x != 1 {
            x = if x & 1 == 1 { x.wrapping_mul(3).wrapping_add(1) } else { x / 2 };
            steps += 1;
        }
        *out = steps;
    }
});
native!(matmul(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
    c.fill(0.0);
    for row in 0..n {
        for k in 0..n {
            let x = a[row * n + k];
            for column in 0..n {
                c[row * n + column] = x.mul_add(b[k * n + column], c[row * n + column]);
            }
        }
    }
});
native!(add(a: &[f32], b: &[f32], c: &mut [f32]) {
    for ((a, b), c) in a.iter().zip(b).zip(c) {
        *c = a + b;
    }
});
native!(stencil(a: &[f64], b: &mut [f64]) {
    for (w, b) in a.windows(3).zip(&mut b[1..]) {
        *b = w[1] * 0.5 + (w[0] + w[2]) * 0.25;
    }
});
native!(sum(a: &[u32], out: &mut [u32]) {
    for (a, out) in a.chunks(256).zip(out) {
        *out = a.iter().fold(0, |sum, x| sum.wrapping_add(*x));
    }
});
