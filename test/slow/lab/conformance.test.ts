import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LabBackend, startLabBackend } from '../../../lab/index.ts'
import { passing, runConformance } from '../../support/lab/conformance.ts'

let backend: LabBackend

beforeAll(async () => {
  backend = await startLabBackend({
    port: 0,
    mounts: { '/open': { kind: 'none' } },
    clock: { now: () => Date.now() },
  })
})
afterAll(() => backend.close())

describe("the official conformance suite against the lab's MCP server", () => {
  test.each(['2025-11-25', '2026-07-28'])(
    'passes every listed scenario of revision %s',
    async (revision) => {
      const file = path.join(import.meta.dirname, `../../support/lab/conformance-${revision}.json`)
      const listed = JSON.parse(await readFile(file, 'utf8')) as string[]
      expect(listed.length).toBeGreaterThanOrEqual(25)
      const results = await runConformance(`${backend.url}/open/mcp`, revision)
      expect(passing(results)).toEqual(listed)
      expect(results.filter(({ failed }) => failed > 0)).toEqual([])
    },
    120_000,
  )
})
