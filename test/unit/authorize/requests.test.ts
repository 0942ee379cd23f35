import { request } from 'node:http'
import { afterEach, describe, expect, it } from 'vitest'
import { startRuled } from '../../support/authorize/ruled.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const READ_ONLY = { default: 'deny', rules: [{ name: 'readers', tools: ['get_*'], effect: 'allow' }] }

/** A backend that answers everything, and what it received. */
async function backend() {
  const received: Buffer[] = []
  const origin = await sockets.http((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      received.push(Buffer.concat(chunks))
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc":"2.0","id":7,"result":{}}')
    })
  })
  return { origin, received }
}

async function ruled(spec: object = READ_ONLY, options: Parameters<typeof startRuled>[3] = {}) {
  const { origin, received } = await backend()
  return { ...(await startRuled(sockets, origin, spec, options)), received }
}

const call = (name: string, more = '') =>
  `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"${name}","arguments":{}${more}}}`

describe('a request', () => {
  it('that is allowed reaches the backend as the same bytes', async () => {
    const proxy = await ruled()
    const body =
      '{ "jsonrpc" :"2.0",\n"id":7,"method":"tools\\/call","params":{"arguments":{"n":1.0},"name":"get_file"}}'
    expect((await proxy.post(body)).status).toBe(200)
    expect(proxy.received.map(String)).toEqual([body])
    expect(proxy.decisions).toMatchObject([{ allowed: true, rule: 'readers' }])
  })

  it('that is denied gets 403 with its id, alike for hidden and for unknown tools', async () => {
    const proxy = await ruled()
    const denied = await proxy.rpc('tools/call', { name: 'delete_all' })
    const unknown = await proxy.rpc('tools/call', { name: 'no_such_tool' })
    expect([denied.status, unknown.status]).toEqual([403, 403])
    const text = await denied.text()
    expect(text).toBe(await unknown.text())
    expect(JSON.parse(text)).toMatchObject({ id: 7, error: { code: -32_000, data: { reason: 'not_allowed' } } })
    expect(text).not.toContain('delete_all')
    expect(proxy.received).toEqual([])
  })

  it('of the handshake is never restricted', async () => {
    const proxy = await ruled()
    for (const method of ['initialize', 'ping', 'server/discover', 'notifications/initialized', 'logging/setLevel'])
      expect((await proxy.rpc(method)).status).toBe(200)
    expect((await proxy.post('{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}')).status).toBe(200)
    expect((await fetch(proxy.url)).status).toBe(200)
    expect((await fetch(proxy.url, { method: 'DELETE' })).status).toBe(200)
    expect(proxy.decisions).toEqual([])
  })

  it('of another method is decided by `methods`, else by the default', async () => {
    const rules = [{ name: 'own', methods: ['x/*'], effect: 'allow' }]
    const proxy = await ruled({ default: 'deny', rules })
    expect((await proxy.rpc('x/y')).status).toBe(200)
    expect((await proxy.rpc('y/x')).status).toBe(403)
    expect((await proxy.rpc('notifications/roots/list_changed')).status).toBe(403)
  })

  it('that needs scopes is challenged once, with those that are missing', async () => {
    const rules = [{ name: 'writers', tools: ['*'], requireScopes: ['a:read', 'a:write'], effect: 'allow' }]
    const protects = { isProtected: true, resourceUrl: 'https://mcp.example/r', requiredScopes: ['base'] }
    const proxy = await ruled({ default: 'deny', rules }, { ...protects, claims: { scope: 'base a:read' } })
    const response = await proxy.rpc('tools/call', { name: 'x' })
    expect(response.status).toBe(403)
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="mcp", error="insufficient_scope", error_description="The access token lacks a required scope.", scope="a:write", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource/r"',
    )
    expect(await response.json()).toMatchObject({ error: { data: { reason: 'insufficient_scope' } } })
  })

  it('about resources, prompts and completions is decided by what it names', async () => {
    const rules = [
      { name: 'files', resources: ['file:///pub/*'], effect: 'allow' },
      { name: 'prompts', prompts: ['help'], effect: 'allow' },
    ]
    const proxy = await ruled({ default: 'deny', rules })
    const status = async (method: string, params: object) => (await proxy.rpc(method, params)).status
    for (const method of ['resources/read', 'resources/subscribe', 'resources/unsubscribe']) {
      expect(await status(method, { uri: 'file:///pub/a' })).toBe(200)
      expect(await status(method, { uri: 'file:///etc/passwd' })).toBe(403)
    }
    expect(await status('prompts/get', { name: 'help' })).toBe(200)
    expect(await status('prompts/get', { name: 'other' })).toBe(403)
    const complete = (ref: object) => status('completion/complete', { ref, argument: { name: 'a', value: '' } })
    expect(await complete({ type: 'ref/prompt', name: 'help' })).toBe(200)
    expect(await complete({ type: 'ref/prompt', name: 'x' })).toBe(403)
    expect(await complete({ type: 'ref/resource', uri: 'file:///pub/{x}' })).toBe(200)
    expect(await complete({ type: 'ref/resource', uri: 'file:///etc/{x}' })).toBe(403)
    expect(await complete({ type: 'ref/tool', name: 'help' })).toBe(400)
  })

  it('that listens is decided by every URI', async () => {
    const rules = [{ name: 'files', resources: ['file:///pub/*'], effect: 'allow' }]
    const proxy = await ruled({ default: 'deny', rules })
    const listen = async (notifications: object) => (await proxy.rpc('subscriptions/listen', { notifications })).status
    expect(await listen({ toolsListChanged: true })).toBe(200)
    expect(await listen({ resourceSubscriptions: ['file:///pub/a'] })).toBe(200)
    expect(await listen({ resourceSubscriptions: ['file:///pub/a', 'file:///x'] })).toBe(403)
    expect(await listen({ ResourceSubscriptions: ['file:///x'] })).toBe(400)
    expect(await listen({ taskIds: ['t'] })).toBe(403)
  })

  it('that names nothing is evaluated with an empty name, and left to the server', async () => {
    const open = await ruled({ default: 'allow', rules: [] })
    for (const method of ['tools/call', 'prompts/get', 'resources/read', 'resources/subscribe'])
      expect((await open.rpc(method)).status).toBe(200)
    const proxy = await ruled()
    expect((await proxy.rpc('tools/call')).status).toBe(403)
    expect(proxy.received).toEqual([])
  })

  it('about a task that no call of this caller created is denied', async () => {
    const proxy = await ruled({ default: 'allow', rules: [] })
    for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel', 'tasks/update'])
      expect((await proxy.rpc(method, { taskId: 'unknown' })).status).toBe(403)
  })
})

describe('a body that readers could understand differently is 400, and reaches no backend:', () => {
  const refused: readonly (readonly [string, string | Uint8Array<ArrayBuffer>])[] = [
    ['a batch', `[${call('get_file')}]`],
    ['a batch in an object', `{"0":${call('get_file')}}`],
    ['a field twice', call('get_file').replace('"id":7', '"method":"ping","id":7')],
    ['a field twice in another case', call('get_file').replace('"id":7', '"Method":"ping","id":7')],
    ['a field in another case only', call('get_file').replace('"method"', '"METHOD"')],
    ['params in another case only', '{"jsonrpc":"2.0","id":7,"method":"tools/list","Params":{"cursor":"x"}}'],
    ['arguments in another case only', call('get_file').replace('"arguments"', '"Arguments"')],
    ['a name twice', call('get_file', ',"name":"delete_all"')],
    ['a name twice by case', call('get_file', ',"NAME":"delete_all"')],
    ['a name twice by an escape', call('get_file', String.raw`,"n\u0061me":"delete_all"`)],
    ['an argument twice by case', call('get_file').replace('"arguments":{', '"arguments":{"a":1,"A":2')],
    ['folding of the long s', call('get_file', ',"argumentſ":{"a":1}')],
    ['folding of the Kelvin sign', call('get_file').replace('"arguments":{', '"arguments":{"k":1,"\u212A":2')],
    ['a byte order mark', `\uFEFF${call('get_file')}`],
    ['invalid UTF-8', Buffer.concat([Buffer.from(call('get_file').slice(0, -1)), Buffer.from([0xff, 0x7d])])],
    ['a lone surrogate', call(String.raw`get_\ud800`)],
    ['UTF-16', Buffer.from(call('get_file'), 'utf16le')],
    ['something after it', `${call('get_file')}${call('delete_all')}`],
    ['a comment', call('get_file').replace('"id"', '/* */"id"')],
    ['a prototype in arguments', call('get_file').replace('"arguments":{', '"arguments":{"__proto__":{"repo":"y"}')],
    ['65 levels', call('get_file').replace('"arguments":{', `"arguments":{"a":${'['.repeat(65)}${']'.repeat(65)}`)],
    ['another version', call('get_file').replace('2.0', '1.0')],
    ['no version', call('get_file').replace('"jsonrpc":"2.0",', '')],
    ['params in an array', '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["get_file"]}'],
    ['a name that is no string', '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":["get_file"]}}'],
    ['a name that is null', '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":null}}'],
    ['arguments that are no object', call('get_file').replace('"arguments":{}', '"arguments":[1]')],
    ['an id that is none', call('get_file').replace('"id":7', '"id":null')],
    ['nothing', ''],
  ]
  it.each(refused)('%s', async (_name, body) => {
    const proxy = await ruled({ default: 'allow', rules: [] })
    const response = await proxy.post(body)
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('bad_request')
    expect(proxy.received).toEqual([])
  })

  it('one field more in arguments by another case is a name like any other', async () => {
    const proxy = await ruled({ default: 'allow', rules: [] })
    expect((await proxy.post(call('a').replace('"arguments":{', '"arguments":{"Name":"x"'))).status).toBe(200)
  })
})

describe('headers', () => {
  const types = [
    'text/plain',
    'application/json; charset=utf-16',
    'application/json, text/plain',
    'application/jsonp',
    'application/json; charset=utf-8; charset=utf-16',
    '',
  ]
  it.each(types)('with the media type "%s" are refused', async (type) => {
    const proxy = await ruled({ default: 'allow', rules: [] })
    expect((await proxy.post(call('get_file'), { 'content-type': type })).status).toBe(400)
    expect(proxy.received).toEqual([])
  })

  it('with a content encoding are refused', async () => {
    const proxy = await ruled({ default: 'allow', rules: [] })
    expect((await proxy.post(call('get_file'), { 'content-encoding': 'gzip' })).status).toBe(400)
    expect((await proxy.post(call('get_file'), { 'content-encoding': 'identity' })).status).toBe(200)
  })

  it('that differ from the body are refused with -32020', async () => {
    const proxy = await ruled({ default: 'allow', rules: [] })
    const differing = [
      { 'mcp-method': 'tools/list' },
      { 'mcp-name': 'delete_all' },
      { 'mcp-name': 'GET_FILE' },
      { 'mcp-name': '=?base64?ZGVsZXRlX2FsbA==?=' },
      { 'mcp-name': '=?base64?%%?=' },
    ]
    for (const headers of differing) {
      const response = await proxy.post(call('get_file'), headers)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ id: 7, error: { code: -32_020 } })
    }
    const same = { 'mcp-method': 'tools/call', 'mcp-name': '=?base64?Z2V0X2ZpbGU=?=' }
    expect((await proxy.post(call('get_file'), same)).status).toBe(200)
    expect((await proxy.rpc('ping', {}, { 'mcp-name': 'x' })).status).toBe(400)
  })

  it('that come twice are refused, whichever comes first', async () => {
    const proxy = await ruled({ default: 'allow', rules: [] })
    for (const headers of [
      { 'mcp-name': ['get_file', 'delete_all'] },
      { 'mcp-name': ['get_file', 'get_file'] },
      { 'mcp-method': ['tools/call', 'ping'] },
    ]) {
      const status = await new Promise<number | undefined>((resolve, reject) => {
        const options = { method: 'POST', headers: { 'content-type': 'application/json', ...headers } }
        const sent = request(proxy.url, options, (response) => resolve(response.resume().statusCode))
        sent.on('error', reject).end(call('get_file'))
      })
      expect(status).toBe(400)
    }
    expect(proxy.received).toEqual([])
  })

  it('of the stateless protocol version are required, with -32020', async () => {
    const proxy = await ruled({ default: 'allow', rules: [] })
    const version = { 'mcp-protocol-version': '2026-07-28' }
    const method = { ...version, 'mcp-method': 'tools/call' }
    for (const headers of [version, method, { ...version, 'mcp-name': 'get_file' }]) {
      const response = await proxy.post(call('get_file'), headers)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ id: 7, error: { code: -32_020 } })
    }
    expect(proxy.received).toEqual([])
    expect((await proxy.post(call('get_file'), { ...method, 'mcp-name': 'get_file' })).status).toBe(200)
    expect((await proxy.rpc('ping', {}, { ...version, 'mcp-method': 'ping' })).status).toBe(200)
    expect((await proxy.post('{"jsonrpc":"2.0","id":1,"result":{}}', version)).status).toBe(200)
    const before = { 'mcp-protocol-version': '2025-11-25' }
    expect((await proxy.post(call('get_file'), before)).status).toBe(200)
  })

  it('of other methods with a body are refused', async () => {
    const proxy = await ruled({ default: 'allow', rules: [] })
    for (const method of ['PUT', 'PATCH', 'DELETE']) {
      const response = await fetch(proxy.url, { method, body: call('get_file') })
      expect(response.status).toBe(400)
    }
    expect(proxy.received).toEqual([])
  })
})

it('a body over the limit is 413, whatever its beginning says', async () => {
  const proxy = await ruled({ default: 'allow', rules: [] }, { limitBytes: 1000 })
  const body = call('get_file', `,"_meta":{"a":"${'x'.repeat(1000)}"}`)
  const response = await proxy.post(body)
  expect(response.status).toBe(413)
  expect(await response.text()).toContain('body_too_large')
  expect(proxy.received).toEqual([])
})
