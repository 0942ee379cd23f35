import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runValidate } from '../../../src/cli/validate.ts'
import { ioOf } from '../../support/compose/io.ts'
import { TLS } from '../../support/tls.ts'
import { authority } from '../../support/examine/check/certificates.ts'
import { ANONYMOUS, documents, type Folder, openFolder } from '../../support/examine/check/rig.ts'

let folder: Folder
beforeAll(async () => {
  folder = await openFolder()
})
afterAll(() => folder.remove())
beforeEach(async () => {
  await rm(folder.at('secrets'), { recursive: true, force: true })
  await mkdir(folder.at('secrets/s'), { recursive: true })
})

const NONE = { type: 'unauthenticated' }
const TOKEN = { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 's', key: 'k' } } }
const TARGET = 'https://127.0.0.1:1/mcp'
/** A route whose backend has this TLS. */
const tls = (targetTls: object): string => documents({ target: TARGET, targetTls }, NONE, { auth: ANONYMOUS })
const pair = { clientCertFile: './c.pem', clientKeyFile: './k.pem' }
const provider = (more: object): string =>
  documents({ target: TARGET }, NONE, {
    auth: {
      mode: 'oauth',
      oauth: {
        resourceUrl: 'http://127.0.0.1/',
        providers: [{ name: 'idp', issuerUrl: 'https://127.0.0.1:1', audience: 'mcp', ...more }],
      },
    },
  })
const withToken = documents({ target: TARGET }, TOKEN, { auth: ANONYMOUS })
const withSpec = (spec: object): string => documents({ target: TARGET }, NONE, { auth: ANONYMOUS, ...spec })

const put = (name: string, content: string | Buffer) => async (): Promise<void> => {
  await folder.write(name, '')
  await writeFile(folder.at(name), content)
}
const nothing = (): Promise<void> => Promise.resolve()

/** States of a file or secret, and whether a process starts with it. */
const CASES: readonly (readonly [string, string, () => Promise<unknown>, 'starts' | 'does not start'])[] = [
  ['no authorities', tls({ caCertPath: './none.pem' }), nothing, 'does not start'],
  ['authorities that are text', tls({ caCertPath: './ca.pem' }), put('ca.pem', 'hello'), 'does not start'],
  ['authorities that are a folder', tls({ caCertPath: './secrets' }), nothing, 'does not start'],
  [
    'authorities that are too large',
    tls({ caCertPath: './ca.pem' }),
    put('ca.pem', Buffer.alloc(1024 * 1024 + 1, 'x')),
    'does not start',
  ],
  [
    'an authority that has ended',
    tls({ caCertPath: './ca.pem' }),
    async () => folder.write('ca.pem', (await authority('old CA', [-60, -2])).cert),
    'starts',
  ],
  [
    'an authority of the future',
    tls({ caCertPath: './ca.pem' }),
    async () => folder.write('ca.pem', (await authority('new CA', [2, 60])).cert),
    'starts',
  ],
  [
    'the key of another certificate',
    tls(pair),
    async () => {
      await put('c.pem', TLS.client.cert)()
      await put('k.pem', TLS.server.key)()
    },
    'does not start',
  ],
  [
    'a certificate as key',
    tls(pair),
    async () => {
      await put('c.pem', TLS.client.cert)()
      await put('k.pem', TLS.client.cert)()
    },
    'does not start',
  ],
  [
    'a blank client secret',
    provider({ clientSecretFile: './t', clientId: 'me', introspectionUrl: 'https://127.0.0.1:1/i' }),
    put('t', '\n'),
    'does not start',
  ],
  ['a token of two words', provider({ authTokenFile: './t' }), put('t', 'two words'), 'does not start'],
  ['no token of the admin listener', withSpec({ admin: { tokenFile: './none' } }), nothing, 'does not start'],
  ['a secret that is missing', withToken, nothing, 'starts'],
  ['a blank secret', withToken, put('secrets/s/k', '\n'), 'starts'],
  ['a secret that is no text', withToken, put('secrets/s/k', Buffer.from([0xff, 0xfe, 0])), 'starts'],
  ['a secret that is a folder', withToken, () => mkdir(folder.at('secrets/s/k')), 'starts'],
  ['a secret that is too large', withToken, put('secrets/s/k', Buffer.alloc(1024 * 1024 + 1, 'x')), 'starts'],
  ['a secret that leads out', withToken, () => symlink('/etc/hostname', folder.at('secrets/s/k')), 'starts'],
  ['a secret that is no header', withToken, put('secrets/s/k', 'two\nlines'), 'starts'],
  ['no key of sessions', withSpec({ sessionKeySecretRef: { name: 's', key: 'k' } }), nothing, 'starts'],
]

describe('validate and check say the same of', () => {
  it.each(CASES)('%s', async (_, text, arrange, starts) => {
    await folder.write('proxy.yaml', text)
    await arrange()
    const { io, out } = ioOf()
    const code = await runValidate([folder.at('proxy.yaml')], io)
    expect([code, out.stdout]).toEqual([starts === 'starts' ? 0 : 1, expect.any(String)])
    const { checks, err } = await folder.check()
    const about = checks.filter(
      ({ check, status }) => status === 'failed' && ['file', 'certificate', 'secret'].includes(check),
    )
    expect([about.length, err, checks]).toEqual([1, '', expect.anything()])
    const [{ detail, remedy } = { detail: 'none', remedy: '' }] = about
    expect(out.stdout).toContain(detail.replace(/ \(\w[\w .]+\)$/, ''))
    expect(remedy).toMatch(/\w{4}/)
  })

  it('a key that may be any bytes: nothing', async () => {
    await folder.write('proxy.yaml', withSpec({ sessionKeySecretRef: { name: 's', key: 'k' } }))
    await put('secrets/s/k', Buffer.alloc(32, 0xfe))()
    const { io, out } = ioOf()
    expect([await runValidate([folder.at('proxy.yaml')], io), out.stdout]).toEqual([0, ''])
    expect((await folder.check()).checks.filter(({ check }) => check === 'secret')).toMatchObject([{ status: 'ok' }])
  })
})
