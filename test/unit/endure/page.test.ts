import { format } from 'prettier'
import { SaxesParser } from 'saxes'
import { expect, it } from 'vitest'
import { pageWith, pageWithRuns, picturesOf } from '../../../endure/report/page.ts'
import { runsText, textOf } from '../../../endure/report/text.ts'
import type { RunResult } from '../../../endure/result.ts'

const RESULT: RunResult = {
  seed: '7',
  version: '1.2.3 (abc)',
  machine: 'Node v24, 2 × CPU',
  seconds: 3_600,
  callers: 500,
  lives: 9_000,
  stalledSeconds: 0,
  answers: { '200': 90_000, '503 identity_provider_unavailable': 12 },
  logLines: 100_000,
  warnings: { 'warn a <thing>': 2 },
  secrets: 5_000,
  searched: { pages: 30, values: 900, heapBytes: 90_000_000 },
  changes: { reloads: 60, secrets: 59, keys: 20, providerKeys: 5 },
  faults: [{ name: 'network to STS down', atSeconds: 12, seconds: 5 }],
  growth: [
    { measure: 'memory', of: 'replica-1.1', from: 100, to: 110, perHour: 15, bound: 49, isKept: true },
    { measure: 'memory', of: 'replica-2.7', from: 70, to: 90, perHour: 99, bound: undefined, isKept: true },
  ],
  keys: [{ kind: 'v:session', count: 12, longestSeconds: 86_400, endless: 0 }],
  samples: [0, 1_800, 3_600].flatMap((atSeconds) => [
    { atSeconds, of: 'replica-1.1', values: { memory: 100 + atSeconds / 360 } },
    { atSeconds, of: 'Redis', values: { keys: atSeconds } },
  ]),
  findings: [{ kind: 'wrong credential', atSeconds: 20, what: 'c1 at /obo', faults: ['network to STS down'] }],
  failures: 1,
}

it('replaces the previous report and keeps the rest of the page', () => {
  const once = pageWith('# Endurance\n\nWhat it is.\n', RESULT)
  expect(once).toContain('**1 failures.**')
  expect(once).toContain('| 503 identity_provider_unavailable | 12 |')
  expect(once).toContain('| `v:session` | 12 | 86400 |')
  expect(once).toContain('| memory | replica-1.1 | 100 | 110 | 15.0 | 49 |')
  expect(once).not.toContain('replica-2.7')
  for (const [name] of picturesOf(RESULT)) expect(once).toMatch(new RegExp(`\\(images/${name}\\)`))
  expect(once).not.toMatch(/\(images\/[^)]* /)
  expect(pageWith(once, { ...RESULT, failures: 0 })).toBe(once.replace('**1 failures.**', '**No failures.**'))
})

it('leaves a page that is formatted as all are, and finds its places in it again', async () => {
  const formatted = (page: string) => format(page, { parser: 'markdown', proseWrap: 'always', printWidth: 120 })
  const put = (page: string) => formatted(pageWithRuns(pageWith(page, RESULT), [RESULT, RESULT]))
  const once = await put('# Endurance\n\nWhat it is.\n')
  expect(await put(once)).toBe(once)
  expect(once).toContain('Program: mcp-extauth 1.2.3 (abc). Machine: Node v24, 2 × CPU. Seed: `7`.')
})

it('draws pictures that are XML, with a line for each process and a band for each fault', () => {
  const pictures = Object.fromEntries(picturesOf(RESULT))
  for (const svg of Object.values(pictures)) {
    const parser = new SaxesParser()
    parser.on('error', (error) => expect.fail(error.message))
    parser.write(svg).close()
  }
  expect(pictures['endurance-memory.svg']?.match(/<polyline/g)).toHaveLength(1)
  expect(pictures['endurance-memory.svg']).toContain('fill-opacity')
  expect(pictures['endurance-keys.svg']).toContain('Redis')
  // As many faults as an hour has, and what is sampled of it.
  const many = {
    ...RESULT,
    faults: Array.from({ length: 180 }, (_, at) => ({ name: 'x', atSeconds: at * 20, seconds: 9 })),
  }
  for (const [, svg] of picturesOf(many)) expect(svg.length).toBeLessThan(12_000)
})

it('says on a terminal what was wrong, when, under what, and how to see it again', () => {
  const text = textOf(RESULT)
  expect(text).toContain('1 FAILURES')
  expect(text).toContain('wrong credential: c1 at /obo [network to STS down]')
  expect(text).toContain('--seed 7')
  expect(textOf({ ...RESULT, findings: [], failures: 0 })).toContain('no failures')
})

it('puts a table of several runs beside the report of one, and says which of them had failures', () => {
  const runs = [RESULT, { ...RESULT, seed: '8', failures: 0, stalledSeconds: 1.5 }]
  const page = pageWithRuns(pageWith('# Endurance\n', RESULT), runs)
  expect(page).toContain('| 7 | 60.0 | 9000 | 90012 | 1 | 1 | 0 s |')
  expect(page).toContain('| 8 | 60.0 | 9000 | 90012 | 1 | 0 | 1.5 s |')
  expect(page).toContain('**1 failures.** The machine')
  expect(pageWithRuns(page, runs)).toBe(page)
  expect(runsText(runs)).toMatch(/FAILURES with 7$/)
  expect(runsText(runs.slice(1))).toMatch(/no failures$/)
})
