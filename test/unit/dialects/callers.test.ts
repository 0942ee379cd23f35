import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import { createRouteAuthenticate } from '../../../src/authenticate/index.ts'
import { type AuthenticatedCaller, Failure, type Matched } from '../../../src/core/index.ts'
import { createRoleMapper } from '../../../src/obtain/cloud-sts/role-mapper.ts'
import { published, rsaKey, signed, type TestKey } from '../../support/authenticate/keys.ts'
import { networked } from '../../support/authenticate/network.ts'
import { authenticated } from '../../support/authenticate/world.ts'
import { createSockets } from '../../support/sockets.ts'
import { answerOf, type Dialect, dialectsOf, outcomeOf } from '../../support/dialects/table.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const AUDIENCE = 'mcp-api'
const key = await rsaKey({ kid: 'one' })
const former = published(await rsaKey(), { kid: 'one' })

/** A row's body or claims with the values of this run: `AUD`, `NOW+…` and the members of the key for `KEY`. */
function filled(value: unknown, of: TestKey): unknown {
  if (value === 'AUD') return AUDIENCE
  const [, later] = typeof value === 'string' ? (/^NOW\+(\d+)$/.exec(value) ?? []) : []
  if (later !== undefined) return Math.floor(Date.now() / 1000) + Number(later)
  if (Array.isArray(value)) return value.map((item) => filled(item, of))
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).map(([name, member]) => [name, filled(member, of)] as const)
  const rest = Object.fromEntries(entries.filter(([name]) => name !== 'KEY'))
  return 'KEY' in value ? { ...of.jwk, ...rest } : rest
}

/** A provider that answers as the row has it, and a route that it authenticates. */
async function start(row: Dialect) {
  let keys: Dialect = { ...row, body: { keys: [{ KEY: 'KEY' }] }, status: 200, contentType: 'application/json' }
  let signer = row.replaced === true ? former : key
  const origin = await sockets.http((request, response) => {
    const { status = 200, headers, body } = answerOf(request.url === '/jwks' ? keys : row)
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(filled(body, signer)))
  })
  const authenticator = sockets.closing(
    networked([
      {
        name: 'idp',
        issuerUrl: origin,
        audience: AUDIENCE,
        jwksUrl: `${origin}/jwks`,
        ...(row.kind === 'introspection' ? { introspectionUrl: `${origin}/introspect` } : {}),
        ...row.settings,
      },
    ]),
  )
  const authenticate = createRouteAuthenticate(authenticator, { requiredScopes: [] })
  return {
    /** The keys are those of the row from now on. */
    serveKeys: (): void => {
      keys = row
      signer = key
    },
    jwt: (claims: object) => {
      const exp = Math.floor(Date.now() / 1000) + 600
      const payload = filled({ iss: origin, exp, jti: randomUUID(), ...claims }, signer) as object
      return signed(signer, { alg: 'RS256', kid: 'one' }, payload)
    },
    caller: async (token: string): Promise<AuthenticatedCaller> => {
      const inbound = { path: '/', query: '', peer: '127.0.0.1' }
      const known = await authenticate({ authorization: [`Bearer ${token}`], inbound } as unknown as Matched)
      return authenticated(known.caller)
    },
  }
}

/** The result for a token, with the identity of its caller. */
async function found(asked: Promise<AuthenticatedCaller>): Promise<readonly (string | undefined)[]> {
  const { outcome, detail } = await outcomeOf(asked)
  return [outcome, detail, outcome === 'ok' ? (await asked).identity : undefined]
}
const wanted = (row: Dialect): readonly unknown[] => [
  row.expect,
  expect.stringContaining(row.detail ?? ''),
  row.expect === 'ok' ? (row.identity ?? expect.any(String)) : undefined,
]

describe('an introspection response', () => {
  it.each(dialectsOf('callers', 'introspection'))('$name', async (row) => {
    const { caller } = await start(row)
    expect(await found(caller('opaque-token'))).toEqual(wanted(row))
  })
})

describe('a key set', () => {
  it.each(dialectsOf('callers', 'keys'))('$name ($when)', async (row) => {
    const { caller, jwt, serveKeys } = await start(row)
    const claims = { sub: 'alice', aud: AUDIENCE }
    if (row.replaced === true) await caller(await jwt(claims))
    serveKeys()
    expect(await found(caller(await jwt(claims)))).toEqual(wanted(row))
  })
})

describe('an access token', () => {
  /** The role of the caller, where its route has a rule. */
  const withRule = async ({ rule }: Dialect, asked: Promise<AuthenticatedCaller>): Promise<AuthenticatedCaller> => {
    const caller = await asked
    if (rule === undefined) return caller
    const arn = 'arn:aws:iam::123456789012:role/'
    const mappings = {
      roleClaim: rule,
      fallbackRoleArn: `${arn}guest`,
      roleMappings: [{ claim: 'g1', roleArn: `${arn}a` }],
    }
    const { refusal, reason } = createRoleMapper(mappings).choose(caller.claims)
    if (refusal === undefined) return caller
    throw new Failure(refusal, reason === undefined ? {} : { detail: reason })
  }

  it.each(dialectsOf('callers', 'accessToken'))('$name', async (row) => {
    const { caller, jwt } = await start(row)
    expect(await found(withRule(row, caller(await jwt(row.claims ?? {}))))).toEqual(wanted(row))
  })
})
