import { createHash } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type LabWorkspace, startLabWorkspace } from '../../../lab/index.ts'
import { Secret } from '../../../src/core/index.ts'
import { createManualClock, type ManualClock } from '../../support/ports.ts'

const REDIRECT = 'http://127.0.0.1:8080/upstream/oauth/callback'
const VERIFIER = 'a-verifier-that-is-long-enough-to-be-one-1234567'
const BASIC = `Basic ${Buffer.from('app:of+the%2Fapp').toString('base64')}`

let clock: ManualClock
let workspace: LabWorkspace
beforeEach(async () => {
  clock = createManualClock()
  const client = { id: 'app', secret: new Secret('of the/app'), redirectUris: [REDIRECT] }
  workspace = await startLabWorkspace({ port: 0, client, clock })
})
afterEach(() => workspace.close())

const authorize = (more: Readonly<Record<string, string | undefined>> = {}) => {
  const url = new URL(`${workspace.url}/oauth/authorize`)
  const parameters = {
    response_type: 'code',
    client_id: 'app',
    redirect_uri: REDIRECT,
    state: 's',
    scope: 'files:read chat:write',
    code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
    code_challenge_method: 'S256',
    ...more,
  }
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value)
  return fetch(url)
}

const post = (path: string, form: Readonly<Record<string, string>>, authorization?: string) =>
  fetch(workspace.url + path, {
    method: 'POST',
    redirect: 'manual',
    headers: authorization === undefined ? {} : { authorization },
    body: new URLSearchParams(form),
  })

async function newCode(): Promise<string> {
  const login = /name="login" value="([^"]+)"/.exec(await (await authorize()).text())?.[1] ?? ''
  const { headers } = await post('/login', { login, user: 'alice' })
  return new URL(headers.get('location') ?? '').searchParams.get('code') ?? ''
}

const redeem = (code: string, more: Readonly<Record<string, string>> = {}, authorization = BASIC) => {
  const form = { grant_type: 'authorization_code', code, code_verifier: VERIFIER, redirect_uri: REDIRECT, ...more }
  return post('/oauth/token', form, authorization)
}

interface Nested {
  readonly authed_user: { readonly access_token: string; readonly refresh_token: string }
}

describe('the workspace', () => {
  it('gives tokens a level down, and knows its users by number', async () => {
    const answer = (await (await redeem(await newCode())).json()) as Nested
    expect(answer).toMatchObject({
      ok: true,
      token_type: 'workspace',
      authed_user: { id: 7001, expires_in: 300, scope: 'files:read,chat:write' },
    })
    expect(answer).not.toHaveProperty('access_token')
    const headers = { authorization: `Bearer ${answer.authed_user.access_token}` }
    const me = await fetch(`${workspace.url}/users/me`, { headers })
    expect(await me.json()).toEqual({ id: 7001, login: 'alice', profile: { mail: 'alice@workspace.example' } })
    clock.advance(300_000)
    expect((await fetch(`${workspace.url}/users/me`, { headers })).status).toBe(401)
    expect(workspace.verify(answer.authed_user.access_token)).toBeUndefined()
  })

  it('rotates refresh tokens', async () => {
    const { authed_user: user } = (await (await redeem(await newCode())).json()) as Nested
    const refresh = () =>
      post('/oauth/token', { grant_type: 'refresh_token', refresh_token: user.refresh_token }, BASIC)
    expect((await refresh()).status).toBe(200)
    expect(await (await refresh()).json()).toEqual({ ok: false, error: 'invalid_grant' })
  })

  it.each([
    ['another redirect URI', { redirect_uri: `${REDIRECT}/` }],
    ['another client', { client_id: 'other' }],
    ['no state', { state: undefined }],
    ['no PKCE', { code_challenge: undefined }],
    ['plain PKCE', { code_challenge_method: 'plain' }],
    ['another response type', { response_type: 'token' }],
  ])('does not begin a login with %s', async (_name, more) => {
    expect((await authorize(more)).status).toBe(400)
  })

  it.each([
    ['another verifier', { code_verifier: `${VERIFIER}x` }, BASIC, 'invalid_grant'],
    ['another redirect URI', { redirect_uri: 'http://127.0.0.1:1/x' }, BASIC, 'invalid_grant'],
    ['another secret', {}, `Basic ${Buffer.from('app:x').toString('base64')}`, 'invalid_client'],
    ['no secret', { client_id: 'app' }, '', 'invalid_client'],
    ['another grant', { grant_type: 'password' }, BASIC, 'unsupported_grant_type'],
  ])('gives no tokens for %s', async (_name, more, authorization, error) => {
    expect(await (await redeem(await newCode(), more, authorization)).json()).toEqual({ ok: false, error })
  })

  it('takes a code once', async () => {
    const code = await newCode()
    expect((await redeem(code)).status).toBe(200)
    expect((await redeem(code)).status).toBe(400)
  })
})
