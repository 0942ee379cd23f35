import type { Readable, Writable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { Bridge, createSseEndpoint, Output } from '../bridge/index.ts'
import type { EndpointCredentials, McpEndpoint } from '../core/index.ts'
import { loginCredentials } from '../login/index.ts'
import { createMcpEndpoint, createMemoryEndpoint } from '../net/index.ts'
import type { ResolvedRoute } from '../resources/index.ts'
import { type Closers, whole, egressFrom, EXIT, type Io, noCredentials, tokenInFile } from '../compose/index.ts'
import { runInlineProxy } from '../compose/proxy/index.ts'
import { type Command, loggedCommand } from './command.ts'
import type { OpenLog } from '../report/index.ts'
import { loginOptionsOf } from './options/login-options.ts'
import type { Parsed } from './options/options.ts'
import { STDIO_SPEC, type StdioOptions, stdioOptionsOf } from './options/stdio-options.ts'

/** 64 MiB are what a message may be; what encodes them takes some more. */
const MAX_MESSAGE_BYTES = 128 * 1024 * 1024
/** Clients that end a server kill it about two seconds after they asked; by then the session has to be ended. */
const STOP_GRACE_MS = 500
/** How often it is looked whether whoever started this still lives, in milliseconds. */
const PARENT_LOOK_MS = 1000

/** Where messages come from and go to. */
export interface Streams {
  readonly input: Readable
  readonly output: Writable
}

/** `extauth stdio`: runs until its input ends, nobody reads its output any more, or it is asked to stop. */
export const runStdio = stdioBetween(() => ({ input: process.stdin, output: process.stdout }))

/** The same between other streams. */
export function stdioBetween(streams: () => Streams): Command {
  return loggedCommand(STDIO_SPEC, 'info', async ({ options: parsed, io, log }) => {
    const options = stdioOptionsOf(parsed)
    await whole(async (closers) => {
      const way = await openWay(parsed, options, io, log, closers)
      const endpoint = withHeaders(way.endpoint, options.headers)
      await carry({ ...way, endpoint }, options, io, log, streams())
      await closers.close()
    })
    return EXIT.fine
  })
}

/** What the user wants to be on each request; what the bridge says itself goes before. */
const withHeaders = (endpoint: McpEndpoint, headers: StdioOptions['headers']): McpEndpoint => ({
  send: (request) => endpoint.send({ ...request, headers: { ...headers, ...request.headers } }),
  close: () => endpoint.close(),
})

interface Way {
  readonly endpoint: McpEndpoint
  readonly credentials: EndpointCredentials
  /** What the server is called in messages. */
  readonly server: string
}

async function openWay(parsed: Parsed, options: StdioOptions, io: Io, log: OpenLog, closers: Closers): Promise<Way> {
  const { url, caFile, tokenFile } = options
  const given = tokenFile === undefined ? undefined : tokenInFile(tokenFile)
  if (url !== undefined) {
    const egressProxy = egressFrom(io.env)
    const http = createMcpEndpoint({ url, caCertPath: caFile, egressProxy })
    const endpoint = closers.keep(createSseEndpoint(http, url, MAX_MESSAGE_BYTES))
    // Without the query: it may hold what is nobody's business.
    const credentials = options.hasLogin ? personal(parsed, url, caFile, io, log, closers) : (given ?? noCredentials())
    return { endpoint, credentials, server: `at ${url.origin}${url.pathname}` }
  }
  const proxy = closers.keep(
    await runInlineProxy({
      configPaths: parsed.list('config'),
      route: parsed.text('route'),
      secretsDirectory: parsed.text('secrets-dir'),
      target: parsed.text('target'),
      externalAuth: parsed.text('external-auth'),
      callers: parsed.text('callers'),
      ignoreManifestCallers: parsed.flag('ignore-manifest-callers'),
      namespace: parsed.text('namespace'),
      apiGroup: parsed.text('api-group'),
      stsEndpoint: parsed.text('sts-endpoint'),
      env: io.env,
      log,
    }),
  )
  const endpoint = closers.keep(
    createMemoryEndpoint(
      () => proxy.connect(),
      () => proxy.path(),
    ),
  )
  const { name, target } = proxy.route
  return {
    endpoint,
    credentials: given ?? noCredentials(whyNoToken(proxy.route)),
    server: `of the route ${name} (${target.origin}${target.path})`,
  }
}

/** What to do where a route of this process wants a token; undefined: what is said of any server. */
function whyNoToken({ name, authServer, resourceUrl }: ResolvedRoute): string | undefined {
  if (authServer === undefined) return undefined
  const url = resourceUrl ?? 'https://…'
  return `Callers of the route ${name} log in at its authorization server, which answers browsers only where extauth proxy serves it: run that, and here extauth stdio --url ${url} --login (or extauth login --url ${url} before).`
}

/** The token of whoever sits in front of the browser. */
function personal(
  parsed: Parsed,
  url: URL,
  caFile: string | undefined,
  io: Io,
  log: OpenLog,
  closers: Closers,
): EndpointCredentials {
  const options = loginOptionsOf(parsed, url, caFile, io, log)
  closers.keep(options.outbound)
  const ends = new AbortController()
  closers.keep({ close: () => ends.abort() })
  return loginCredentials({ ...options, signal: ends.signal })
}

async function carry(
  { endpoint, credentials, server }: Way,
  { graceMs }: StdioOptions,
  io: Io,
  log: OpenLog,
  streams: Streams,
): Promise<void> {
  const output = new Output(streams.output)
  const bridge = new Bridge({
    endpoint,
    credentials,
    input: streams.input,
    output,
    log,
    server,
    pause: (ms, signal) => delay(ms, undefined, { signal, ref: false }),
    maxMessageBytes: MAX_MESSAGE_BYTES,
  })
  log.info({ server }, 'carrying messages')
  const left = Promise.any([io.stop, output.gone.then(() => 'output closed'), parentGone()])
  const why = await Promise.race([bridge.run().then(() => undefined, inputBroke), left])
  log.info({ why: why ?? 'input ended' }, 'stopping')
  streams.input.destroy()
  const closing = bridge.close(why === undefined ? graceMs : STOP_GRACE_MS)
  // Whoever asked has its short grace; who asks while the long one runs wants no more of it.
  if (why === undefined) void left.then(() => bridge.hurry())
  else void output.gone.then(() => bridge.hurry())
  await closing
}

const inputBroke = (): string => 'input broke off'

/** Resolves when the process that started this one has ended: then nobody will ever end the input. */
function parentGone(): Promise<string> {
  const parent = process.ppid
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      if (process.ppid === parent) return
      clearInterval(timer)
      resolve('parent gone')
    }, PARENT_LOOK_MS)
    timer.unref()
  })
}
