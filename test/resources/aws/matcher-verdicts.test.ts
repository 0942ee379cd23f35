import { describe, expect, test } from 'vitest'
import { judgeMatchers } from '../../../src/resources/index.ts'
import { parseObjects } from '../../../src/load/index.ts'

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

const PATIENT = { mostMs: Number.POSITIVE_INFINITY }

describe('matchers of a large config', () => {
  test('are judged while others go on, and are not judged again', async () => {
    const config = configWith(Array.from({ length: 500 }, (_, at) => rule(at)))
    const before = process.cpuUsage()
    let turns = 0
    let isDone = false
    const others = (): void => {
      turns += 1
      if (!isDone) setImmediate(others)
    }
    setImmediate(others)
    expect(await judgeMatchers(config, PATIENT)).toBe('judged')
    isDone = true
    const judging = process.cpuUsage(before)
    expect(turns).toBeGreaterThan(3)
    const between = process.cpuUsage()
    expect(parseObjects([config]).problems).toEqual([])
    const parsing = process.cpuUsage(between)
    expect(parsing.user).toBeLessThan(judging.user)
  })

  test('say the same when they are asked again', async () => {
    const config = configWith(['claims.', 'claims.a == 1', 'nobody.b'])
    const first = parseObjects([config]).problems.map(({ path, message }) => [path, message])
    await judgeMatchers(config, PATIENT)
    expect(first).toHaveLength(2)
    expect(parseObjects([config]).problems.map(({ path, message }) => [path, message])).toEqual(first)
  })

  test('are given up when they take too long, or when nobody waits any more', async () => {
    const config = configWith(Array.from({ length: 500 }, (_, at) => `${rule(at)} || claims.once == "${at}"`))
    expect(await judgeMatchers(config, { mostMs: 5 })).toBe('too_long')
    const asker = new AbortController()
    const judged = judgeMatchers(config, { signal: asker.signal, mostMs: Number.POSITIVE_INFINITY })
    asker.abort()
    expect(await judged).toBe('gone')
  })

  test.each([[undefined], [null], ['text'], [{ spec: null }], [{ spec: { cloudSts: { roleMappings: [null, 1] } } }]])(
    'of %j are none',
    async (object) => {
      await expect(judgeMatchers(object, PATIENT)).resolves.toBe('judged')
    },
  )
})
