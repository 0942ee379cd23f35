import type { RequestListener } from 'node:http'
import { type Authenticator, createAuthenticator } from '../../../src/authenticate/index.ts'
import type { Clock, Log } from '../../../src/core/index.ts'
import { createOutbound, type Resolver } from '../../../src/net/index.ts'
import { authSection, PROXY_DEFAULTS } from '../../../src/resources/index.ts'
import { jwks, takesKeys, type TestKey } from './keys.ts'
import { createRecordingLog, createRecordingMetrics, monotonicOf } from '../ports.ts'

/** Serves keys as strictly as the API server of Kubernetes does. */
export const keysListener =
  (keys: readonly TestKey[]): RequestListener =>
  (request, response) => {
    if (!takesKeys(request.headers.accept)) response.writeHead(406).end()
    else response.writeHead(200, { 'content-type': 'application/jwk-set+json' }).end(JSON.stringify(jwks(keys)))
  }

export interface NetworkOptions {
  readonly clock?: Clock
  readonly log?: Log
  readonly resolver?: Resolver
  /** Shorter than the five seconds that are usual. */
  readonly deadlineMs?: number
  readonly client?: Parameters<typeof createAuthenticator>[1]['client']
}

/** An authenticator with real connections. */
export function networked(providers: readonly object[], options: NetworkOptions = {}): Authenticator {
  const section = authSection(PROXY_DEFAULTS).parse({
    mode: 'oauth',
    oauth: { resourceUrl: 'https://registry.example.com', providers },
  })
  const clock = options.clock ?? Date
  const { resolver, deadlineMs } = options
  return createAuthenticator(section, {
    clock,
    log: options.log ?? createRecordingLog(),
    metrics: createRecordingMetrics(),
    client: options.client,
    outbound: (given) =>
      createOutbound({
        ...given,
        clock,
        monotonicClock: monotonicOf(clock),
        ...(resolver === undefined ? {} : { resolver }),
        ...(deadlineMs === undefined ? {} : { deadlineMs }),
      }),
  })
}
