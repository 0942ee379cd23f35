import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Lab } from '../../../lab/cli/lab-compose.ts'
import { passing, runConformance } from '../../support/lab/conformance.ts'
import { startTestLab } from '../../support/lab/proxied.ts'
import { startFront } from '../../support/bridge/http-front.ts'

let lab: Lab
let front: Awaited<ReturnType<typeof startFront>>

beforeAll(async () => {
  lab = await startTestLab()
  front = await startFront(`${lab.url}/header-injection`)
})
afterAll(async () => {
  await front.close()
  await lab.close()
})

/** About HTTP itself, which ends at the bridge: statuses, headers, hosts, sessions and their polling. */
const ABOUT_HTTP: ReadonlySet<string> = new Set([
  'dns-rebinding-protection',
  'http-custom-header-server-validation',
  'http-header-validation',
  'server-session-lifecycle',
  'server-sse-polling',
  'server-stateless',
])

describe('the official conformance suite through the bridge', () => {
  test.each(['2025-11-25', '2026-07-28'])(
    'every scenario of %s that is not about HTTP itself passes',
    async (revision) => {
      const file = path.join(import.meta.dirname, `../../support/lab/conformance-${revision}.json`)
      const listed = (JSON.parse(await readFile(file, 'utf8')) as string[]).filter((name) => !ABOUT_HTTP.has(name))
      const results = await runConformance(front.url, revision)
      expect(listed.length).toBeGreaterThan(20)
      expect(passing(results).filter((name) => !ABOUT_HTTP.has(name))).toEqual(listed)
      expect(results.filter(({ scenario, failed }) => failed > 0 && !ABOUT_HTTP.has(scenario))).toEqual([])
    },
    120_000,
  )
})
