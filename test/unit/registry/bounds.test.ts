import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openSource, type Source, type SourceConfig } from '../../../src/registry/index.ts'
import { boundsFor } from '../../../src/registry/bounds.ts'
import { registryConfig } from '../../../src/resources/registry-config.ts'
import { entry, NO_METRICS, recordingLog } from '../../support/registry/setup.ts'

const log = recordingLog()
let directory: string
let source: Source | undefined
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'registry-bounds-'))
  log.lines.length = 0
})
afterEach(async () => {
  await source?.close()
  rmSync(directory, { recursive: true })
})

const write = (name: string, count: number): string => {
  const file = path.join(directory, name)
  writeFileSync(file, JSON.stringify(Array.from({ length: count }, (_, index) => entry(`${name}/e${index}`, '1'))))
  return file
}
const pages = (count: number) => ({
  request: ({ url }: { url: string }) => {
    const at = Number(new URL(url).searchParams.get('cursor') ?? '0')
    const servers = [entry(`a/p${at}`, '1')]
    const metadata = at + 1 < count ? { nextCursor: String(at + 1) } : {}
    return Promise.resolve({ status: 200, headers: {}, body: Buffer.from(JSON.stringify({ servers, metadata })) })
  },
  close: () => Promise.resolve(),
})
const open = async (config: SourceConfig, pageCount = 0): Promise<Source> => {
  const deps = { clock: Date, log, metrics: NO_METRICS, outbound: () => pages(pageCount) }
  return (source = await openSource('default', config, deps))
}

describe('a registry with more entries than it may have', () => {
  it.each<[string, (maxEntries: number) => Promise<Source>, RegExp]>([
    ['in a file', (maxEntries) => open({ file: write('one.json', 5), maxEntries }), /one\.json: 5 entries/],
    [
      'in a directory',
      (maxEntries) => {
        write('one.json', 3)
        write('two.json', 2)
        return open({ directory, maxEntries })
      },
      /: 5 or more entries/,
    ],
    ['at an upstream', (maxEntries) => open({ url: 'https://up.example/', maxEntries }, 5), /the upstream: 5 entries/],
  ])(
    '%s says how many there are, what the limit is and where it is set; with another limit it has them',
    async (_name, start, size) => {
      expect((await start(4)).state()).toMatchObject({ snapshot: undefined, problem: 'too_large' })
      expect(log.lines.at(-1)).toMatch(size)
      expect(log.lines.at(-1)).toContain('the limit is 4; raise source.maxEntries')
      await source?.close()
      expect((await start(5)).state().snapshot?.entries).toHaveLength(5)
    },
  )

  it('has 50,000 unless its file says another number, and bytes and pages that fit', () => {
    const config = (maxEntries?: number) => ({
      auth: { mode: 'anonymous' },
      registries: [{ name: 'a', source: { file: 'a.json', maxEntries } }],
    })
    expect(registryConfig().safeParse(config()).success).toBe(true)
    expect(boundsFor().entries).toBe(50_000)
    expect(registryConfig().parse(config(100_000)).registries[0]?.source.maxEntries).toBe(100_000)
    expect(registryConfig().safeParse(config(0)).success).toBe(false)
    expect(boundsFor(10)).toMatchObject({ entries: 10, pages: 1000 })
    expect(boundsFor(100_000).fileBytes).toBe(2 * boundsFor().fileBytes)
  })
})
