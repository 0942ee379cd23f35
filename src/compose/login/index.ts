import { readFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { isLoopbackHost, SYSTEM_CLOCK } from '../../core/index.ts'
import { openLoginStore } from '../../login/index.ts'
import { createOutbound } from '../../net/index.ts'
import { egressFrom } from '../egress.ts'
import { type Io, UsageError } from '../io.ts'

const REQUEST_MS = 15_000

/** Opens the user's login store (XDG base directories). Throws `UsageError` without a state directory. */
export function openUserStore(env: Io['env']) {
  const { XDG_STATE_HOME: state, LOCALAPPDATA: local } = env
  if (state !== undefined && path.isAbsolute(state)) return openLoginStore(path.join(state, 'extauth', 'logins'))
  if (process.platform === 'win32' && local !== undefined) return openLoginStore(path.join(local, 'extauth', 'logins'))
  const home = env['HOME'] ?? os.homedir()
  if (!path.isAbsolute(home)) throw new UsageError('no directory for logins: set XDG_STATE_HOME or HOME')
  return openLoginStore(path.join(home, '.local', 'state', 'extauth', 'logins'))
}

/** HTTP client for metadata, registration and tokens. It guards addresses, because servers supply them. */
export function loginOutbound(endpoint: URL, caFile: string | undefined, env: Io['env']) {
  const egressProxy = egressFrom(env)
  return createOutbound({
    name: 'login',
    clock: SYSTEM_CLOCK,
    deadlineMs: REQUEST_MS,
    breaker: false,
    // A server on the internet must not direct requests into the local network.
    guard: { allowPrivateIP: true, configuredUrls: isLoopbackHost(endpoint.hostname) ? [endpoint.href] : [] },
    ...(caFile === undefined ? {} : { caCert: () => readFileSync(caFile) }),
    ...(egressProxy === undefined ? {} : { egressProxy }),
  })
}
