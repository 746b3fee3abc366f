//! Results against expectations.

use super::Element;

/// How far numbers may be apart: `|got - want| <= absolute + relative * |want|`. An infinity is near nothing but itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// Part of the expected value.
    pub relative: f64,
    /// Besides.
    pub absolute: f64,
}

/// Where results differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Differences {
    /// Elements that differ.
    pub count: usize,
    /// Elements compared.
    pub of: usize,
    /// The first of them: index, what there is, what was expected.
    pub first: Vec<(usize, String, String)>,
}

impl Differences {
    /// Differences that are listed.
    pub const LISTED: usize = 5;
}

/// Compares elements; none when all are near enough. NaN equals NaN; without a tolerance integers must be equal and so
/// must floats, 0 and -0 alike. Of what must not have changed, `exact`, all bytes are the same.
pub fn compare(element: Element, got: &[u8], want: &[u8], tolerance: Tolerance, exact: bool) -> Option<Differences> {
    let size = element.size();
    let mut differences = Differences { count: 0, of: want.len() / size, first: Vec::new() };
    for (index, (got, want)) in got.chunks_exact(size).zip(want.chunks_exact(size)).enumerate() {
        let (a, b) = (element.to_f64(got), element.to_f64(want));
        let same = got == want || (element.is_float() && (a == b || (a.is_nan() && b.is_nan())));
        // 64-bit integers are more than a double holds, their distance mostly is not.
        let apart = match element.is_float() {
            true => (a - b).abs(),
            false => element.to_i128(got).abs_diff(element.to_i128(want)) as f64,
        };
        let same = if exact { got == want } else { same };
        let near = !exact && tolerance != Tolerance::default();
        if same || (near && b.is_finite() && apart <= tolerance.absolute + tolerance.relative * b.abs()) {
            continue;
        }
        differences.count += 1;
        if differences.first.len() < Differences::LISTED {
            differences.first.push((index, element.show(got), element.show(want)));
        }
    }
    (differences.count > 0).then_some(differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(element: Element, got: &[u8], want: &[u8], tolerance: Tolerance) -> Option<Differences> {
        super::compare(element, got, want, tolerance, false)
    }

    /// What a kernel must not change is the same to the bit.
    #[test]
    fn exactly() {
        let bits = |value: u32| value.to_le_bytes();
        let (nan, other, zero, minus) = (0x7fc0_0000, 0x7fc0_0001, 0, 0x8000_0000);
        let tolerance = Tolerance { relative: 1.0, absolute: 1.0 };
        for (got, want) in [(nan, other), (zero, minus)] {
            assert!(super::compare(Element::F32, &bits(got), &bits(want), tolerance, true).is_some());
            assert_eq!(compare(Element::F32, &bits(got), &bits(want), tolerance), None);
        }
        assert_eq!(super::compare(Element::F32, &bits(nan), &bits(nan), tolerance, true), None);
    }

    #[test]
    fn an_infinity_is_near_nothing_else() {
        let one = |value: f32| value.to_le_bytes();
        for tolerance in [Tolerance { relative: 1e-6, absolute: 0.0 }, Tolerance { relative: 0.0, absolute: 1.0 }] {
            for (got, want, same) in [
                (1.0, f32::INFINITY, false),
                (f32::NEG_INFINITY, f32::INFINITY, false),
                (f32::INFINITY, 1.0, false),
                (f32::NAN, f32::INFINITY, false),
                (f32::INFINITY, f32::INFINITY, true),
                (f32::NAN, 1.0, false),
                (1.0, f32::NAN, false),
            ] {
                let found = compare(Element::F32, &one(got), &one(want), tolerance);
                assert_eq!(found.is_none(), same, "{got} {want}");
            }
        }
    }

    #[test]
    fn tolerances() {
        let floats = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let (got, want) = (floats(&[1.0, 2.01, f32::NAN, -0.0]), floats(&[1.0, 2.0, f32::NAN, 0.0]));
        let found = compare(Element::F32, &got, &want, Tolerance::default()).unwrap();
        assert_eq!(
            (found.count, found.of, found.first.as_slice()),
            (1, 4, &[(1, "2.01".to_owned(), "2".to_owned())][..])
        );
        assert_eq!(compare(Element::F32, &got, &want, Tolerance { relative: 0.01, absolute: 0.0 }), None);
        assert!(
            compare(
                Element::F32,
                &floats(&[1.0]),
                &floats(&[f32::INFINITY]),
                Tolerance { relative: 0.0, absolute: 1e30 }
            )
            .is_some()
        );
        let (a, b) = (u64::MAX.to_le_bytes(), (u64::MAX - 1).to_le_bytes());
        assert!(compare(Element::U64, &a, &b, Tolerance::default()).is_some(), "integers are compared whole");
        let near = |absolute| Tolerance { relative: 0.0, absolute };
        let far = (u64::MAX - 615).to_le_bytes();
        assert!(compare(Element::U64, &a, &far, near(614.0)).is_some(), "also with a tolerance");
        assert_eq!(compare(Element::U64, &a, &far, near(615.0)), None);
        let signed = (i64::MAX.to_le_bytes(), i64::MIN.to_le_bytes());
        assert!(compare(Element::I64, &signed.0, &signed.1, near(1e19)).is_some());
        assert_eq!(compare(Element::I64, &signed.0, &signed.1, near(2e19)), None);
    }
}
