import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createIdentityPool } from '../../../../../src/obtain/index.ts'
import { identityFor } from '../../../../../src/obtain/cloud-sts/index.ts'
import type { AmbientName } from '../../../../../src/resources/index.ts'
import { createOutbound } from '../../../../../src/net/index.ts'
import { depsOf } from '../../../../support/obtain/cloud-sts/support/deps.ts'
import { FROM, type Rig, startRig } from '../../../../support/obtain/cloud-sts/identity/rig.ts'

let rig: Rig
let service: ReturnType<typeof createServer>
let url: string
let answer: (request: IncomingMessage, response: ServerResponse) => void
let asked: string[]
beforeAll(async () => {
  rig = await startRig()
  service = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`)
    answer(request, response)
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(service.address() as AddressInfo).port}`
})
beforeEach(() => {
  asked = []
  answer = well()
})
afterAll(async () => {
  service.closeAllConnections()
  await new Promise((resolve) => service.close(resolve))
  await rig.close()
})

const KEYS = { AccessKeyId: FROM.container, SecretAccessKey: 's', Token: 't', Expiration: '2039-01-01T00:00:00Z' }
/** Both services, with some answers of their own. */
const well =
  (own: Readonly<Record<string, string>> = {}) =>
  ({ url: path = '' }: IncomingMessage, response: ServerResponse) => {
    const usual: Readonly<Record<string, string>> = {
      '/latest/api/token': 'token',
      '/latest/meta-data/iam/security-credentials/': 'node\n',
    }
    response.end(own[path] ?? usual[path] ?? JSON.stringify(KEYS))
  }

/** The identity as a config has it, through the options that it is really asked with. */
async function identity(place: AmbientName, values: Readonly<Record<string, string>>, httpProxy?: string) {
  const env = rig.environment(values)
  const { deps, clock } = depsOf(rig.sts.url)
  const through = httpProxy === undefined ? {} : { egressProxy: { httpProxy } }
  const outbound: typeof deps.outbound = (options) => createOutbound({ ...options, clock, ...through })
  const identities = createIdentityPool().hold()
  const ports = { ...deps, env, outbound, identities }
  const spec = { region: 'eu-central-1' }
  try {
    return await identityFor(spec, { type: 'ambient', chain: [place] }, ports).current()
  } finally {
    await identities.release()
  }
}
const places = ['container', 'podIdentity', 'instance'] as const
const at = (place: AmbientName, base: string): Readonly<Record<string, string>> =>
  place === 'instance'
    ? { AWS_EC2_METADATA_SERVICE_ENDPOINT: base }
    : {
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${base}/creds`,
        AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: rig.file('pod-token'),
      }
const refused = (detail: RegExp) => ({ code: 'aws_identity_unavailable', detail: expect.stringMatching(detail) })

describe.each(places)('a metadata service (%s)', (place) => {
  test('gives keys with their end', async () => {
    expect(await identity(place, at(place, url))).toMatchObject({
      accessKeyId: FROM.container,
      expiresAtMs: Date.UTC(2039, 0, 1),
    })
  })

  test('that answers without end is not read to it', async () => {
    let sent = 0
    let isClosed = false
    answer = (_request, response) => {
      const piece = Buffer.alloc(16 * 1024, 0x20)
      const more = () => {
        if (isClosed) return
        sent += piece.length
        if (response.write(piece)) setImmediate(more)
        else response.once('drain', more)
      }
      response.once('close', () => (isClosed = true))
      more()
    }
    await expect(identity(place, at(place, url))).rejects.toMatchObject(refused(/a response of more than 65536 bytes/))
    await expect.poll(() => isClosed).toBe(true)
    // The kernel's connect errors vary.
    expect(sent).toBeLessThan(32 * 1024 * 1024)
  })

  test.each(['', 'no JSON', '[]', '{"AccessKeyId":"a","AccessKeyId":"b"}', `{"a":${'['.repeat(40)}${']'.repeat(40)}}`])(
    'that answers %j gives none',
    async (body) => {
      const last = place === 'instance' ? '/latest/meta-data/iam/security-credentials/node' : '/creds'
      answer = well({ [last]: body })
      await expect(identity(place, at(place, url))).rejects.toMatchObject(refused(/no valid credentials/))
    },
  )

  test.each(['AccessKeyId', 'SecretAccessKey', 'Token', 'Expiration'])(
    'gives none without a usable %s',
    async (name) => {
      for (const value of [undefined, null, 7, '', 'ä\n']) {
        const last = place === 'instance' ? '/latest/meta-data/iam/security-credentials/node' : '/creds'
        answer = well({ [last]: JSON.stringify({ ...KEYS, [name]: value }) })
        await expect(identity(place, at(place, url))).rejects.toMatchObject(refused(/no valid credentials/))
      }
    },
  )

  test.each([400, 401, 403, 404, 429, 500, 301])('that responds %d is reported with the status', async (status) => {
    answer = (_request, response) => void response.writeHead(status, { location: '/elsewhere' }).end('a text of it')
    const error: unknown = await Promise.resolve(identity(place, at(place, url))).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject(refused(new RegExp(`${place}: it answered ${status}`)))
    expect(String(error)).not.toContain('a text of it')
    expect(asked).toHaveLength(1)
  })

  test('that is busy for a moment is asked once more', async () => {
    let calls = 0
    answer = (request, response) => {
      if (++calls === 1) response.writeHead(503).end()
      else well()(request, response)
    }
    expect(await identity(place, at(place, url))).toMatchObject({ accessKeyId: FROM.container })
  })

  test('that is gone gives none, and says so', async () => {
    await expect(identity(place, at(place, 'http://127.0.0.1:9'))).rejects.toMatchObject(
      refused(new RegExp(`${place}: unreachable`)),
    )
  })

  test('is never asked through an egress proxy', async () => {
    const unreachable = 'http://127.0.0.1:9'
    expect(await identity(place, at(place, url), unreachable)).toMatchObject({ accessKeyId: FROM.container })
  })
})

describe('the endpoint of a container', () => {
  test.each([
    'http://10.0.0.1/creds',
    'http://example.com/creds',
    'http://169.254.169.254/latest',
    'http://[fd00:ec2::24]/creds',
    'file:///creds',
    'creds',
  ])('%s is not asked: HTTP is for next door only', async (uri) => {
    await expect(identity('container', { AWS_CONTAINER_CREDENTIALS_FULL_URI: uri })).rejects.toMatchObject(
      refused(/neither HTTPS nor local/),
    )
  })

  test.each(['@evil.example/creds', '.evil.example/creds', ':80@evil.example/creds', 'x'])(
    'a relative one that would be another host is not asked: %s',
    async (uri) => {
      await expect(identity('container', { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: uri })).rejects.toMatchObject(
        refused(/neither HTTPS nor local/),
      )
    },
  )

  test('gets the token of the file before that of the variable', async () => {
    const shown: (string | undefined)[] = []
    answer = (request, response) => {
      shown.push(request.headers.authorization)
      well()(request, response)
    }
    const variable = { AWS_CONTAINER_AUTHORIZATION_TOKEN: 'of-the-variable' }
    await identity('container', { ...at('container', url), ...variable })
    await identity('container', { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/creds`, ...variable })
    await identity('container', { AWS_CONTAINER_CREDENTIALS_FULL_URI: `${url}/creds` })
    expect(shown).toEqual(['the-token-of-the-pod', 'of-the-variable', undefined])
  })

  test.each([
    ['is too large', 'x'.repeat(64 * 1024 + 1), /its token file .* is too large$/],
    ['would be two headers', 'a\r\nx-evil: 1', /unreachable/],
  ])('a token that %s is not shown', async (_text, token, detail) => {
    await writeFile(rig.file('bad-token'), token)
    const env = { ...at('container', url), AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: rig.file('bad-token') }
    await expect(identity('container', env)).rejects.toMatchObject(refused(detail))
    expect(asked).toEqual([])
  })
})

describe('the metadata service of an instance', () => {
  test('is where the profile of the configuration files says', async () => {
    await writeFile(rig.file('imds-config'), `[default]\nec2_metadata_service_endpoint = ${url}\n`)
    const files = { AWS_CONFIG_FILE: rig.file('imds-config'), AWS_EC2_METADATA_SERVICE_ENDPOINT: '' }
    expect(await identity('instance', files)).toMatchObject({ accessKeyId: FROM.container })
  })

  test.each([
    ['no mode', { AWS_EC2_METADATA_SERVICE_ENDPOINT: '', AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE: 'IPv5' }],
    ['no URL', { AWS_EC2_METADATA_SERVICE_ENDPOINT: 'nowhere' }],
  ])('with %s is not asked', async (_text, env) => {
    await expect(identity('instance', env)).rejects.toMatchObject(refused(/instance: its (mode|address) is/))
  })

  test.each(['', '../../user-data', 'a b', 'x'.repeat(200), 'a\nb'])('the role %j is none', async (role) => {
    answer = well({ '/latest/meta-data/iam/security-credentials/': role })
    await expect(identity('instance', at('instance', url))).rejects.toMatchObject(refused(/it returned no role name/))
    expect(asked).toHaveLength(2)
  })

  test.each(['', 'a b', 'ä', 'x'.repeat(5_000)])('the token %j is none', async (token) => {
    answer = well({ '/latest/api/token': token })
    await expect(identity('instance', at('instance', url))).rejects.toMatchObject(refused(/no valid token/))
    expect(asked).toHaveLength(1)
  })
})
