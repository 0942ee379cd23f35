import { expect, it } from 'vitest'
import { Failure, FAILURES, logRequest, secretsOfRequest, type RequestLine } from '../../../src/core/index.ts'

const TOKEN = 'b1946ac92492d2347c6235b4d2611184'
const LINE: RequestLine = {
  requestId: '0123456789abcdef',
  route: 'api',
  method: 'POST',
  caller: undefined,
  status: 502,
  reason: 'exchange_failed',
  durationMs: 1,
}

const logged = (line: RequestLine, failure: Failure): string => {
  const lines: object[] = []
  const note = (fields: object): void => void lines.push(fields)
  const log = { debug: note, info: note, warn: note, error: note }
  logRequest(log, line, failure, () => secretsOfRequest(['Authorization', `Bearer ${TOKEN}`]))
  return JSON.stringify(lines)
}

it.each([
  TOKEN,
  TOKEN.slice(0, 17),
  TOKEN.slice(-17),
  Buffer.from(TOKEN).toString('base64'),
  encodeURIComponent(`+${TOKEN}`),
])('the line of a rejected request masks its token where another server echoes it as %s', (echoed) => {
  const failure = new Failure('exchange_failed', {
    detail: `the token endpoint answered ${echoed}`,
    cause: Object.assign(new Error('x'), { code: echoed }),
  })
  expect(logged(LINE, failure)).toMatch(/answered \S*\[masked\]/)
  expect(logged(LINE, failure)).not.toContain(echoed.slice(4, 16))
})

it('the line of a refused request is as it is where there is nothing of the kind', () => {
  expect(JSON.parse(logged(LINE, new Failure('exchange_failed', { detail: 'answered 500' })))).toEqual([
    { ...LINE, detail: 'answered 500', why: 'answered 500', remedy: FAILURES.exchange_failed.remedy },
  ])
})
