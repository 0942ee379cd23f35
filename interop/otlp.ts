import { spawn } from 'node:child_process'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { CALL, MCP } from '../test/support/e2e/credentials.ts'
import { openLab, post } from '../test/support/e2e/lab.ts'
import { extauth } from '../test/support/e2e/process.ts'
import { createSockets } from '../test/support/sockets.ts'
import type { Python } from './python.ts'

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const SUBJECT = 'alice-in-wonderland'
const LONGEST_MS = 60_000
/** OTLP's numbers of span kinds. */
const [SERVER, CLIENT] = [2, 3]

interface Span {
  readonly name: string
  readonly kind: number
  readonly trace: string
  readonly span: string
  readonly parent: string
  readonly nanoseconds: number
  readonly attributes: Readonly<Record<string, string>>
  readonly resource: Readonly<Record<string, string>>
}

/** Spans that the receiver decoded for one exchanged request to the lab, and the version of its definitions. */
async function receive(python: Python): Promise<{ version: string; spans: readonly Span[]; token: string }> {
  const sockets = createSockets()
  try {
    const script = path.join(import.meta.dirname, 'otlp.py')
    const child = spawn(python.executable, [script], { stdio: ['ignore', 'pipe', 'inherit'], timeout: LONGEST_MS })
    sockets.closing({ close: () => child.kill() })
    const spans: Span[] = []
    const first = Promise.withResolvers<{ readonly port: number; readonly version: string }>()
    createInterface({ input: child.stdout }).on('line', (line) => {
      const parsed = JSON.parse(line) as Span | { readonly port: number; readonly version: string }
      if ('port' in parsed) first.resolve(parsed)
      else spans.push(parsed)
    })
    child.once('exit', () => first.reject(new Error('the receiver of traces has ended')))
    const { port, version } = await first.promise

    const lab = sockets.closing(await openLab())
    const where = ['--config', lab.configDirectory, '--listen', '127.0.0.1:0', '--admin', '127.0.0.1:0']
    const running = extauth(['proxy', ...where], { env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` } })
    sockets.closing({ close: () => running.process.kill('SIGKILL') })
    const { url } = (await running.line('listening')) as { url: string }
    const token = await lab.token({ sub: SUBJECT })
    const headers = { ...MCP, authorization: `Bearer ${token}`, traceparent: `00-${TRACE}-${PARENT}-01` }
    const { status } = await post(`${url}/token-exchange?secret=query-value`, CALL, headers)
    if (status !== 200) throw new Error(`the lab answered ${status}`)
    // A process that exits sends the remaining spans.
    running.process.kill('SIGTERM')
    await running.ended
    return { version, spans, token }
  } finally {
    await sockets.closeAll()
  }
}

/** Traces as OpenTelemetry's own definitions read them. Gives what was wrong, a sentence each. */
export async function askOtlpReceiver(python: Python): Promise<{ version: string; wrong: readonly string[] }> {
  const { version, spans, token } = await receive(python)
  const server = spans.find(({ name }) => name === 'POST /token-exchange')
  const below = (parent: Span | undefined): string[] =>
    spans
      .filter((span) => span.parent === parent?.span)
      .map(({ name, kind }) => `${name} ${kind}`)
      .toSorted()
  const text = JSON.stringify(spans)
  const checks: readonly (readonly [string, boolean])[] = [
    ['the server span continues the trace of the client', server?.trace === TRACE && server.parent === PARENT],
    ['it is a server span of the service', server?.kind === SERVER && server.resource['service.name'] !== undefined],
    ['it took time', (server?.nanoseconds ?? 0) > 0],
    ['it names the MCP method', server?.attributes['mcp.method.name'] === 'tools/call'],
    ['below it are the stages and the try', below(server).join() === `POST ${CLIENT},authenticate 1,obtain 1`],
    [
      'below obtain is the call to the token endpoint',
      below(spans.find(({ name }) => name === 'obtain')).join() === `POST lab-token-exchange ${CLIENT}`,
    ],
    ['all spans are of one trace', spans.every(({ trace }) => trace === TRACE)],
    ['nothing tells of the caller', [SUBJECT, token, 'query-value'].every((secret) => !text.includes(secret))],
  ]
  return { version, wrong: checks.flatMap(([what, isRight]) => (isRight ? [] : [`not so: ${what}`])) }
}
