import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** A copy of the tree in which mutations are planted one after the other; the checkout itself is never written to. */
export interface Copy {
  readonly directory: string
  /** Replaces a file atomically. */
  write(file: string, text: string): void
  close(): void
}

/** Files of a checkout that git tracks or would add, including uncommitted ones. */
export function filesOf(root: string): string[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    maxBuffer: 2 ** 26,
  })
  return listed.toString('utf8').split('\0').filter(Boolean)
}

/** Copies `files` below `root` into a new directory; `node_modules` is the checkout's own. */
export function copyTree(root: string, files: readonly string[]): Copy {
  const directory = realpathSync(mkdtempSync(path.join(tmpdir(), 'extauth-mutants-')))
  for (const name of files) {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    // A file that git knows may have been deleted since.
    cpSync(path.join(root, name), path.join(directory, name), { force: true })
  }
  symlinkSync(realpathSync(path.join(root, 'node_modules')), path.join(directory, 'node_modules'))
  return {
    directory,
    write(file, text) {
      const place = path.join(directory, file)
      writeFileSync(`${place}.new`, text)
      renameSync(`${place}.new`, place)
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  }
}
