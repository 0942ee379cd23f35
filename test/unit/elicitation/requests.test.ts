import { afterEach, describe, expect, it } from 'vitest'
import { readSession } from '../../../src/elicitation/session-mark.ts'
import { startUnconnected, type Unconnected } from '../../support/elicitation.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': { elicitation: { url: {} } },
}

const post = async (proxy: Unconnected, message: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(proxy.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: typeof message === 'string' ? message : JSON.stringify(message),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) as Answer }
}

interface Answer {
  readonly result?: { readonly requestState: string; readonly inputRequests: object }
  readonly error?: { readonly code: number; readonly message: string; readonly data: Record<string, unknown> }
}

const call = (params: object, method = 'tools/call') => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: { _meta: META, ...params },
})

const stateless = (method: string, name?: string) => ({
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': method,
  ...(name === undefined ? {} : { 'mcp-name': name }),
})

describe('state of a prompt', () => {
  const prompted = async () => {
    const proxy = await startUnconnected(sockets)
    const params = { name: 'show_request', arguments: { repo: 'a' } }
    const first = await post(proxy, call(params), stateless('tools/call', 'show_request'))
    const requestState = first.json().result?.requestState ?? ''
    expect(requestState).toMatch(/^extauth-connect\./)
    proxy.links.connect()
    const retry = (more: object) =>
      post(
        proxy,
        call({ ...params, requestState, inputResponses: { connect_account: { action: 'accept' } }, ...more }),
        stateless('tools/call', 'show_request'),
      )
    return { proxy, retry }
  }

  it('is accepted with the same request of the same caller', async () => {
    const { retry } = await prompted()
    expect((await retry({})).status).toBe(200)
  })

  it('is refused with other arguments', async () => {
    const { proxy, retry } = await prompted()
    expect(await retry({ arguments: { repo: 'b' } })).toMatchObject({ status: 400 })
    expect(proxy.backend.requests()).toHaveLength(0)
  })

  it('is refused with a different caller', async () => {
    const { proxy, retry } = await prompted()
    proxy.state.subject = 'bob'
    expect(await retry({})).toMatchObject({ status: 400 })
    expect(proxy.backend.requests()).toHaveLength(0)
  })

  it('is refused when changed', async () => {
    const { retry } = await prompted()
    expect(await retry({ requestState: 'extauth-connect.AAAA' })).toMatchObject({ status: 400 })
  })

  it('of the backend passes unchanged', async () => {
    const { proxy, retry } = await prompted()
    await retry({ requestState: 'of the backend' })
    const [seen] = proxy.backend.requests()
    expect(seen?.body.toString()).toContain('"requestState":"of the backend"')
    expect(seen?.body.toString()).toContain('inputResponses')
  })
})

describe('requests without a connection', () => {
  it.each([
    ['a method without elicitation', call({ ref: {}, argument: {} }, 'completion/complete')],
    ['a batch', [call({ name: 'x' })]],
    ['no JSON', '{'],
  ])('get the link as an error: %s', async (_name, message) => {
    const proxy = await startUnconnected(sockets)
    const answer = await post(proxy, message)
    expect(answer.status).toBe(200)
    expect(answer.json().error).toMatchObject({
      code: -32_000,
      data: { reason: 'not_connected', requestId: 'request-1', connectUrl: 'https://mcp.example/connect/ticket-1' },
    })
    expect(answer.headers.get('www-authenticate')).toBeNull()
  })

  it.each(['missing', 'ended', 'insufficient_scope'] as const)('say why: %s', async (problem) => {
    const proxy = await startUnconnected(sockets)
    proxy.state.problem = problem
    const answer = await post(proxy, call({ uri: 'x' }, 'resources/read'))
    expect(answer.json().result?.inputRequests).toMatchObject({
      connect_account: { method: 'elicitation/create', params: { mode: 'url', message: expect.any(String) } },
    })
    expect(proxy.promptLog.lines.at(-1)).toContain(`"problem":"${problem}","way":"input_required"`)
  })

  it('notifications and responses are accepted', async () => {
    const proxy = await startUnconnected(sockets)
    expect(await post(proxy, { jsonrpc: '2.0', method: 'notifications/initialized' })).toMatchObject({ status: 202 })
    expect(await post(proxy, { jsonrpc: '2.0', id: 1, result: {} })).toMatchObject({ status: 202 })
  })

  it('never reach the backend', async () => {
    const proxy = await startUnconnected(sockets)
    for (const method of ['initialize', 'tools/list', 'tools/call', 'ping', 'resources/read'])
      await post(proxy, call({ name: 'x' }, method))
    expect(proxy.backend.requests()).toHaveLength(0)
  })
})

describe('readSession', () => {
  it('splits the mark from the id of the backend, and recognizes placeholders', () => {
    expect(readSession('abc~u')).toEqual({ backendId: 'abc', mark: '~u' })
    expect(readSession('abc~t')).toEqual({ backendId: 'abc', mark: '~t' })
    expect(readSession('abc')).toEqual({ backendId: 'abc', mark: '' })
    expect(readSession('extauth-connect-x~u').backendId).toBeUndefined()
  })
})
