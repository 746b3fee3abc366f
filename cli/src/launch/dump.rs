//! Where buffers and variables are written to.

use super::usage;
use crate::exit::{ENVIRONMENT, Failure, TIMEOUT};
use crate::output::{Patient, open_to_write, print};
use loader::spec::{Element, npy};
use std::fs::{File, Metadata};
use std::io::{BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// A file, or text on stdout.
pub struct Dump {
    to: To,
    /// Device and inode of a file or a FIFO, which no other dump may have.
    id: Option<(u64, u64)>,
    /// Of a file, once its contents come.
    writer: Option<BufWriter<Box<dyn Write>>>,
}

enum To {
    Stdout,
    /// A regular file that is open, and whether it is new; it is emptied when its contents come.
    File(PathBuf, File, bool),
    /// Another name of standard output, which is written behind what is there.
    Descriptor(PathBuf, File),
    /// A pipe or a device, which is opened when its contents come.
    Other(PathBuf),
}

fn id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

impl Dump {
    /// Text on stdout.
    pub fn stdout() -> Dump {
        Dump { to: To::Stdout, id: None, writer: None }
    }

    /// Opens the file at `path`, which was written as `text`. What it has stays until the dump is written.
    pub fn open(text: &str, path: &Path, others: &[&Dump]) -> Result<Dump, Failure> {
        if text == "-" {
            return Ok(Dump::stdout());
        }
        let fail = |error: std::io::Error| Failure::new(ENVIRONMENT, format!("{}: {error}", path.display()));
        // A link that leads to nothing yet is not there either.
        let there = match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => {
                return Err(usage(format!("{}: is a directory, a file is needed", path.display())));
            }
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(fail(error)),
        };
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().map(File::from);
        if let (Some(there), Ok(stdout)) = (&there, stdout)
            && stdout.metadata().is_ok_and(|metadata| id(&metadata) == id(there))
        {
            return Ok(Dump { to: To::Descriptor(path.to_owned(), stdout), id: None, writer: None });
        }
        let (to, metadata) = match there {
            Some(there) if !there.is_file() => (To::Other(path.to_owned()), there),
            there => {
                let file = File::options().write(true).create(true).truncate(false).open(path).map_err(fail)?;
                let metadata = file.metadata().map_err(fail)?;
                (To::File(path.to_owned(), file, there.is_none()), metadata)
            }
        };
        let own = (metadata.is_file() || metadata.file_type().is_fifo()).then(|| id(&metadata));
        if own.is_some() && others.iter().any(|other| other.id == own) {
            return Err(usage(format!("{}: another dump goes to that file already", path.display())));
        }
        Ok(Dump { to, id: own, writer: None })
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
            To::File(_, file, is_new) => {
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
