import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLab, post, type TestLab } from '../../support/e2e/lab.ts'
import { extauth } from '../../support/e2e/process.ts'
import { type ReceivedSpan, startReceiver } from '../../support/telemetry/receiver.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'show_request',
    arguments: {},
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'traces', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
}
const MCP = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'show_request' }
const BAGGAGE = 'userId=alice,serverNode=DF%2028'

let lab: TestLab
beforeAll(async () => {
  lab = await openLab()
})
afterAll(() => lab.close())

/** Runs a proxy process that exports to a receiver, lets `use` call it, and gives what was received until it had stopped. */
async function traced(env: Readonly<Record<string, string>>, use: (url: string) => Promise<void>) {
  const receiver = await startReceiver()
  const argv = ['proxy', '--config', lab.configDirectory, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
  const running = extauth(argv, { env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, ...env } })
  try {
    const { url } = await running.line('listening')
    await use(String(url))
    running.process.kill('SIGTERM')
    expect(await running.ended).toBe(0)
    return receiver
  } finally {
    running.process.kill('SIGKILL')
    await receiver.close()
  }
}
const named = (spans: readonly ReceivedSpan[], name: string) => spans.filter((span) => span.name === name)
const lastHeaders = (): string[] => [...(lab.backend.requests().at(-1)?.headers ?? [])]
const headerOf = (name: string): string | undefined => {
  const headers = lastHeaders()
  const index = headers.findIndex((text, at) => at % 2 === 0 && text.toLowerCase() === name)
  return index < 0 ? undefined : headers[index + 1]
}

describe('traces over OTLP', () => {
  it('continue the trace of the client through stages, other services and the backend, and tell nothing of the caller', async () => {
    const token = await lab.token({ sub: 'alice-in-wonderland', groups: ['admins'] })
    const env = {
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=blue',
      OTEL_SERVICE_NAME: 'edge',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    }
    let outgoing = ''
    const receiver = await traced(env, async (url) => {
      const headers = {
        ...MCP,
        authorization: `Bearer ${token}`,
        traceparent: `00-${TRACE}-${PARENT}-01`,
        tracestate: 'vendor=1',
        baggage: BAGGAGE,
      }
      for (const route of ['token-exchange?secret=query-value', 'cloud-sts'])
        expect((await post(`${url}/${route}`, CALL, headers)).status).toBe(200)
      outgoing = headerOf('traceparent') ?? ''
      expect(headerOf('baggage')).toBe(BAGGAGE)
      expect(headerOf('tracestate')).toBe('vendor=1')
    })
    const spans = receiver.spans()
    const [exchange, sts] = ['POST /token-exchange', 'POST /cloud-sts'].map((name) => named(spans, name)[0])
    for (const server of [exchange, sts])
      expect(server).toMatchObject({ traceId: TRACE, parentSpanId: PARENT, kind: 2 })
    expect(exchange?.attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.response.status_code': 200,
      'http.route': '/token-exchange',
      'url.path': '/token-exchange',
      'extauth.request.id': expect.stringMatching(/^[\w-]{8,}$/),
      'url.scheme': 'http',
      'network.protocol.version': '1.1',
      'mcp.method.name': 'tools/call',
      'mcp.protocol.version': '2026-07-28',
      'gen_ai.tool.name': 'show_request',
      'gen_ai.operation.name': 'execute_tool',
      'extauth.route': 'token-exchange',
      'extauth.type': 'tokenExchange',
    })
    const below = (parent: ReceivedSpan | undefined) => spans.filter((span) => span.parentSpanId === parent?.spanId)
    expect(
      below(exchange)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['POST', 'authenticate', 'obtain'])
    const obtain = named(below(exchange), 'obtain')[0]
    expect(obtain?.attributes).toEqual({ 'extauth.credential.from': 'service' })
    expect(below(obtain)).toMatchObject([
      { name: 'POST lab-token-exchange', kind: 3, attributes: { 'http.response.status_code': 200 } },
    ])
    expect(below(named(below(exchange), 'authenticate')[0]).map(({ name }) => name)).toContain('GET lab keys')
    expect(below(named(below(sts), 'obtain')[0])).toMatchObject([{ name: 'POST lab-cloud-sts', kind: 3 }])
    const forward = named(below(sts), 'POST')[0]
    expect(forward).toMatchObject({ kind: 3, attributes: { 'server.address': '127.0.0.1' } })
    expect(outgoing).toBe(`00-${TRACE}-${forward?.spanId}-01`)
    expect(receiver.resource()).toMatchObject({ 'service.name': 'edge', 'deployment.environment.name': 'test' })
    expect(receiver.requests[0]).toMatchObject({ path: '/v1/traces', headers: { 'x-tenant': 'blue' } })
    const everything = receiver.requests.map(({ body }) => body.toString('utf8')).join('\n')
    for (const secret of [token, token.split('.')[1] ?? '', token.slice(-40, -20), 'alice', 'query-value', 'DF%2028'])
      expect(everything).not.toContain(secret)
  })

  it('say why a request failed, and what came from the cache; bodies name the method where headers do not', async () => {
    const token = await lab.token({ sub: 'bob', groups: ['dev'] })
    const receiver = await traced({ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, async (url) => {
      expect((await post(`${url}/bearer-token`, CALL, MCP)).status).toBe(401)
      const authorization = `Bearer ${token}`
      for (const _ of [1, 2]) await post(`${url}/cloud-sts`, CALL, { ...MCP, authorization })
      const initialize = {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: {
          protocolVersion: '2025-11-25',
          capabilities: {},
          clientInfo: { name: 'x', version: '1' },
          _meta: { traceparent: `00-${TRACE}-${PARENT}-01` },
        },
      }
      expect((await post(`${url}/unauthenticated`, initialize)).status).toBe(200)
    })
    const spans = receiver.spans()
    expect(named(spans, 'POST /bearer-token')[0]).toMatchObject({
      attributes: { 'error.type': 'missing_token', 'http.response.status_code': 401 },
    })
    expect(named(spans, 'authenticate').find(({ attributes }) => 'error.type' in attributes)?.status.code).toBe(2)
    const sources = named(spans, 'obtain').map(({ attributes }) => attributes['extauth.credential.from'])
    expect(new Set(sources)).toEqual(new Set(['cache', 'config', 'service']))
    const first = named(spans, 'POST /unauthenticated')[0]
    expect(first?.attributes['mcp.method.name']).toBe('initialize')
    expect(first?.links).toMatchObject([{ traceId: TRACE, spanId: PARENT }])
  })

  it('follow the sampler: what is not sampled is not exported, and its headers pass as they came', async () => {
    const env = { OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }
    const receiver = await traced({ ...env, OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' }, async (url) => {
      await post(`${url}/unauthenticated`, CALL, MCP)
      expect(headerOf('traceparent')).toBeUndefined()
      await post(`${url}/unauthenticated`, CALL, { ...MCP, traceparent: `00-${TRACE}-${PARENT}-00` })
      expect(headerOf('traceparent')).toBe(`00-${TRACE}-${PARENT}-00`)
      await post(`${url}/unauthenticated`, CALL, { ...MCP, traceparent: `00-${TRACE}-${PARENT}-01` })
    })
    expect(named(receiver.spans(), 'POST /unauthenticated')).toMatchObject([{ traceId: TRACE }])
  })

  it('go as protobuf by default, and nowhere when the SDK is disabled', async () => {
    const call = async (url: string): Promise<void> => void (await post(`${url}/unauthenticated`, CALL, MCP))
    const receiver = await traced({}, call)
    expect(receiver.requests[0]).toMatchObject({
      path: '/v1/traces',
      headers: { 'content-type': 'application/x-protobuf' },
    })
    expect(receiver.requests[0]?.body.includes('POST /unauthenticated')).toBe(true)
    const compressed = (await traced({ OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' }, call)).requests[0]
    expect(compressed?.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(compressed?.body ?? '').includes('POST /unauthenticated')).toBe(true)
    expect((await traced({ OTEL_SDK_DISABLED: 'true' }, call)).requests).toEqual([])
  })

  it('do not start with a setting that is wrong, and say why', async () => {
    const argv = ['proxy', '--config', lab.configDirectory, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_TRACES_SAMPLER: 'xray' }
    const running = extauth(argv, { env })
    expect(await running.ended).toBe(1)
    expect(running.stderr()).toMatch(/OTEL_TRACES_SAMPLER must be one of always_on/)
  })
})
