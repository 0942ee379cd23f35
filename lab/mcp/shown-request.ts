import type { RecordedRequest } from './state.ts'

/** A request as `show_request` shows it. */
export interface ShownRequest {
  readonly request: string
  /** `name: value`, in the order and case of the wire. */
  readonly headers: readonly string[]
  readonly body: string
  /** Facts that the verifier established about the sender; null if nothing is required. */
  readonly verified: Readonly<Record<string, unknown>> | null
}

/** The parts of a request, for programs. */
export function shown({ method, target, headers, body, verified }: RecordedRequest): ShownRequest {
  const lines = headers.flatMap((name, at) => (at % 2 === 0 ? [`${name}: ${headers[at + 1] ?? ''}`] : []))
  return { request: `${method} ${target}`, headers: lines, body: body.toString('utf8'), verified: verified ?? null }
}

/** The same for people: the request as it was on the wire, and below it what was verified. */
export function shownText(record: RecordedRequest): string {
  const { request, headers, body, verified } = shown(record)
  const found =
    verified === null || Object.keys(verified).length === 0
      ? ['The server asks for no credential.']
      : [
          'The server has verified:',
          ...Object.entries(verified).map(([name, value]) => `  ${name}: ${readable(value)}`),
        ]
  return [request, ...headers, '', ...(body === '' ? [] : [body, '']), ...found, ''].join('\n')
}

const readable = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))
