import os from 'node:os'
import path from 'node:path'
import { type Io, UsageError } from './io.ts'

/** The user's state directory of this program (XDG base directories). Throws `UsageError` without one. */
export function stateDirectory(env: Io['env']): string {
  const { XDG_STATE_HOME: state, LOCALAPPDATA: local } = env
  if (state !== undefined && path.isAbsolute(state)) return path.join(state, 'extauth')
  if (process.platform === 'win32' && local !== undefined) return path.join(local, 'extauth')
  const home = env['HOME'] ?? os.homedir()
  if (!path.isAbsolute(home)) throw new UsageError('no state directory: set XDG_STATE_HOME or HOME')
  return path.join(home, '.local', 'state', 'extauth')
}
