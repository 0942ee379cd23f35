import { type Authenticator, createAuthenticator } from '../../src/authenticate/index.ts'
import type { Clock } from '../../src/core/index.ts'
import { createOutbound, type Resolver } from '../../src/net/index.ts'
import { authSection } from '../../src/resources/index.ts'
import { createRecordingLog, createRecordingMetrics } from '../support/ports.ts'

export interface NetworkOptions {
  readonly clock?: Clock
  readonly resolver?: Resolver
  /** Shorter than the five seconds that are usual. */
  readonly deadlineMs?: number
}

/** An authenticator with real connections. */
export function networked(providers: readonly object[], options: NetworkOptions = {}): Authenticator {
  const section = authSection().parse({
    mode: 'oauth',
    oauth: { resourceUrl: 'https://registry.example.com', providers },
  })
  const clock = options.clock ?? Date
  const { resolver, deadlineMs } = options
  return createAuthenticator(section, {
    clock,
    log: createRecordingLog(),
    metrics: createRecordingMetrics(),
    outbound: (given) =>
      createOutbound({
        ...given,
        clock,
        ...(resolver === undefined ? {} : { resolver }),
        ...(deadlineMs === undefined ? {} : { deadlineMs }),
      }),
  })
}
