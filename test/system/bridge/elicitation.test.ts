import { afterEach, describe, expect, it, vi } from 'vitest'
import { connectThrough } from '../../../lab/cli/lab-pages.ts'
import { startLabBackend } from '../../../lab/index.ts'
import { Secret } from '../../../src/core/index.ts'
import {
  INITIALIZE,
  initialized,
  openBridge,
  result,
  shakeHands,
  startServer,
  type Arrived,
  type TestBridge,
} from '../../support/bridge/harness.ts'
import { authConfig, proxyConfig, run } from '../../support/e2e/run.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const KEY = 'key-of-the-local-user'
const URLS = { elicitation: { url: {} } }
const metaOf = (capabilities: object) => ({
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': capabilities,
})
const call = (id: number | string, capabilities: object = {}, more: object = {}) => ({
  id,
  method: 'tools/call',
  params: { name: 'show_request', arguments: {}, _meta: metaOf(capabilities), ...more },
})
const legacyCall = (id: number) => ({
  id,
  method: 'tools/call',
  params: { name: 'show_request', arguments: { n: 1 } },
})

/** A proxy whose local user connects an account with a key, in front of a backend that accepts only that key. */
async function startProxy() {
  const backend = sockets.closing(
    await startLabBackend({ port: 0, clock: Date, mounts: { '/mcp': { kind: 'bearer', token: new Secret(KEY) } } }),
  )
  const proxy = sockets.closing(
    await run({
      'own.json': authConfig('own', { type: 'bearerToken', bearerToken: { connectionName: 'notes' } }),
      'proxy.json': proxyConfig({
        auth: { mode: 'anonymous' },
        connections: { singleUser: true, providers: [{ name: 'notes', type: 'secret', secret: { label: 'Key' } }] },
        routes: [{ name: 'mcp', path: '/mcp', target: `${backend.url}/mcp`, externalAuthConfigRef: { name: 'own' } }],
      }),
    }),
  )
  return { url: `${proxy.url}/mcp`, backend }
}

const open = (...args: Parameters<typeof openBridge>): TestBridge => {
  const bridge = sockets.closing(openBridge(...args))
  bridge.read()
  return bridge
}

/** A bridge whose user connects the account on each page that it opens. */
function openWithUser(url: string) {
  const pages: string[] = []
  const connected: Promise<string>[] = []
  const openBrowser = (page: string): void => {
    pages.push(page)
    connected.push(connectThrough(page, { user: '', key: KEY }, (reason) => expect.fail(reason)))
  }
  return { bridge: open(url, { naturalPauses: true, openBrowser }), pages, connected }
}

const calls = (backend: { requests(): readonly { readonly body?: unknown }[] }): string[] =>
  backend.requests().map((one) => JSON.stringify(one))

describe('a client without URL elicitation, in front of a proxy that needs an account', () => {
  it('2026-07-28: the bridge opens the page, and the call goes through', async () => {
    const { url, backend } = await startProxy()
    const { bridge, pages, connected } = openWithUser(url)
    bridge.send(call(1))
    const answer = await bridge.answer(1)

    expect(pages).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/connect\//)])
    expect(await Promise.all(connected)).toEqual([expect.stringContaining('connected')])
    expect(JSON.stringify(answer.result)).toContain(`Bearer ${KEY}`)
    expect(calls(backend).filter((one) => one.includes('tools/call'))).toHaveLength(1)
    expect(calls(backend).join()).not.toMatch(/requestState|inputResponses/)
    bridge.send(call(2))
    expect((await bridge.answer(2)).error).toBeUndefined()
    expect(pages).toHaveLength(1)
  })

  it('2025-11-25: the same, in a new session with the backend; the client hears nothing of it', async () => {
    const { url } = await startProxy()
    const { bridge, pages } = openWithUser(url)
    bridge.send(INITIALIZE)
    await bridge.answer(0)
    bridge.send({ method: 'notifications/initialized' }, legacyCall(1))
    const answer = await bridge.answer(1)

    expect(pages).toHaveLength(1)
    expect(answer.error).toBeUndefined()
    expect(JSON.stringify(answer.result)).toContain(`Bearer ${KEY}`)
    const heard = bridge.replies().flatMap(({ method }) => method ?? [])
    expect(heard.filter((method) => method !== 'notifications/tools/list_changed')).toEqual([])
  })

  it('concurrent calls open one page', async () => {
    const { url } = await startProxy()
    const { bridge, pages } = openWithUser(url)
    bridge.send(...[1, 2, 3, 4, 5].map((id) => call(id)))
    const answers = await Promise.all([1, 2, 3, 4, 5].map((id) => bridge.answer(id)))
    expect(answers.map(({ error, result: { isError } = {} }) => [error, isError])).toEqual(
      answers.map(() => [undefined, undefined]),
    )
    expect(pages).toHaveLength(1)
  })

  it.each([
    ['2026-07-28', call(1)],
    ['2025-11-25', legacyCall(1)],
  ])('%s: a user who does not finish in time leaves the link as text', async (version, request) => {
    const { url, backend } = await startProxy()
    const pages: string[] = []
    const bridge = open(url, { openBrowser: (page) => pages.push(page) })
    if (version === '2025-11-25') {
      bridge.send(INITIALIZE)
      await bridge.answer(0)
      bridge.send({ method: 'notifications/initialized' })
    }
    bridge.send(request)
    const { result: { isError, content, resultType } = {} } = await bridge.answer(1)
    expect(isError).toBe(true)
    expect(resultType).toBe(version === '2026-07-28' ? 'complete' : undefined)
    expect(JSON.stringify(content)).toContain(`Open this link in a browser: ${pages[0]} Then try again.`)
    expect(calls(backend)).toEqual([])
  })

  it('a canceled call is not repeated, and gets no response', async () => {
    const { url, backend } = await startProxy()
    const pages: string[] = []
    const bridge = open(url, { naturalPauses: true, openBrowser: (page) => pages.push(page) })
    bridge.send(call('gone'))
    await vi.waitFor(() => expect(pages).toHaveLength(1), 10_000)
    bridge.send({ method: 'notifications/cancelled', params: { requestId: 'gone' } })
    await connectThrough(pages[0] ?? '', { user: '', key: KEY }, (reason) => expect.fail(reason))
    bridge.send(call('next'))
    await bridge.answer('next')
    expect(calls(backend).filter((one) => one.includes('tools/call'))).toHaveLength(1)
    expect(bridge.replies().map(({ id }) => id)).toEqual(['next'])
  })
})

describe('a client that declares URL elicitation itself', () => {
  it('2026-07-28: gets the prompt and the retry passes unchanged', async () => {
    const { url } = await startProxy()
    const { bridge, pages } = openWithUser(url)
    bridge.send(call(1, URLS))
    const { result: prompt } = await bridge.answer(1)
    expect(prompt).toMatchObject({ resultType: 'input_required' })
    const link = /http:[^"]+\/connect\/[\w-]+/.exec(JSON.stringify(prompt))?.[0] ?? ''
    await connectThrough(link, { user: '', key: KEY }, (reason) => expect.fail(reason))
    const { requestState } = prompt ?? {}
    bridge.send(call(2, URLS, { requestState, inputResponses: { connect_account: { action: 'accept' } } }))
    expect(JSON.stringify((await bridge.answer(2)).result)).toContain(`Bearer ${KEY}`)
    expect(pages).toEqual([])
  })

  it('2025-11-25: gets the error and the notification', async () => {
    const { url } = await startProxy()
    const { bridge, pages } = openWithUser(url)
    bridge.send({ ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: URLS } })
    await bridge.answer(0)
    bridge.send({ method: 'notifications/initialized' }, legacyCall(1))
    const { error } = await bridge.answer(1)
    expect(error).toMatchObject({ code: -32_042 })
    const [elicitation] = (error?.data?.['elicitations'] ?? []) as { url: string; elicitationId: string }[]
    await connectThrough(elicitation?.url ?? '', { user: '', key: KEY }, (reason) => expect.fail(reason))
    await vi.waitFor(
      () =>
        expect(bridge.replies()).toContainEqual({
          jsonrpc: '2.0',
          method: 'notifications/elicitation/complete',
          params: { elicitationId: elicitation?.elicitationId },
        }),
      10_000,
    )
    expect(pages).toEqual([])
  })
})

describe('other servers', () => {
  const prompt = (id: unknown, url: string) => ({
    jsonrpc: '2.0',
    id,
    result: {
      resultType: 'input_required',
      inputRequests: { a: { method: 'elicitation/create', params: { mode: 'url', url, message: 'Please look.' } } },
      requestState: 'of the server',
    },
  })
  const start = async (answer: (arrived: Arrived) => void) => sockets.closing(await startServer(answer))

  it('2026-07-28: the page is opened, and the request repeated once, at once, with the accepted input', async () => {
    const server = await start((arrived) => arrived.json(200, prompt(arrived.body.id, `${server.url}/page`)))
    const pages: string[] = []
    const bridge = open(server.url, { openBrowser: (page) => pages.push(page) })
    bridge.send(call(1, { elicitation: {} }, { arguments: { n: 1 } }))
    expect((await bridge.answer(1)).result).toMatchObject({ isError: true, resultType: 'complete' })
    expect(pages).toEqual([`${server.url}/page`])
    const [first, second, third] = server.by('tools/call').map(({ body }) => body.params)
    expect(first?.['_meta']).toEqual(metaOf({ elicitation: { form: {}, url: {} } }))
    expect(second).toEqual({ ...first, requestState: 'of the server', inputResponses: { a: { action: 'accept' } } })
    expect(third).toBeUndefined()
  })

  it.each([
    'https://elsewhere.example.com/page',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'http://user:secret@127.0.0.1:1/',
    'no URL',
  ])('%s is not opened, and the client gets the text', async (page) => {
    const server = await start((arrived) => arrived.json(200, prompt(arrived.body.id, page)))
    const openBrowser = vi.fn<(url: string) => void>()
    const bridge = open(server.url, { openBrowser })
    bridge.send(call(1))
    expect(JSON.stringify((await bridge.answer(1)).result)).toContain('Please look.')
    bridge.send({ ...call(2), method: 'prompts/get' })
    expect((await bridge.answer(2)).error).toMatchObject({ code: -32_000, data: { reason: 'not_connected' } })
    expect(openBrowser).not.toHaveBeenCalled()
    expect(server.all).toHaveLength(2)
  })

  it('input other than a page passes to the client', async () => {
    const asked = {
      resultType: 'input_required',
      inputRequests: { a: { method: 'elicitation/create', params: { mode: 'form', message: 'Name?' } } },
    }
    const server = await start((arrived) => arrived.json(200, result(arrived.body.id, asked)))
    const bridge = open(server.url, { openBrowser: () => expect.fail('no page') })
    bridge.send(call(1, { elicitation: {} }))
    expect((await bridge.answer(1)).result).toEqual(asked)
  })

  it('2025-11-25: a request to open a page is answered by the bridge', async () => {
    let send: (...lines: string[]) => void = () => undefined
    const server = await start((arrived) => {
      if (arrived.method === 'GET') send = arrived.events()
      else if (arrived.body.result !== undefined) arrived.response.writeHead(202).end()
      else shakeHands(arrived, 's')
    })
    const pages: string[] = []
    const bridge = open(server.url, { openBrowser: (page) => pages.push(page) })
    bridge.send(INITIALIZE)
    await bridge.answer(0)
    expect(server.by('initialize')[0]?.body.params?.['capabilities']).toEqual(URLS)
    bridge.send({ method: 'notifications/initialized' })
    await vi.waitFor(() => expect(server.by('GET')).toHaveLength(1))
    const ask = (id: number, url: string): void => {
      const params = { mode: 'url', url, message: 'Look', elicitationId: 'e' }
      send(`data: ${JSON.stringify({ jsonrpc: '2.0', id, method: 'elicitation/create', params })}`)
    }
    ask(7, `${server.url}/page`)
    ask(8, 'https://elsewhere.example.com/')
    const answers = () => server.all.flatMap(({ body }) => (body.result === undefined ? [] : [body]))
    await vi.waitFor(() => expect(answers()).toHaveLength(2))
    expect(answers().toSorted((a, b) => Number(a.id) - Number(b.id))).toEqual([
      { jsonrpc: '2.0', id: 7, result: { action: 'accept' } },
      { jsonrpc: '2.0', id: 8, result: { action: 'decline' } },
    ])
    expect(pages).toEqual([`${server.url}/page`])
    expect(bridge.replies().map(({ id }) => id)).toEqual([0])
  })

  it.each(['2025-06-18', '2025-03-26'])('%s: nothing is declared, which would mean forms there', async (version) => {
    const server = await start((arrived) => {
      if (arrived.body.method === 'initialize') arrived.json(200, initialized(arrived.body.id, version))
      else shakeHands(arrived, 's')
    })
    const bridge = open(server.url, { openBrowser: () => expect.fail('no page') })
    bridge.send({ ...INITIALIZE, params: { ...INITIALIZE.params, protocolVersion: version } })
    await bridge.answer(0)
    expect(server.by('initialize')[0]?.body.params?.['capabilities']).toEqual({})
  })

  it('without a browser, nothing is declared', async () => {
    const server = await start((arrived) => arrived.json(200, result(arrived.body.id)))
    const bridge = open(server.url)
    bridge.send(call(1))
    await bridge.answer(1)
    expect(server.all[0]?.body.params?.['_meta']).toEqual(metaOf({}))
  })
})
