import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { passing, runConformance } from '../lab/conformance.ts'
import { openLab, type TestLab } from './lab.ts'

let lab: TestLab

beforeAll(async () => {
  lab = await openLab()
})
afterAll(() => lab.close())

describe('the official conformance suite through the proxy', () => {
  test.each(['2025-11-25', '2026-07-28'])(
    'every scenario of revision %s that passes direct passes through',
    async (revision) => {
      const list = path.join(import.meta.dirname, `../lab/conformance-${revision}.json`)
      const listed = JSON.parse(await readFile(list, 'utf8')) as string[]
      expect(listed.length).toBeGreaterThanOrEqual(25)
      // The suite sends no token, so the route for anonymous callers; the credential is injected behind its back.
      const results = await runConformance(`${lab.url}/header-injection`, revision)
      expect(passing(results)).toEqual(listed)
    },
    120_000,
  )
})
