import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { decodeJwt } from 'jose'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loginOutbound } from '../../../src/compose/login/index.ts'
import { loginCredentials, type LoginCredentialsOptions, openLoginStore, revoke } from '../../../src/login/index.ts'
import { openLab, post, type TestLab } from '../../support/e2e/lab.ts'
import { pressButtons } from '../../support/login/press-buttons.ts'

const PING = { jsonrpc: '2.0', id: 1, method: 'ping' }

let lab: TestLab
let directory: string
let opened: string[]
let skewMs = 0

beforeAll(async () => {
  lab = await openLab()
})
afterAll(() => lab.close())
beforeEach(async () => {
  directory = path.join(await mkdtemp(path.join(os.tmpdir(), 'extauth-login-')), 'logins')
  opened = []
  skewMs = 0
})
afterEach(() => rm(path.dirname(directory), { recursive: true }))

function options(user = 'alice', more: Partial<LoginCredentialsOptions> = {}): LoginCredentialsOptions {
  const endpoint = new URL(`${lab.url}/upstream`)
  return {
    endpoint,
    outbound: loginOutbound(endpoint, undefined, {}),
    store: openLoginStore(directory),
    openBrowser: (url) => {
      opened.push(url)
      void pressButtons(url, user).catch(() => undefined)
    },
    now: () => Date.now() + skewMs,
    patienceMs: 20_000,
    log: lab.log,
    ...more,
  }
}

async function challenge(): Promise<string> {
  const response = await post(`${lab.url}/upstream`, PING)
  expect(response.status).toBe(401)
  return response.headers.get('www-authenticate') ?? ''
}

const files = async (): Promise<string[]> => (await readdir(directory)).map((name) => path.join(directory, name))

describe('a login for an MCP server', () => {
  it('goes from its 401 to a token for it, kept where only the user can read it', async () => {
    const credentials = loginCredentials(options())
    expect(await credentials.current()).toBeUndefined()
    expect(await credentials.refused(undefined, await challenge(), true)).toBe(true)
    const token = await credentials.current()
    expect(decodeJwt(token?.reveal() ?? '')).toMatchObject({ iss: lab.url, aud: `${lab.url}/upstream` })

    const asked = new URL(opened[0] ?? '').searchParams
    expect(Object.fromEntries(asked)).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      resource: `${lab.url}/upstream`,
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/) as unknown,
    })
    expect(asked.get('state')?.length).toBeGreaterThan(20)

    const [file = ''] = await files()
    expect([(await stat(file)).mode & 0o777, (await stat(directory)).mode & 0o777]).toEqual([0o600, 0o700])
    expect(await files()).toHaveLength(1)
    expect(lab.log.lines.join('\n')).not.toContain(token?.reveal())
  })

  it('is one login for all programs of the user, and one refresh', async () => {
    await loginCredentials(options()).refused(undefined, await challenge(), true)
    const first = await loginCredentials(options()).current()
    expect(opened).toHaveLength(1)
    // Three programs notice at once that the hour is over.
    skewMs = 3_600_000
    const tokens = await Promise.all([0, 1, 2].map(() => loginCredentials(options()).current()))
    expect(new Set(tokens.map((token) => token?.reveal())).size).toBe(1)
    expect(tokens[0]?.reveal()).not.toBe(first?.reveal())
    expect(opened).toHaveLength(1)
  })

  it('is renewed when the server refuses the token, without a browser', async () => {
    const credentials = loginCredentials(options())
    await credentials.refused(undefined, await challenge(), true)
    const refused = await credentials.current()
    await Promise.all([0, 1, 2].map(() => credentials.refused(refused, 'Bearer error="invalid_token"', true)))
    expect((await credentials.current())?.reveal()).not.toBe(refused?.reveal())
    expect(opened).toHaveLength(1)
  })

  it('ends with its revocation at the server; what goes on in the background opens no browser then', async () => {
    const credentials = loginCredentials(options())
    await credentials.refused(undefined, await challenge(), true)
    const store = openLoginStore(directory)
    const [record] = await store.all()
    if (record === undefined) throw new Error('nothing kept')
    expect(await revoke(record, options().outbound)).toBe(true)
    const token = await credentials.current()
    await expect(credentials.refused(token, await challenge(), false)).rejects.toMatchObject({
      reason: 'invalid_token',
    })
    expect(opened).toHaveLength(1)
    // The user asks: then there is a browser.
    await credentials.refused(token, await challenge(), true)
    expect(opened).toHaveLength(2)
    await store.forget(record)
    expect(await credentials.current()).toBeUndefined()
    expect(await files()).toEqual([])
  })

  it('rejects a callback of another login, and reports when none arrives', async () => {
    const forged: number[] = []
    const patience = new AbortController()
    const openBrowser = (url: string): void => {
      opened.push(url)
      const end = new URL(url).searchParams.get('redirect_uri') ?? ''
      void fetch(`${end}?code=x&state=another-login&iss=${encodeURIComponent(lab.url)}`)
        .then(({ status }) => forged.push(status))
        .finally(() => patience.abort())
    }
    const credentials = loginCredentials(options('alice', { openBrowser, signal: patience.signal }))
    const failure = credentials.refused(undefined, await challenge(), true)
    await expect(failure).rejects.toThrow('the browser did not return in time')
    expect(forged).toEqual([400])
    // It is not begun again for each request that fails meanwhile.
    await expect(credentials.refused(undefined, await challenge(), true)).rejects.toThrow('did not return')
    expect(opened).toHaveLength(1)
  })

  it('refuses an answer that names a different authorization server (RFC 9207)', async () => {
    const openBrowser = (url: string): void => {
      const { searchParams } = new URL(url)
      const state = searchParams.get('state') ?? ''
      void fetch(`${searchParams.get('redirect_uri') ?? ''}?code=x&state=${state}&iss=https%3A%2F%2Felsewhere.example`)
    }
    const credentials = loginCredentials(options('alice', { openBrowser }))
    await expect(credentials.refused(undefined, await challenge(), true)).rejects.toThrow(
      'a different authorization server',
    )
  })

  it('survives files that are no logins, and keeps no half of one', async () => {
    await loginCredentials(options()).refused(undefined, await challenge(), true)
    const [file = ''] = await files()
    const text = await readFile(file, 'utf8')
    expect(JSON.parse(text)).toMatchObject({ version: 1, issuer: lab.url })
    const store = openLoginStore(directory)
    expect(await store.forEndpoint('http://127.0.0.1:1/other')).toBeUndefined()
    expect(await openLoginStore(path.join(directory, 'nowhere')).all()).toEqual([])
  })
})
