import {
  type OutboundRequest,
  type OutboundResponse,
  OutboundError,
  asFailure,
  type AuthenticatedCaller,
  type Caller,
  type Failure,
} from '../../../src/core/index.ts'
import {
  type AuthenticateDeps,
  type Authenticator,
  createAuthenticator,
  type InProcessProvider,
} from '../../../src/authenticate/index.ts'
import { once } from '../../../src/fields/index.ts'
import { authSection } from '../../../src/resources/index.ts'
import { createManualClock, createRecordingLog, createRecordingMetrics } from '../ports.ts'
import { jwks, takesKeys, type TestKey } from './keys.ts'

export const ISSUER = 'https://id.example.com'
export const AUDIENCE = 'registry'
export const JWKS_URL = `${ISSUER}/jwks`
export const INTROSPECTION_URL = `${ISSUER}/introspect`

/** A mock provider's response to a request; a thrown `OutboundError` means no response. */
export type Respond = (request: OutboundRequest) => OutboundResponse | Promise<OutboundResponse>

export const json = (value: unknown, headers: Record<string, string> = {}): OutboundResponse => ({
  status: 200,
  headers: { 'content-type': 'application/json', ...headers },
  body: Buffer.from(JSON.stringify(value)),
})

export const status = (code: number, headers: Record<string, string> = {}): OutboundResponse => ({
  status: code,
  headers,
  body: Buffer.from('<html>no</html>'),
})

export const unreachable: Respond = () => {
  throw new OutboundError('unreachable')
}

/** The token of an introspection request. */
export const tokenIn = (request: OutboundRequest): string =>
  new URLSearchParams(Buffer.from(request.body ?? '').toString()).get('token') ?? ''

// Making a schema takes longer than using it.
const schema = once(authSection)

/** Providers without a network, a clock that stands still, and everything that was asked. */
export function createWorld() {
  const clock = createManualClock()
  const log = createRecordingLog()
  const metrics = createRecordingMetrics()
  const calls: { name: string; url: string; request: OutboundRequest }[] = []
  const answers = new Map<string, Respond>()

  const world = {
    clock,
    log,
    metrics,
    calls,
    /** Sets the response at a URL. Other URLs are 404. */
    on(url: string, respond: Respond) {
      answers.set(url, respond)
    },
    /** The keys that are served at `url` from now on. */
    serveKeys(keys: readonly TestKey[], headers: Record<string, string> = {}, url = JWKS_URL) {
      world.on(url, ({ headers: asked }) => (takesKeys(asked?.['accept']) ? json(jwks(keys), headers) : status(406)))
    },
    /** How often a URL was asked. */
    asked: (url: string) => calls.filter((call) => call.url === url).length,
    nowSeconds: () => clock.now() / 1000,
    authenticator(
      providers: readonly object[],
      more: object = {},
      inProcess: readonly InProcessProvider[] = [],
    ): Authenticator {
      const section = schema().parse({
        mode: 'oauth',
        oauth: { resourceUrl: 'https://registry.example.com', providers, ...more },
      })
      const deps: AuthenticateDeps = {
        clock,
        log,
        metrics,
        outbound: ({ name }) => ({
          async request(request) {
            calls.push({ name, url: request.url, request })
            // As if over a network: never in the same turn.
            await Promise.resolve()
            return (answers.get(request.url) ?? (() => status(404)))(request)
          },
          close: () => Promise.resolve(),
        }),
      }
      return createAuthenticator(section, deps, inProcess)
    },
  }
  return world
}

export type World = ReturnType<typeof createWorld>

/** A provider entry with keys at a configured URL. */
export const provider = (more: object = {}): object => ({
  name: 'corporate',
  issuerUrl: ISSUER,
  audience: AUDIENCE,
  jwksUrl: JWKS_URL,
  ...more,
})

export const bearer = (token: string): readonly string[] => [`Bearer ${token}`]

/** The caller of a token; throws if the caller is anonymous. */
export async function callerOf(authenticator: Authenticator, token: string): Promise<AuthenticatedCaller> {
  return authenticated(await authenticator.authenticate(bearer(token), ''))
}

export function authenticated(caller: Caller): AuthenticatedCaller {
  if (caller.kind !== 'authenticated') throw new Error('an anonymous caller')
  return caller
}

/** The failure that ends a call, thrown or rejected. */
export async function failureOf(call: () => unknown): Promise<Failure> {
  try {
    await call()
  } catch (error) {
    return asFailure(error)
  }
  throw new Error('nothing failed')
}

export const refusalOf = (authenticator: Authenticator, token: string): Promise<Failure> =>
  failureOf(() => authenticator.authenticate(bearer(token), ''))
