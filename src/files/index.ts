export { readBounded, FileError, type FileProblem } from './bounded-read.ts'
export { watchDirectory, type WatchDirectoryOptions, type WatchedDirectory } from './directory.ts'
export { openWatchedFile, type WatchedFile, type WatchedFileOptions } from './watched-file.ts'
export { areCertificates, ContentProblem, readCertificates, readPrivateKey } from './pem.ts'
