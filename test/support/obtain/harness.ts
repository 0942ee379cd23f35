import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createCredentialCache } from '../../../src/cache/index.ts'
import type { Armed, Caller, Clock, Credential, Known, UpstreamTokens } from '../../../src/core/index.ts'
import { once } from '../../../src/fields/index.ts'
import { createOutbound, type OutboundOptions } from '../../../src/net/index.ts'
import { createIdentityPool, createObtain, type ObtainDeps } from '../../../src/obtain/index.ts'
import type { AuthSpecs, ResolvedAuth, UpstreamUse } from '../../../src/resources/index.ts'
import { clientCredentials } from '../../../src/resources/client-credentials.ts'
import { obo } from '../../../src/resources/on-behalf/obo.ts'
import { tokenExchange } from '../../../src/resources/token-exchange.ts'
import type { createSockets } from '../sockets.ts'
import { tokenOf } from '../shown-tokens.ts'
import { redeeming, vouching, vouchingAs, withIdToken, xaaSpec } from './vouching.ts'
import {
  createManualClock,
  createRecordingLog,
  createRecordingMetrics,
  createTestSecrets,
  type ManualClock,
  monotonicOf,
} from '../ports.ts'

/** A request at the token endpoint, as received. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The form in the order in which it was sent. */
  readonly form: readonly (readonly [string, string])[]
}

export type Answer = (request: Received, response: ServerResponse) => void

/** A token endpoint on a real socket with scripted responses, which records requests. */
export async function startEndpoint(sockets: ReturnType<typeof createSockets>, answer: Answer) {
  const received: Received[] = []
  const endpoint = { answer, received, url: '' }
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const form = [...new URLSearchParams(Buffer.concat(chunks).toString())]
      const { method = '', url: path = '', headers } = request
      const entry = { method, path, headers, form }
      received.push(entry)
      endpoint.answer(entry, response)
    })
  }
  endpoint.url = `${await sockets.http(listener)}/token`
  return endpoint
}

export const json =
  (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Answer =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(typeof body === 'string' ? body : JSON.stringify(body))
  }

/** A successful answer of RFC 8693 §2.2.1. */
export const issued = (token: string, members: Readonly<Record<string, unknown>> = {}) => ({
  access_token: token,
  issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  token_type: 'Bearer',
  expires_in: 3600,
  ...members,
})

/** The types that are clients of a token endpoint, by the name of their method in a rig. */
export const GRANTS = ['exchange', 'clientCredentials', 'obo', 'xaa'] as const
/** Those of them that give a token of each caller's. */
export const OF_CALLERS = ['exchange', 'obo', 'xaa'] as const satisfies readonly (typeof GRANTS)[number][]
export type Grant = (typeof GRANTS)[number]
/** The endpoints that callers' tokens are shown to, in one way or another: type `xaa` has two of them. */
export const SHOWN_TO = [...OF_CALLERS, 'assertion'] as const
/** How many credentials so many callers have between them. */
export const credentialsOf = (grant: Grant | 'assertion', callers: number): number =>
  grant === 'clientCredentials' ? Math.min(1, callers) : callers

const CLIENT = { clientId: 'us', clientSecretRef: { name: 'idp', key: 'secret' } }
/** As who the proxy comes, unless that is said. */
const withClient = (spec: Readonly<Record<string, unknown>>) => ({
  ...(spec['clientAuth'] === undefined ? CLIENT : {}),
  ...spec,
})
export const TENANT = 'contoso.example'

export interface RigOptions {
  readonly secrets?: Readonly<Record<string, string>>
  readonly outbound?: Partial<OutboundOptions>
  readonly clock?: Clock & Partial<ManualClock>
  readonly upstreamTokens?: UpstreamTokens
  readonly maxEntries?: number
  readonly caCertificate?: ObtainDeps['caCertificate']
  readonly tokenFile?: ObtainDeps['tokenFile']
}

// Making a schema takes longer than using it.
const schemas = { exchange: once(tokenExchange), clientCredentials: once(clientCredentials), obo: once(obo) }

/** Everything around `createObtain`: the real cache, the real outgoing connections, and ports that record. */
export function createRig(sockets: ReturnType<typeof createSockets>, options: RigOptions = {}) {
  const clock = options.clock ?? createManualClock()
  const log = createRecordingLog()
  const metrics = createRecordingMetrics()
  const secrets = createTestSecrets(options.secrets ?? {})
  const cache = createCredentialCache<Credential>({
    clock,
    metrics,
    random: () => 0.5,
    ...(options.maxEntries === undefined ? {} : { maxEntries: options.maxEntries }),
  })
  const deps: ObtainDeps = {
    clock,
    log,
    metrics,
    random: () => 0.5,
    secrets,
    cache,
    outbound: (wanted) =>
      sockets.closing(
        createOutbound({ ...wanted, clock, monotonicClock: monotonicOf(clock), metrics, ...options.outbound }),
      ),
    caCertificate: options.caCertificate ?? (() => () => undefined),
    env: {},
    identities: createIdentityPool().hold(),
    tokenFile: options.tokenFile ?? (() => createTestSecrets({}).handle({ name: 'no', key: 'file' })),
    ...(options.upstreamTokens === undefined ? {} : { upstreamTokens: options.upstreamTokens }),
  }

  const open = (auth: ResolvedAuth) => {
    const stage = createObtain(auth, deps)
    const known = (caller: Caller) =>
      ({
        caller,
        matched: { route: { name: 'r' }, authorization: [`Bearer ${tokenOf(caller).reveal()}`] },
      }) as unknown as Known
    return {
      stage,
      /** The credential as a backend would see it: `name: value`. */
      header: async (caller: Caller): Promise<string> => {
        const { credential } = await stage.obtain(known(caller))
        return credential.kind === 'header' ? `${credential.name}: ${credential.value.reveal()}` : credential.kind
      },
      obtain: (caller: Caller): Armed | Promise<Armed> => stage.obtain(known(caller)),
    }
  }

  const whenOpen = (opened: Promise<ReturnType<typeof open>>) => ({
    stage: { reject: async (armed: Armed) => (await opened).stage.reject(armed) },
    header: async (caller: Caller) => (await opened).header(withIdToken(caller)),
    obtain: async (caller: Caller) => (await opened).obtain(withIdToken(caller)),
  })

  return {
    clock,
    log,
    metrics,
    secrets,
    cache,
    deps,
    open,
    exchange: (spec: Readonly<Record<string, unknown>>, name = 'github', upstream?: UpstreamUse) =>
      open({
        ...named(name, JSON.stringify(spec)),
        type: 'tokenExchange',
        spec: schemas.exchange().parse(spec),
        upstream,
      }),
    clientCredentials: (spec: Readonly<Record<string, unknown>>, name = 'github') =>
      open({
        ...named(name, JSON.stringify(spec)),
        type: 'clientCredentials',
        spec: schemas.clientCredentials().parse(withClient(spec)),
      }),
    /** At the tenant whose token endpoint is `tokenUrl`; the mock ignores the path. */
    obo: ({ tokenUrl, ...spec }: Readonly<Record<string, unknown>>, name = 'github', upstream?: UpstreamUse) =>
      open({
        ...named(name, JSON.stringify([tokenUrl, spec])),
        type: 'obo',
        // Plain http, which the schema refuses.
        spec: {
          ...schemas.obo().parse({ tenantId: TENANT, ...withClient(spec) }),
          authority: String(tokenUrl),
        },
        upstream,
      }),
    /** The target is `tokenUrl`; its identity provider issues assertions for all callers. */
    xaa: (spec: Readonly<Record<string, unknown>>, name = 'github') =>
      whenOpen(
        sockets
          .http(vouching)
          .then((idp) =>
            open({ ...named(name, JSON.stringify(spec)), type: 'xaa', spec: xaaSpec(spec, `${idp}/token`) }),
          ),
      ),
    /** The same the other way round: the identity provider is `tokenUrl`, and the target gives what that one would have given. */
    assertion: ({ tokenUrl, ...spec }: Readonly<Record<string, unknown>>, name = 'github') =>
      whenOpen(
        Promise.all([sockets.http(vouchingAs(String(tokenUrl))), sockets.http(redeeming)]).then(([idp, target]) => {
          const asked = xaaSpec({ ...spec, tokenUrl: `${target}/token` }, `${idp}/token`)
          return open({ ...named(name, JSON.stringify(spec)), type: 'xaa', spec: asked })
        }),
      ),
    upstreamInject: (upstream: UpstreamUse) =>
      open({ ...named('inject', 'h'), type: 'upstreamInject', spec: { providerName: upstream.provider }, upstream }),
    bearer: (spec: AuthSpecs['bearerToken']) => open({ ...named('bearer', 'h'), type: 'bearerToken', spec }),
    injection: (spec: AuthSpecs['headerInjection']) =>
      open({ ...named('injection', 'h'), type: 'headerInjection', spec }),
    /** All that was said anywhere, to look for what must not be there. */
    output: () => [...log.lines, metrics.text(), JSON.stringify(cache.list())].join('\n'),
  }
}

const named = (name: string, configHash: string) => ({
  name,
  namespace: 'default',
  configHash,
  source: { file: 'test.yaml', line: 1 },
})
