import { readFileSync } from 'node:fs'
import path from 'node:path'
import { isLoopbackHost, SYSTEM_CLOCK } from '../../core/index.ts'
import { openLoginStore } from '../../login/index.ts'
import { createOutbound } from '../../net/index.ts'
import { egressFrom } from '../egress.ts'
import type { Io } from '../io.ts'
import { stateDirectory } from '../state-directory.ts'

const REQUEST_MS = 15_000

/** Opens the user's login store. Throws `UsageError` without a state directory. */
export const openUserStore = (env: Io['env']) => openLoginStore(path.join(stateDirectory(env), 'logins'))

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
