import { accessSync, constants, statSync } from 'node:fs'
import path from 'node:path'

/** Why this process may not read a path; for logs and messages. */
export interface Denied {
  /** The file, or the parent folder that may not be entered. */
  readonly path: string
  readonly errno: 'EACCES'
  /** User id of this process; `owner` is that of the path's owner. */
  readonly user: number
  readonly owner: number
  /** Permissions, as `chmod` takes them. */
  readonly mode: string
  /** What to do. */
  readonly remedy: string
}

/**
 * Finds the permission that keeps this process from an existing file: the first parent folder it may not enter, else
 * the file. Undefined when permissions allow access or the system has none. Never throws.
 */
export function denied(file: string): Denied | undefined {
  const user = process.getuid?.()
  if (user === undefined) return undefined
  for (const [at, right] of onTheWay(path.resolve(file))) {
    try {
      accessSync(at, right)
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'EACCES' ? describe(at, user) : undefined
    }
  }
  return undefined
}

/** Formats it as one clause, such as `user 65532 may not …`. */
export const deniedClause = ({ path: at, user, owner, mode, remedy }: Denied): string =>
  `this process is user ${user}, and ${at} belongs to user ${owner} with mode ${mode}; ${remedy}`

function* onTheWay(file: string): Generator<[string, number]> {
  const above = path.dirname(file)
  if (above !== file) for (const [folder] of onTheWay(above)) yield [folder, constants.X_OK]
  yield [file, constants.R_OK]
}

function describe(at: string, user: number): Denied | undefined {
  const stat = statSync(at, { throwIfNoEntry: false })
  if (stat === undefined) return undefined
  const { uid: owner, gid } = stat
  const mode = (stat.mode & 0o7777).toString(8).padStart(4, '0')
  const remedy = `run it as that user (docker run --user ${owner}:${gid}, runAsUser or fsGroup in Kubernetes), or let user ${user} read it`
  return { path: at, errno: 'EACCES', user, owner, mode, remedy }
}
