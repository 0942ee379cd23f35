import { gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { startRuled } from '../../support/authorize/ruled.ts'
import { createSockets } from '../../support/sockets.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const RULES = {
  default: 'deny',
  rules: [{ name: 'readers', tools: ['get_*'], prompts: ['help'], resources: ['file:///pub/*'], effect: 'allow' }],
}
const tool = (name: string) => `{ "name": "${name}", "inputSchema": {"type":"object"}, "title":"T\\u0041" }`
const TOOLS = ['get_a', 'delete_b', 'get_c'].map(tool)
const list = (tools: readonly string[], more = '') =>
  `{"jsonrpc":"2.0","id":7,"result":{"tools":[${tools.join(' , ')}]${more}}}`

interface Answer {
  readonly status?: number
  readonly headers?: Record<string, string>
  readonly chunks: readonly (string | Buffer)[]
  readonly isTorn?: boolean
}

/** The real proxy before a backend that answers everything alike. */
async function answered(answer: Answer, spec: object = RULES) {
  const seen: Record<string, unknown>[] = []
  const origin = await sockets.http((request, response) => {
    seen.push(request.headers)
    request.resume().on('end', () => {
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json', ...answer.headers })
      for (const chunk of answer.chunks) response.write(chunk)
      if (answer.isTorn === true) setTimeout(() => response.destroy(), 20)
      else response.end()
    })
  })
  return { ...(await startRuled(sockets, origin, spec)), seen }
}

const json = (...chunks: (string | Buffer)[]): Answer => ({ chunks })
const stream = (...chunks: (string | Buffer)[]): Answer => ({
  chunks,
  headers: { 'content-type': 'text/event-stream' },
})

describe('a list as JSON', () => {
  it('keeps the items that could be used, in their order and spelling, and the rest of the result', async () => {
    const more = ',"nextCursor":"n","_meta":{"a":[1, 2]},"ttlMs":1,"cacheScope":"public"'
    const proxy = await answered(json(list(TOOLS, more)))
    const response = await proxy.rpc('tools/list')
    expect(response.status).toBe(200)
    expect(await response.text()).toBe(
      list([TOOLS[0], TOOLS[2]].map(String), more.replace('public', 'private')).replace(' , ', ','),
    )
    expect(proxy.seen[0]?.['accept-encoding']).toBe('identity')
  })

  it('is private also where the backend says only how long', async () => {
    const proxy = await answered(json(list([], ',"ttlMs":1')))
    expect(await (await proxy.rpc('tools/list')).json()).toMatchObject({ result: { ttlMs: 1, cacheScope: 'private' } })
  })

  it('is filtered whichever way it is split', async () => {
    const text = list(TOOLS)
    for (const size of [1, 2, 7, 30]) {
      const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
        text.slice(at * size, (at + 1) * size),
      )
      const proxy = await answered(json(...chunks))
      expect(await (await proxy.rpc('tools/list')).text()).toBe(
        list([TOOLS[0], TOOLS[2]].map(String)).replace(' , ', ','),
      )
    }
  })

  it('of prompts, resources and templates is filtered by name and URI', async () => {
    const of = async (method: string, field: string, items: object[]) => {
      const proxy = await answered(json(JSON.stringify({ jsonrpc: '2.0', id: 7, result: { [field]: items } })))
      const body = (await (await proxy.rpc(method)).json()) as { result: Record<string, object[]> }
      return body.result[field]
    }
    expect(await of('prompts/list', 'prompts', [{ name: 'help' }, { name: 'other' }])).toEqual([{ name: 'help' }])
    const files = [{ uri: 'file:///pub/a' }, { uri: 'file:///etc/x' }]
    expect(await of('resources/list', 'resources', files)).toEqual([files[0]])
    const templates = [
      { uriTemplate: 'file:///pub/{x}' },
      { uriTemplate: 'http://{host}/' },
      { uriTemplate: 'file:///{x}' },
    ]
    expect(await of('resources/templates/list', 'resourceTemplates', templates)).toEqual([templates[0], templates[2]])
    // Another list than was asked for is filtered, too.
    expect(await of('tools/list', 'prompts', [{ name: 'secret' }])).toEqual([])
  })

  it('that is an error passes', async () => {
    const error = '{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}'
    const proxy = await answered(json(error))
    expect(await (await proxy.rpc('tools/list')).text()).toBe(error)
  })

  it('of a lost session is answered with 404, which clients need to begin another, and not with the body', async () => {
    const proxy = await answered({ status: 404, chunks: [list(TOOLS)] })
    const response = await proxy.rpc('tools/list', {}, { 'mcp-session-id': 'x' })
    expect(response.status).toBe(404)
    expect(await response.json()).toMatchObject({ error: { data: { reason: 'unknown_session' } } })
    expect((await proxy.rpc('tools/list')).status).toBe(502)
  })

  it('of many tools streams', async () => {
    const many = Array.from({ length: 20_000 }, (_, index) => tool(`${index % 2 === 0 ? 'get' : 'set'}_${index}`))
    const proxy = await answered(json(list(many)))
    const body = (await (await proxy.rpc('tools/list')).json()) as { result: { tools: { name: string }[] } }
    expect(body.result.tools).toHaveLength(10_000)
    expect(body.result.tools.every(({ name }) => name.startsWith('get_'))).toBe(true)
  })
})

describe('an answer that is not clearly the response is 502, and nothing of it passes:', () => {
  const refused: readonly (readonly [string, Answer])[] = [
    ['another status', { status: 201, chunks: [list(TOOLS)] }],
    ['a failure', { status: 500, chunks: [list(TOOLS)] }],
    ['accepted', { status: 202, chunks: [list(TOOLS)] }],
    ['another media type', { chunks: [list(TOOLS)], headers: { 'content-type': 'text/plain' } }],
    ['another charset', { chunks: [list(TOOLS)], headers: { 'content-type': 'application/json; charset=utf-16' } }],
    ['an encoding', { chunks: [gzipSync(list(TOOLS))], headers: { 'content-encoding': 'gzip' } }],
    ['an encoding that it does not have', { chunks: [list(TOOLS)], headers: { 'content-encoding': 'x' } }],
    ['a byte order mark', json(`\uFEFF${list(TOOLS)}`)],
    ['no UTF-8 in a string', json(Buffer.from(list(TOOLS).replace('T\\u0041', '\u00FF'), 'latin1'))],
    ['a request', json('{"jsonrpc":"2.0","id":7,"method":"delete_b"}')],
    ['no UTF-8', json(Buffer.concat([Buffer.from(list(TOOLS).slice(0, -3)), Buffer.from([0xff])]))],
    ['a list twice', json(list(TOOLS, `,"tools":[${tool('delete_b')}]`))],
    ['a list in another case', json(list([], `,"Tools":[${tool('delete_b')}]`))],
    ['a list in another case only', json(list(TOOLS).replace('"tools"', '"Tools"'))],
    ['a list by an escape, twice', json(list([], `,"t\\u006fols":[${tool('delete_b')}]`))],
    ['a result twice', json(`{"jsonrpc":"2.0","id":7,"result":{},"result":{"tools":[${tool('delete_b')}]}}`)],
    ['a result outside of a response', json(list(TOOLS).replace('"id":7', '"method":"x"'))],
    ['another id', json(list(TOOLS).replace('"id":7', '"id":8'))],
    ['the id as a string', json(list(TOOLS).replace('"id":7', '"id":"7"'))],
    ['no id', json(list(TOOLS).replace('"id":7,', ''))],
    ['a batch', json(`[${list(TOOLS)}]`)],
    ['two messages', json(list(TOOLS) + list(TOOLS))],
    ['what breaks off', json(list(TOOLS).slice(0, -1))],
    ['an item with a name twice', json(list(['{"name":"get_a","name":"delete_b"}']))],
    ['an item with a name in another case', json(list(['{"name":"get_a","Name":"delete_b"}']))],
    ['a list that is none', json(`{"jsonrpc":"2.0","id":7,"result":{"tools":{"0":${tool('delete_b')}}}}`)],
    ['a result that is none', json(`{"jsonrpc":"2.0","id":7,"result":[${tool('delete_b')}]}`)],
    ['an item that is none', json(list(['"delete_b"']))],
    ['an item that is too large', json(list([tool('x'.repeat(1024 * 1024))]))],
    ['no JSON', json(list(TOOLS).replace('"tools"', "'tools'"))],
    ['a comma too many', json(list(TOOLS).replace(']', ',]'))],
    ['an empty answer', json('')],
    ['a stream without a response', stream('')],
    ['events with another id', stream(`data: ${list(TOOLS).replace('"id":7', '"id":8')}\n\n`)],
    ['an event that is not ended', stream(`data: ${list(TOOLS)}\n`)],
    ['an event with a mark', stream(`\uFEFFdata: ${list(TOOLS)}\n\n`)],
    ['an event with a mark before others', stream(`\uFEFFdata: ${list(TOOLS)}\n\ndata: ${list(TOOLS)}\n\n`)],
    ['an event of JSON in an array', stream(`data: [${list(TOOLS)}]\n\n`)],
    ['a type after the data', stream(`event: x\ndata: ${list(TOOLS)}\nevent: message\n\n`)],
    ['a line break in a string', stream(`data: ${list(TOOLS).replace('delete_b', 'delete_b\ndata: ')}\n\n`)],
  ]
  it.each(refused)('%s', async (_name, answer) => {
    const proxy = await answered(answer)
    const response = await proxy.rpc('tools/list')
    const text = await response.text()
    expect([response.status, text.includes('backend_error')]).toEqual([502, true])
    expect(text).not.toContain('delete_b')
  })
})

describe('an event stream', () => {
  const filtered = list([TOOLS[0], TOOLS[2]].map(String)).replace(' , ', ',')

  it('is filtered message by message, and otherwise passes', async () => {
    const progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}'
    const proxy = await answered(
      stream(`: hello\nid: 1\ndata: \n\ndata: ${progress}\n\nevent: message\nid: 2\ndata:${list(TOOLS)}\n\n`),
    )
    const response = await proxy.rpc('tools/list')
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(await response.text()).toBe(
      `:\nid: 1\ndata: \n\ndata: ${progress}\n\nevent: message\nid: 2\ndata: ${filtered}\n\n`,
    )
  })

  it('is filtered whichever way its lines are split and ended', async () => {
    for (const end of ['\n', '\r', '\r\n']) {
      const text = `data: ${list(TOOLS).replaceAll(' , ', `${end}data: , ${end}data:`)}${end}${end}`
      for (const size of [1, 3, 1000]) {
        const chunks = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
          text.slice(at * size, (at + 1) * size),
        )
        const proxy = await answered(stream(...chunks))
        const body = await (await proxy.rpc('tools/list')).text()
        expect(body).not.toContain('delete_b')
        expect(JSON.parse(body.replaceAll('data: ', ''))).toMatchObject({
          result: { tools: [{ name: 'get_a' }, { name: 'get_c' }] },
        })
      }
    }
  })

  it('that a GET opens or resumes is filtered, notifications about resources too', async () => {
    const updated = (uri: string) =>
      `data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${uri}"}}\n\n`
    const hidden = `data: {"params":{"uri":"file:///etc/x"},"jsonrpc":"2.0","method":"notifications/resources/upd\\u0061ted"}\n\n`
    const proxy = await answered(
      stream(updated('file:///pub/a'), updated('file:///etc/x'), hidden, `data: ${list(TOOLS)}\n\n`),
    )
    const body = await (await fetch(proxy.url, { headers: { accept: 'text/event-stream' } })).text()
    expect(body).toBe(`${updated('file:///pub/a')}data: ${filtered}\n\n`)
  })

  it('of another request is filtered, too', async () => {
    const proxy = await answered(stream(`data: ${list(TOOLS)}\n\n`))
    expect(await (await proxy.rpc('tools/call', { name: 'get_a' })).text()).toBe(`data: ${filtered}\n\n`)
  })

  it('breaks off where a message is unclear after others went out', async () => {
    const both = list(TOOLS).replace('"id":7', '"id":7,"method":"x"')
    for (const unclear of [`[${list(TOOLS)}]`, both]) {
      const proxy = await answered(stream('data: {"jsonrpc":"2.0","method":"x"}\n\n', `data: ${unclear}\n\n`))
      await expect(fetch(proxy.url).then((response) => response.text())).rejects.toThrow('terminated')
    }
  })

  it('passes a large message of the server in pieces', async () => {
    const large = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"${'x'.repeat(3_000_000)}"}]}}`
    const proxy = await answered(stream(`data: ${large}\n\n`))
    expect(await (await proxy.rpc('tools/call', { name: 'get_a' })).text()).toBe(`data: ${large}\n\n`)
  })
})

describe('what the proxy learns of answers', () => {
  it('narrows by the hints of the last list', async () => {
    const spec = {
      default: 'allow',
      rules: [
        { name: 'd', when: 'has(mcp.annotations.destructiveHint) && mcp.annotations.destructiveHint', effect: 'deny' },
      ],
    }
    const proxy = await answered(
      json(list(['{"name":"a","annotations":{"destructiveHint":true}}', '{"name":"b"}'])),
      spec,
    )
    expect((await proxy.rpc('tools/call', { name: 'a' })).status).toBe(200)
    expect(await (await proxy.rpc('tools/list')).json()).toMatchObject({ result: { tools: [{ name: 'b' }] } })
    expect((await proxy.rpc('tools/call', { name: 'a' })).status).toBe(403)
    expect((await proxy.rpc('tools/call', { name: 'b' })).status).toBe(200)
  })

  it.each(['application/json', 'text/event-stream'])('is which call created a task (%s)', async (type) => {
    const created = '{"jsonrpc":"2.0","id":7,"result":{"task":{"taskId":"t1","status":"working"}}}'
    const chunks = [type === 'application/json' ? created : `data: ${created}\n\n`]
    const proxy = await answered({ chunks, headers: { 'content-type': type } })
    expect((await proxy.rpc('tasks/get', { taskId: 't1' })).status).toBe(403)
    await (await proxy.rpc('tools/call', { name: 'get_a', task: {} })).text()
    expect((await proxy.rpc('tasks/get', { taskId: 't1' })).status).toBe(200)
    expect((await proxy.rpc('tasks/result', { taskId: 't1' })).status).toBe(200)
    expect((await proxy.rpc('tasks/cancel', { taskId: 't2' })).status).toBe(403)
  })
})
