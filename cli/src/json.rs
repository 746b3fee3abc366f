//! JSON as it is written here: values in the order they were put, numbers that are never floating-point.

use std::fmt;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `null`: absent, which is never 0 and never an empty text.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(i128),
    /// Text.
    Text(String),
    /// `[...]`.
    List(Vec<Json>),
    /// `{...}`, members in this order.
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// An object, its members in this order.
    pub fn object(members: impl IntoIterator<Item = (&'static str, Json)>) -> Json {
        Json::Object(members.into_iter().collect())
    }

    /// A list.
    pub fn list<T: Into<Json>>(items: impl IntoIterator<Item = T>) -> Json {
        Json::List(items.into_iter().map(Into::into).collect())
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, depth: usize| write!(f, "\n{:1$}", "", 2 * depth);
        match self {
            Json::Null => f.write_str("null"),
            Json::Bool(value) => write!(f, "{value}"),
            Json::Number(value) => write!(f, "{value}"),
            Json::Text(text) => write_text(f, text),
            Json::List(items) if items.is_empty() => f.write_str("[]"),
            Json::List(items) => {
                f.write_str("[")?;
                for (i, item) in items.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    line(f, depth + 1)?;
                    item.write(f, depth + 1)?;
                }
                line(f, depth)?;
                f.write_str("]")
            }
            Json::Object(members) if members.is_empty() => f.write_str("{}"),
            Json::Object(members) => {
                f.write_str("{")?;
                for (i, (key, value)) in members.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    line(f, depth + 1)?;
                    write_text(f, key)?;
                    f.write_str(": ")?;
                    value.write(f, depth + 1)?;
                }
                line(f, depth)?;
                f.write_str("}")
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            c if c.is_control() => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

macro_rules! number {
    ($($ty:ty)*) => {
        $(impl From<$ty> for Json {
            fn from(value: $ty) -> Json {
                Json::Number(value.into())
            }
        })*
    };
}

number!(u8 u32 i32 u64 i64);

impl From<bool> for Json {
    fn from(value: bool) -> Json {
        Json::Bool(value)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Json {
        Json::List(items)
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Json {
        value.map_or(Json::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind() {
        let json = Json::object([
            ("none", None::<u32>.into()),
            ("big", u64::MAX.into()),
            ("text", "a\"b\\c\n\u{1}é".into()),
            ("empty", Json::list([] as [u32; 0])),
            ("list", Json::list([1u32, 2])),
            ("object", Json::object([])),
            ("yes", true.into()),
        ]);
        let text = "{\n  \"none\": null,\n  \"big\": 18446744073709551615,\n  \"text\": \"a\\\"b\\\\c\\n\\u0001é\",\n  \"empty\": \
                    [],\n  \"list\": [\n    1,\n    2\n  ],\n  \"object\": {},\n  \"yes\": true\n}";
        assert_eq!(json.to_string(), text);
    }
}
