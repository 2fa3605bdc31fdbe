//! The built-in toolkits, as a configuration names them.

/// A set of built-in tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Toolkit {
    /// What time it is.
    Time,
    /// Files below the declared root.
    Fs,
}

impl Toolkit {
    /// Every toolkit there is; all of them are on unless the file says otherwise.
    pub const ALL: [Self; 2] = [Self::Time, Self::Fs];

    /// The name in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Fs => "fs",
        }
    }

    /// The names of its tools.
    #[must_use]
    pub const fn tools(self) -> &'static [&'static str] {
        match self {
            Self::Time => &["time.now"],
            Self::Fs => &["fs.list", "fs.read", "fs.search", "fs.write"],
        }
    }
}
