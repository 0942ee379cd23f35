import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterEach, describe, expect, it } from 'vitest'
import { readSigningKey } from '../../../src/signing/signing-key.ts'
import { Secret } from '../../../src/core/index.ts'
import { createCaller } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { Browser } from '../../support/authserver/browser.ts'
import {
  authorizeUrl,
  backFrom,
  getTokens,
  HMAC,
  makePkce,
  parsedUpstream,
  redeem,
  refresh,
  register,
  startRig,
  type Tokens,
} from '../../support/authserver/rig.ts'
import { startIdp } from '../../support/upstreams/idp.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const pem = (make: ReturnType<typeof generateKeyPairSync>, type: 'pkcs1' | 'sec1' | 'pkcs8' = 'pkcs8') =>
  new Secret(make.privateKey.export({ type, format: 'pem' } as never).toString())
const rsa = (bits: number) => generateKeyPairSync('rsa', { modulusLength: bits })
const ec = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve })

describe('a signing key', () => {
  it.each([
    ['RSA, PKCS#1', () => pem(rsa(2048), 'pkcs1'), 'RS256'],
    ['RSA, PKCS#8', () => pem(rsa(2048)), 'RS256'],
    ['P-256, SEC1', () => pem(ec('P-256'), 'sec1'), 'ES256'],
    ['P-384', () => pem(ec('P-384')), 'ES384'],
    ['P-521', () => pem(ec('P-521')), 'ES512'],
    ['Ed25519', () => pem(generateKeyPairSync('ed25519')), 'EdDSA'],
  ])('%s', (_name, make, alg) => {
    expect(readSigningKey(make(), 'a/b')).toMatchObject({ alg, kid: expect.stringMatching(/^.{43}$/) })
  })

  it.each([
    ['RSA of 1024 bits', () => pem(rsa(1024))],
    ['secp256k1', () => pem(ec('secp256k1'))],
    ['X25519', () => pem(generateKeyPairSync('x25519'))],
    ['text', () => new Secret('no key')],
  ])('%s is refused, without its text', (_name, make) => {
    expect(() => readSigningKey(make(), 'a/b')).toThrow(expect.objectContaining({ code: 'config_error' }))
  })
})

describe('rotation in the documented order', () => {
  it('keeps all sessions: signing keys and HMAC secrets', async () => {
    const [old, fresh] = [pem(ec('P-256')), pem(generateKeyPairSync('ed25519'))]
    const secrets = { 'as/one': old.reveal(), 'as/two': fresh.reveal(), 'as/next': `next ${HMAC}` }
    const ref = (...keys: string[]) => keys.map((key) => ({ name: 'as', key }))
    const spec = { signingKeySecretRefs: ref('one'), hmacSecretRefs: ref('hmac') }
    const rig = await startRig(sockets, { spec, secrets })
    const client = await register(rig)
    let tokens: Tokens = await getTokens(rig, client)
    const kids = new Set([decodeProtectedHeader(tokens.access_token).kid])
    for (const [signing, hmac] of [
      [ref('one', 'two'), ref('hmac', 'next')],
      [ref('two', 'one'), ref('next', 'hmac')],
      [ref('two'), ref('next')],
    ]) {
      const server = rig.open({ spec: { ...rig.spec, signingKeySecretRefs: signing, hmacSecretRefs: hmac } })
      const response = await refresh(rig, client, tokens.refresh_token ?? '')
      expect(response.status).toBe(200)
      tokens = (await response.json()) as Tokens
      const { kid } = decodeProtectedHeader(tokens.access_token)
      kids.add(kid)
      expect(server.issuer.keys().map((key) => key.kid)).toContain(kid)
    }
    expect(kids.size).toBe(2)
  })

  it('of a file is picked up without a restart; a broken one changes nothing', async () => {
    const secrets = { 'as/one': pem(ec('P-256')).reveal() }
    const spec = { signingKeySecretRefs: [{ name: 'as', key: 'one' }] }
    const rig = await startRig(sockets, { spec, secrets })
    const kid = () => rig.server.issuer.keys()[0]?.kid
    const before = kid()
    rig.secrets.get('as/one').set('broken')
    expect(kid()).toBe(before)
    rig.secrets.get('as/one').set(pem(ec('P-256')).reveal())
    expect(kid()).not.toBe(before)
  })

  it('of an HMAC secret in place, or with one that is too short, ends what hung on it or is refused', async () => {
    const rig = await startRig(sockets)
    const client = await register(rig)
    const { refresh_token: token = '' } = await getTokens(rig, client)
    rig.secrets.get('as/hmac').set('short')
    expect((await refresh(rig, client, token)).status).toBe(200)
    rig.secrets.get('as/hmac').set(`another ${HMAC}`)
    // The registration as well: a client that gets invalid_client registers again.
    expect((await refresh(rig, client, token)).status).toBe(401)
    const fresh = await register(rig)
    expect((await refresh(rig, fresh, token)).status).toBe(400)
  })
})

describe('several upstreams', () => {
  it('are visited in order, only those that the resource needs; the first says who it is', async () => {
    const second = await startIdp(sockets)
    const rig = await startRig(sockets, {
      resources: (url) => [
        { url: `${url}/plain`, scopes: [], providers: [] },
        { url: `${url}/both`, scopes: [], providers: ['crm'] },
      ],
    })
    const server = rig.open({
      spec: { ...rig.spec, upstreamProviders: [...rig.spec.upstreamProviders, parsedUpstream(second)] },
    })
    const client = await register(rig)
    const browser = new Browser()
    const pkce = makePkce()
    const url = authorizeUrl({ ...rig, server }, client, pkce, { resource: `${rig.url}/both`, scope: undefined })
    const first = await browser.press(await browser.get(url), 'continue')
    const sent = await browser.get(backFrom(rig, first))
    second.claims = { sub: 'crm-user' }
    second.user = { sub: 'crm-user' }
    const done = await browser.get(backFrom({ ...rig, idp: second }, sent))
    const code = new URL(done.location ?? '').searchParams.get('code') ?? ''
    const tokens = (await (await redeem(rig, client, code, pkce)).json()) as Tokens
    const claims = decodeJwt<{ sub: string; tsid: string }>(tokens.access_token)
    expect(claims).toMatchObject({ name: 'User One', aud: `${rig.url}/both` })
    const caller = createCaller({
      issuer: rig.issuer,
      subject: claims.sub,
      claims: { tsid: claims.tsid, client_id: client.id },
    })
    for (const name of ['corp', 'crm'])
      expect(await server.upstreamTokens.current(caller, name, 'access_token')).toBeDefined()
    const only = await browser.press(
      await browser.get(
        authorizeUrl({ ...rig, server }, client, pkce, { resource: `${rig.url}/plain`, scope: undefined }),
      ),
      'continue',
    )
    expect((await browser.get(backFrom(rig, only))).location).toContain('code=')
  })

  it('leave nothing when a later one fails', async () => {
    const second = await startIdp(sockets)
    const rig = await startRig(sockets, {
      resources: (url) => [{ url: `${url}/both`, scopes: [], providers: ['crm'] }],
    })
    const server = rig.open({
      spec: { ...rig.spec, upstreamProviders: [...rig.spec.upstreamProviders, parsedUpstream(second)] },
    })
    const client = await register(rig)
    const browser = new Browser()
    const url = authorizeUrl({ ...rig, server }, client, makePkce(), { scope: undefined })
    const sent = await browser.get(backFrom(rig, await browser.press(await browser.get(url), 'continue')))
    second.token = { status: 500 }
    const failed = await browser.get(backFrom({ ...rig, idp: second }, sent))
    expect(failed.html).toContain('error=')
    expect(browser.names(rig.url)).toEqual([])
  })
})
