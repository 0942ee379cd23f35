import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authority, type Authority } from '../../../support/examine/check/certificates.ts'
import {
  ANONYMOUS,
  documents,
  type Folder,
  mcp,
  openFolder,
  type Site,
  site,
} from '../../../support/examine/check/rig.ts'

let folder: Folder
let ca: Authority
const open: Site[] = []
const serve = async (...args: Parameters<typeof site>): Promise<Site> => {
  const made = await site(...args)
  open.push(made)
  return made
}

beforeAll(async () => {
  folder = await openFolder()
  ca = await authority('check CA')
  await folder.write('ca.pem', ca.cert)
  await folder.write('secrets/backend/token', 'sesame\n')
})
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()))
  await folder.remove()
})

const BEARER = { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'backend', key: 'token' } } }
const secured = async (days?: readonly [number, number], host = '127.0.0.1') =>
  serve({ '/mcp': mcp('Bearer sesame') }, await ca.issue(host, days))

/** Name of the case → what is broken, the check that must name it, what it says. */
type Broken = readonly [string, () => Promise<object>, string, RegExp]

const TRUSTED = { targetTls: { caCertPath: './ca.pem' } }
const refuses =
  (status: number, body: object | string = {}) =>
  async () => ({
    target: `${(await serve({ '/mcp': () => ({ status, body }) })).url}/mcp`,
  })

const BROKEN: readonly Broken[] = [
  [
    'the name of the target does not exist',
    async () => ({ target: 'https://nowhere.invalid/mcp' }),
    'target.name',
    /^(ENOTFOUND|EAI_AGAIN)/,
  ],
  [
    'no server listens at the target',
    async () => {
      const gone = await site({})
      await gone.close()
      return { target: `${gone.url}/mcp` }
    },
    'target.connection',
    /^ECONNREFUSED/,
  ],
  [
    'the certificate has ended',
    async () => ({ target: `${(await secured([-60, -3])).url}/mcp`, ...TRUSTED }),
    'target.tls',
    /^CERT_HAS_EXPIRED: the server's certificate has expired; the server sent 127\.0\.0\.1 until \d{4}-\d\d-\d\d ← check CA/,
  ],
  [
    'the certificate has not begun',
    async () => ({ target: `${(await secured([3, 60])).url}/mcp`, ...TRUSTED }),
    'target.tls',
    /^CERT_NOT_YET_VALID/,
  ],
  [
    "the server's certificate is for a different host name",
    async () => ({ target: `${(await secured(undefined, 'other.test')).url}/mcp`, ...TRUSTED }),
    'target.tls',
    /^ERR_TLS_CERT_ALTNAME_INVALID/,
  ],
  [
    'an unknown CA',
    async () => ({ target: `${(await secured()).url}/mcp` }),
    'target.tls',
    /^UNABLE_TO_VERIFY_LEAF_SIGNATURE/,
  ],
  [
    'the certificate is its own authority',
    async () => ({ target: `${(await serve({}, ca)).url}/mcp` }),
    'target.tls',
    /^DEPTH_ZERO_SELF_SIGNED_CERT/,
  ],
  [
    'another authority is configured',
    async () => {
      await folder.write('other.pem', (await authority('another CA')).cert)
      return { target: `${(await secured()).url}/mcp`, targetTls: { caCertPath: './other.pem' } }
    },
    'target.tls',
    /^UNABLE_TO/,
  ],
  [
    'the port does not speak TLS',
    async () => ({ target: `${(await serve({})).url.replace('http:', 'https:')}/mcp` }),
    'target.tls',
    /^(ERR_SSL|EPROTO|ECONNRESET)/,
  ],
  [
    'the file with the authority is missing',
    async () => ({ target: 'https://127.0.0.1/mcp', targetTls: { caCertPath: './nowhere.pem' } }),
    'certificate',
    /^there is no file \S+nowhere\.pem; expected CA certificates/,
  ],
  [
    'the file with the authority holds none',
    async () => {
      await folder.write('empty.pem', 'nothing')
      return { target: 'https://127.0.0.1/mcp', targetTls: { caCertPath: './empty.pem' } }
    },
    'certificate',
    /no certificate/,
  ],
  [
    'the authority has ended',
    async () => {
      await folder.write('old.pem', (await authority('old CA', [-60, -2])).cert)
      return { target: 'https://127.0.0.1/mcp', targetTls: { caCertPath: './old.pem' } }
    },
    'certificate',
    /expired on \d{4}/,
  ],
  [
    'the client certificate has ended',
    async () => {
      const pair = await ca.issue('client.test', [-60, -2])
      await folder.write('client.pem', pair.cert)
      await folder.write('client.key', pair.key)
      return {
        target: 'https://127.0.0.1/mcp',
        targetTls: { clientCertFile: './client.pem', clientKeyFile: './client.key' },
      }
    },
    'certificate',
    /expired on/,
  ],
  [
    'client certificate and key are no pair',
    async () => {
      await folder.write('client2.pem', (await ca.issue('client.test')).cert)
      await folder.write('client2.key', (await ca.issue('client.test')).key)
      return {
        target: 'https://127.0.0.1/mcp',
        targetTls: { clientCertFile: './client2.pem', clientKeyFile: './client2.key' },
      }
    },
    'certificate',
    /it is the key of another certificate/,
  ],
  [
    'the backend wants a client certificate',
    async () => {
      const demanding = await serve({ '/mcp': mcp() }, { ...(await ca.issue('127.0.0.1')), clientCa: ca.cert })
      return { target: `${demanding.url}/mcp`, ...TRUSTED }
    },
    'mcp',
    /^no response to initialize: unreachable \((ERR_SSL|ECONNRESET|EPIPE|UND_ERR)/,
  ],
  ['the backend refuses the credential', refuses(401), 'mcp', /rejects the credential: status 401/],
  ['the credential has no right there', refuses(403), 'mcp', /rejects the credential: status 403/],
  [
    'the path of the target is another',
    refuses(404),
    'mcp',
    /http:\/\/127\.0\.0\.1:\d+\/\S* does not respond to initialize or server\/discover: status 404/,
  ],
  ['the target is a web site', refuses(200, '<html></html>'), 'mcp', /initialize or server\/discover: status 200/],
  ['the backend is broken', refuses(500), 'mcp', /status 500/],
  [
    'the backend knows neither method',
    refuses(200, { jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'no' } }),
    'mcp',
    /JSON-RPC error -32601/,
  ],
  [
    'the backend hangs up',
    async () => ({ target: `${(await serve({ '/mcp': () => ({ cut: true }) })).url}/mcp` }),
    'mcp',
    /^no response to initialize: unreachable/,
  ],
]

describe('extauth check names what is wrong on the way to a backend', () => {
  it.each(BROKEN)('%s', async (_, route, check, detail) => {
    await folder.write('proxy.yaml', documents(await route(), BEARER, { auth: ANONYMOUS }))
    const { code, checks, out } = await folder.check()
    const failed = checks.filter(({ status }) => status === 'failed')
    expect(failed.map((each) => each.check)).toEqual([check])
    expect(failed[0]?.detail).toMatch(detail)
    expect(failed[0]?.remedy).toMatch(/\w{4}/)
    expect(code).toBe(1)
    expect(out).not.toContain('sesame')
  })

  it('reports success over TLS with a private CA, at a server of either protocol version', async () => {
    const modern = await serve({
      '/mcp': (_request, body) =>
        body.includes('server/discover')
          ? {
              body: {
                jsonrpc: '2.0',
                id: 1,
                result: {
                  supportedVersions: ['2026-07-28'],
                  _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'modern', version: '2' } },
                },
              },
            }
          : { status: 400, body: { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'no' } } },
    })
    for (const route of [{ target: `${(await secured()).url}/mcp`, ...TRUSTED }, { target: `${modern.url}/mcp` }]) {
      await folder.write('proxy.yaml', documents(route, BEARER, { auth: ANONYMOUS }))
      const { code, checks } = await folder.check()
      expect(checks.filter(({ status }) => status === 'failed' || status === 'warning')).toEqual([])
      expect(checks.filter(({ check }) => check === 'mcp').map(({ detail }) => detail)).toEqual([
        expect.stringMatching(
          /^(mock 1 responds to initialize \(2025-11-25\)|modern 2 responds to server\/discover \(2026-07-28\))$/,
        ),
      ])
      expect(code).toBe(0)
    }
  })

  it('warns of what will break, and of what is not verified', async () => {
    const soon = await secured([-60, 5])
    await folder.write('proxy.yaml', documents({ target: `${soon.url}/mcp`, ...TRUSTED }, BEARER, { auth: ANONYMOUS }))
    const first = await folder.check()
    expect(first.checks.filter(({ status }) => status === 'warning')).toMatchObject([{ check: 'target.tls' }])
    expect(first.code).toBe(0)
    const route = { target: `${soon.url}/mcp`, targetTls: { insecureSkipVerify: true } }
    await folder.write('proxy.yaml', documents(route, BEARER, { auth: ANONYMOUS }))
    const second = await folder.check()
    expect(second.checks.find(({ check }) => check === 'target.tls')).toMatchObject({
      status: 'warning',
      detail: expect.stringContaining('not verified') as string,
    })
  })
})

describe('extauth check names what is wrong with a secret', () => {
  const FILE = 'secrets/broken/token'
  const CASES: readonly (readonly [string, () => Promise<unknown>, string, RegExp])[] = [
    ['missing', async () => {}, 'secret', /does not exist, expected \S+secrets\/broken\/token;.*\(a tokenSecretRef\)/],
    ['empty', () => folder.write(FILE, '\n'), 'secret', /is blank/],
    [
      'no text',
      async () => writeFile(await folder.write(FILE, ''), Buffer.from([0xff, 0xfe, 0x00])),
      'secret',
      /is not UTF-8 text/,
    ],
    ['a directory', () => mkdir(folder.at(FILE), { recursive: true }), 'secret', /is not a regular file/],
    [
      'a link that leads out',
      async () => {
        await mkdir(folder.at('secrets/broken'), { recursive: true })
        await symlink('/etc/hostname', folder.at(FILE))
      },
      'secret',
      /outside the secrets directory/,
    ],
    ['world-writable', async () => chmod(await folder.write(FILE, 'sesame'), 0o666), 'permissions', /world-writable/],
    [
      'in a world-writable folder',
      async () => {
        await folder.write(FILE, 'sesame')
        await chmod(folder.at('secrets/broken'), 0o777)
      },
      'permissions',
      /replaceable by all users/,
    ],
    ['no value for a header', () => folder.write(FILE, 'two\nlines'), 'secret', /it has more than one line/],
  ]

  it.each(CASES)('that is %s', async (_, arrange, check, detail) => {
    await rm(folder.at('secrets/broken'), { recursive: true, force: true })
    await arrange()
    const spec = { type: 'bearerToken', bearerToken: { tokenSecretRef: { name: 'broken', key: 'token' } } }
    const target = await serve({ '/mcp': mcp() })
    await folder.write('proxy.yaml', documents({ target: `${target.url}/mcp` }, spec, { auth: ANONYMOUS }))
    const { code, checks } = await folder.check()
    const failed = checks.filter(({ status }) => status === 'failed')
    expect(failed.map((each) => each.check)).toEqual([check])
    expect(failed[0]?.detail).toMatch(detail)
    expect(code).toBe(1)
  })
})
