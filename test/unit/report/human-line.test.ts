import { describe, expect, it } from 'vitest'
import { renderHumanLine } from '../../../src/report/human-line.ts'
import { logShape } from '../../../src/cli/options/log-options.ts'
import { Secret } from '../../../src/core/index.ts'

// The time of day is that of this machine, whichever its zone.
const NOON = new Date(2026, 10, 22, 12, 3, 7, 45).getTime()
const line = (level: 'info' | 'warn' | 'error', fields: object, message: string, colors = false) =>
  renderHumanLine(level, fields, message, { colors, nowMs: NOON })

const REQUEST = {
  requestId: 'r-1',
  route: 'github',
  type: 'bearerToken',
  method: 'POST',
  endpoint: undefined,
  caller: 'abcd',
  status: 401,
  reason: 'expired_token',
  durationMs: 3.2,
  attempts: 1,
}

describe('a log line for people', () => {
  it('has time, level, route, status, reason and milliseconds of a request in front', () => {
    expect(line('info', REQUEST, 'request')).toBe(
      '12:03:07.045 INFO  github POST 401 expired_token 3.2 ms requestId=r-1 type=bearerToken caller=abcd attempts=1\n',
    )
  })

  it('has a dash where no route was matched, and no reason where all went well', () => {
    const { reason: _none, ...fine } = { ...REQUEST, route: '', status: 200 }
    expect(line('info', fine, 'request')).toMatch(/^12:03:07\.045 INFO {2}- POST 200 3\.2 ms requestId=r-1 /)
  })

  it('has the message of anything else, and every field by name', () => {
    expect(line('warn', { file: 'a b', lines: 3, nested: { ok: true }, gone: undefined }, 'cannot be read')).toBe(
      '12:03:07.045 WARN  cannot be read file="a b" lines=3 nested={"ok":true}\n',
    )
  })

  it('is colored where that is wanted, and has the same text', () => {
    const colored = line('error', REQUEST, 'request', true)
    expect(colored).toContain('\x1b[31mERROR\x1b[0m')
    expect(colored).toContain('\x1b[33m401\x1b[0m')
    const parts = colored.split('\x1b').map((part) => part.replace(/^\[\d+m/, ''))
    expect(parts.join('')).toBe(line('error', REQUEST, 'request'))
  })

  it.each(['a\nb', 'a\rb', '\x1b[2J', '\x9b31m', '\u202Egnp', '\u2028', '\u{E0041}', '\uD800'])(
    'can be neither ended nor steered by %j',
    (text) => {
      for (const written of [line('info', { text }, 'x'), line('info', { [text]: 1 }, text)]) {
        expect(written.slice(0, -1)).toMatch(/^[^\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]+$/u)
        expect(written.endsWith('\n')).toBe(true)
      }
    },
  )

  it('shows no secret, and leaves out what JSON cannot hold', () => {
    const cycle: Record<string, unknown> = {}
    cycle['self'] = cycle
    const text = line('info', { token: new Secret('hunter2'), cycle, big: 1n, ok: 1 }, 'x')
    expect(text).not.toContain('hunter2')
    expect(text).toMatch(/ ok=1\n$/)
    expect(text).not.toMatch(/cycle|big/)
  })
})

describe('the format that is taken', () => {
  const chosen = (given: string | undefined, isTerminal: boolean, env: Record<string, string> = {}) => {
    const options = { text: (name: string) => (name === 'log-format' ? given : undefined), flag: () => false }
    return logShape(options, 'info', { isTerminal, env })
  }

  it.each([
    [undefined, true, {}, { format: 'human', colors: true }],
    [undefined, false, {}, { format: 'json', colors: false }],
    ['json', true, {}, { format: 'json', colors: true }],
    ['human', false, {}, { format: 'human', colors: false }],
    [undefined, true, { NO_COLOR: '1' }, { format: 'human', colors: false }],
    [undefined, true, { NO_COLOR: '' }, { format: 'human', colors: true }],
    [undefined, true, { TERM: 'dumb' }, { format: 'human', colors: false }],
  ])('%s on a terminal %s with %j is %j', (given, isTerminal, env, shape) => {
    expect(chosen(given, isTerminal, env as Record<string, string>)).toEqual({ level: 'info', ...shape })
  })
})
