import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { openLog, renderLine } from '../../../src/report/logging.ts'
import { Secret } from '../../../src/core/index.ts'

let directory: string
beforeEach(() => void (directory = mkdtempSync(path.join(os.tmpdir(), 'extauth-log-'))))
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function logTo(level: 'info' | 'warn') {
  const file = path.join(directory, 'log')
  return { log: openLog({ level, fd: openSync(file, 'a') }), text: () => readFileSync(file, 'utf8') }
}

const CYCLE: Record<string, unknown> = { a: 1 }
CYCLE['self'] = CYCLE

describe('log lines', () => {
  it.each([
    [{}],
    [{ id: 'x', route: 'github', status: 200, ms: 1.5 }],
    [{ text: 'quotes " and \\ and \n and \u2028', nested: { list: [1, null, 'two'] }, gone: undefined }],
    [{ token: new Secret('never') }],
  ])('are what pino writes: %j', (fields) => {
    let line = ''
    const logger = pino({ base: null, timestamp: () => ',"time":7' }, { write: (text) => void (line = text) })
    logger.info(fields, 'said "so"')
    expect(renderLine(30, fields, 'said "so"', 7)).toBe(line)
  })

  it.each([
    ['json', `"status":200,"worker":7,"msg":"request"}\n`],
    ['human', ' request status=200 worker=7\n'],
  ] as const)('of a worker say which one it is, for programs and for people: %s', (format, end) => {
    const file = path.join(directory, 'log')
    const log = openLog({ level: 'info', format, worker: 7, fd: openSync(file, 'a') })
    log.info({ status: 200 }, 'request')
    log.flush()
    expect(readFileSync(file, 'utf8').endsWith(end)).toBe(true)
  })

  it('leave out what JSON cannot hold', () => {
    const fields = { a: 1, cycle: CYCLE, big: 1n, gone: undefined, b: 'two' }
    expect(renderLine(30, fields, 'x', 7)).toBe('{"level":30,"time":7,"a":1,"b":"two","msg":"x"}\n')
    expect(renderLine(30, { big: 1n }, 'x', 7)).toBe('{"level":30,"time":7,"msg":"x"}\n')
  })

  it('wait to be written together, and go out at a flush, at a warning, and soon in any case', async () => {
    const { log, text } = logTo('info')
    log.info({ n: 1 }, 'one')
    expect(text()).toBe('')
    log.warn({ n: 2 }, 'two')
    expect(text().split('\n')).toHaveLength(3)
    log.info({ n: 3 }, 'three')
    await vi.waitFor(() => expect(text()).toContain('three'), 2_000)
    log.info({ n: 4 }, 'four')
    log.flush()
    expect(
      text()
        .trim()
        .split('\n')
        .map((line) => (JSON.parse(line) as { n: number }).n),
    ).toEqual([1, 2, 3, 4])
  })

  it('below the level are not written', () => {
    const { log, text } = logTo('warn')
    log.info({}, 'no')
    log.debug({}, 'no')
    log.error({}, 'yes')
    log.flush()
    expect(text()).toMatch(/^\{"level":50,"time":\d+,"msg":"yes"\}\n$/)
  })
})
