import { describe, expect, test } from 'vitest'
import { validateMatchers } from '../../../../src/resources/index.ts'
import { parseObjects } from '../../../../src/load/index.ts'

const configWith = (matchers: readonly string[]) => ({
  apiVersion: 'extauth.dev/v1alpha1',
  kind: 'MCPExternalAuthConfig',
  metadata: { name: 'roles' },
  spec: {
    type: 'cloudSts',
    cloudSts: {
      region: 'us-east-1',
      roleMappings: matchers.map((matcher) => ({ roleArn: 'arn:aws:iam::123456789012:role/r', matcher })),
    },
  },
})
const rule = (at: number): string =>
  `"g${at}" in claims.groups && claims.dept.startsWith("x${at}") || claims.email.endsWith("@example${at}.com")`

/** CPU time in µs; throws where something is wrong with the documents. */
function cpuOf(parse: () => ReturnType<typeof parseObjects>): number {
  const before = process.cpuUsage()
  expect(parse().problems).toEqual([])
  return process.cpuUsage(before).user
}

const PATIENT = { mostMs: Number.POSITIVE_INFINITY }

describe('matchers of a large config', () => {
  test('are validated without blocking others, and only once', async () => {
    const rules = Array.from({ length: 500 }, (_, at) => rule(at))
    const config = configWith(rules)
    let turns = 0
    let isDone = false
    const others = (): void => {
      turns += 1
      if (!isDone) setImmediate(others)
    }
    setImmediate(others)
    expect(await validateMatchers(config, PATIENT)).toBe('done')
    isDone = true
    expect(turns).toBeGreaterThan(3)
    const unseen = (round: number) => configWith(rules.map((text) => `${text} || claims.round == "${round}"`))
    const validated = [0, 1, 2].map(() => cpuOf(() => parseObjects([config])))
    const unvalidated = [0, 1, 2].map((round) => cpuOf(() => parseObjects([unseen(round)])))
    expect(Math.min(...validated)).toBeLessThan(Math.min(...unvalidated))
  })

  test('say the same when they are asked again', async () => {
    const config = configWith(['claims.', 'claims.a == 1', 'unknown.b'])
    const first = parseObjects([config]).problems.map(({ path, message }) => [path, message])
    await validateMatchers(config, PATIENT)
    expect(first).toHaveLength(2)
    expect(parseObjects([config]).problems.map(({ path, message }) => [path, message])).toEqual(first)
  })

  test('are given up when they take too long, or when the caller leaves', async () => {
    const config = configWith(Array.from({ length: 500 }, (_, at) => `${rule(at)} || claims.once == "${at}"`))
    expect(await validateMatchers(config, { mostMs: 5 })).toBe('too_long')
    const caller = new AbortController()
    const judged = validateMatchers(config, { signal: caller.signal, mostMs: Number.POSITIVE_INFINITY })
    caller.abort()
    expect(await judged).toBe('gone')
  })

  test.each([[undefined], [null], ['text'], [{ spec: null }], [{ spec: { cloudSts: { roleMappings: [null, 1] } } }]])(
    'of %j are none',
    async (object) => {
      await expect(validateMatchers(object, PATIENT)).resolves.toBe('done')
    },
  )
})
