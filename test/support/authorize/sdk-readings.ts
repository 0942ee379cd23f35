import { request as send } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import type { McpView } from '../../../src/core/index.ts'
import { seeded } from '../seeded.ts'
import type { Sockets } from '../sockets.ts'
import { callerWith, type Ruled, startRuled } from './ruled.ts'

/** Tools of the servers; each returns its name and arguments as the SDK parsed them, as JSON. */
export const ECHO_TOOLS = ['get_a', 'get_b', 'delete_a'] as const

const RULES = {
  default: 'deny',
  rules: [
    { name: 'failing', when: 'claims.missing == "x"', tools: ['get_failing'], effect: 'deny' },
    { name: 'readers', tools: ['get_*'], when: '!has(mcp.args.repo) || mcp.args.repo == "x"', effect: 'allow' },
    { name: 'admins', when: '"admins" in claims.groups', effect: 'allow' },
  ],
}
const ACCEPT = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }

const call = (name: string, more = '', args = '{"repo":"x"}') =>
  `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"${name}","arguments":${args}${more}}}`
const BASE = call('get_a')

interface Attempt {
  readonly name: string
  readonly body: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
  /** Whether the proxy has to let it through. Default false. */
  readonly passes?: boolean
}

/** Requests that could be evaluated as one call and executed as another. */
const ATTEMPTS: readonly Attempt[] = [
  { name: 'a call that is allowed', body: BASE, passes: true },
  {
    name: 'spaces and escapes',
    body: String.raw`{ "jsonrpc":"2.0","id":7,"method":"tools\/call",
    "params":{"name":"g\u0065t_a","arguments":{"repo":"\u0078","n":1.50,"t":"é😀"}}}`,
    passes: true,
  },
  {
    name: 'large and odd numbers',
    body: call('get_a', '', '{"a":9007199254740993,"b":-0,"c":1e2,"d":0.1}'),
    passes: true,
  },
  { name: 'nested arguments', body: call('get_a', '', '{"a":{"repo":"y","b":[{"c":null}]}}'), passes: true },
  { name: 'names of prototypes', body: call('get_a', '', '{"constructor":1,"toString":"x"}'), passes: true },
  {
    name: 'no arguments',
    body: '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get_a"}}',
    passes: true,
  },
  { name: 'a hidden tool', body: call('delete_a') },
  { name: 'a tool that does not exist', body: call('delete_b') },
  { name: 'other arguments', body: call('get_a', '', '{"repo":"y"}') },
  { name: 'a rule that fails to deny', body: call('get_failing') },
  { name: 'a batch', body: `[${BASE},${call('delete_a')}]` },
  { name: 'a batch of one', body: `[${call('get_a')}]` },
  { name: 'a name twice', body: call('get_a', ',"name":"delete_a"') },
  { name: 'a name twice, the hidden one first', body: BASE.replace('"name"', '"name":"delete_a","name"') },
  { name: 'a name twice by case', body: call('get_a', ',"Name":"delete_a"') },
  { name: 'a name twice by an escape', body: call('get_a', String.raw`,"n\u0061me":"delete_a"`) },
  { name: 'a name in another case', body: call('delete_a').replace('"name"', '"NAME"') },
  { name: 'arguments twice', body: call('get_a', ',"arguments":{"repo":"y"}') },
  { name: 'arguments twice by case', body: call('get_a', ',"Arguments":{"repo":"y"}') },
  { name: 'arguments twice by folding', body: call('get_a', ',"argument\u017F":{"repo":"y"}') },
  { name: 'an argument twice', body: call('get_a', '', '{"repo":"x","repo":"y"}') },
  { name: 'an argument twice by case', body: call('get_a', '', '{"repo":"x","REPO":"y"}') },
  { name: 'params twice', body: BASE.replace('"params"', '"params":{"name":"delete_a"},"params"') },
  { name: 'params twice by case', body: BASE.replace('"params"', '"Params":{"name":"delete_a"},"params"') },
  { name: 'a method twice', body: BASE.replace('"method"', '"method":"ping","method"') },
  { name: 'a method twice by case', body: call('delete_a').replace('"method"', '"METHOD":"ping","method"') },
  { name: 'a byte order mark', body: `\uFEFF${BASE}` },
  { name: 'UTF-16', body: Buffer.from(BASE, 'utf16le') },
  { name: 'invalid UTF-8', body: Buffer.concat([Buffer.from(BASE.slice(0, -3)), Buffer.from([0xc0, 0x80, 0x7d])]) },
  { name: 'a lone surrogate', body: call(String.raw`get_\ud800`) },
  { name: 'text after it', body: `${BASE}\n${call('delete_a')}` },
  { name: 'text/plain', body: BASE, headers: { 'content-type': 'text/plain' } },
  { name: 'another charset', body: BASE, headers: { 'content-type': 'application/json; charset=utf-7' } },
  { name: 'no media type', body: BASE, headers: { 'content-type': '' } },
  { name: 'an encoding', body: BASE, headers: { 'content-encoding': 'gzip' } },
  { name: 'Mcp-Name of another tool', body: BASE, headers: { 'mcp-name': 'delete_a' } },
  { name: 'Mcp-Name of an allowed tool', body: call('delete_a'), headers: { 'mcp-name': 'get_a' } },
  { name: 'Mcp-Method of another method', body: BASE, headers: { 'mcp-method': 'tools/list' } },
  { name: 'a body over the limit', body: call('get_a', `,"_meta":{"x":"${'x'.repeat(70_000)}"}`) },
]

const INSERTS = [
  '"name":"delete_a",',
  '"Name":"delete_a",',
  String.raw`"n\u0061me":"delete_a",`,
  '"arguments":{"repo":"y"},',
  '"Arguments":{"repo":"y"},',
  '"argument\u017F":{"repo":"y"},',
  '"repo":"y",',
  '"Repo":"y",',
  '"method":"ping",',
  '"params":{"name":"delete_a"},',
  '"Params":{"name":"delete_a"},',
  '"id":4,',
  '"x":1e999,',
  '"x":-0.0,',
  '"x":[{}],',
  '"x":null,',
  '"x":"\u212A\u2028",',
  String.raw`"x":"\ud83d\ude00\u0000",`,
  '[',
  '}',
  ',',
  '/**/',
  '\uFEFF',
  '\u00A0',
  '\f',
  ' ',
  '\n',
  '"__proto__":{"name":"delete_a"},',
]

/** Mutations of an allowed call, the same ones each time. */
function mutated(count: number): readonly Attempt[] {
  const below = seeded(43)
  return Array.from({ length: count }, (_, index): Attempt => {
    let body: string = BASE
    for (let times = 1 + below(2); times > 0; times--) {
      const places = [...body.matchAll(/[{,[]/g)].map((match) => match.index + 1)
      const at = below(4) === 0 ? below(body.length) : (places[below(places.length)] ?? 0)
      if (below(8) === 0) body = body.slice(0, at) + body.slice(at + 1 + below(3))
      else body = body.slice(0, at) + (INSERTS[below(INSERTS.length)] ?? '') + body.slice(at)
    }
    return { name: `mutation ${index}: ${body}`, body }
  })
}

export interface Readings {
  /** What differed, a line each. */
  readonly wrong: readonly string[]
  readonly forwarded: number
  readonly refused: number
}

/**
 * Sends calls through a real proxy with rules to an MCP server whose tools return what its SDK parsed. Each call that
 * passes must have been parsed as it was evaluated, and sent as it was received; of all others nothing may arrive.
 */
export async function compareReadings(sockets: Sockets, server: string, mutations: number): Promise<Readings> {
  const wrong: string[] = []
  const arrived: Buffer[] = []
  const { hostname, port, pathname } = new URL(server)
  // Between proxy and server: what arrives, exactly.
  const origin = await sockets.http((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      arrived.push(body)
      const headers = { ...request.headers, host: `${hostname}:${port}` }
      const relayed = send({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
      relayed.on('error', () => response.destroy())
      relayed.end(body)
    })
  })
  const proxy = await startRuled(sockets, origin, RULES, {
    targetPath: pathname,
    limitBytes: 64 * 1024,
    caller: () => callerWith({ groups: ['readers'] }),
  })
  let forwarded = 0
  let refused = 0
  for (const { name, body, headers = {}, passes } of [...ATTEMPTS, ...mutated(mutations)]) {
    arrived.length = 0
    proxy.views.length = 0
    const response = await proxy.post(typeof body === 'string' ? body : new Uint8Array(body), { ...ACCEPT, ...headers })
    const text = await response.text()
    if (arrived.length === 0) {
      refused += 1
      if (![400, 403, 413].includes(response.status)) wrong.push(`${name}: refused with ${response.status}`)
      if (passes === true) wrong.push(`${name}: refused: ${text}`)
      if (/delete_a|delete_b|readers|admins/.test(text)) wrong.push(`${name}: the refusal names a tool or a rule`)
      continue
    }
    forwarded += 1
    if (passes === undefined && !name.startsWith('mutation')) wrong.push(`${name}: passes`)
    if (arrived.length !== 1 || !arrived[0]?.equals(Buffer.from(body))) wrong.push(`${name}: other bytes arrive`)
    const parsed = echoIn(text)
    // What a server refuses has not been executed.
    if (parsed === undefined) {
      if (passes === true) wrong.push(`${name}: no echo, ${response.status} ${text}`)
      continue
    }
    const view: McpView | undefined = proxy.views.at(-1)
    const evaluated = { name: view?.name, arguments: plain(view?.args ?? {}) }
    if (!isDeepStrictEqual(plain(parsed), evaluated))
      wrong.push(`${name}: evaluated ${JSON.stringify(evaluated)}, parsed ${JSON.stringify(parsed)}`)
  }
  wrong.push(...(await compareLists(proxy)), ...(await compareUnknown(proxy)))
  return { wrong, forwarded, refused }
}

/** As a reader of JSON sees it. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value)) as unknown

async function compareLists(proxy: Ruled): Promise<readonly string[]> {
  const message = messageIn(await (await proxy.rpc('tools/list', {}, ACCEPT)).text()) as
    { result?: { tools?: { name: string }[] } } | undefined
  const names = message?.result?.tools?.map(({ name }) => name).toSorted()
  return isDeepStrictEqual(names, ['get_a', 'get_b']) ? [] : [`the list has ${JSON.stringify(names)}`]
}

/** A hidden tool and one that does not exist. */
async function compareUnknown(proxy: Ruled): Promise<readonly string[]> {
  const answers = await Promise.all(
    ['delete_a', 'no_such'].map(async (name) => {
      const response = await proxy.rpc('tools/call', { name, arguments: {} }, ACCEPT)
      return {
        status: response.status,
        headers: [...response.headers].filter(([field]) => field !== 'date'),
        text: await response.text(),
      }
    }),
  )
  return isDeepStrictEqual(answers[0], answers[1])
    ? []
    : ['a hidden tool and one that does not exist are answered differently']
}

/** The message of an answer, as JSON or as the last event of a stream; undefined for another answer. */
function messageIn(text: string): unknown {
  const data = /^data: ?(\{.*\})\r?$/gm
  const last = [...text.matchAll(data)].at(-1)?.[1] ?? text
  try {
    return JSON.parse(last)
  } catch {
    return undefined
  }
}

function echoIn(text: string): { name: string; arguments: unknown } | undefined {
  const message = messageIn(text) as { result?: { isError?: boolean; content?: { text?: string }[] } } | undefined
  const echoed = message?.result?.content?.[0]?.text
  if (echoed === undefined || message?.result?.isError === true) return undefined
  const { name, arguments: args } = JSON.parse(echoed) as { name: string; arguments?: unknown }
  return { name, arguments: args ?? {} }
}
