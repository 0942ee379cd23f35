import { afterEach, describe, expect, it } from 'vitest'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import type { Answer, Idp } from '../../support/upstreams/idp.ts'
import { Browser } from '../../support/authserver/browser.ts'
import {
  atUpstream,
  authorizeUrl,
  getTokens,
  LIMITS,
  logIn,
  makePkce,
  register,
  type Rig,
  startRig,
} from '../../support/authserver/rig.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

interface Asked {
  readonly authorization: string | undefined
  readonly metadata: Readonly<Record<string, unknown>>
}

/** Where clients register, whose answer a test can replace. */
async function startRegistrar() {
  const asked: Asked[] = []
  const registrar = {
    url: '',
    asked,
    methods: undefined as readonly string[] | undefined,
    /** Members put over those of the answer; undefined takes one out. */
    answer: {} as Record<string, unknown>,
    instead: undefined as Answer | undefined,
    after: undefined as Promise<unknown> | undefined,
  }
  registrar.url = await sockets.https(TLS.server, (request, response) => {
    const send = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(body))
    }
    if (request.url === '/metadata') {
      const endpoint = { registration_endpoint: `${registrar.url}/register` }
      return send(200, { ...endpoint, token_endpoint_auth_methods_supported: registrar.methods })
    }
    let text = ''
    request.on('data', (chunk: Buffer) => (text += chunk.toString()))
    request.on('end', () => {
      const metadata = JSON.parse(text) as Asked['metadata']
      asked.push({ authorization: request.headers.authorization, metadata })
      const { status = 201, body } = registrar.instead ?? {}
      const client = { client_id: `client-${asked.length}`, client_secret: `secret-${asked.length}` }
      const right = { ...metadata, ...client, client_secret_expires_at: 0, ...registrar.answer }
      void Promise.resolve(registrar.after).then(() => send(status, body ?? right))
    })
  })
  return registrar
}

type Registrar = Awaited<ReturnType<typeof startRegistrar>>

/** A server whose only upstream is one at which it registers itself. */
const open = (registrar: Registrar, more: Readonly<Record<string, unknown>> = {}) =>
  startRig(sockets, {
    spec: { limits: LIMITS },
    secrets: { 'idp/first': 'initial-token' },
    upstreams: (idp: Idp) => [
      {
        name: 'corp',
        type: 'oauth2',
        caBundleRef: { name: 'idp', key: 'ca' },
        oauth2Config: {
          authorizationEndpoint: `${idp.url}/authorize`,
          tokenEndpoint: `${idp.url}/token`,
          scopes: ['repo'],
          userInfo: { endpointUrl: `${idp.url}/userinfo` },
          dcrConfig: { registrationEndpoint: `${registrar.url}/register`, ...more },
        },
      },
    ],
  })

/** The last request at the upstream's token endpoint. */
const shownTo = ({ idp }: Rig) => {
  const asked = idp.asked.findLast(({ path }) => path === '/token')
  const [, basic = ''] = (asked?.headers.authorization ?? '').split(' ')
  return {
    basic: Buffer.from(basic, 'base64').toString(),
    id: asked?.form['client_id'],
    secret: asked?.form['client_secret'],
  }
}

/** The outcome of a login that fails at the upstream. */
async function failedLogin(rig: Rig): Promise<number> {
  const browser = new Browser()
  const asked = await browser.get(authorizeUrl(rig, await register(rig), makePkce()))
  const sent = await browser.press(asked, 'continue')
  return sent.location === undefined ? sent.status : (await atUpstream(rig, browser, sent)).status
}

describe('a client that registers itself at the upstream', () => {
  it('does so at the first login, and is the same client from then on', async () => {
    const registrar = await startRegistrar()
    const more = { initialAccessTokenRef: { name: 'idp', key: 'first' }, softwareId: 'us', softwareStatement: 'signed' }
    const rig = await open(registrar, more)
    expect(registrar.asked).toEqual([])
    const client = await register(rig)
    for (const _login of [1, 2]) expect((await getTokens(rig, client)).access_token).toBeTruthy()
    expect(registrar.asked).toEqual([
      {
        authorization: 'Bearer initial-token',
        metadata: {
          client_name: 'mcp-extauth',
          redirect_uris: [`${rig.url}/mcp/oauth/callback`],
          grant_types: ['authorization_code', 'refresh_token'],
          response_types: ['code'],
          token_endpoint_auth_method: 'client_secret_basic',
          scope: 'repo',
          software_id: 'us',
          software_statement: 'signed',
        },
      },
    ])
    expect(shownTo(rig).basic).toBe('client-1:secret-1')
    // A replica, or the same one after a restart.
    rig.open()
    await getTokens(rig, client)
    expect(registrar.asked).toHaveLength(1)
  })

  it('is registered once by two replicas at a time', async () => {
    const registrar = await startRegistrar()
    const gate = Promise.withResolvers<undefined>()
    registrar.after = gate.promise
    const rig = await open(registrar)
    const locked: string[] = []
    const lock = rig.store.lock.bind(rig.store)
    rig.store.lock = (name, options) => {
      locked.push(name)
      return lock(name, options)
    }
    const client = await register(rig)
    const begin = async () => {
      const browser = new Browser()
      const asked = await browser.get(authorizeUrl(rig, client, makePkce()))
      return { sent: browser.press(asked, 'continue') }
    }
    const first = await begin()
    await expect.poll(() => registrar.asked.length).toBe(1)
    rig.open()
    const second = await begin()
    await expect.poll(() => locked.length).toBe(2)
    gate.resolve(undefined)
    const ids = [await first.sent, await second.sent].map(({ location = '' }) =>
      new URL(location).searchParams.get('client_id'),
    )
    expect([ids, registrar.asked.length]).toEqual([['client-1', 'client-1'], 1])
  })

  it('is another one where the configuration is another', async () => {
    const registrar = await startRegistrar()
    const rig = await open(registrar)
    const client = await register(rig)
    await getTokens(rig, client)
    const resources = [...rig.resources, { url: `${rig.url}/other`, scopes: [], providers: [] }]
    rig.open({ resources })
    await logIn(rig, client)
    expect(registrar.asked.map(({ metadata }) => metadata['redirect_uris'])).toEqual([
      [`${rig.url}/mcp/oauth/callback`],
      [`${rig.url}/mcp/oauth/callback`, `${rig.url}/other/oauth/callback`],
    ])
  })

  it.each<[readonly string[] | undefined, string, object]>([
    [undefined, 'client_secret_basic', { basic: 'client-1:secret-1', id: undefined, secret: undefined }],
    [
      ['private_key_jwt', 'client_secret_post'],
      'client_secret_post',
      { basic: '', id: 'client-1', secret: 'secret-1' },
    ],
    [['none'], 'none', { basic: '', id: 'client-1', secret: undefined }],
  ])('registers a method that the metadata offer: %j', async (methods, method, shown) => {
    const registrar = await startRegistrar()
    registrar.methods = methods
    const rig = await open(registrar, { registrationEndpoint: undefined, discoveryUrl: `${registrar.url}/metadata` })
    await getTokens(rig, await register(rig))
    expect(registrar.asked[0]?.metadata['token_endpoint_auth_method']).toBe(method)
    expect(shownTo(rig)).toEqual(shown)
  })

  it('authenticates as the upstream registered it', async () => {
    const registrar = await startRegistrar()
    registrar.answer = { token_endpoint_auth_method: 'client_secret_post' }
    const rig = await open(registrar)
    await getTokens(rig, await register(rig))
    expect(shownTo(rig)).toEqual({ basic: '', id: 'client-1', secret: 'secret-1' })
  })

  it('registers again before its secret expires', async () => {
    const registrar = await startRegistrar()
    const rig = await open(registrar)
    registrar.answer = { client_secret_expires_at: Math.floor(rig.clock.now() / 1000) + 3600 }
    const client = await register(rig)
    await getTokens(rig, client)
    rig.clock.advance(49 * 60_000)
    await getTokens(rig, client)
    expect(shownTo(rig).basic).toBe('client-1:secret-1')
    rig.clock.advance(2 * 60_000)
    registrar.answer = {}
    await getTokens(rig, client)
    expect(shownTo(rig).basic).toBe('client-2:secret-2')
  })

  it('registers again when the upstream has forgotten it, and not at each login', async () => {
    const registrar = await startRegistrar()
    const rig = await open(registrar)
    const client = await register(rig)
    await getTokens(rig, client)
    rig.idp.token = { status: 401, body: { error: 'invalid_client' } }
    await failedLogin(rig)
    rig.clock.advance(61_000)
    await failedLogin(rig)
    expect(registrar.asked).toHaveLength(1)
    await failedLogin(rig)
    await failedLogin(rig)
    expect(registrar.asked).toHaveLength(2)
    rig.idp.token = undefined
    await getTokens(rig, client)
    expect(shownTo(rig).basic).toBe('client-2:secret-2')
  })

  it('registers again when the upstream has forgotten it and the clock was set back', async () => {
    const registrar = await startRegistrar()
    const rig = await open(registrar)
    await getTokens(rig, await register(rig))
    rig.clock.advance(-3_600_000)
    rig.idp.token = { status: 401, body: { error: 'invalid_client' } }
    await failedLogin(rig)
    rig.idp.token = undefined
    await getTokens(rig, await register(rig))
    expect(shownTo(rig).basic).toBe('client-2:secret-2')
  })
})

describe('an upstream that does not register us', () => {
  it('is not asked again by each login, and its error text is not repeated', async () => {
    const registrar = await startRegistrar()
    registrar.instead = { status: 400, body: { error: 'invalid_redirect_uri', error_description: 'words of theirs' } }
    const rig = await open(registrar)
    for (const _login of [1, 2]) expect(await failedLogin(rig)).toBe(500)
    expect(registrar.asked).toHaveLength(1)
    const log = JSON.stringify(rig.log.lines)
    expect(log).toContain('the upstream rejected the registration (invalid_redirect_uri)')
    expect(log).not.toContain('words of theirs')
    registrar.instead = undefined
    rig.clock.advance(16_000)
    expect((await getTokens(rig, await register(rig))).access_token).toBeTruthy()
  })

  it('is asked again at once when the clock was set back', async () => {
    const registrar = await startRegistrar()
    registrar.instead = { status: 400, body: { error: 'invalid_redirect_uri' } }
    const rig = await open(registrar)
    await failedLogin(rig)
    registrar.instead = undefined
    rig.clock.advance(-3_600_000)
    expect((await getTokens(rig, await register(rig))).access_token).toBeTruthy()
  })

  it('is reported by its status if its error code is invalid', async () => {
    const registrar = await startRegistrar()
    registrar.instead = { status: 403, body: { error: 'words of theirs' } }
    const rig = await open(registrar)
    expect(await failedLogin(rig)).toBe(500)
    const log = JSON.stringify(rig.log.lines)
    expect(log).toContain('the upstream rejected the registration (status 403)')
    expect(log).not.toContain('words of theirs')
  })

  it.each<[string, Record<string, unknown>]>([
    ['no client_id', { client_id: undefined }],
    ['no secret', { client_secret: undefined }],
    ['a line break in the secret', { client_secret: 'a\nb' }],
    ['a method that is not done here', { token_endpoint_auth_method: 'private_key_jwt' }],
    ['an endless identifier', { client_id: 'a'.repeat(5000) }],
  ])('is reported when its response has %s', async (_name, answer) => {
    const registrar = await startRegistrar()
    registrar.answer = answer
    expect(await failedLogin(await open(registrar))).toBe(502)
  })

  it('keeps nothing that the store could read', async () => {
    const registrar = await startRegistrar()
    registrar.answer = { client_secret: 'not-for-the-store' }
    const rig = await open(registrar)
    const written: string[] = []
    const put = rig.store.put.bind(rig.store)
    rig.store.put = (key, value, ttlMs) => {
      written.push(key, value.toString('latin1'))
      return put(key, value, ttlMs)
    }
    await getTokens(rig, await register(rig))
    expect(written.some((text) => text.startsWith('upstream-client:'))).toBe(true)
    expect(written.join()).not.toContain('not-for-the-store')
  })
})
