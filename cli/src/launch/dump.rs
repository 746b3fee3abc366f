//! Where buffers and variables are written to.

use super::usage;
use crate::exit::{ENVIRONMENT, Failure, TIMEOUT};
use crate::output::{Patient, open_to_write, print};
use loader::spec::{Element, npy};
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file, or text on stdout.
pub struct Dump {
    to: To,
    /// Of a file, once its contents come.
    writer: Option<BufWriter<Box<dyn Write>>>,
}

enum To {
    Stdout,
    /// A regular file that is open, and whether it is new; it is emptied when its contents come.
    File(PathBuf, Option<File>, bool),
    /// Another name of standard output, which is written behind what is there.
    Descriptor(PathBuf, File),
    /// A pipe or a device, which is opened when its contents come.
    Other(PathBuf),
}

impl Dump {
    /// Text on stdout.
    pub fn stdout() -> Dump {
        Dump { to: To::Stdout, writer: None }
    }

    /// Opens the file at `path`, which was written as `text`. What it has stays until the dump is written.
    pub fn open(text: &str, path: &Path, others: &[&Dump]) -> Result<Dump, Failure> {
        if text == "-" {
            return Ok(Dump::stdout());
        }
        let fail = |error: std::io::Error| Failure::new(ENVIRONMENT, format!("{}: {error}", path.display()));
        let mut is_new = false;
        let is_special = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(usage(format!("{}: is a directory, a file is needed", path.display())));
            }
            Ok(metadata) => !metadata.is_file(),
            // A link that leads to nothing yet, too.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                is_new = true;
                false
            }
            Err(error) => return Err(fail(error)),
        };
        let id = |metadata: &std::fs::Metadata| (metadata.dev(), metadata.ino());
        let there = std::fs::metadata(path).ok().map(|metadata| id(&metadata));
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
        let stdout_id = stdout.as_ref().ok().and_then(|file| file.metadata().ok()).map(|metadata| id(&metadata));
        // As /dev/stdout is: what was written there stays.
        if let (Ok(stdout), true) = (stdout, there.is_some() && there == stdout_id) {
            return Ok(Dump { to: To::Descriptor(path.to_owned(), stdout), writer: None });
        }
        if is_special {
            let is_fifo = std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo());
            let is_same = |other: &&Dump| match &other.to {
                To::Other(other) => std::fs::metadata(other).ok().map(|metadata| id(&metadata)) == there,
                _ => false,
            };
            if is_fifo && others.iter().any(is_same) {
                return Err(usage(format!("{}: another dump goes to that FIFO already", path.display())));
            }
            return Ok(Dump { to: To::Other(path.to_owned()), writer: None });
        }
        let file = File::options().write(true).create(true).truncate(false).open(path).map_err(fail)?;
        let own = file.metadata().map(|metadata| id(&metadata)).map_err(fail)?;
        let same = others.iter().any(|other| match &other.to {
            To::File(_, Some(file), _) => file.metadata().is_ok_and(|metadata| id(&metadata) == own),
            _ => false,
        });
        if same {
            return Err(usage(format!("{}: another dump goes to that file already", path.display())));
        }
        Ok(Dump { to: To::File(path.to_owned(), Some(file), is_new), writer: None })
    }

    /// Whether it is text on stdout.
    pub fn is_stdout(&self) -> bool {
        matches!(self.to, To::Stdout)
    }

    /// Starts the contents: `count` elements of what is called `name`.
    pub fn begin(&mut self, name: &str, element: Element, count: u64) -> Result<(), Failure> {
        let path = match &self.to {
            To::Stdout => return print(&format!("{name}:")),
            To::File(path, ..) | To::Descriptor(path, _) | To::Other(path) => path.clone(),
        };
        let is_npy = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy"));
        let head = if is_npy { npy::header(element, count) } else { Vec::new() };
        let file: std::io::Result<Box<dyn Write>> = match &mut self.to {
            To::File(_, Some(file), is_new) => {
                *is_new = false;
                file.set_len(0).and_then(|()| file.try_clone()).map(|file| Box::new(file) as Box<dyn Write>)
            }
            To::Descriptor(_, file) => file.try_clone().map(|file| Box::new(Patient(file)) as Box<dyn Write>),
            _ => open_to_write(&path).map(|file| Box::new(file) as Box<dyn Write>),
        };
        let mut writer = BufWriter::new(file.map_err(|error| self.failure(error))?);
        writer.write_all(&head).map_err(|error| self.failure(error))?;
        self.writer = Some(writer);
        Ok(())
    }

    /// More elements.
    pub fn piece(&mut self, element: Element, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.writer {
            Some(writer) => writer.write_all(bytes).map_err(|error| self.failure(error)),
            None => {
                let values = bytes.chunks_exact(element.size()).map(|value| format!(" {}", element.show(value)));
                print(&values.collect::<String>())
            }
        }
    }

    /// The last was written.
    pub fn end(&mut self) -> Result<(), Failure> {
        match self.writer.take() {
            Some(mut writer) => writer.flush().map_err(|error| self.failure(error)),
            None => print("\n"),
        }
    }

    fn failure(&self, error: std::io::Error) -> Failure {
        let name = match &self.to {
            To::Stdout => "standard output".to_owned(),
            To::File(path, ..) | To::Descriptor(path, _) | To::Other(path) => path.display().to_string(),
        };
        let status = if error.kind() == ErrorKind::TimedOut { TIMEOUT } else { ENVIRONMENT };
        Failure::new(status, format!("{name}: {error}"))
    }
}

impl Drop for Dump {
    /// A launch that came to nothing leaves no empty file.
    fn drop(&mut self) {
        if let To::File(path, _, true) = &self.to {
            // It may be gone already.
            let _ = std::fs::remove_file(path);
        }
    }
}
