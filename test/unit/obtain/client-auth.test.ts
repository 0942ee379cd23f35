import { rmSync, writeFileSync } from 'node:fs'
import { mkdtemp, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { TLSSocket } from 'node:tls'
import { decodeJwt, UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openNamedFiles } from '../../../src/compose/materials.ts'
import { asFailure } from '../../../src/core/index.ts'
import { createCaller, createManualClock, createRecordingLog, START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import {
  createRig,
  type Grant,
  GRANTS,
  issued,
  json,
  type RigOptions,
  startEndpoint,
} from '../../support/obtain/harness.ts'

const sockets = createSockets()
let folder: string
let endpoint: Awaited<ReturnType<typeof startEndpoint>>

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'extauth-client-auth-'))
  endpoint = await startEndpoint(sockets, json(issued('issued')))
})
afterEach(async () => {
  await sockets.closeAll()
  rmSync(folder, { recursive: true })
})

const ref = (key: string) => ({ name: 'idp', key })
const SECRETS = {
  'idp/secret': 's3cret',
  'idp/cert': TLS.client.cert.toString(),
  'idp/cert-key': TLS.client.key.toString(),
}
const until = (seconds: number, more: object = {}) =>
  new UnsecuredJWT({ exp: START_MS / 1_000 + seconds, ...more }).encode().replace(/\.$/, '.c2ln')

/** Entra ID takes what stands in the body, and the schema refuses the rest. */
const TAKES_ALL: ReadonlySet<Grant> = new Set(['exchange', 'clientCredentials', 'xaa'])

describe.each(GRANTS)('%s', (grant) => {
  const open = (clientAuth: object, more: object = {}, options: RigOptions = {}) => {
    const rig = createRig(sockets, { secrets: SECRETS, outbound: { random: () => 0 }, ...options })
    const { header } = rig[grant]({ tokenUrl: endpoint.url, audience: 'a', clientAuth, ...more })
    return { rig, header: () => header(createCaller()) }
  }

  const shown: [string, object, readonly (readonly [string, string])[], string | undefined][] = [
    ...(TAKES_ALL.has(grant)
      ? [
          [
            'an id with a secret by Basic',
            { method: 'clientSecretBasic', secretRef: ref('secret') },
            [],
            `Basic ${Buffer.from('us:s3cret').toString('base64')}`,
          ] satisfies [string, object, [], string],
        ]
      : []),
    [
      'both in the body',
      { method: 'clientSecretPost', secretRef: ref('secret') },
      [
        ['client_id', 'us'],
        ['client_secret', 's3cret'],
      ],
      undefined,
    ],
  ]
  test.each(shown)('shows %s', async (_what, how, form, authorization) => {
    const { rig, header } = open({ clientId: 'us', ...how })
    expect(await header()).toBe('authorization: Bearer issued')
    const [request] = endpoint.received
    expect(request?.headers.authorization).toBe(authorization)
    expect(request?.form.filter(([name]) => name.startsWith('client_'))).toEqual(form)
    expect(rig.output()).not.toContain('s3cret')
  })

  test('shows the token in a file, and its successor once the old one is refused', async () => {
    const file = path.join(folder, 'token')
    const [first, second] = [until(600), until(1_200)]
    await writeFile(file, first)
    const files = openNamedFiles(createRecordingLog(), { AZURE_FEDERATED_TOKEN_FILE: file }).hold()
    const shown: (string | undefined)[] = []
    endpoint.answer = (request, response) => {
      shown.push(new Map(request.form).get('client_assertion'))
      if (shown.length === 1) writeFileSync(file, second)
      json(shown.length === 1 ? { error: 'invalid_client' } : issued('issued'), shown.length === 1 ? 401 : 200)(
        request,
        response,
      )
    }
    const { header, rig } = open(
      { method: 'tokenFile', clientId: 'us', tokenFile: {} },
      {},
      { tokenFile: (named) => files.tokenFile(named) },
    )
    expect(await header()).toBe('authorization: Bearer issued')
    expect(shown).toEqual([first, second])
    expect(rig.output()).not.toContain(first)
    files.release()
  })

  test.each([
    ['it has ended', until(-1)],
    ['it is no token', 'not a token'],
    ['it is not there', undefined],
  ])('sends nothing where the token is of no use: %s', async (_what, text) => {
    const file = path.join(folder, 'token')
    if (text !== undefined) await writeFile(file, text)
    const files = openNamedFiles(createRecordingLog(), {}).hold()
    const { header } = open(
      { method: 'tokenFile', clientId: 'us', tokenFile: { path: file } },
      {},
      { tokenFile: (named) => files.tokenFile(named) },
    )
    expect(await header().catch((error: unknown) => asFailure(error).code)).toBe('secret_unavailable')
    expect(endpoint.received).toHaveLength(0)
    files.release()
  })

  test('signs with a certificate’s key, for the audience that is asked for', async () => {
    const key = { secretRef: ref('cert-key'), certificateSecretRef: ref('cert'), legacyThumbprint: true }
    const { header } = open({ method: 'privateKeyJwt', clientId: 'us', key, assertionAudience: 'urn:idp' })
    await header()
    const assertion = new Map(endpoint.received[0]?.form).get('client_assertion') ?? ''
    expect(decodeJwt(assertion).aud).toBe('urn:idp')
  })

  test.each(TAKES_ALL.has(grant) ? ['a certificate in TLS'] : [])(
    'shows %s to a server that asks for one',
    async () => {
      const seen: (string | undefined)[] = []
      const listener = (request: IncomingMessage, response: ServerResponse) => {
        const { socket } = request
        seen.push((socket as TLSSocket).getPeerCertificate().subject?.CN?.toString())
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(issued('issued')))
      }
      const asks = { requestCert: true, rejectUnauthorized: true, ca: TLS.ca, ...TLS.server }
      const tokenUrl = `${await sockets.https(asks, listener)}/token`
      const tls = { certificateSecretRef: ref('cert'), keySecretRef: ref('cert-key') }
      const trusted = { caCertificate: () => () => TLS.ca }
      const { header } = open(
        { method: 'tlsClient', clientId: 'us', tls },
        { tokenUrl, caCertPath: '/ca.pem' },
        trusted,
      )
      expect(await header()).toBe('authorization: Bearer issued')
      expect(seen).toEqual(['client'])
      if (grant !== 'exchange') return
      const without = open({ method: 'none', clientId: 'us' }, { tokenUrl, caCertPath: '/ca.pem' }, trusted)

      await expect(without.header()).rejects.toMatchObject({ code: 'identity_provider_unavailable' })
    },
  )
})

describe('clientCredentials with issuerUrl', () => {
  const discovering = (document: (base: string) => object) => {
    endpoint.answer = (request, response) =>
      request.path.startsWith('/.well-known')
        ? json(document(endpoint.url.replace(/\/token$/, '')))(request, response)
        : json(issued('issued'))(request, response)
    const rig = createRig(sockets, { secrets: SECRETS })
    const issuerUrl = endpoint.url.replace(/\/token$/, '')
    const key = { secretRef: ref('cert-key') }
    const client = { method: 'privateKeyJwt', clientId: 'us', key }
    return { issuerUrl, header: () => rig.clientCredentials({ issuerUrl, clientAuth: client }).header(createCaller()) }
  }

  test('finds the token endpoint once, and says the issuer in assertions', async () => {
    const { header, issuerUrl } = discovering((base) => ({ issuer: base, token_endpoint: `${base}/elsewhere` }))
    expect(await header()).toBe('authorization: Bearer issued')
    expect(endpoint.received.map(({ path: at }) => at)).toEqual(['/.well-known/openid-configuration', '/elsewhere'])
    const assertion = new Map(endpoint.received[1]?.form).get('client_assertion') ?? ''
    expect(decodeJwt(assertion).aud).toBe(issuerUrl)
  })

  /** An authorization server whose token endpoint is at `path` now, and the port that it was at before is closed. */
  const moving = async (gone: (base: string) => string | Promise<string>) => {
    const clock = createManualClock()
    let at = ''
    endpoint.answer = (request, response) => {
      if (request.path.startsWith('/.well-known'))
        return json({ issuer, token_endpoint: at }, 200, { 'cache-control': 'max-age=86400' })(request, response)
      return request.path === '/new' ? json(issued('issued'))(request, response) : json({}, 404)(request, response)
    }
    const issuer = endpoint.url.replace(/\/token$/, '')
    at = await gone(issuer)
    const rig = createRig(sockets, { secrets: SECRETS, clock })
    const clientAuth = { method: 'clientSecretBasic', clientId: 'us', secretRef: ref('secret') }
    const { header } = rig.clientCredentials({ issuerUrl: issuer, clientAuth })
    return {
      clock,
      rig,
      header: async () => header(createCaller()).catch((error: unknown) => asFailure(error).code),
      move: () => void (at = `${issuer}/new`),
      documents: () => endpoint.received.filter(({ path: one }) => one.startsWith('/.well-known')).length,
    }
  }

  test.each<[string, (base: string) => string | Promise<string>]>([
    ['answers 404', (base) => `${base}/old`],
    ['cannot be reached', () => 'http://127.0.0.1:1/token'],
  ])('finds an endpoint that moved and whose old address %s, without waiting for the document', async (_what, gone) => {
    const { header, move, documents, clock, rig } = await moving(gone)
    expect(await header()).toMatch(/config_error|identity_provider_unavailable/)
    // The URL of the endpoint, and not that of the issuer.
    expect(rig.log.lines.at(-1)).toContain(`"url":"${await gone(endpoint.url.replace(/\/token$/, ''))}"`)
    for (let second = 0; second < 10; second++) {
      await header()
      clock.advance(1_000)
    }
    expect(documents()).toBe(2)
    move()
    clock.advance(30_000)
    // The circuit of the old address may still be open.
    await header()
    clock.advance(3_000)
    expect(await header()).toBe('authorization: Bearer issued')
    expect(documents()).toBe(3)
  })

  test.each(['http://169.254.169.254/token', 'http://[fd00:ec2::254]/token', 'http://[::ffff:a9fe:a9fe]/token'])(
    'never shows its secret to a metadata service that the document names: %s',
    async (tokenEndpoint) => {
      const { header } = discovering((issuer) => ({ issuer, token_endpoint: tokenEndpoint }))
      await expect(header()).rejects.toMatchObject({
        code: 'identity_provider_unavailable',
        detail: 'token endpoint: blocked_address',
      })
    },
  )

  test('is called at the mTLS alias only with a certificate', async () => {
    const seen: (string | undefined)[] = []
    const listener = (request: IncomingMessage, response: ServerResponse) => {
      seen.push(request.url)
      response.writeHead(200, { 'content-type': 'application/json' })
      const aliases = { mtls_endpoint_aliases: { token_endpoint: `${issuerUrl}/mtls` } }
      const document = { issuer: issuerUrl, token_endpoint: `${issuerUrl}/token`, ...aliases }
      response.end(JSON.stringify(request.method === 'GET' ? document : issued('issued')))
    }
    const asks = { requestCert: true, rejectUnauthorized: false, ca: TLS.ca, ...TLS.server }
    const issuerUrl = await sockets.https(asks, listener)
    const tls = { certificateSecretRef: ref('cert'), keySecretRef: ref('cert-key') }
    for (const how of [
      { method: 'tlsClient', tls },
      { method: 'clientSecretBasic', secretRef: ref('secret') },
    ]) {
      const rig = createRig(sockets, { secrets: SECRETS, caCertificate: () => () => TLS.ca })
      const spec = { issuerUrl, caCertPath: '/ca.pem', clientAuth: { clientId: 'us', ...how } }
      await rig.clientCredentials(spec).header(createCaller())
    }
    expect(seen.filter((at) => at?.startsWith('/.well-known') === false)).toEqual(['/mtls', '/token'])
  })

  test.each<[string, (base: string) => object]>([
    ['is for a different issuer', () => ({ issuer: 'https://other', token_endpoint: 'https://a/b' })],
    ['names no token endpoint', (base) => ({ issuer: base })],
  ])('asks for nothing where the document %s', async (_what, document) => {
    const { header } = discovering(document)
    await expect(header()).rejects.toMatchObject({ code: 'identity_provider_error' })
    expect(endpoint.received.every(({ path: at }) => at.startsWith('/.well-known'))).toBe(true)
  })
})
