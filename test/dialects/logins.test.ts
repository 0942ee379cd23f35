import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { mayHeal } from '../../src/oauth/index.ts'
import { Failure } from '../../src/core/index.ts'
import { loginCredentials } from '../../src/login/index.ts'
import { createRig as createObtainRig, startEndpoint } from '../obtain/harness.ts'
import { usePaperServer } from '../login/paper-server.ts'
import { createCaller } from '../support/ports.ts'
import { createSockets } from '../support/sockets.ts'
import { startIdp, SUBJECT, type Idp } from '../upstreams/idp.ts'
import { callback, createRig, IN_TIME, LEG } from '../upstreams/rig.ts'
import { answerOf, type Dialect, dialectsOf, isAnswered, outcomeOf } from './table.ts'

const sockets = createSockets()
const paper = usePaperServer()
let idp: Idp
beforeEach(async () => {
  idp = await startIdp(sockets)
})
afterEach(() => sockets.closeAll())

const UPSTREAMS = ['oidc', 'oauth2'] as const

describe.each(UPSTREAMS)('a refresh at an upstream of type %s', (type) => {
  it.each(dialectsOf('logins', 'refresh'))('$name', async (row) => {
    const upstream = createRig(sockets)[type](idp, { scopes: ['openid', 'offline_access'] })
    const { tokens } = await upstream.finish(LEG, callback(idp))
    idp.token = ({ form }) => (isAnswered(row, form) ? answerOf(row) : undefined)
    const refreshing = upstream.refresh(tokens, SUBJECT, IN_TIME)
    const { outcome, detail } = await outcomeOf(refreshing)
    expect([outcome, detail]).toEqual([row.expect, expect.stringContaining(row.detail ?? '')])
    if (outcome === 'ok') {
      const renewed = await refreshing
      const { refresh_token: sent } = (row.body ?? {}) as { refresh_token?: string }
      if (row.status === 200 || row.status === 201)
        expect(renewed.tokens.refreshToken?.reveal()).toBe(sent || tokens.refreshToken?.reveal())
    } else if (outcome === 'deadGrant') {
      const failure: unknown = await refreshing.catch((error: unknown) => error)
      expect(failure).toMatchObject({ challenge: { error: 'invalid_token' } })
      const { error } = (row.body ?? {}) as { error?: string }
      expect(failure instanceof Failure && mayHeal(failure)).toBe(error !== 'invalid_grant')
    }
  })
})

describe('a refresh of `extauth stdio --login`', () => {
  const answer = (row: Dialect) => (response: ServerResponse) => {
    const { status = 200, headers, body } = answerOf(row)
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
  }

  it.each(dialectsOf('logins', 'refresh'))('$name', async (row) => {
    await paper.login()
    paper.raw['/token'] = (body) => {
      const form = Object.fromEntries(body)
      return form['grant_type'] === 'refresh_token' && isAnswered(row, form) ? answer(row) : undefined
    }
    const later = loginCredentials(paper.options({ now: () => Date.now() + 600_000 }))
    const asked = later.refused(await paper.stored(), 'Bearer', true)
    const { status = 200 } = row
    const isOutage = row.expect === 'outage' && (status < 400 || status === 408 || status === 429 || status >= 500)
    if (isOutage) await expect(asked).rejects.toThrow('does not renew the token now')
    else await asked
    expect(paper.shown).toHaveLength(isOutage || row.expect === 'ok' ? 1 : 2)
  })
})

describe.each(UPSTREAMS)('a code at an upstream of type %s', (type) => {
  it.each(dialectsOf('logins', 'code'))('$name', async (row) => {
    const upstream = createRig(sockets)[type](idp)
    const { body } = row
    const isObject = typeof body === 'object' && body !== null
    const idToken = type === 'oidc' ? { id_token: await idp.idToken({ at_hash: undefined }) } : {}
    idp.token = answerOf({ ...row, ...(isObject ? { body: { ...body, ...idToken } } : {}) })
    const { outcome, detail } = await outcomeOf(upstream.finish(LEG, callback(idp)))
    expect([outcome, detail]).toEqual([row.expect, expect.stringContaining(row.detail ?? '')])
  })
})

describe.each(['exchange', 'clientCredentials'] as const)('%s', (kind) => {
  it.each(dialectsOf('logins', kind))('$name', async (row) => {
    const endpoint = await startEndpoint(sockets, (_request, response) => {
      const { status = 200, headers, body } = answerOf(row)
      response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
    })
    const rig = createObtainRig(sockets, { secrets: { 'idp/secret': 's' }, outbound: { retry: false } })
    const asked = rig[kind]({
      tokenUrl: endpoint.url,
      audience: 'a',
      clientId: 'us',
      clientSecretRef: { name: 'idp', key: 'secret' },
    })
    const { outcome, detail } = await outcomeOf(asked.header(createCaller()))
    expect([outcome, detail]).toEqual([row.expect, expect.stringContaining(row.detail ?? '')])
  })
})

describe('an ID token', () => {
  it.each(dialectsOf('logins', 'idToken'))('$name', async (row) => {
    idp.claims = { ...row.claims }
    const { outcome } = await outcomeOf(createRig(sockets).oidc(idp).finish(LEG, callback(idp)))
    expect(outcome).toBe(row.expect)
  })
})
