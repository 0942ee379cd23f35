import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { X509Certificate } from 'node:crypto'
import { decodeJwt, jwtVerify } from 'jose'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runRegistryServer } from '../../../src/compose/registry/run-registry.ts'
import { createSockets } from '../../support/sockets.ts'
import { TLS } from '../../support/tls.ts'
import { entry, get, SERVERS, SILENT } from '../../support/registry/setup.ts'

const sockets = createSockets()
let directory: string
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'registry-client-'))
})
afterEach(async () => {
  await sockets.closeAll()
  rmSync(directory, { recursive: true })
})

const BASIC = `Basic ${Buffer.from('registry:s3cret').toString('base64')}`

/** A registry whose provider is asked with this client, and what the introspection endpoint received. */
async function started(clientAuth: object, secrets: Readonly<Record<string, string | Buffer>>) {
  const asked: { readonly form: URLSearchParams; readonly authorization: string | undefined }[] = []
  const introspectionUrl = await sockets.http((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      asked.push({ form: new URLSearchParams(body), authorization: request.headers.authorization })
      response.end(JSON.stringify({ active: true, aud: 'a', sub: 's', exp: Date.now() / 1000 + 60 }))
    })
  })
  const provider = { name: 'idp', issuerUrl: 'http://127.0.0.1:1', audience: 'a', introspectionUrl, clientAuth }
  const write = (name: string, content: string | Buffer): void => {
    mkdirSync(path.dirname(path.join(directory, name)), { recursive: true })
    writeFileSync(path.join(directory, name), content)
  }
  for (const [name, value] of Object.entries(secrets)) write(`secrets/idp/${name}`, value)
  write('data.json', JSON.stringify([entry('com.example/a', '1')]))
  const file = {
    auth: { mode: 'oauth', oauth: { resourceUrl: 'http://127.0.0.1/', providers: [provider] } },
    registries: [{ name: 'default', source: { file: './data.json' } }],
  }
  write('registry.json', JSON.stringify(file))
  const free = '127.0.0.1:0'
  const configPath = path.join(directory, 'registry.json')
  const running = sockets.closing(
    await runRegistryServer({
      configPath,
      address: free,
      internalAddress: free,
      env: {},
      drainGraceMs: 0,
      log: SILENT,
    }),
  )
  const status = async (token: string): Promise<number> =>
    (await get(running, SERVERS, { headers: { authorization: `Bearer ${token}` } })).status
  return { running, asked, status, write, file }
}

it('authenticates for introspection with a secret, as a provider of a proxy does, and with its successor', async () => {
  const secretRef = { name: 'idp', key: 'secret' }
  const { asked, status, write, running, file } = await started(
    { method: 'clientSecretBasic', clientId: 'registry', secretRef },
    { secret: 's3cret' },
  )
  expect(await status('one')).toBe(200)
  expect(asked.map(({ authorization }) => authorization)).toEqual([BASIC])
  // A reload of a section that stays the same takes nothing away.
  write('registry.json', JSON.stringify({ ...file, trustedProxies: ['127.0.0.0/8'] }))
  await running.reload()
  write('secrets/idp/secret', 'another')
  await expect
    .poll(
      async () => {
        await status(`token-${asked.length}`)
        return asked.at(-1)?.authorization
      },
      { timeout: 10_000 },
    )
    .toBe(`Basic ${Buffer.from('registry:another').toString('base64')}`)
})

it('signs assertions for the issuer, and says when the certificate expires', async () => {
  const key = { secretRef: { name: 'idp', key: 'key' }, certificateSecretRef: { name: 'idp', key: 'cert' } }
  const { asked, status, running } = await started(
    { method: 'privateKeyJwt', clientId: 'registry', key },
    { key: TLS.client.key, cert: TLS.client.cert },
  )
  expect(await status('one')).toBe(200)
  const assertion = asked[0]?.form.get('client_assertion') ?? ''
  const { publicKey, validToDate } = new X509Certificate(TLS.client.cert)
  await jwtVerify(assertion, publicKey)
  expect(decodeJwt(assertion)).toMatchObject({ iss: 'registry', aud: 'http://127.0.0.1:1' })
  const metrics = await (await fetch(`${running.internalUrl}/metrics`)).text()
  const end = validToDate.getTime() / 1_000
  expect(metrics).toContain(`extauth_client_credential_expires_seconds{name="idp",kind="certificate"} ${end}\n`)
})

it('is refused at start where the secret is no key', async () => {
  const key = { secretRef: { name: 'idp', key: 'key' } }
  await expect(started({ method: 'privateKeyJwt', clientId: 'registry', key }, { key: 'nothing' })).rejects.toThrow(
    /secrets\/idp\/key cannot be used: it is not a private signing key/,
  )
})
