import { applyAws } from '../src/apply/aws.ts'
import type { Draft } from '../src/apply/applier.ts'
import { Secret } from '../src/core/index.ts'

/** A request, its credentials and the time: all inputs of a signature. */
export interface SigningCase {
  readonly method: string
  /** `https://host/path?query`, as sent. */
  readonly url: string
  readonly headers: readonly (readonly [string, string])[]
  /** Base64. */
  readonly body: string
  /** `YYYYMMDD'T'HHMMSS'Z'`. */
  readonly date: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string
  readonly region: string
  readonly service: string
}

const METHODS = ['POST', 'GET', 'DELETE']
const HOSTS = ['backend.example', 'backend.example:8443', 'bedrock-agentcore.eu-central-1.amazonaws.com']
const PATHS = [
  '/',
  '/mcp',
  '/mcp/',
  '/a/b/c',
  '/x%20y/z',
  '/a%2Fb',
  '/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aeu-central-1%3A123456789012%3Aruntime%2Fmy/invocations',
  '/%E1%88%B4',
  '/a:b@c;d=e,f+g*h',
  '/.well-known/x',
  '/a//b',
  '/~user/-._',
]
/** With escapes in the one form that botocore leaves as it finds them. */
const QUERIES = [
  '',
  'a=1',
  'b=2&a=1',
  'a=2&a=1&a=1',
  'a=&b',
  'Action=Go&Version=2011-06-15',
  'q=%E1%88%B4&p=x%20y',
  'p=a%2Fb%3Dc%26d',
  'toolset=a&toolset=B&_=-.~',
]
const HEADERS: readonly (readonly (readonly [string, string])[])[] = [
  [],
  [['Content-Type', 'application/json']],
  [
    ['content-type', 'application/json; charset=utf-8'],
    ['mcp-session-id', '1868a90c-f2f0-4f5e.sig'],
    ['mcp-protocol-version', '2025-11-25'],
  ],
  [
    ['Mcp-Method', 'tools/call'],
    ['Mcp-Name', '  two   spaces  '],
    ['mcp-param-city', '"Sao  Paulo"'],
  ],
]
const BODIES = ['', '{"jsonrpc":"2.0","id":1,"method":"ping"}', '{"text":"grüße 👋"}', 'x'.repeat(700)]
const KEYS = [
  {
    accessKeyId: 'ASIAIOSFODNN7EXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    region: 'us-east-1',
    service: 'aws-mcp',
  },
  {
    accessKeyId: 'ASIAZZZZZZZZZZZZZZZZ',
    secretAccessKey: 'abc+/=XYZ0123456789abcdefghijklmnopqrstu',
    region: 'eu-central-1',
    service: 'bedrock-agentcore',
  },
  {
    accessKeyId: 'ASIACLOUD00000000000',
    secretAccessKey: '////////////////////++++++++++++++++++++',
    region: 'us-gov-west-1',
    service: 'cloud-mcp',
  },
]
const DATES = ['20260101T000000Z', '20271231T235959Z', '20280229T123456Z']

const pick = <T>(list: readonly T[], index: number): T => {
  const item = list[index % list.length]
  if (item === undefined) throw new RangeError('an empty list')
  return item
}

/** `count` requests that combine everything above; the same ones for the same numbers. */
export function signingCases(count: number, offset = 0): SigningCase[] {
  return Array.from({ length: count }, (_, at) => {
    const index = at + offset
    const method = pick(METHODS, index)
    const query = pick(QUERIES, index * 7 + Math.floor(index / 5))
    const path = pick(PATHS, index * 5 + Math.floor(index / 3))
    const body = method === 'POST' ? pick(BODIES, index * 3 + Math.floor(index / 7)) : ''
    return {
      method,
      url: `https://${pick(HOSTS, Math.floor(index / 2))}${path}${query === '' ? '' : `?${query}`}`,
      headers: pick(HEADERS, index + Math.floor(index / 11)),
      body: Buffer.from(body).toString('base64'),
      date: pick(DATES, Math.floor(index / 4)),
      ...pick(KEYS, Math.floor(index / 3)),
      sessionToken: `IQoJb3JpZ2luX2VjE${'/+='.repeat(index % 4)}${index}`,
    }
  })
}

/** Services whose clients sign as S3 wants it. */
const S3_SERVICES = ['s3', 's3-outposts', 's3-object-lambda']
/** Names of objects in the one form that clients send; S3 takes nothing away from them. */
const OBJECT_PATHS = [
  '/',
  '/bucket',
  '/bucket/',
  '/bucket/key',
  '/bucket/a/b/c.txt',
  '/bucket//double//slashes',
  '/bucket/./dot/../dots',
  '/bucket/a%20b%2Bc',
  '/bucket/a%2Fb',
  '/bucket/%E1%88%B4/%C3%A4',
  '/bucket/~user/-._',
  '/bucket/%21%27%28%29%2A%3A%40',
]

/** `count` requests to S3. */
export function s3SigningCases(count: number, offset = 0): SigningCase[] {
  return signingCases(count, offset).map((one, at) => {
    const index = at + offset
    const { host } = new URL(one.url)
    const queryAt = one.url.indexOf('?')
    const path = pick(OBJECT_PATHS, index * 5 + Math.floor(index / 12))
    return Object.assign(one, {
      url: `https://${host}${path}${queryAt === -1 ? '' : one.url.slice(queryAt)}`,
      service: pick(S3_SERVICES, Math.floor(index / 4)),
    })
  })
}

/** The Authorization header that the signer of this repository makes for a case. */
export function ourAuthorization(one: SigningCase): string {
  const { host, pathname } = new URL(one.url)
  const target = one.url.slice(`https://${host}`.length)
  const draft: Draft = {
    method: one.method,
    path: target === '' ? pathname : target,
    host,
    headers: ['host', host, ...one.headers.flat()],
    body: { kind: 'kept', bytes: Buffer.from(one.body, 'base64') },
    nowMs: Date.parse(one.date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z')),
  }
  applyAws(draft, {
    kind: 'aws',
    accessKeyId: one.accessKeyId,
    secretAccessKey: new Secret(one.secretAccessKey),
    sessionToken: new Secret(one.sessionToken),
    region: one.region,
    service: one.service,
    signing: { day: '', key: undefined },
  })
  return draft.headers.at(-1) ?? ''
}
