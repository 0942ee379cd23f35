import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt, jwtVerify } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { asFailure } from '../../../src/core/index.ts'
import { createCaller, START_MS } from '../../support/ports.ts'
import { createSockets } from '../../support/sockets.ts'
import { createRig, type Grant, GRANTS, issued, json, startEndpoint } from '../../support/obtain/harness.ts'

const sockets = createSockets()
let endpoint: Awaited<ReturnType<typeof startEndpoint>>

beforeEach(async () => {
  endpoint = await startEndpoint(sockets, json(issued('issued')))
})
afterEach(() => sockets.closeAll())

const secretRef = { name: 'idp', key: 'secret' }

const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = ({ privateKey }: ReturnType<typeof newKey>) =>
  privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

function open(grant: Grant, clientAuth: object = { method: 'clientSecretPost', secretRef }, secret = 'old') {
  const rig = createRig(sockets, { secrets: { 'idp/secret': secret }, outbound: { random: () => 0 } })
  const client = { clientAuth: { clientId: 'us', ...clientAuth } }
  const { header } = rig[grant]({ tokenUrl: endpoint.url, audience: 'a', ...client })
  return { rig, header: () => header(createCaller()) }
}

describe.each(GRANTS)('%s', (grant) => {
  test.each([
    'invalid_client',
    // As Keycloak says it.
    'unauthorized_client',
  ])('a secret that was rotated unnoticed is read again, and the token is asked for once more: %s', async (error) => {
    endpoint.answer = (request, response) =>
      (new Map(request.form).get('client_secret') === 'new' ? json(issued('issued')) : json({ error }, 401))(
        request,
        response,
      )
    const { rig, header } = open(grant)
    rig.secrets.get('idp/secret').pending = 'new'
    expect(await header()).toBe('authorization: Bearer issued')
    expect(endpoint.received).toHaveLength(2)
  })

  test.each([
    ['the secret is the same', 'invalid_client', undefined, 1],
    ['the new one is not taken either', 'invalid_client', 'new', 2],
    ['it is another error', 'invalid_scope', 'new', 1],
  ])('where %s, it is 500 after %#', async (_what, error, pending, requests) => {
    endpoint.answer = json({ error }, 400)
    const { rig, header } = open(grant)
    rig.secrets.get('idp/secret').pending = pending
    const failure = await header().catch((thrown: unknown) => asFailure(thrown).code)
    expect([failure, endpoint.received.length]).toEqual(['config_error', requests])
  })

  test('a retry carries a client assertion of its own', async () => {
    endpoint.answer = (request, response) =>
      (endpoint.received.length === 1 ? json({}, 503) : json(issued('issued')))(request, response)
    const signs = { method: 'privateKeyJwt', key: { secretRef } }
    expect(await open(grant, signs, pem(newKey())).header()).toBe('authorization: Bearer issued')
    const ids = endpoint.received.map(({ form }) => decodeJwt(new Map(form).get('client_assertion') ?? '').jti)
    expect(ids).toHaveLength(2)
    expect(ids[0]).not.toBe(ids[1])
  })

  test('a key that was rotated unnoticed is read again, and signs the assertion of the second request', async () => {
    const [old, renewed] = [newKey(), newKey()]
    endpoint.answer = (request, response) =>
      (endpoint.received.length === 1 ? json({ error: 'invalid_client' }, 401) : json(issued('issued')))(
        request,
        response,
      )
    const { rig, header } = open(grant, { method: 'privateKeyJwt', key: { secretRef } }, pem(old))
    rig.secrets.get('idp/secret').pending = pem(renewed)
    expect(await header()).toBe('authorization: Bearer issued')
    const shown = endpoint.received.map(({ form }) => new Map(form).get('client_assertion') ?? '')
    expect(shown).toHaveLength(2)
    const at = { currentDate: new Date(START_MS), issuer: 'us' }
    await jwtVerify(shown[0] ?? '', old.publicKey, at)
    await jwtVerify(shown[1] ?? '', renewed.publicKey, at)
  })
})
