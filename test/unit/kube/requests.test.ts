import { describe, expect, test } from 'vitest'
import { OutboundError, Secret } from '../../../src/core/index.ts'
import { createKubeClient, type KubeObject, type ResourceType } from '../../../src/kube/index.ts'
import type { ApiClient, ApiRequest } from '../../../src/net/index.ts'

const PODS: ResourceType = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', isNamespaced: true }
const NODES: ResourceType = { group: 'x.io', version: 'v2', plural: 'nodes', kind: 'Node', isNamespaced: false }

interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly body?: unknown
  /** Of a stream. */
  readonly chunks?: readonly string[]
  readonly error?: Error
}

/** A client whose API server answers as the test says, and what it was asked. */
function ask(...answers: readonly Answer[]) {
  const asked: (ApiRequest & { readonly query: URLSearchParams; readonly sent: unknown })[] = []
  let closes = 0
  let tokens = 0
  const next = (request: ApiRequest): Answer => {
    const { pathname, searchParams: query } = new URL(request.path, 'http://x')
    asked.push({
      ...request,
      path: pathname,
      query,
      sent: request.body === undefined ? undefined : JSON.parse(request.body),
    })
    const answer = answers[Math.min(asked.length, answers.length) - 1] ?? {}
    if (answer.error !== undefined) throw answer.error
    return answer
  }
  const api: ApiClient = {
    request: async (request) => {
      const { status = 200, headers = {}, body = {} } = next(request)
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      return Promise.resolve({ status, headers, body: Buffer.from(text) })
    },
    stream: async (request) => {
      const { status = 200, headers = {}, chunks = [] } = next(request)
      async function* read(): AsyncGenerator<Buffer> {
        for (const chunk of chunks) yield await Promise.resolve(Buffer.from(chunk))
      }
      return Promise.resolve({ status, headers, chunks: read(), close: () => void closes++ })
    },
    retire() {},
    close: () => Promise.resolve(),
  }
  const client = createKubeClient({
    api,
    token: () => new Secret(`t${++tokens}`),
    fieldManager: 'me',
    userAgent: 'us/1',
  })
  return { client, asked, closes: () => closes }
}

const pod = (more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'a', namespace: 'n', ...more },
})

describe('requests', () => {
  test('have the token of their moment, and paths of what they are about', async () => {
    const { client, asked } = ask()
    await client.get(PODS, 'n', 'a/b')
    await client.get(NODES, 'ignored', 'one')
    expect(asked.map(({ path }) => path)).toEqual(['/api/v1/namespaces/n/pods/a%2Fb', '/apis/x.io/v2/nodes/one'])
    expect(asked.map(({ headers }) => headers['authorization'])).toEqual(['Bearer t1', 'Bearer t2'])
    expect(asked[0]?.headers['user-agent']).toBe('us/1')
  })

  test('say what the server said when it refuses, and when it wants to be asked again', async () => {
    const body = { kind: 'Status', reason: 'Conflict', message: 'm'.repeat(3000), code: 409 }
    await expect(ask({ status: 409, body }).client.get(PODS, 'n', 'a')).rejects.toMatchObject({
      status: 409,
      reason: 'Conflict',
      message: 'm'.repeat(2000),
    })
    const busy = ask({ status: 429, headers: { 'retry-after': '7' }, body: 'no JSON' }).client.get(PODS, 'n', 'a')
    await expect(busy).rejects.toMatchObject({ status: 429, reason: '', retryAfterSeconds: 7 })
  })

  test.each<[string, Answer, string]>([
    ['cannot be sent', { error: new OutboundError('unreachable') }, 'unreachable'],
    ['are answered with no JSON', { body: '<html>' }, 'malformed'],
  ])('have no answer when they %s', async (_what, answer, reason) => {
    await expect(ask(answer).client.get(PODS, 'n', 'a')).rejects.toMatchObject({ status: 0, reason })
  })
})

describe('a list', () => {
  test('is all of its pages, with the version of the last, and each item says what it is', async () => {
    const { client, asked } = ask(
      { body: { metadata: { resourceVersion: '1', continue: 'more' }, items: [{ metadata: { name: 'a' } }] } },
      { body: { metadata: { resourceVersion: '2' }, items: [{ metadata: { name: 'b' } }] } },
    )
    const { items, resourceVersion } = await client.list(NODES, { labelSelector: 'a=b', fieldSelector: 'c=d' })
    expect(items.map(({ apiVersion, kind, metadata }) => `${apiVersion} ${kind} ${metadata.name}`)).toEqual([
      'x.io/v2 Node a',
      'x.io/v2 Node b',
    ])
    expect(resourceVersion).toBe('2')
    expect(asked.map(({ query }) => query.get('continue'))).toEqual([null, 'more'])
    expect(Object.fromEntries(asked[1]?.query ?? [])).toMatchObject({
      limit: '500',
      labelSelector: 'a=b',
      fieldSelector: 'c=d',
    })
  })

  test('of metadata asks for metadata alone', async () => {
    const { client, asked } = ask({ body: { metadata: { resourceVersion: '1' } } })
    expect(await client.list(PODS, { metadataOnly: true })).toEqual({ items: [], resourceVersion: '1' })
    expect(asked[0]?.headers['accept']).toMatch(/^application\/json;as=PartialObjectMetadataList/)
  })

  test('that is none is refused', async () => {
    await expect(ask({ body: { items: {} } }).client.list(PODS, {})).rejects.toMatchObject({ reason: 'malformed' })
  })
})

describe('writes', () => {
  test('name who writes; an apply takes fields over and names no version', async () => {
    const { client, asked } = ask()
    await client.apply(PODS, pod({ resourceVersion: '3', managedFields: [] }), { subresource: 'status' })
    const [apply] = asked
    expect([apply?.method, apply?.path]).toEqual(['PATCH', '/api/v1/namespaces/n/pods/a/status'])
    expect(Object.fromEntries(apply?.query ?? [])).toEqual({ fieldManager: 'me', force: 'true' })
    expect(apply?.headers['content-type']).toBe('application/apply-patch+yaml')
    expect(apply?.sent).toEqual(pod())
  })

  test('are tried where that is asked for, and only an apply is forced', async () => {
    const { client, asked } = ask()
    await client.create(PODS, pod(), { dryRun: true })
    await client.update(PODS, pod({ resourceVersion: '3' }))
    await client.merge(PODS, 'n', 'a', { x: null })
    expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /api/v1/namespaces/n/pods',
      'PUT /api/v1/namespaces/n/pods/a',
      'PATCH /api/v1/namespaces/n/pods/a',
    ])
    expect(asked.map(({ query }) => query.get('dryRun'))).toEqual(['All', null, null])
    expect(asked.map(({ query }) => query.get('force'))).toEqual([null, null, null])
    expect(asked[1]?.sent).toEqual(pod({ resourceVersion: '3' }))
    expect(asked[2]?.headers['content-type']).toBe('application/merge-patch+json')
  })

  test('delete exactly that object, and ignore an earlier deletion', async () => {
    const { client, asked } = ask({ status: 404 })
    await client.remove(PODS, 'n', 'a', 'u1')
    expect(asked[0]?.sent).toEqual({ propagationPolicy: 'Background', preconditions: { uid: 'u1' } })
    await expect(ask({ status: 409 }).client.remove(PODS, 'n', 'a')).rejects.toMatchObject({ status: 409 })
  })
})

describe('a watch', () => {
  const line = (type: string, name: string): string => `${JSON.stringify({ type, object: { metadata: { name } } })}\n`
  const options = { resourceVersion: '5', seconds: 300, silenceMs: 1000, signal: new AbortController().signal }
  async function follow(answer: Answer, signal = options.signal) {
    const { client, asked, closes } = ask(answer)
    const seen: string[] = []
    let error: unknown
    try {
      for await (const { type, object } of client.watch(PODS, { namespace: 'n' }, { ...options, signal }))
        seen.push(`${type} ${object.metadata.name}`)
    } catch (thrown) {
      error = thrown
    }
    return { seen, error, asked, closes: closes() }
  }

  test('returns events as their lines are complete, wherever they were split, and releases its connection', async () => {
    const text = line('ADDED', 'ä') + line('SOMETHING', 'new') + line('DELETED', 'b')
    const cut = text.length - 20
    const { seen, asked, closes } = await follow({ chunks: [text.slice(0, 40), text.slice(40, cut), text.slice(cut)] })
    expect(seen).toEqual(['ADDED ä', 'DELETED b'])
    expect(Object.fromEntries(asked[0]?.query ?? [])).toEqual({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: '5',
      timeoutSeconds: '300',
    })
    expect(closes).toBe(1)
  })

  test.each<[string, Answer, object]>([
    [
      'an event says that its version is too old',
      { chunks: [`${JSON.stringify({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })}\n`] },
      { status: 410, reason: 'Expired' },
    ],
    [
      'the server refuses it',
      { status: 403, chunks: ['{"reason":"Forbidden"}'] },
      { status: 403, reason: 'Forbidden' },
    ],
    ['a line is no event', { chunks: ['half a li\n'] }, { status: 0, reason: 'malformed' }],
    ['a line has no end', { chunks: ['x'.repeat(17 * 1024 * 1024)] }, { status: 0, reason: 'malformed' }],
  ])('fails when %s', async (_what, answer, error) => {
    const found = await follow(answer)
    expect(found.error).toMatchObject(error)
    expect(found.closes).toBe(1)
  })

  test('that is cut inside a line gives what was whole', async () => {
    expect(await follow({ chunks: [line('ADDED', 'a'), '{"type":"ADD'] })).toMatchObject({
      seen: ['ADDED a'],
      error: undefined,
    })
  })

  test('that was aborted returns nothing', async () => {
    expect(await follow({ chunks: [line('ADDED', 'a')] }, AbortSignal.abort())).toMatchObject({
      seen: [],
      error: undefined,
      closes: 1,
    })
  })
})
